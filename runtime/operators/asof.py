"""Asof join: each left row with the latest right row that agrees with it on some columns and is not later.

Domain: the left row and a right row dominated by a later one, up to the left row's time. Knowledge: one row for each
left row. Where right rows stay and nothing that is compared changes, a row depends on its own tick and the partner's,
for the partner is replaced in one direction; otherwise the relation is versioned and a row depends on every tick that
reached its match key. Gap: in either input; curiosity goes to both edges. Both sides are remembered; without knowing
how far event time has come nothing lets them go. Final never, for the same reason. Quench: none.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass

from runtime.batch import Batch
from runtime.loops.code import Code
from runtime.operators.matching import MatchIndex, Matching, Move
from runtime.operators.operator import Operator
from runtime.operators.ordering import Order, SortKey, sort_key
from runtime.operators.row_operator import Row, Table, are_final
from runtime.plan import OperatorSpec, PlanError, Relation
from runtime.values import Key


@dataclass(frozen=True)
class _Loop:
    left_read: tuple[int, ...]
    right_read: tuple[int, ...]
    time: str
    keep_unmatched: bool
    key: tuple[str, ...]
    values: tuple[str, ...]
    table: Table


@dataclass(frozen=True, slots=True)
class AsofSpec(OperatorSpec):
    """`on`: pairs (left column, right column) that must be equal. `times`: the left's and the right's time column.
    `ties`: how right rows of the same time are ordered, best first. `columns`: for each output column, its number in
    the left row followed by the right row; the left's key first. `keep_unmatched`: with nulls instead of a partner."""

    on: tuple[tuple[int, int], ...]
    times: tuple[int, int]
    ties: tuple[Order, ...]
    columns: tuple[int, ...]
    keep_unmatched: bool = False

    def code(self, inputs: tuple[Relation, ...], output: Relation) -> Code:
        width = inputs[0].width
        texts = tuple(f"l{n}[a]" if n < width else f"x{n - width}" for n in self.columns)
        loop = _Loop(
            tuple(sorted({*(n for n in self.columns if n < width), self.times[0]})),
            tuple(sorted({n - width for n in self.columns if n >= width})),
            f"l{self.times[0]}[a]",
            self.keep_unmatched,
            texts[: output.key_width],
            texts[output.key_width :],
            Table.of(output),
        )
        return Code("asof.py.j2", loop)

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator:
        if len(self.columns) != output.width:
            raise PlanError(f"{output.name}: {len(self.columns)} columns chosen for a relation of {output.width}")
        if sorted(self.columns[: output.key_width]) != list(range(inputs[0].key_width)):
            raise PlanError(f"{output.name}: has another key than {inputs[0].name}")
        compared = [self.times[1], *(part.column for part in self.ties)]
        if not output.versioned and not are_final(inputs[1], compared):
            raise PlanError(f"{output.name}: the latest by columns that change are versioned")
        return Asof(self, inputs, output)


class Asof(Matching):
    """`_ranked` lists the visible right rows of each match key by their slots in the copy, latest first."""

    def __init__(self, spec: AsofSpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        on = ([left for left, _ in spec.on], [right for _, right in spec.on])
        self._index = (MatchIndex(on[0]), MatchIndex(on[1]))
        self._wanders = [not are_final(relation, columns) for relation, columns in zip(inputs, on, strict=True)]
        self._left_time, self._right_time = spec.times
        self._rank = sort_key((Order(spec.times[1], descending=True), *spec.ties))
        self._settle = spec.code(inputs, output).load(bisect=bisect_left)["settle"]
        self._ranked: dict[Key, list[tuple[SortKey, int]]] = {}

    def keeps_events(self, edge: int) -> bool:
        return True

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        moves = self._index[edge].store(batch, slots)
        if edge == 1:
            self._rank_again(batch, slots, moves)
        self.store_first(edge, batch, slots)
        reached = dict(zip(slots, batch.max_ticks, strict=True)) if edge == 0 else self._reached_by_right(batch, moves)
        touched: list[int] = []
        left, right = self._index
        found = (self._ranked.get, right.by_key.get)
        self._settle(reached, left.key, *found, self.sides(), self.table(), touched.append)
        if self._wanders[edge]:
            self.wander(batch)
        return touched

    def _rank_again(self, batch: Batch, slots: Sequence[int], moves: list[Move]) -> None:
        """Right rows take their place among those of their match key. A row without a time is nobody's partner."""
        copy = self.inputs[1]
        assert copy is not None, "an asof join remembers both sides"
        for i, (slot, before, key) in enumerate(moves):
            if before is not None and copy.visible[slot]:
                old = copy.row_at(slot)
                if old[self._right_time] is not None:
                    ranked = self._ranked[before]
                    del ranked[bisect_left(ranked, (self._rank(old), slot))]
            row = tuple([column[i] for column in batch.columns])
            self._enter(slots[i], row, key, visible=batch.visible[i])

    def _enter(self, slot: int, row: Row, key: Key | None, *, visible: bool) -> None:
        if visible and key is not None and row[self._right_time] is not None:
            insort(self._ranked.setdefault(key, []), (self._rank(row), slot))

    def _reached_by_right(self, batch: Batch, moves: list[Move]) -> dict[int, int]:
        """Left rows that the batch may concern; where nothing is replaced, only those that are not earlier."""
        left = self.inputs[0]
        assert left is not None, "an asof join remembers both sides"
        times = left.columns[self._left_time]
        reached: dict[int, int] = {}
        for i, (_, before, key) in enumerate(moves):
            tick, time = batch.max_ticks[i], batch.columns[self._right_time][i]
            for slot in {*self._index[0].slots(before), *self._index[0].slots(key)}:
                if self.relation.versioned or _is_not_later(time, times[slot]):
                    reached[slot] = max(tick, reached.get(slot, tick))
        return dict(sorted(reached.items()))

    def restore_extra(self, data: dict[str, object]) -> None:
        left, right = self.inputs
        assert left is not None, "an asof join remembers both sides"
        assert right is not None, "an asof join remembers both sides"
        for edge, copy in enumerate((left, right)):
            self._index[edge].rebuild(copy)
        self._ranked = {}
        for slot in right.visible_slots():
            self._enter(slot, right.row_at(slot), self._index[1].key(slot), visible=True)


def _is_not_later(early: object, late: object) -> bool:
    return isinstance(early, int) and isinstance(late, int) and early <= late
