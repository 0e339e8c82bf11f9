"""Count, sum and average of different values: each value of a group counts once, however many rows have it.

Of rows that never leave the set only grows: the number rises with first witnesses, and further ones are no news. If
rows may leave, the relation is versioned and each value has the number of rows that support it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.operators.aggregate import Aggregate, AggregateSpec, Counted, Form, Function, Result, group_lists
from runtime.operators.totals import CountSpec
from runtime.plan import Column, Relation
from runtime.values import Key, Value


@dataclass(frozen=True, slots=True)
class OfDistinctSpec(AggregateSpec):
    """A total of `totals.py` over different values."""

    total: AggregateSpec

    @property
    def argument(self) -> Function | None:  # type: ignore[override]
        return self.total.argument

    @property
    def where(self) -> Function | None:  # type: ignore[override]
        return self.total.where

    @property
    def width(self) -> int:
        return self.total.width

    def form(self, columns: Sequence[Column], *, rows_may_leave: bool) -> Form | None:
        return None

    def build(self, relation: Relation, columns: Sequence[Column], *, rows_may_leave: bool) -> Aggregate:
        total = self.total.build(relation, columns, rows_may_leave=rows_may_leave)
        return OfDistinct(total, rows_may_leave=rows_may_leave)


@dataclass(frozen=True, slots=True)
class CountDistinctSpec(AggregateSpec):
    """Number of different arguments."""

    argument: Function
    where: Function | None = None

    def form(self, columns: Sequence[Column], *, rows_may_leave: bool) -> Form | None:
        return None

    def build(self, relation: Relation, columns: Sequence[Column], *, rows_may_leave: bool) -> Aggregate:
        total = OfDistinctSpec(CountSpec(self.argument, self.where))
        return total.build(relation, columns, rows_may_leave=rows_may_leave)


class OfDistinct(Aggregate):
    """Tells the total only of values that appear or vanish. Rows that may leave take their support with them."""

    def __init__(self, total: Aggregate, *, rows_may_leave: bool) -> None:
        self._total = total
        self.identity = total.identity
        self._rows_may_leave = rows_may_leave
        self._support: dict[Key, dict[Value, int]] = {}
        self._pending: dict[tuple[Key, Value], int] = {}
        self._news: Counted = []

    def evaluate(self, counted: Counted, before: Callable[[Key], Sequence[Value]]) -> Result:
        self._pending, self._news = {}, []
        for group, value, sign, tick in counted:
            if sign < 0 and not self._rows_may_leave:
                continue  # its successor, in the same batch, has the same value
            at = (group, value)
            old = self._pending.get(at, -1)
            if old < 0:
                old = self._support.get(group, {}).get(value, 0)
            support = old + sign if self._rows_may_leave else 1
            self._pending[at] = support
            if bool(old) != bool(support):
                self._news.append((group, value, sign, tick))
        return self._total.evaluate(self._news, before)

    def commit(self, counted: Counted, result: Result) -> Result:
        for (group, value), support in self._pending.items():
            values = self._support.setdefault(group, {})
            if support:
                values[value] = support
            else:
                values.pop(value, None)
                if not values:
                    del self._support[group]
        return self._total.commit(self._news, result)

    def export(self) -> object:
        values = [[list(group), list(support)] for group, support in self._support.items()]
        return [values, self._total.export()]

    def restore(self, data: object) -> None:
        if not isinstance(data, list | tuple) or len(data) != 2:
            raise ValueError("a total of different values has the values and the total")
        self._support = {key: dict.fromkeys(values, 1) for key, values in group_lists(data[0])}
        self._total.restore(data[1])
