"""Rows from text: JSON lines and CSV, each row with the number of its line, each mistake with its reason.

Called by `smile publish`. It knows the columns of a stream, but sends nothing.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from mpl.typed import Column

LINE_CHARACTERS_MAX = 16 * 2**20
TOO_LONG = f"longer than {LINE_CHARACTERS_MAX} characters"
FORMATS = ("jsonl", "csv")

Row = dict[str, object]


@dataclass(frozen=True)
class Line:
    """One row, or why it is none. `number` counts lines of the file from 1."""

    number: int
    row: Row | None
    reason: str = ""


def bounded(text: TextIO) -> Iterator[str]:
    """The lines of a file; of one that is too long only its beginning, which is too long as well: so a file without
    lines does not fill the memory."""
    while line := text.readline(LINE_CHARACTERS_MAX + 1):
        yield line
        while len(line) > LINE_CHARACTERS_MAX and not line.endswith(("\n", "\r")):
            line = text.readline(LINE_CHARACTERS_MAX + 1)


def read_json_lines(lines: Iterable[str], columns: Mapping[str, Column]) -> Iterator[Line]:
    """One JSON object per line; empty lines are passed over. Numbers with a point are taken exactly."""
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        if len(text) > LINE_CHARACTERS_MAX:
            yield Line(number, None, TOO_LONG)
            continue
        try:
            found = json.loads(text, parse_float=Decimal, object_pairs_hook=_object)
        except _Twice as twice:
            yield Line(number, None, str(twice))
            continue
        except json.JSONDecodeError as error:  # its own words count lines within this one
            yield Line(number, None, f"not JSON: {error.msg} (character {error.pos + 1})")
            continue
        except (ValueError, RecursionError) as error:
            yield Line(number, None, f"not JSON: {error}")
            continue
        if not isinstance(found, dict):
            yield Line(number, None, f"not a JSON object but {_kind(found)}")
            continue
        yield Line(number, {name: _plain(value, columns.get(name)) for name, value in found.items()})


class _Twice(Exception):
    """A name that an object has twice: which value is meant?"""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Twice(_said_twice([name for name, _ in pairs]))
    return found


def _said_twice(names: list[str]) -> str:
    """Empty if each is there once."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return f"column `{name}` is there twice"
        seen.add(name)
    return ""


def _plain(value: Any, column: Column | None) -> object:
    """Floats are what float columns take; everything else with a point is exact."""
    from mpl.types import FloatType

    if isinstance(value, Decimal) and (column is None or isinstance(column.type, FloatType)):
        return float(value)
    return value


def _kind(value: object) -> str:
    return {list: "a list", str: "text", bool: "true or false", type(None): "null"}.get(type(value), "a number")


def read_csv(lines: Iterable[str], columns: Mapping[str, Column]) -> Iterator[Line]:
    """The first line names the columns. An empty cell of a column that may be null is null."""
    counted = _Counted(lines)
    reader = csv.reader(counted, strict=True)
    names: list[str] | None = None
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield Line(counted.number, None, f"not CSV: {error}")
            continue
        if not cells:
            continue
        if names is None:
            names = [cell.strip() for cell in cells]
            twice = _said_twice(names)
            if twice:
                yield Line(counted.number, None, f"{twice}: no line after this one is read")
                return
            continue
        yield _row(counted.number, names, cells, columns)


def _row(number: int, names: list[str], cells: list[str], columns: Mapping[str, Column]) -> Line:
    from smile.values import Refused, from_text

    if len(cells) != len(names):
        return Line(number, None, f"{len(cells)} cells, the first line names {len(names)} columns")
    row: Row = {}
    for name, cell in zip(names, cells, strict=True):
        column = columns.get(name)
        if column is None:
            row[name] = cell  # the stream says that it has no such column, and which it has
            continue
        try:
            row[name] = None if cell == "" and column.nullable else from_text(cell, column.type)
        except Refused as refused:
            return Line(number, None, f"column `{name}`: {cell!r} {refused}")
    return Line(number, row)


class _Counted:
    """Lines, and how many of them were read: a quoted cell may span several."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self.number = 0

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number += 1
        if len(line) > LINE_CHARACTERS_MAX:
            raise csv.Error(TOO_LONG)
        return line
