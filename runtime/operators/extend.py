"""Extend: the input row and further columns computed from it.

Domain: that of each function's result, which the checker derives from its arguments; knowledge, gap and curiosity: as
the input's. A row is final when the arguments are. Quench: none of its own.

Functions are called with all columns of the input row. An invisible row may lack values that were never known, so
only final columns are computed for it: somebody downstream may find its group by them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.batch import Batch
from runtime.operators.errors import INT_MAX, INT_MIN, Overflow
from runtime.operators.operator import EventOperator, Operator
from runtime.operators.row_operator import Row, RowOperator
from runtime.plan import ColumnKind, OperatorSpec, PlanError, Relation
from runtime.values import Value

Function = Callable[..., Value]


@dataclass(frozen=True, slots=True)
class ExtendSpec(OperatorSpec):
    """One function for each column that the output has beyond the input's."""

    functions: tuple[Function, ...]

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator | EventOperator:
        if inputs[0].width + len(self.functions) != output.width or inputs[0].key_width != output.key_width:
            raise PlanError(f"{output.name}: is not {inputs[0].name} and {len(self.functions)} columns more")
        return EventExtend(self, inputs, output) if output.is_event else Extend(self, inputs, output)


class EventExtend(EventOperator):
    """Events with further columns."""

    def __init__(self, spec: ExtendSpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        self._functions = spec.functions

    def map(self, edge: int, batch: Batch) -> Batch:
        rows = batch.rows()
        made = tuple([_checked(self.relation, function(*row)) for row in rows] for function in self._functions)
        return Batch((*batch.columns, *made), batch.max_ticks, batch.visible, batch.lineages)


class Extend(RowOperator):
    """State rows with further columns."""

    def __init__(self, spec: ExtendSpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        added = output.columns[inputs[0].width :]
        self._functions = [
            (function, column.kind is ColumnKind.FINAL) for function, column in zip(spec.functions, added, strict=True)
        ]

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        width = self.relation.key_width
        results = [
            (row, (*row[width:], *self._added(row, visible)), visible, tick)
            for row, visible, tick in zip(batch.rows(), batch.visible, batch.max_ticks, strict=True)
        ]
        touched: list[int] = []
        for row, values, visible, tick in results:
            self.put(row[:width], values, visible, tick, touched)
        return touched

    def _added(self, row: Row, visible: bool) -> list[Value]:
        return [
            _checked(self.relation, function(*row)) if visible or is_final else None
            for function, is_final in self._functions
        ]


def _checked(relation: Relation, value: Value) -> Value:
    if isinstance(value, int) and not INT_MIN <= value <= INT_MAX:
        raise Overflow(relation.name, f"a computed column has the value {value}")
    return value
