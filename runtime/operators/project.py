"""Project: fewer columns, in any order.

Domain: as the input's. Knowledge: the row with the columns that are left. Gap, curiosity: those of the input edge.
A change in dropped columns alone touches nothing. Final when the input row is. Quench: none of its own, because a
dropped column is no reason not to hear of the row.

If a key column is dropped, several rows may become one: then `build` gives the set operator of `distinct.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.batch import Batch
from runtime.operators.distinct import Distinct
from runtime.operators.operator import EventOperator, Operator
from runtime.operators.row_operator import RowOperator, picker
from runtime.plan import OperatorSpec, PlanError, Relation


@dataclass(frozen=True, slots=True)
class ProjectSpec(OperatorSpec):
    """For each output column, key columns first, its number in the input row."""

    columns: tuple[int, ...]

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator | EventOperator:
        if len(self.columns) != output.width:
            raise PlanError(f"{output.name}: {len(self.columns)} columns chosen for a relation of {output.width}")
        if output.is_event:
            if self.columns[:1] != (0,):
                raise PlanError(f"{output.name}: events keep their tick in front")
            return EventProject(self, inputs, output)
        if sorted(self.columns[: output.key_width]) == list(range(inputs[0].key_width)):
            return Project(self, inputs, output)
        return Distinct((self.columns,), inputs, output)


class EventProject(EventOperator):
    """Events with fewer columns."""

    def __init__(self, spec: ProjectSpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        self._columns = spec.columns

    def map(self, edge: int, batch: Batch) -> Batch:
        columns = tuple(batch.columns[c] for c in self._columns)
        return Batch(columns, batch.max_ticks, batch.visible, batch.lineages)


class Project(RowOperator):
    """The key is kept: one output row for each input row."""

    def __init__(self, spec: ProjectSpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        self._key = picker(spec.columns[: output.key_width])
        self._values = picker(spec.columns[output.key_width :])

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        touched: list[int] = []
        for row, visible, tick in zip(batch.rows(), batch.visible, batch.max_ticks, strict=True):
            self.put(self._key(row), self._values(row), visible, tick, touched)
        return touched
