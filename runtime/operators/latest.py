"""Latest and first by key: for each group the event that is last, or first, by a column and then by tick.

Domain: a row dominated by one with a larger (smaller) order key; events are final, so the winner over what is covered
only moves one way. Knowledge: (group, winning event). Only the winner's tick counts, everything else is don't care; so
max_tick is the winner's. Gap, curiosity: those of the event edge. First by tick is final once the horizon has
passed it (`Finality.HORIZON`). Quench: none, an event edge is asked by tick, not by key.

The order column and the tick must be in the output: they are what a later event is compared with.
Rows of a state relation that change or vanish need `top.py` with a limit of 1 instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.batch import Batch
from runtime.operators.operator import Operator
from runtime.operators.ordering import Order, SortKey, sort_key
from runtime.operators.row_operator import Row, RowOperator, picker
from runtime.plan import OperatorSpec, PlanError, Relation
from runtime.values import Key


@dataclass(frozen=True, slots=True)
class LatestSpec(OperatorSpec):
    """`columns`: for each output column, the group's first, its number in the event. `by`: the order column, if it is
    not the tick (column 0). `first`: the smallest instead of the largest."""

    columns: tuple[int, ...]
    by: int = 0
    first: bool = False

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator:
        if not inputs[0].is_event or len(self.columns) != output.width:
            raise PlanError(f"{output.name}: needs events, and a column number for each of its {output.width} columns")
        if 0 not in self.columns or self.by not in self.columns:
            raise PlanError(f"{output.name}: the tick and the order column must be among its columns")
        return Latest(self, inputs, output)


class Latest(RowOperator):
    def __init__(self, spec: LatestSpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        self._group = picker(spec.columns[: output.key_width])
        self._values = picker(spec.columns[output.key_width :])
        down = not spec.first  # best = first in this order
        self._rank = sort_key((Order(spec.by, down), Order(0, down)))
        by, tick = spec.columns.index(spec.by), spec.columns.index(0)
        self._rank_held = sort_key((Order(by, down), Order(tick, down)))

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        best: dict[Key, tuple[SortKey, Row, int]] = {}
        for row, tick in zip(batch.rows(), batch.max_ticks, strict=True):
            group = self._group(row)
            rank = self._rank(row)
            if group not in best or rank < best[group][0]:
                best[group] = (rank, row, tick)
        touched: list[int] = []
        for group, (rank, row, tick) in best.items():
            slot = self.rows.slot_of(group)
            if slot < 0 or rank < self._rank_held(self.rows.row_at(slot)):
                self.put(group, self._values(row), True, tick, touched)
        return touched
