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
from runtime.operators.operator import Operator
from runtime.operators.row_operator import RowOperator, are_final, old_rows, picker
from runtime.plan import OperatorSpec, PlanError, Relation
from runtime.values import Key


@dataclass(frozen=True, slots=True)
class DistinctSpec(OperatorSpec):
    """For each output column, all of which are its key, its number in the input row."""

    columns: tuple[int, ...]

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator:
        return Distinct((self.columns,), inputs, output)


class Distinct(RowOperator):
    """`columns[e]` says which columns of in-edge e make the output row."""

    def __init__(self, columns: tuple[tuple[int, ...], ...], inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        if output.key_width != output.width or any(len(chosen) != output.width for chosen in columns):
            raise PlanError(f"{output.name}: every column of a set belongs to its key")
        self._pick = [picker(chosen) for chosen in columns]
        self._wanders = [not are_final(*pair) for pair in zip(inputs, columns, strict=True)]
        self._support: dict[Key, int] = {}  # versioned only: visible input rows by output row

    def keeps_events(self, edge: int) -> bool:
        return self.relation.versioned  # to count the support again after a restart

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        keys = [self._pick[edge](row) for row in batch.rows()]
        touched: list[int] = []
        if not self.relation.versioned:
            self._witness(keys, batch, touched)
            return touched
        change: dict[Key, int] = {}
        reached: dict[Key, int] = {}
        for i, old in enumerate(old_rows(self.inputs[edge], slots)):
            tick = batch.max_ticks[i]
            for key, delta in ((keys[i], int(batch.visible[i])), (None if old is None else self._pick[edge](old), -1)):
                if key is not None:
                    change[key] = change.get(key, 0) + delta
                    reached[key] = max(tick, reached.get(key, tick))
        for key, tick in reached.items():
            self._add_support(key, change[key])
            self.put(key, (), key in self._support, tick, touched)
        if self._wanders[edge]:
            self.wander(batch, self.rows.tombstones(), touched)  # what is visible has its supporters
        return touched

    def _witness(self, keys: list[Key], batch: Batch, touched: list[int]) -> None:
        """Rows only appear: the first witness decides."""
        rows = self.rows
        for key, visible, tick in zip(keys, batch.visible, batch.max_ticks, strict=True):
            slot = rows.index.get(key, -1)
            if slot < 0 or not rows.visible[slot]:
                self.put(key, (), visible, tick, touched)

    def _add_support(self, key: Key, delta: int) -> None:
        support = self._support.get(key, 0) + delta
        assert support >= 0, f"{self.relation.name}: {key} is supported by {support} rows"
        if support:
            self._support[key] = support
        else:
            self._support.pop(key, None)

    def dead_input_keys(self, edge: int, batch: Batch) -> list[Key]:
        if self.relation.versioned or self.input_relations[edge].is_event:
            return []
        keys = batch.keys(self.input_relations[edge].key_width)
        return [key for key, visible in zip(keys, batch.visible, strict=True) if visible]

    def restore_extra(self, data: dict[str, object]) -> None:
        if self.relation.versioned:
            self._support = {}
            for edge, (pick, copy) in enumerate(zip(self._pick, self.inputs, strict=True)):
                if self._wanders[edge]:
                    self.recall_wanderers(edge)
                assert copy is not None, "a versioned set remembers all its inputs"
                for slot in copy.visible_slots():
                    self._add_support(pick(copy.row_at(slot)), 1)
