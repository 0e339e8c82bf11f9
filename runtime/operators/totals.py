"""Sum, signed sum, count and average: every row adds its part, and takes it away when it leaves.

Domain of final inputs: sum of non-negatives and count rise; a signed sum is a pair (p, n) of rising numbers, shown as
p - n; an average is (sum, count), shown as sum / count. Depends on every contributing tick. No state beside the output
columns, except that float sums are kept exactly, because otherwise they would depend on the order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.operators.aggregate import Aggregate, AggregateSpec, Counted, Form, Function, Result, group_lists
from runtime.operators.errors import INT_MAX, INT_MIN, NotFinite, Overflow
from runtime.plan import Column, Relation, ValueType
from runtime.protocol.coverage import NO_TICK
from runtime.shown import shown_group
from runtime.values import Key, Value

FLOAT_UNIT = 2**1074
"""Every finite float is a whole multiple of 1 / FLOAT_UNIT."""


@dataclass(frozen=True, slots=True)
class SumSpec(AggregateSpec):
    """Sum of an argument: 0 for no rows."""

    argument: Function
    where: Function | None = None

    def form(self, columns: Sequence[Column], *, rows_may_leave: bool) -> Form | None:
        return None if _has_floats(columns) else Form("sum", (0,))

    def build(self, relation: Relation, columns: Sequence[Column], *, rows_may_leave: bool) -> Aggregate:
        return _total(relation, _as_is, columns)


@dataclass(frozen=True, slots=True)
class SignedSumSpec(AggregateSpec):
    """Sums of the positive and of the negative part of an argument, in two columns."""

    argument: Function
    where: Function | None = None

    @property
    def width(self) -> int:
        return 2

    def form(self, columns: Sequence[Column], *, rows_may_leave: bool) -> Form | None:
        return None if _has_floats(columns) else Form("signed", (0, 0))

    def build(self, relation: Relation, columns: Sequence[Column], *, rows_may_leave: bool) -> Aggregate:
        return _total(relation, _by_sign, columns)


@dataclass(frozen=True, slots=True)
class AverageSpec(AggregateSpec):
    """Sum and count of an argument, in two columns."""

    argument: Function
    where: Function | None = None

    @property
    def width(self) -> int:
        return 2

    def form(self, columns: Sequence[Column], *, rows_may_leave: bool) -> Form | None:
        return None if _has_floats(columns) else Form("average", (0, 0))

    def build(self, relation: Relation, columns: Sequence[Column], *, rows_may_leave: bool) -> Aggregate:
        return _total(relation, _with_one, columns)


@dataclass(frozen=True, slots=True)
class CountSpec(AggregateSpec):
    """Number of rows, or of those whose argument is not null."""

    argument: Function | None = None
    where: Function | None = None

    def form(self, columns: Sequence[Column], *, rows_may_leave: bool) -> Form:
        return Form("count", (0,))

    def build(self, relation: Relation, columns: Sequence[Column], *, rows_may_leave: bool) -> Aggregate:
        return Total(relation, _one, 1)


Parts = Callable[[Value], tuple[int, ...]]


def _as_is(value: Value) -> tuple[int, ...]:
    return (_whole(value),)


def _by_sign(value: Value) -> tuple[int, ...]:
    whole = _whole(value)
    return (whole, 0) if whole >= 0 else (0, -whole)


def _with_one(value: Value) -> tuple[int, ...]:
    return (_whole(value), 1)


def _one(value: Value) -> tuple[int, ...]:  # noqa: ARG001
    return (1,)


def _has_floats(columns: Sequence[Column]) -> bool:
    return any(column.type is ValueType.FLOAT for column in columns)


def _total(relation: Relation, parts: Parts, columns: Sequence[Column]) -> Aggregate:
    is_float = [column.type is ValueType.FLOAT for column in columns]
    return FloatTotal(relation, parts, is_float) if any(is_float) else Total(relation, parts, len(columns))


class Total(Aggregate):
    """Whole numbers that each row adds to, and takes from when it leaves: where that depends on more than the row."""

    def __init__(self, relation: Relation, parts: Parts, width: int) -> None:
        super().__init__(relation)
        self._parts = parts
        self.identity = (0,) * width

    def evaluate(self, counted: Counted, before: Callable[[Key], Sequence[Value]]) -> Result:
        totals: dict[Key, list[int]] = {}
        ticks: dict[Key, int] = {}
        parts = self._parts
        for group, value, sign, tick in counted:
            total = totals.get(group)
            if total is None:
                total = totals[group] = [_whole(part) for part in before(group)]
            for i, part in enumerate(parts(value)):
                if part:
                    total[i] += sign * part
                    ticks[group] = max(tick, ticks.get(group, tick))
        for group, total in totals.items():
            if min(total) < INT_MIN or max(total) > INT_MAX:
                place = shown_group(self._relation, group)
                raise Overflow(self._relation.name, f"{place} would have the total {total}")
        return {group: (tuple(total), ticks.get(group, NO_TICK)) for group, total in totals.items()}


def _whole(value: Value) -> int:
    assert isinstance(value, int), f"{value!r} in a sum of whole numbers"
    return value


class FloatTotal(Aggregate):
    """As `Total`, for floats: the totals are kept exactly, so they are the same whatever the order of the rows."""

    def __init__(self, relation: Relation, parts: Parts, is_float: list[bool]) -> None:
        super().__init__(relation)
        self._parts = parts
        self._units = [FLOAT_UNIT if floats else 1 for floats in is_float]
        self._is_float = is_float
        self.identity = tuple(0.0 if floats else 0 for floats in is_float)
        self._exact: dict[Key, tuple[int, ...]] = {}
        self._pending: dict[Key, tuple[int, ...]] = {}

    def evaluate(self, counted: Counted, before: Callable[[Key], Sequence[Value]]) -> Result:
        totals: dict[Key, list[int]] = {}
        ticks: dict[Key, int] = {}
        for group, value, sign, tick in counted:
            total = totals.setdefault(group, list(self._exact.get(group, (0,) * len(self._units))))
            for i, part in enumerate(self._parts(self._scaled(group, value))):
                total[i] += sign * part
                ticks[group] = max(tick, ticks.get(group, tick))
        self._pending = {group: tuple(total) for group, total in totals.items()}
        return {group: (self._shown(group, total), ticks.get(group, NO_TICK)) for group, total in self._pending.items()}

    def commit(self, counted: Counted, result: Result) -> Result:
        for group, total in self._pending.items():
            if any(total):
                self._exact[group] = total
            else:
                self._exact.pop(group, None)
        return result

    def _scaled(self, group: Key, value: Value) -> int:
        assert isinstance(value, int | float)
        try:
            numerator, denominator = float(value).as_integer_ratio()
        except (OverflowError, ValueError) as broken:
            place = shown_group(self._relation, group)
            raise NotFinite(self._relation.name, f"{value!r} in the sum of {place}") from broken
        return numerator * (FLOAT_UNIT // denominator)

    def _shown(self, group: Key, total: tuple[int, ...]) -> tuple[Value, ...]:
        try:
            return tuple(
                part / unit if floats else part
                for part, unit, floats in zip(total, self._units, self._is_float, strict=True)
            )
        except OverflowError as broken:
            place = shown_group(self._relation, group)
            raise Overflow(self._relation.name, f"the sum of {place} is beyond the largest float") from broken

    def export(self) -> object:
        return [[list(group), [hex(part) for part in total]] for group, total in self._exact.items()]

    def restore(self, data: object) -> None:
        self._exact = {key: tuple(int(str(part), 16) for part in parts) for key, parts in group_lists(data)}
