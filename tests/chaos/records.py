"""What a subscriber showed: one line for every batch that the API handed out, with its time.

A record outlives its writer. A subscriber that resumes by token marks in its record when it took the token and when
it went on from it; whoever reads the record then returns to the rows it had at that mark, as a user would who keeps
rows and token together.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from smile.subscription import ChangeBatch
from tests.chaos.ledger import lines_of


@dataclass(frozen=True)
class Shown:
    """One row of one batch. `low` and `high` only with bounds."""

    key: tuple[int, ...]
    row: dict[str, int]
    visible: bool
    final: bool
    as_of: int
    low: dict[str, int | None] | None = None
    high: dict[str, int | None] | None = None


@dataclass(frozen=True)
class Entry:
    """`number` counts tokens."""

    what: Literal["start", "snapshot", "changes", "token", "resume"]
    at: float
    rows: tuple[Shown, ...] = ()
    number: int = 0


class RecordWriter:
    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        self._file.write(b"\n")  # ends a line that a killed life left behind

    def mark(self, what: str, number: int = 0) -> None:
        self._write({"what": what, "at": time.monotonic(), "number": number})

    def batch(self, batch: ChangeBatch) -> None:
        rows = []
        for change in batch.changes():
            bounds = change.bounds
            rows.append(
                [
                    change.key,
                    change.row,
                    change.kind != "gone",
                    change.final,
                    change.as_of,
                    None if bounds is None else {name: pair[0] for name, pair in bounds.items()},
                    None if bounds is None else {name: pair[1] for name, pair in bounds.items()},
                ]
            )
        self._write({"what": batch.kind, "at": time.monotonic(), "rows": rows})

    def _write(self, line: dict[str, object]) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def close(self) -> None:
        self._file.close()


def read_record(path: Path) -> Iterator[Entry]:
    for line in lines_of(path):
        rows = tuple(Shown(tuple(key), *rest) for key, *rest in line.get("rows", ()))
        yield Entry(line["what"], line["at"], rows, line.get("number", 0))
