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
from runtime.loops.code import Code
from runtime.operators.operator import Operator
from runtime.operators.row_operator import RowOperator, Table, names_of
from runtime.plan import OperatorSpec, PlanError, Relation
from runtime.values import Key, Value


@dataclass(frozen=True)
class _Loop:
    """`by`: where the order column of an event is, `held_by`, `held_tick`: where those of the held one are."""

    read: tuple[int, ...]
    key: tuple[str, ...]
    values: tuple[str, ...]
    results: tuple[str, ...]
    by: str
    is_by_tick: bool
    sign: str
    held_by: str
    held_tick: str
    table: Table


@dataclass(frozen=True, slots=True)
class LatestSpec(OperatorSpec):
    """`columns`: for each output column, the group's first, its number in the event. `by`: the order column, if it is
    not the tick (column 0). `first`: the smallest instead of the largest."""

    columns: tuple[int, ...]
    by: int = 0
    first: bool = False

    def code(self, inputs: tuple[Relation, ...], output: Relation) -> Code:
        names = names_of(self.columns)
        width = output.key_width
        loop = _Loop(
            tuple(dict.fromkeys(self.columns)),
            names[:width],
            names[width:],
            tuple(f"x{number}" for number in range(width, output.width)),
            f"c{self.by}",
            self.by == 0,
            "<" if self.first else ">",
            f"outputs[{self.columns.index(self.by)}]",
            f"outputs[{self.columns.index(0)}]",
            Table.of(output),
        )
        return Code("latest.py.j2", loop)

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator:
        if not inputs[0].is_event or len(self.columns) != output.width:
            raise PlanError(f"{output.name}: needs events, and a column number for each of its {output.width} columns")
        if 0 not in self.columns or self.by not in self.columns:
            raise PlanError(f"{output.name}: the tick and the order column must be among its columns")
        return Latest(self, inputs, output)


class Latest(RowOperator):
    def __init__(self, spec: LatestSpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        self.spec = spec
        self._apply = spec.code(inputs, output).load()["apply"]

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        best: dict[Key, tuple[Value, ...]] = {}
        touched: list[int] = []
        self._apply(batch.columns, batch.max_ticks, best, best.get, self.table(), touched.append)
        return touched
