"""Distinct: the set of the values of some columns, of one relation or of several (a union).

Domain: presence of each row. Where inputs only grow: absent -> present for good, decided by the first witness; every
later one is no news (knowledge: the row, once; don't care: all further witnesses), the row is final when visible, and
an input row that was seen can be quenched, for neither it nor the set can take it back.

Where input rows may vanish or change, the relation is versioned: the number of input rows that support each output row
is counted, every reach touches the row, and nothing is quenched. Gap and curiosity: those of the input edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.batch import Batch
from runtime.loops.code import Code
from runtime.operators.operator import Operator
from runtime.operators.row_operator import RowOperator, Table, are_final, names_of
from runtime.plan import OperatorSpec, PlanError, Relation
from runtime.rows import Rows
from runtime.values import Key


@dataclass(frozen=True)
class _Loop:
    read: tuple[int, ...]
    key: tuple[str, ...]
    table: Table


@dataclass(frozen=True, slots=True)
class DistinctSpec(OperatorSpec):
    """For each output column, all of which are its key, its number in the input row."""

    columns: tuple[int, ...]

    def code(self, inputs: tuple[Relation, ...], output: Relation) -> Code:
        return loop_of(self.columns, output)

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator:
        return Distinct((self.columns,), inputs, output)


def loop_of(columns: Sequence[int], output: Relation) -> Code:
    """The loop over rows of which these columns make an output row."""
    return Code("distinct.py.j2", _Loop(tuple(dict.fromkeys(columns)), names_of(columns), Table.of(output)))


class Distinct(RowOperator):
    """`columns[e]` says which columns of in-edge e make the output row."""

    def __init__(self, columns: tuple[tuple[int, ...], ...], inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        if output.key_width != output.width or any(len(chosen) != output.width for chosen in columns):
            raise PlanError(f"{output.name}: every column of a set belongs to its key")
        self._loops = [loop_of(chosen, output).load() for chosen in columns]
        self._wanders = [not are_final(*pair) for pair in zip(inputs, columns, strict=True)]
        self._support: dict[Key, int] = {}  # versioned only: visible input rows by output row

    def keeps_events(self, edge: int) -> bool:
        return self.relation.versioned  # to count the support again after a restart

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        touched: list[int] = []
        if not self.relation.versioned:
            witness = self._loops[edge]["witness"]
            witness(batch.columns, batch.visible, batch.max_ticks, self.table(), touched.append)
            return touched
        copy = self.inputs[edge]
        assert copy is not None, "a versioned set remembers all its inputs"
        parts = self._gathered(edge, batch, slots, copy.visible, copy)
        support = self._support
        self._loops[edge]["settle"](parts, support, support.get, support.pop, self.table(), touched.append)
        if self._wanders[edge]:
            self.wander(batch)
        return touched

    def _gathered(
        self, edge: int, batch: Batch, slots: Sequence[int], was: Sequence[bool], copy: Rows
    ) -> dict[Key, list[int]]:
        """For each output row the largest tick that reached it, and how many supporters it wins."""
        parts: dict[Key, list[int]] = {}
        gather = self._loops[edge]["gather"]
        gather(batch.columns, batch.visible, batch.max_ticks, slots, was, copy.columns, parts, parts.get)
        return parts

    def dead_input_keys(self, edge: int, batch: Batch) -> list[Key]:
        if self.relation.versioned or self.input_relations[edge].is_event:
            return []
        keys = batch.keys(self.input_relations[edge].key_width)
        return [key for key, visible in zip(keys, batch.visible, strict=True) if visible]

    def restore_extra(self, data: dict[str, object]) -> None:
        if not self.relation.versioned:
            return
        self._support = {}
        for edge, copy in enumerate(self.inputs):
            assert copy is not None, "a versioned set remembers all its inputs"
            rows = copy.select(copy.visible_slots())
            count = len(rows)
            for key, (_, supporters) in self._gathered(edge, rows, range(count), [False] * count, copy).items():
                self._support[key] = self._support.get(key, 0) + supporters
