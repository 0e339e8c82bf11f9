"""The gate of one stream in a broker: rules about values and about earlier events, checked where the log is.

A publisher has checked most of this itself (`smile/streams.py`), but a broker trusts nobody, and only the place where
all publishes meet knows what is `unique`. The reason for a refusal travels as text to the publisher, which makes the
same `PublishError` of it that the embedded system raises; values stay where they are: the publisher has them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np

from mpl.scaled import limits_of
from mpl.types import INT_MAX, INT_MIN, EnumType, TextType, Value
from runtime.columns import Numbers
from smile.errors import PROBLEMS_SHOWN_MAX, Problem, PublishError
from smile.streams import Columns, StreamInput
from smile.values import Cell, Refused, decode, encode


class StreamGate:
    """Implements the gate of `runtime/broker` for one stream. `note` is called once the log has the rows."""

    def __init__(self, stream: StreamInput) -> None:
        self._stream = stream
        self._limits = [_limits(cell) for cell in stream.cells]
        self._remembers = stream.remembers

    @property
    def remembers(self) -> bool:
        """Must it be shown the log before it can judge?"""
        return self._stream.remembers

    @property
    def needs_all(self) -> bool:
        """Would a trimmed log make it forget what it must know?"""
        return self._stream.is_unique

    def reason_to_refuse(self, columns: Columns) -> str | None:
        """None if these rows may be logged. Their number and the types of their values have been checked."""
        for at, values in enumerate(columns):
            if not _is_within(self._limits[at], values):
                problems = _problems_of(self._stream.cells[at], values)
                if problems:
                    return _text(problems, more=len(problems) >= PROBLEMS_SHOWN_MAX)
        if not self._remembers:
            return None
        try:
            self._stream.check_history(columns)
        except PublishError as error:
            return _text(error.problems, more=len(error.problems) >= PROBLEMS_SHOWN_MAX)
        return None

    def note(self, columns: Columns) -> None:
        if self._remembers:
            self._stream.note(columns)

    def forget(self) -> None:
        self._stream.forget()


def _problems_of(cell: Cell, values: Sequence[Value]) -> list[Problem]:
    """The first few rows whose value the column does not take."""
    problems: list[Problem] = []
    for row, value in enumerate(values):
        try:
            _check(cell, value)
        except Refused as refused:
            problems.append(Problem(cell.name, None, str(refused), row))
            if len(problems) >= PROBLEMS_SHOWN_MAX:
                break
    return problems


def _limits(cell: Cell) -> tuple[float, float]:
    """Smallest and largest value by type and declaration."""
    low, high = limits_of(cell.column.type) or (-math.inf, math.inf)
    bounds = cell.column.bounds
    return max(low, -math.inf if bounds.low is None else bounds.low), min(
        high, math.inf if bounds.high is None else bounds.high
    )


def _is_within(limits: tuple[float, float], values: Sequence[Value]) -> bool:
    """Surely, by the extremes of a whole column; everything else is looked at one by one. A nan is neither above nor
    below anything, hence not within."""
    low, high = limits
    if type(values) is list and len(values) == 1:
        return type(values[0]) is int and low <= values[0] <= high
    if isinstance(values, Numbers):
        if values.dtype.kind != "i":
            least, most = np.ndarray.min(values), np.ndarray.max(values)
            return bool(least >= low and most <= high and math.isfinite(least) and math.isfinite(most))
        if low <= INT_MIN and high >= INT_MAX:
            return True  # whatever fits the array
        plain = values.view(np.ndarray)
        if low == 0 and high <= INT_MAX:  # without a sign, what is below 0 is above everything: one look is enough
            return bool(np.maximum.reduce(plain.view(np.uint64)) <= high)
        return bool(np.minimum.reduce(plain) >= low and np.maximum.reduce(plain) <= high)
    return False


def _check(cell: Cell, value: Value) -> None:
    type_ = cell.column.type
    if value is None:
        cell.encode(None)
    elif isinstance(type_, TextType | EnumType):
        encode(value, type_)
    elif isinstance(value, float) and not math.isfinite(value):
        raise Refused("is not a finite number")
    else:
        limits = limits_of(type_)
        assert not isinstance(value, str), "types have been checked"
        if limits is not None and not limits[0] <= value <= limits[1]:
            raise Refused(f"does not fit {type_}")
        cell.check_range(value)


# What travels


def _text(problems: Sequence[Problem], *, more: bool) -> str:
    found = [[problem.column, problem.rule, problem.row] for problem in problems]
    return json.dumps({"problems": found, "more": more})


def publish_error(stream: StreamInput, reason: str, columns: Columns, *, single: bool) -> PublishError:
    """What the publisher of these rows raises for a gate's reason; a reason that no gate wrote is shown as it is."""
    try:
        told = json.loads(reason)
        found = [
            Problem(
                str(column), _value(stream, str(column), int(row), columns), str(rule), None if single else int(row)
            )
            for column, rule, row in told["problems"][:PROBLEMS_SHOWN_MAX]
        ]
        return PublishError(stream.name, found, more=bool(told["more"]))
    except (ValueError, TypeError, KeyError, IndexError):
        return PublishError(stream.name, [Problem(None, None, reason)])


def _value(stream: StreamInput, names: str, row: int, columns: Columns) -> object:
    """The value of a column, or of the several that are unique together."""
    at = {cell.name: number for number, cell in enumerate(stream.cells)}
    found = tuple(decode(columns[at[n]][row], stream.cells[at[n]].column.type) for n in names.split(", "))
    return found[0] if len(found) == 1 else found
