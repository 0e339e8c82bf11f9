"""The ledger: what publishers meant to publish and what was acknowledged, in files that no broker touches.

One line is written before a publish is handed to the client and one after its acknowledgement, so whatever is killed
when: acknowledged events are a subset of what must be in the log, and begun ones a superset of what may be. Times are
of the machine's monotonic clock, which all processes share.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = tuple[int, ...]


class LedgerWriter:
    """Appends whole lines; usable from several threads. A line is in the file when the call returns."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._lock = threading.Lock()
        self._number = 0

    def begin(self, stream: str, rows: Sequence[Row]) -> int:
        with self._lock:
            self._number += 1
            number = self._number
        self._write({"begin": number, "at": time.monotonic(), "stream": stream, "rows": rows})
        return number

    def end(self, number: int, ticks: Sequence[int]) -> None:
        self._write({"end": number, "at": time.monotonic(), "ticks": list(ticks)})

    def fail(self, number: int, reason: str) -> None:
        self._write({"fail": number, "at": time.monotonic(), "reason": reason})

    def _write(self, line: dict[str, object]) -> None:
        os.write(self._file, json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def close(self) -> None:
        os.close(self._file)


@dataclass
class Publish:
    """One call: `ticks` is None until it was acknowledged."""

    stream: str
    rows: list[Row]
    begun: float
    ended: float | None = None
    ticks: list[int] | None = None
    failure: str = ""


def lines_of(path: Path) -> Iterator[Any]:
    """Whole lines only: whoever wrote this may have been killed in the middle of one."""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                try:
                    yield json.loads(line)
                except ValueError:
                    continue  # torn by a kill, and continued by the next life of the writer


def read_ledgers(paths: Iterable[Path]) -> list[Publish]:
    publishes: list[Publish] = []
    for path in sorted(paths):
        of_file: dict[int, Publish] = {}
        for line in lines_of(path):
            if "begin" in line:
                rows = [tuple(row) for row in line["rows"]]
                of_file[line["begin"]] = Publish(line["stream"], rows, line["at"])
            elif "end" in line:
                found = of_file[line["end"]]
                found.ticks, found.ended = line["ticks"], line["at"]
            else:
                of_file[line["fail"]].failure = line["reason"]
        publishes += of_file.values()
    return publishes
