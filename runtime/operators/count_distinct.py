"""Count distinct: the size of a set of values for each group.

Of rows that never leave the set only grows: the number rises with first witnesses, and further ones are no news. If
rows may leave, the relation is versioned and each value has the number of rows that support it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.operators.aggregate import Aggregate, AggregateSpec, Function, Prepared, Result, group_lists
from runtime.plan import Column
from runtime.protocol.coverage import NO_TICK
from runtime.values import Key, Value


@dataclass(frozen=True, slots=True)
class CountDistinctSpec(AggregateSpec):
    """Number of different arguments."""

    argument: Function
    where: Function | None = None

    def build(self, relation: str, columns: Sequence[Column], *, rows_may_leave: bool) -> Aggregate:  # noqa: ARG002
        return CountDistinct(relation, self.argument, self.where, rows_may_leave=rows_may_leave)


class CountDistinct(Aggregate):
    """Number of different values. Rows that may leave take their support with them."""

    identity = (0,)

    def __init__(self, relation: str, argument: Function, where: Function | None, *, rows_may_leave: bool) -> None:
        super().__init__(relation, argument, where)
        self._rows_may_leave = rows_may_leave
        self._support: dict[Key, dict[Value, int]] = {}

    def evaluate(self, counted: Prepared, before: Callable[[Key], Sequence[Value]]) -> Result:  # noqa: ARG002
        return {}

    def commit(self, counted: Prepared, result: Result) -> Result:
        ticks: dict[Key, int] = {}
        for group, value, sign, tick in counted:
            support = self._support.setdefault(group, {})
            ticks.setdefault(group, NO_TICK)
            if not self._rows_may_leave:
                if sign > 0 and value not in support:  # further witnesses are no news
                    support[value] = 1
                    ticks[group] = max(tick, ticks[group])
                continue
            support[value] = support.get(value, 0) + sign
            if not support[value]:
                del support[value]
            ticks[group] = max(tick, ticks[group])
        for group, tick in ticks.items():
            result[group] = ((len(self._support[group]),), tick)
            if not self._support[group]:
                del self._support[group]
        return result

    def export(self) -> object:
        return [[list(group), list(support)] for group, support in self._support.items()]

    def restore(self, data: object) -> None:
        self._support = {key: dict.fromkeys(values, 1) for key, values in group_lists(data)}
