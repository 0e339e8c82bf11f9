"""Union of relations with the same columns: as a set of whole rows, or with rows told apart by where they came from.

As a set it is `distinct` over several in-edges: a row is visible while any side supports it. The tagged form keeps
every row under (number of the in-edge, key): domain, knowledge, finality as the input's, no state beyond the rows.
Gap and curiosity: those of each input edge, separately. Quench: the set form as `distinct`, the tagged form none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.batch import Batch
from runtime.operators.distinct import Distinct
from runtime.operators.operator import Operator
from runtime.operators.row_operator import RowOperator
from runtime.plan import OperatorSpec, PlanError, Relation


@dataclass(frozen=True, slots=True)
class UnionSpec(OperatorSpec):
    """The set of all rows of all in-edges; every column belongs to the key."""

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator:
        return Distinct(tuple(tuple(range(relation.width)) for relation in inputs), inputs, output)


@dataclass(frozen=True, slots=True)
class UnionAllSpec(OperatorSpec):
    """All rows of all in-edges. Output column 0, part of the key, is the number of the in-edge."""

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator:
        for relation in inputs:
            if (relation.key_width + 1, relation.width + 1) != (output.key_width, output.width):
                raise PlanError(f"{output.name}: is not {relation.name} with a number in front")
        return UnionAll(inputs, output)


class UnionAll(RowOperator):
    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        width = self.input_relations[edge].key_width
        touched: list[int] = []
        for row, visible, tick in zip(batch.rows(), batch.visible, batch.max_ticks, strict=True):
            self.put((edge, *row[:width]), row[width:], visible, tick, touched)
        return touched
