"""Join: pairs of rows, one of each input, that agree on some columns; inner or left outer.

Domain: the product of both rows; visible while both are (and the condition holds). Knowledge: the rows that a batch
completed or changed. max_tick is the larger of both sides, whichever arrived first. Gap: in either input, each lineage
for itself; curiosity goes to both edges. Pairs of events are final when visible. Events are remembered on both sides,
because their partner may come later; without windows nothing lets them go. Quench: none.

Left outer: a left row without visible partner is shown with a default row instead, and again when the partner
vanishes; the checker calls the relation versioned unless the default is where the right columns start to rise from.

If the output key consists of columns of one side only (N:1), there is one row for each row of that side, its anchor;
otherwise one for each pair, and in an outer join one more for the unmatched left row, keyed by the default's columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.batch import Batch
from runtime.operators.matching import MatchIndex, Move
from runtime.operators.operator import Operator
from runtime.operators.row_operator import Overlay, Row, RowOperator, are_final, picker
from runtime.plan import OperatorSpec, PlanError, Relation
from runtime.protocol.coverage import NO_TICK
from runtime.values import Key, Value

Results = dict[Key, tuple[Sequence[Value], bool, int]]


@dataclass(frozen=True, slots=True)
class JoinSpec(OperatorSpec):
    """`on`: pairs (left column, right column) that must be equal. `columns`: for each output column, key first, its
    number in the left row followed by the right row. `condition`: a function of all left, then all right columns.
    `default`: for an outer join, a whole row in place of a missing right one."""

    on: tuple[tuple[int, int], ...]
    columns: tuple[int, ...]
    condition: Callable[..., bool] | None = None
    default: Row | None = None

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator:
        if len(self.columns) != output.width:
            raise PlanError(f"{output.name}: {len(self.columns)} columns chosen for a relation of {output.width}")
        if self.default is not None and len(self.default) != inputs[1].width:
            raise PlanError(f"{output.name}: the default has {len(self.default)} columns, {inputs[1].name} has more")
        return Join(self, inputs, output)


class Join(RowOperator):
    def __init__(self, spec: JoinSpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        on = ([left for left, _ in spec.on], [right for _, right in spec.on])
        self._condition = spec.condition
        self._default = spec.default
        self._key = picker(spec.columns[: output.key_width])
        self._values = picker(spec.columns[output.key_width :])
        self._index = (MatchIndex(on[0]), MatchIndex(on[1]))
        self._wanders = [not are_final(relation, columns) for relation, columns in zip(inputs, on, strict=True)]
        sides = {c >= inputs[0].width for c in spec.columns[: output.key_width]}
        self._anchor: int | None = None if len(sides) > 1 else int(True in sides)
        self._has_anchors = self._anchor is not None or self._default is not None
        if self._default is not None and self._anchor == 1:
            raise PlanError(f"{output.name}: a left join needs a key column of the left side")

    def keeps_events(self, edge: int) -> bool:
        return True

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        moves = self._index[edge].store(batch, slots)
        try:
            results = self._results(edge, batch, slots, moves)
        except BaseException:  # a condition may fail on some row
            self._index[edge].undo(moves)
            raise
        touched: list[int] = []
        for key, (values, visible, tick) in results.items():
            self.put(key, values, visible, tick, touched)
        if self._wanders[edge]:
            # Pairs, and rows of the side that wanders, are reached themselves; only partners of others are missed.
            misses = self._has_anchors and edge != (self._anchor or 0)
            self.wander(batch, self.rows.slots() if misses else (), touched)
        return touched

    def _results(self, edge: int, batch: Batch, slots: Sequence[int], moves: list[Move]) -> Results:
        copies = [copy for copy in self.inputs if copy is not None]
        sides = (
            Overlay(copies[0], batch, slots) if edge == 0 else Overlay(copies[0]),
            Overlay(copies[1], batch, slots) if edge == 1 else Overlay(copies[1]),
        )
        results: Results = {}
        if self._anchor is None:
            self._join_pairs(edge, moves, sides, results)
        if self._has_anchors:
            anchor = self._anchor or 0
            for slot, tick in self._reached(anchor, edge, batch, moves).items():
                self._join_anchored(anchor, slot, tick, sides, results)
        return results

    def _reached(self, anchor: int, edge: int, batch: Batch, moves: list[Move]) -> dict[int, int]:
        """Rows of the anchor's side that the batch has to do with, and the largest tick that reached each."""
        reached: dict[int, int] = {}
        for (slot, before, key), tick in zip(moves, batch.max_ticks, strict=True):
            if edge == anchor:
                reached[slot] = tick
                continue
            for partner in self._index[anchor].slots(key):
                reached[partner] = max(tick, reached.get(partner, tick))
            if before != key:
                for partner in self._index[anchor].slots(before):
                    reached[partner] = max(tick, reached.get(partner, tick))
        return reached

    # One row for each pair

    def _join_pairs(self, edge: int, moves: list[Move], sides: tuple[Overlay, Overlay], results: Results) -> None:
        other = 1 - edge
        for slot, before, key in moves:
            if before is not None and before != key:
                self._part(edge, slot, before, sides, results)
            for partner in self._index[other].slots(key):
                pair = (slot, partner) if edge == 0 else (partner, slot)
                row = sides[0].row(pair[0]) + sides[1].row(pair[1])
                visible = self._matches(pair, row, sides)
                tick = max(sides[0].max_tick(pair[0]), sides[1].max_tick(pair[1]))
                results[self._key(row)] = (self._values(row), visible, tick)

    def _part(self, edge: int, slot: int, before: Key, sides: tuple[Overlay, Overlay], results: Results) -> None:
        """A row has wandered off: its old pairs vanish."""
        copy = self.inputs[edge]
        assert copy is not None, "a join remembers both sides"
        old = copy.row_at(slot)
        for partner in self._index[1 - edge].slots(before):
            other = sides[1 - edge].row(partner)
            row = old + other if edge == 0 else other + old
            tick = max(sides[edge].max_tick(slot), sides[1 - edge].max_tick(partner))
            results[self._key(row)] = (self._values(row), False, tick)

    def _matches(self, pair: tuple[int, int], row: Row, sides: tuple[Overlay, Overlay]) -> bool:
        if not (sides[0].visible(pair[0]) and sides[1].visible(pair[1])):
            return False  # and no condition: a vanished row may have nulls
        return self._condition is None or self._condition(*row)

    # One row for each row of one side

    def _join_anchored(
        self, anchor: int, slot: int, tick: int, sides: tuple[Overlay, Overlay], results: Results
    ) -> None:
        """The anchor with its visible partner, or with the default, or invisible if all its partners vanished."""
        mine, others = sides[anchor], sides[1 - anchor]
        row, is_seen, own_tick = mine.row(slot), mine.visible(slot), mine.max_tick(slot)
        pair_row: Row | None = None
        pair_tick = partners_tick = NO_TICK
        is_matched = False
        for partner in self._index[1 - anchor].slots(self._index[anchor].key(slot)):
            partners_tick = max(partners_tick, others.max_tick(partner))
            whole = row + others.row(partner) if anchor == 0 else others.row(partner) + row
            pair = (slot, partner) if anchor == 0 else (partner, slot)
            if not is_matched:
                is_matched = self._matches(pair, whole, sides)
                pair_row, pair_tick = whole, others.max_tick(partner)
        visible = is_seen and is_matched
        if self._default is not None and (self._anchor is None or not is_matched):
            pair_row = row + self._default
            visible = is_seen and not is_matched
        if pair_row is None:  # an inner join that met nobody, at least not now
            if self._anchor is None or self.rows.slot_of(self._key_of_alone(anchor, row)) < 0:
                return
            pair_row = self._alone(anchor, row)
        if self.relation.versioned:
            depends = max(tick, own_tick, partners_tick)
        else:
            depends = max(own_tick, pair_tick if is_matched else partners_tick)
        results[self._key(pair_row)] = (self._values(pair_row), visible, depends)

    def _alone(self, anchor: int, row: Row) -> Row:
        nothing: Row = (None,) * self.input_relations[1 - anchor].width
        return row + nothing if anchor == 0 else nothing + row

    def _key_of_alone(self, anchor: int, row: Row) -> Key:
        return self._key(self._alone(anchor, row))

    def restore_extra(self, data: dict[str, object]) -> None:
        for edge, (index, copy) in enumerate(zip(self._index, self.inputs, strict=True)):
            assert copy is not None, "a join remembers both sides"
            index.rebuild(copy)
            if self._wanders[edge]:
                self.recall_wanderers(edge)
