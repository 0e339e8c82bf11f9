"""Outer join: pairs of rows, and the rows of one side or of both that have no partner, filled up with defaults.

For full joins, and for left joins whose defaults may be mistaken for the key of a pair; other joins are in `join.py`.
Domain: pairs appear and stay; a row without a partner is shown until one comes; if both share one key, a row in which
the missing side is filled in later. Knowledge: the rows of the match keys that a batch reached. Where nothing vanishes
or wanders a pair depends on its two ticks, and a row that gave way to a pair on its own and the first partner's;
otherwise the relation is versioned and all rows of a match key depend on every tick that reached it. Gap: in either
input, each lineage for itself; curiosity goes to both edges. Both sides are remembered. Quench: none.

Several combinations may have the same output key, at most one of them visible; that one is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.batch import Batch
from runtime.loops.code import Code, row_function
from runtime.loops.scalar import inlined
from runtime.operators.matching import MatchIndex, Move
from runtime.operators.operator import Operator
from runtime.operators.row_operator import Overlay, Row, RowOperator, are_final, picker
from runtime.plan import OperatorSpec, PlanError, Relation
from runtime.protocol.coverage import NO_TICK
from runtime.values import Key, Value


@dataclass(frozen=True, slots=True)
class OuterJoinSpec(OperatorSpec):
    """`on`: pairs (left column, right column) that must be equal. `columns`: for each output column, key first, its
    number in the left row followed by the right row. `condition`: a function of all left, then all right columns.
    `right_default`: a whole row in place of a missing right one. `left_default`: likewise, for a full join; its columns
    in `shared` (left column, right column) are then taken from the right row."""

    on: tuple[tuple[int, int], ...]
    columns: tuple[int, ...]
    right_default: Row
    left_default: Row | None = None
    shared: tuple[tuple[int, int], ...] = ()
    condition: Callable[..., bool] | None = None

    def code(self, inputs: tuple[Relation, ...], output: Relation) -> Code | None:
        width = inputs[0].width + inputs[1].width
        (condition,), tables = inlined([self.condition], width)
        return None if condition is None else row_function(condition, width, tables)

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator:
        if len(self.columns) != output.width:
            raise PlanError(f"{output.name}: {len(self.columns)} columns chosen for a relation of {output.width}")
        for default, relation in zip((self.left_default, self.right_default), inputs, strict=True):
            if default is not None and len(default) != relation.width:
                raise PlanError(f"{output.name}: a default has {len(default)} columns, {relation.name} has others")
        return OuterJoin(self, inputs, output)


@dataclass(slots=True)
class Result:
    values: Sequence[Value]
    visible: bool
    tick: int


Results = dict[Key, Result]


class OuterJoin(RowOperator):
    def __init__(self, spec: OuterJoinSpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        on = ([left for left, _ in spec.on], [right for _, right in spec.on])
        self._spec = spec
        code = spec.code(inputs, output)
        self._condition = None if code is None else code.load()["compute"]
        self._key = picker(spec.columns[: output.key_width])
        self._values = picker(spec.columns[output.key_width :])
        self._index = (MatchIndex(on[0]), MatchIndex(on[1]))
        self._wanders = [not are_final(relation, columns) for relation, columns in zip(inputs, on, strict=True)]

    def keeps_events(self, edge: int) -> bool:
        return True

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        results: Results = {}
        parting = self._parting(edge, batch, slots)
        moves = self._index[edge].store(batch, slots)
        try:
            self._join(edge, batch, slots, moves, results)
        except BaseException:  # a condition may fail on some row
            self._index[edge].undo(moves)
            raise
        touched: list[int] = []
        for key, result in parting.items():
            if key not in results:
                self.put(key, result.values, False, result.tick, touched)
        for key, result in results.items():
            self.put(key, result.values, result.visible, result.tick, touched)
        if self._wanders[edge]:
            self.wander(batch)
        return touched

    def _parting(self, edge: int, batch: Batch, slots: Sequence[int]) -> Results:
        """What the old rows of the batch were part of; it vanishes unless the new rows make it again."""
        copy, other = self.inputs[edge], self.inputs[1 - edge]
        assert copy is not None, "a join remembers both sides"
        assert other is not None, "a join remembers both sides"
        found: Results = {}
        for slot, tick in zip(slots, batch.max_ticks, strict=True):
            if copy.is_new(slot):
                continue
            old = copy.row_at(slot)
            partners = [other.row_at(partner) for partner in self._index[1 - edge].slots(self._index[edge].key(slot))]
            wholes = [self._alone(edge, old), *(old + row if edge == 0 else row + old for row in partners)]
            for whole in wholes:
                if whole is not None:
                    found[self._key(whole)] = Result(self._values(whole), False, tick)
        return found

    def _join(self, edge: int, batch: Batch, slots: Sequence[int], moves: list[Move], results: Results) -> None:
        copies = [copy for copy in self.inputs if copy is not None]
        sides = (
            Overlay(copies[0], batch, slots) if edge == 0 else Overlay(copies[0]),
            Overlay(copies[1], batch, slots) if edge == 1 else Overlay(copies[1]),
        )
        reached: dict[Key, int] = {}
        for (slot, before, key), tick in zip(moves, batch.max_ticks, strict=True):
            for match in (before, key):
                if match is not None:
                    reached[match] = max(tick, reached.get(match, tick))
            if key is None:  # null matches nothing
                lone = ([slot], []) if edge == 0 else ([], [slot])
                self._join_key(lone, sides, NO_TICK, results)
        for match, tick in reached.items():
            self._join_key((self._index[0].slots(match), self._index[1].slots(match)), sides, tick, results)

    def _join_key(
        self, slots: tuple[Sequence[int], Sequence[int]], sides: tuple[Overlay, Overlay], tick: int, results: Results
    ) -> None:
        """All rows that the rows of one match key make."""
        ticks = [[side.max_tick(slot) for slot in part] for side, part in zip(sides, slots, strict=True)]
        # Where rows are replaced, everything here depends on everything that was ever here.
        floor = max([tick, *ticks[0], *ticks[1]]) if self.relation.versioned else NO_TICK
        first = ([NO_TICK] * len(slots[0]), [NO_TICK] * len(slots[1]))  # the tick of the first partner
        for i, left in enumerate(slots[0]):
            for j, right in enumerate(slots[1]):
                whole = sides[0].row(left) + sides[1].row(right)
                visible = sides[0].visible(left) and sides[1].visible(right) and self._holds(whole)
                if visible:
                    for part, n, partner_tick in ((first[0], i, ticks[1][j]), (first[1], j, ticks[0][i])):
                        part[n] = partner_tick if part[n] == NO_TICK else min(part[n], partner_tick)
                self._offer(whole, visible, max(ticks[0][i], ticks[1][j], floor), results)
        for edge in (0, 1):
            for n, slot in enumerate(slots[edge]):
                lone = self._alone(edge, sides[edge].row(slot))
                if lone is not None:
                    is_matched = first[edge][n] != NO_TICK
                    others = first[edge][n] if is_matched else max(ticks[1 - edge], default=NO_TICK)
                    visible = sides[edge].visible(slot) and not is_matched
                    self._offer(lone, visible, max(ticks[edge][n], others, floor), results)

    def _holds(self, whole: Row) -> bool:
        return self._condition is None or self._condition(*whole)

    def _alone(self, edge: int, row: Row) -> Row | None:
        """A row without a partner, filled up; None if the join does not keep it."""
        if edge == 0:
            return row + self._spec.right_default
        if self._spec.left_default is None:
            return None
        filled = list(self._spec.left_default)
        for left, right in self._spec.shared:
            filled[left] = row[right]
        return (*filled, *row)

    def _offer(self, whole: Row, visible: bool, tick: int, results: Results) -> None:
        """One candidate for its output key: the visible one is shown, if there is any."""
        key = self._key(whole)
        found = results.get(key)
        if found is None:
            results[key] = Result(self._values(whole), visible, tick)
        elif visible:
            found.values, found.visible = self._values(whole), True
            found.tick = max(tick, found.tick) if self.relation.versioned else tick
        elif not found.visible or self.relation.versioned:
            found.tick = max(tick, found.tick)

    def restore_extra(self, data: dict[str, object]) -> None:
        for index, copy in zip(self._index, self.inputs, strict=True):
            assert copy is not None, "a join remembers both sides"
            index.rebuild(copy)
