"""Best: for each group the row that comes first in an order; `latest` and `first` of rows that are not events.

Domain: of rows that only come and never change, a row dominated by one that comes earlier in the order: only the winner
counts, so max_tick is the winner's. Of rows that change or vanish the relation is versioned: all candidates are kept,
and a group depends on every tick that reached it. Knowledge: (group, winning row). Gap, curiosity: those of the input
edge. Final never, before somebody closes the group. Quench: none.

Events by their own tick have `latest.py`, which keeps the winners only.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass

from runtime.batch import Batch
from runtime.operators.operator import Operator
from runtime.operators.ordering import Order, SortKey, sort_key
from runtime.operators.row_operator import Row, RowOperator, are_final, old_rows, picker
from runtime.plan import OperatorSpec, PlanError, Relation
from runtime.values import Key


@dataclass(frozen=True, slots=True)
class BestSpec(OperatorSpec):
    """`columns`: for each output column, the group's first, its number in the input row. `order` tells every two rows
    of a group apart."""

    columns: tuple[int, ...]
    order: tuple[Order, ...]

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator:
        if len(self.columns) != output.width:
            raise PlanError(f"{output.name}: {len(self.columns)} columns chosen for a relation of {output.width}")
        if not output.versioned and not are_final(inputs[0], [part.column for part in self.order]):
            raise PlanError(f"{output.name}: the best by columns that change are versioned")
        return Best(self, inputs, output)


class Best(RowOperator):
    """`_ranked` lists the visible input rows of each group by their slots in the copy, best first."""

    def __init__(self, spec: BestSpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        self._group = picker(spec.columns[: output.key_width])
        self._values = picker(spec.columns[output.key_width :])
        self._rank = sort_key(spec.order)
        self._wanders = not are_final(inputs[0], spec.columns[: output.key_width])
        self._ranked: dict[Key, list[tuple[SortKey, int]]] = {}

    def keeps_events(self, edge: int) -> bool:
        return True

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        rows = batch.rows()
        reached: dict[Key, tuple[int, Row]] = {}  # with the largest tick, and a row for want of a better one
        for i, old in enumerate(old_rows(self.inputs[edge], slots)):
            for row in (old, rows[i]):
                if row is not None:
                    group = self._group(row)
                    tick = max(batch.max_ticks[i], reached[group][0] if group in reached else batch.max_ticks[i])
                    reached[group] = (tick, row)
            if old is not None:
                ranked = self._ranked[self._group(old)]
                del ranked[bisect_left(ranked, (self._rank(old), slots[i]))]
            if batch.visible[i]:
                insort(self._ranked.setdefault(self._group(rows[i]), []), (self._rank(rows[i]), slots[i]))
        touched: list[int] = []
        at = {slot: i for i, slot in enumerate(slots)}
        for group, (tick, row) in reached.items():
            self._settle(group, tick, row, at, batch, touched)
        if self._wanders:
            self.wander(batch, self.rows.slots(), touched)
        return touched

    def _settle(self, group: Key, tick: int, row: Row, at: dict[int, int], batch: Batch, touched: list[int]) -> None:
        ranked = self._ranked.get(group)
        if not ranked:
            self._ranked.pop(group, None)
            self.put(group, self._values(row), False, tick, touched)
            return
        copy = self.inputs[0]
        assert copy is not None, "all rows are remembered"
        slot = ranked[0][1]
        i = at.get(slot, -1)
        best = tuple([column[i] for column in batch.columns]) if i >= 0 else copy.row_at(slot)
        if not self.relation.versioned:
            tick = batch.max_ticks[i] if i >= 0 else copy.max_tick[slot]
        self.put(group, self._values(best), True, tick, touched)

    def restore_extra(self, data: dict[str, object]) -> None:
        copy = self.inputs[0]
        assert copy is not None, "all rows are remembered"
        if self._wanders:
            self.recall_wanderers(0)
        self._ranked = {}
        for slot in copy.visible_slots():
            row = copy.row_at(slot)
            insort(self._ranked.setdefault(self._group(row), []), (self._rank(row), slot))
