"""What the reports of bench/ share: tables, files with results, the size of the machine. Not a benchmark itself."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, object]:
    """What figures depend on; no names of hosts."""
    return {
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def print_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """The first column to the left, the others to the right."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(len(one[i]) for one in [heads, *cells]) for i in range(len(heads))]
    print(f"\n{title}")
    for line in (heads, *cells):
        rest = "".join(f"{cell:>{width + 2}}" for cell, width in zip(line[1:], widths[1:], strict=True))
        print(f"  {line[0]:<{widths[0]}}{rest}".rstrip())


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:,.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def write_results(name: str, results: object) -> None:
    """`bench/results/NAME.json`: the newest run on this machine."""
    RESULTS.mkdir(exist_ok=True)
    about = {"when": datetime.now(UTC).isoformat(timespec="seconds"), "command": sys.argv, "machine": machine()}
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({**about, "results": results}, indent=1) + "\n", encoding="utf-8")
    print(f"\nwritten to bench/results/{path.name}")
