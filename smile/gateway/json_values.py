"""Values as JSON has them, in both directions.

decimal     text ("12.50"); a number is taken too, exactly as it is written
time        ISO 8601 text in UTC
duration    a number of microseconds
tick        text: JavaScript's numbers end at 2**53
the rest    as JSON's own
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from mpl.types import FloatType
from smile.streams import StreamInput
from smile.subscription import Change
from smile.values import MICROSECOND


class BadBody(ValueError):
    """What was posted is not JSON, or not rows."""


def to_text(data: object) -> str:
    return json.dumps(data, default=_plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _plain(value: object) -> object:
    match value:
        case Decimal():
            return format(value, "f")
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case timedelta():
            return value // MICROSECOND
        case _:
            return str(value)


def change_to_text(change: Change) -> str:
    """Without its kind: the same text is told to those who come later, as part of a snapshot."""
    told: dict[str, object] = {"key": change.key, "row": change.row, "final": change.final, "as_of": str(change.as_of)}
    if change.bounds is not None:
        told["bounds"] = change.bounds
    return to_text(told)


def with_kind(kind: str, change: str) -> str:
    return f'{{"kind":"{kind}",{change[1:]}'


# In


def rows_in(body: bytes, stream: StreamInput) -> list[dict[str, object]]:
    """A JSON object, an array of objects, or one object per line. Raises BadBody naming the line or row."""
    text = _decoded(body)
    floats = {cell.name for cell in stream.cells if isinstance(cell.column.type, FloatType)}
    try:
        found = _parsed(text)
        rows = found if isinstance(found, list) else [found]
    except json.JSONDecodeError as broken:
        lines = [line for line in re.split(r"[\r\n]", text) if line.strip()]  # other breaks may be in a string
        if len(lines) < 2 or not lines[0].lstrip().startswith("{"):
            raise BadBody(f"not JSON: {broken}") from None
        rows = [_line(number, line) for number, line in enumerate(lines)]
    return [_row(number, row, floats) for number, row in enumerate(rows)]


def _decoded(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as broken:
        raise BadBody(f"not UTF-8: {broken.reason} at byte {broken.start}") from None


def _parsed(text: str) -> Any:
    """Numbers with a point stay exact; what depends on the column is decided there."""
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_no_constant, object_pairs_hook=_object)
    except RecursionError:
        raise BadBody("nested too deeply") from None
    except (json.JSONDecodeError, BadBody):
        raise
    except (ValueError, ArithmeticError):  # Python's own bounds on digits and exponents
        raise BadBody("a number that is too long") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise BadBody(f"`{name[:80]}` is in one object twice: which value is meant?")
        found[name] = value
    return found


def _no_constant(name: str) -> None:
    raise BadBody(f"{name} is not JSON")


def _line(number: int, line: str) -> Any:
    try:
        return _parsed(line)
    except json.JSONDecodeError as broken:
        raise BadBody(f"row {number} is not JSON: {broken}") from None


def _row(number: int, row: object, floats: set[str]) -> dict[str, object]:
    if not isinstance(row, Mapping):
        raise BadBody(f"row {number} is not an object with column names and values")
    return {
        name: float(value) if isinstance(value, Decimal) and name in floats else value for name, value in row.items()
    }


def ticks_to_json(ticks: Sequence[int]) -> dict[str, object]:
    first, last = (str(ticks[0]), str(ticks[-1])) if len(ticks) else (None, None)
    return {"published": len(ticks), "first_tick": first, "last_tick": last}
