"""Min and max; any and all, which are the max and the min of conditions and start at false and true.

Of rows that never leave and whose argument only moves that way: falls or rises, depends on the witness alone, merges
without harm when repeated, and needs no state. Of other rows: versioned, and all values of the group are kept, because
the next best must be known when the best leaves.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.operators.aggregate import Aggregate, AggregateSpec, Counted, Form, Function, Result
from runtime.plan import Column, Relation
from runtime.values import Key, Value


@dataclass(frozen=True, slots=True)
class MinSpec(AggregateSpec):
    """Smallest argument, null for none."""

    argument: Function
    where: Function | None = None

    @property
    def is_extreme(self) -> bool:
        return True

    def form(self, columns: Sequence[Column], *, rows_may_leave: bool) -> Form | None:
        return None if rows_may_leave else Form("min", (None,))

    def build(self, relation: Relation, columns: Sequence[Column], *, rows_may_leave: bool) -> Aggregate:
        return ExtremeOfBag(relation, largest=False)


@dataclass(frozen=True, slots=True)
class MaxSpec(AggregateSpec):
    """Largest argument, null for none."""

    argument: Function
    where: Function | None = None

    @property
    def is_extreme(self) -> bool:
        return True

    def form(self, columns: Sequence[Column], *, rows_may_leave: bool) -> Form | None:
        return None if rows_may_leave else Form("max", (None,))

    def build(self, relation: Relation, columns: Sequence[Column], *, rows_may_leave: bool) -> Aggregate:
        return ExtremeOfBag(relation, largest=True)


@dataclass(frozen=True, slots=True)
class AnySpec(AggregateSpec):
    """Is the argument true for some row? False for none."""

    argument: Function
    where: Function | None = None

    @property
    def is_extreme(self) -> bool:
        return True

    def form(self, columns: Sequence[Column], *, rows_may_leave: bool) -> Form | None:
        return None if rows_may_leave else Form("max", (False,))

    def build(self, relation: Relation, columns: Sequence[Column], *, rows_may_leave: bool) -> Aggregate:
        return ExtremeOfBag(relation, largest=True, of_nothing=False)


@dataclass(frozen=True, slots=True)
class AllSpec(AggregateSpec):
    """Is the argument false for no row? True for none."""

    argument: Function
    where: Function | None = None

    @property
    def is_extreme(self) -> bool:
        return True

    def form(self, columns: Sequence[Column], *, rows_may_leave: bool) -> Form | None:
        return None if rows_may_leave else Form("min", (True,))

    def build(self, relation: Relation, columns: Sequence[Column], *, rows_may_leave: bool) -> Aggregate:
        return ExtremeOfBag(relation, largest=False, of_nothing=True)


class ExtremeOfBag(Aggregate):
    """Min or max of rows that may leave: all values of the group, with the number of rows that have each."""

    def __init__(self, relation: Relation, *, largest: bool, of_nothing: Value = None) -> None:
        super().__init__(relation)
        self.identity = (of_nothing,)
        self._last = -1 if largest else 0
        self._counts: dict[Key, dict[Value, int]] = {}
        self._sorted: dict[Key, list[Value]] = {}

    def evaluate(self, counted: Counted, before: Callable[[Key], Sequence[Value]]) -> Result:
        return {}

    def commit(self, counted: Counted, result: Result) -> Result:
        for group, value, sign, tick in counted:
            counts = self._counts.setdefault(group, {})
            order = self._sorted.setdefault(group, [])
            count = counts.get(value, 0) + sign
            counts[value] = count
            if sign > 0 and count == 1:
                insort(order, value)
            elif count == 0:
                del counts[value]
                del order[bisect_left(order, value)]
            result[group] = ((), tick)
        for group, (_, tick) in result.items():
            order = self._sorted[group]
            result[group] = ((order[self._last],) if order else self.identity, tick)
            if not order:
                del self._sorted[group], self._counts[group]
        return result
