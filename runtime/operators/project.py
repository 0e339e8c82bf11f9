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
from runtime.loops.code import Code
from runtime.operators.distinct import Distinct, loop_of
from runtime.operators.operator import EventOperator, Operator
from runtime.operators.row_operator import RowOperator, Table, names_of
from runtime.plan import OperatorSpec, PlanError, Relation


@dataclass(frozen=True)
class _Loop:
    read: tuple[int, ...]
    key: tuple[str, ...]
    values: tuple[str, ...]
    table: Table


@dataclass(frozen=True, slots=True)
class ProjectSpec(OperatorSpec):
    """For each output column, key columns first, its number in the input row."""

    columns: tuple[int, ...]

    def code(self, inputs: tuple[Relation, ...], output: Relation) -> Code | None:
        """None for events: their columns are passed on whole."""
        if output.is_event:
            return None
        if not self._keeps_key(inputs[0], output):
            return loop_of(self.columns, output)
        key, values = self.columns[: output.key_width], self.columns[output.key_width :]
        read = tuple(dict.fromkeys(self.columns))
        return Code("project.py.j2", _Loop(read, names_of(key), names_of(values), Table.of(output)))

    def _keeps_key(self, source: Relation, output: Relation) -> bool:
        return sorted(self.columns[: output.key_width]) == list(range(source.key_width))

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator | EventOperator:
        if len(self.columns) != output.width:
            raise PlanError(f"{output.name}: {len(self.columns)} columns chosen for a relation of {output.width}")
        if output.is_event:
            if self.columns[:1] != (0,):
                raise PlanError(f"{output.name}: events keep their tick in front")
            return EventProject(self, inputs, output)
        if not self._keeps_key(inputs[0], output):
            return Distinct((self.columns,), inputs, output)
        return Project(self, inputs, output)


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
        code = spec.code(inputs, output)
        assert code is not None, "rows of a state relation are projected in a loop"
        self._apply = code.load()["apply"]

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        touched: list[int] = []
        self._apply(batch.columns, batch.visible, batch.max_ticks, self.table(), touched.append)
        return touched
