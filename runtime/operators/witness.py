"""First and last: the argument of the row that comes first, or last, of those whose argument is not null.

Rows are ordered by columns that tell every two apart: their ticks, then their key. Of rows that never leave and whose
order is final: only the witness counts, and it is replaced in one direction; its order columns are kept beside the
output. Of other rows: versioned, and all rows of the group are kept, because the next one must be known when the
witness leaves.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.operators.aggregate import Aggregate, AggregateSpec, Counted, Form, Function, Result, group_lists
from runtime.operators.ordering import Order, SortKey, sort_key
from runtime.operators.row_operator import Row
from runtime.plan import Column, Relation
from runtime.protocol.coverage import NO_TICK
from runtime.values import Key, Value

Part = tuple[Row, Value]  # order columns, argument


@dataclass(frozen=True, slots=True)
class WitnessSpec(AggregateSpec):
    """`order`: input columns, smallest first, nulls after all others. `last`: the last row instead of the first."""

    argument: Function
    where: Function | None
    order: tuple[int, ...]
    last: bool = False

    @property
    def is_extreme(self) -> bool:
        return True

    @property
    def needs(self) -> tuple[int, ...]:
        return self.order

    def form(self, columns: Sequence[Column], *, rows_may_leave: bool) -> Form | None:
        return None

    def build(self, relation: Relation, columns: Sequence[Column], *, rows_may_leave: bool) -> Aggregate:
        return (WitnessOfBag if rows_may_leave else Witness)(relation, self)


class _ByOrder(Aggregate):
    identity = (None,)

    def __init__(self, relation: Relation, spec: WitnessSpec) -> None:
        super().__init__(relation)
        self._last = spec.last
        self._rank = sort_key([Order(c) for c in range(len(spec.order))])

    def evaluate(self, counted: Counted, before: Callable[[Key], Sequence[Value]]) -> Result:
        return {}


class Witness(_ByOrder):
    """Of rows that never leave: the winner is replaced by a better one and by nothing else."""

    def __init__(self, relation: Relation, spec: WitnessSpec) -> None:
        super().__init__(relation, spec)
        self._best: dict[Key, tuple[SortKey, Part]] = {}

    def commit(self, counted: Counted, result: Result) -> Result:
        for group, part, sign, tick in counted:
            if sign < 0:
                continue  # its successor, in the same batch, has the same place
            rank = self._rank(part[0])
            best = self._best.get(group)
            if best is None or (rank > best[0] if self._last else rank < best[0]):
                self._best[group] = (rank, part)
                result[group] = ((part[1],), tick)
            elif group not in result:
                result[group] = ((best[1][1],), NO_TICK)
        return result

    def export(self) -> object:
        return [[list(group), [*order, value]] for group, (_, (order, value)) in self._best.items()]

    def restore(self, data: object) -> None:
        self._best = {}
        for group, values in group_lists(data):
            if not values:
                raise ValueError("a witness has its order and its value")
            order = tuple(values[:-1])
            self._best[group] = (self._rank(order), (order, values[-1]))


class WitnessOfBag(_ByOrder):
    """Of rows that may leave: all of them, in order."""

    def __init__(self, relation: Relation, spec: WitnessSpec) -> None:
        super().__init__(relation, spec)
        self._sorted: dict[Key, list[SortKey]] = {}
        self._values: dict[Key, dict[SortKey, Value]] = {}

    def commit(self, counted: Counted, result: Result) -> Result:
        # Leavers first: a row that only changed leaves and joins in the same place.
        for group, (order, value), sign, tick in sorted(counted, key=lambda item: item[2]):
            rank = self._rank(order)
            ranks = self._sorted.setdefault(group, [])
            values = self._values.setdefault(group, {})
            if sign > 0:
                insort(ranks, rank)
                values[rank] = value
            else:
                del ranks[bisect_left(ranks, rank)], values[rank]
            result[group] = ((), tick)
        for group, (_, tick) in result.items():
            ranks = self._sorted[group]
            if ranks:
                result[group] = ((self._values[group][ranks[-1 if self._last else 0]],), tick)
            else:
                result[group] = (self.identity, tick)
                del self._sorted[group], self._values[group]
        return result
