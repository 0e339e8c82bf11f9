"""Copy: the same rows again. A subscriber's leaf is one; so is a relay in another broker.

Fed by state, the copy of the in-edge and the output are one table: a view is not kept twice at its subscriber.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.batch import Batch
from runtime.operators.operator import Operator
from runtime.plan import OperatorSpec, Relation


@dataclass(frozen=True, slots=True)
class CopySpec(OperatorSpec):
    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator:
        return Copy(inputs, output)


class Copy(Operator):
    def __init__(self, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        self.inputs = [self.rows]  # events are copied too: their table is the output

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        """Touched: whatever the store that follows will change, `max_tick` included: it must reach the next hop."""
        if self.relation.versioned:
            return list(slots)
        rows = self.rows
        new_rows = batch.rows()
        return [
            slot
            for i, slot in enumerate(slots)
            if rows.max_tick[slot] != batch.max_ticks[i]
            or rows.visible[slot] != batch.visible[i]
            or rows.row_at(slot) != new_rows[i]
        ]

    def export(self) -> dict[str, object]:
        return {"rows": self.rows.export(), "inputs": [None], "extra": {}}

    def restore(self, data: dict[str, object], bulk_horizon: int | None = None) -> None:
        self.inputs = [None]
        super().restore({**data, "inputs": [None]}, bulk_horizon)
        self.inputs = [self.rows]
