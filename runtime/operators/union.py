"""Union of relations with the same columns: as a set of whole rows, or with rows told apart by where they came from.

As a set it is `distinct` over several in-edges: a row is visible while any side supports it. The tagged form keeps
every row under (number of the in-edge, key): domain, knowledge, finality as the input's, no state beyond the rows.
Gap and curiosity: those of each input edge, separately. Quench: the set form as `distinct`, the tagged form none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.batch import Batch
from runtime.loops.code import Code
from runtime.operators.distinct import Distinct, loop_of
from runtime.operators.operator import Operator
from runtime.operators.row_operator import RowOperator, Table, names_of
from runtime.plan import OperatorSpec, PlanError, Relation


@dataclass(frozen=True)
class _Loop:
    columns: tuple[int, ...]
    key: tuple[str, ...]
    values: tuple[str, ...]
    table: Table


@dataclass(frozen=True, slots=True)
class UnionSpec(OperatorSpec):
    """The set of all rows of all in-edges; every column belongs to the key."""

    def code(self, inputs: tuple[Relation, ...], output: Relation) -> Code:
        return loop_of(range(output.width), output)

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator:
        return Distinct(tuple(tuple(range(relation.width)) for relation in inputs), inputs, output)


@dataclass(frozen=True, slots=True)
class UnionAllSpec(OperatorSpec):
    """All rows of all in-edges. Output column 0, part of the key, is the number of the in-edge."""

    def code(self, inputs: tuple[Relation, ...], output: Relation) -> Code:
        columns = tuple(range(output.width - 1))
        key, values = columns[: output.key_width - 1], columns[output.key_width - 1 :]
        return Code("union.py.j2", _Loop(columns, ("edge", *names_of(key)), names_of(values), Table.of(output)))

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator:
        for relation in inputs:
            if (relation.key_width + 1, relation.width + 1) != (output.key_width, output.width):
                raise PlanError(f"{output.name}: is not {relation.name} with a number in front")
        return UnionAll(self.code(inputs, output), inputs, output)


class UnionAll(RowOperator):
    def __init__(self, code: Code, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        self._apply = code.load()["apply"]

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        touched: list[int] = []
        self._apply(batch.columns, batch.visible, batch.max_ticks, self.table(), touched.append, edge)
        return touched
