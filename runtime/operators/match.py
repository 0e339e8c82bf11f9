"""Semi-join (`matching`), anti-join (`not matching`) and `minus`: left rows with, or without, a partner on the right.

Domain, where right rows only come: semi absent -> visible for good on the first witness; anti visible -> invisible for
good. Knowledge: the left row, and for anti its tombstone, also if it was never visible (T1). A row depends on its own
tick and on the witness's; further witnesses are don't care. Gap: in either input; curiosity goes to both edges. Semi
rows are final when visible; anti rows never, before somebody says that no witness can come.

Quench, only there: a right row that was seen has witnessed, and a left row that an anti-join rejected stays rejected.
Where right rows may vanish or change the relation is versioned: support is counted, a row depends on every tick that
reached its match key, and nothing is quenched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.batch import Batch
from runtime.operators.matching import MatchIndex
from runtime.operators.operator import Operator
from runtime.operators.row_operator import Overlay, Row, RowOperator, are_final, old_rows
from runtime.plan import OperatorSpec, PlanError, Relation
from runtime.protocol.coverage import NO_TICK
from runtime.values import Key


@dataclass(frozen=True, slots=True)
class MatchSpec(OperatorSpec):
    """`on`: pairs (left column, right column) that must be equal. `condition`: a function of all left, then all right
    columns; the right rows are then remembered, otherwise only their match keys. `null_matches`: null equals null."""

    on: tuple[tuple[int, int], ...]
    negated: bool = False
    condition: Callable[..., bool] | None = None
    null_matches: bool = False

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator:
        if (inputs[0].key_width, inputs[0].width) != (output.key_width, output.width):
            raise PlanError(f"{output.name}: has other columns than {inputs[0].name}")
        return Match(self, inputs, output)


@dataclass(frozen=True, slots=True)
class MinusSpec(OperatorSpec):
    """Rows of the left input that do not occur, with all their columns, in the right one. Sets: null is a value."""

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator:
        if inputs[0].width != inputs[1].width:
            raise PlanError(f"{output.name}: {inputs[0].name} and {inputs[1].name} have different columns")
        return MatchSpec(tuple((c, c) for c in range(output.width)), negated=True, null_matches=True).build(
            inputs, output
        )


@dataclass(slots=True)
class Witnesses:
    """What is known on the right about one match key."""

    support: int = 0  # visible rows
    first_tick: int = NO_TICK  # of the witness that depends on least
    reached_tick: int = NO_TICK  # the largest of any row, visible or not


NOTHING = Witnesses()


class Match(RowOperator):
    def __init__(self, spec: MatchSpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        self._condition = spec.condition
        super().__init__(inputs, output)
        on = ([left for left, _ in spec.on], [right for _, right in spec.on])
        self._negated = spec.negated
        self._left = MatchIndex(on[0], null_matches=spec.null_matches)
        self._right = MatchIndex(on[1], null_matches=spec.null_matches)  # lists rows only with a condition
        self._witnesses: dict[Key, Witnesses] = {}  # used without one
        self._wanders = not are_final(inputs[1], on[1])

    def keeps_events(self, edge: int) -> bool:
        return edge == 0 or self._condition is not None

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        if self._condition is not None:
            return self._apply_with_condition(edge, batch, slots)
        if edge == 0:
            self._left.store(batch, slots)
            reached = dict(zip(slots, batch.max_ticks, strict=True))
        else:
            reached = self._reached_by_right(batch, slots)
        copy = self.inputs[0]
        assert copy is not None, "left rows are remembered"
        left = Overlay(copy, batch, slots) if edge == 0 else Overlay(copy)
        touched: list[int] = []
        for slot, tick in reached.items():
            self._decide(left, slot, tick, self._found(self._left.key(slot)), touched)
        if edge == 1 and self._wanders:
            self.wander(batch, self.rows.slots(), touched)
        return touched

    def _decide(self, left: Overlay, slot: int, tick: int, witnesses: Witnesses, touched: list[int]) -> None:
        row = left.row(slot)
        is_matched = witnesses.support > 0
        if self.relation.versioned:
            tick = max(tick, left.max_tick(slot), witnesses.reached_tick)
        else:
            tick = max(left.max_tick(slot), witnesses.first_tick)
        width = self.relation.key_width
        self.put(row[:width], row[width:], left.visible(slot) and is_matched != self._negated, tick, touched)

    # Without a condition: match keys on the right

    def _reached_by_right(self, batch: Batch, slots: Sequence[int]) -> dict[int, int]:
        """Count the witnesses; the left rows that this may concern, with the largest tick that reached each."""
        keys: dict[Key, int] = {}
        old = old_rows(self.inputs[1], slots)
        for i, row in enumerate(batch.rows()):
            tick = batch.max_ticks[i]
            before = old[i] if old else None
            for witness, delta in ((before, -1), (row, int(batch.visible[i]))):
                key = None if witness is None else self._right.key_of(witness)
                if key is not None and self._witness(key, delta, tick):
                    keys[key] = max(tick, keys.get(key, tick))
        reached: dict[int, int] = {}
        for key, tick in keys.items():
            for slot in self._left.slots(key):
                reached[slot] = max(tick, reached.get(slot, tick))
        return reached

    def _found(self, key: Key | None) -> Witnesses:
        return NOTHING if key is None else self._witnesses.get(key, NOTHING)

    def _witness(self, key: Key, delta: int, tick: int) -> bool:
        """Do left rows have to hear of it? Of a further witness only in versioned relations."""
        found = self._witnesses.setdefault(key, Witnesses())
        is_news = self.relation.versioned or (delta > 0 and not found.support)
        found.support += delta
        if delta > 0 and (found.first_tick == NO_TICK or tick < found.first_tick):
            found.first_tick = tick
        found.reached_tick = max(found.reached_tick, tick)
        return is_news

    # With a condition: all right rows

    def _apply_with_condition(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        index = self._left if edge == 0 else self._right
        copies = [copy for copy in self.inputs if copy is not None]
        moves = index.store(batch, slots)
        left = Overlay(copies[0], batch, slots) if edge == 0 else Overlay(copies[0])
        right = Overlay(copies[1], batch, slots) if edge == 1 else Overlay(copies[1])
        reached: dict[int, int] = {}
        for (slot, before, key), tick in zip(moves, batch.max_ticks, strict=True):
            for mine in (slot,) if edge == 0 else {*self._left.slots(before), *self._left.slots(key)}:
                reached[mine] = max(tick, reached.get(mine, tick))
        try:
            found = {slot: self._witnesses_of(left.row(slot), slot, left, right) for slot in sorted(reached)}
        except BaseException:  # the condition may fail on some row
            index.undo(moves)
            raise
        touched: list[int] = []
        for slot, witnesses in found.items():
            self._decide(left, slot, reached[slot], witnesses, touched)
        if edge == 1 and self._wanders:
            self.wander(batch, self.rows.slots(), touched)
        return touched

    def _witnesses_of(self, row: Row, slot: int, left: Overlay, right: Overlay) -> Witnesses:
        found = Witnesses()
        for partner in self._right.slots(self._left.key(slot)):
            tick = right.max_tick(partner)
            found.reached_tick = max(found.reached_tick, tick)
            if left.visible(slot) and right.visible(partner):
                assert self._condition is not None, "called only with a condition"
                if self._condition(*row, *right.row(partner)):
                    found.support += 1
                    found.first_tick = tick if found.first_tick == NO_TICK else min(tick, found.first_tick)
        return found

    # Quench, checkpoints

    def dead_input_keys(self, edge: int, batch: Batch) -> list[Key]:
        if self.relation.versioned or self._condition is not None or self.input_relations[edge].is_event:
            return []
        keys = batch.keys(self.input_relations[edge].key_width)
        if edge == 1:
            return [key for key, visible in zip(keys, batch.visible, strict=True) if visible]
        if not self._negated:
            return []
        return [key for key, row in zip(keys, batch.rows(), strict=True) if self._found(self._left.key_of(row)).support]

    def export_extra(self) -> dict[str, object]:
        """The match keys of right events, which nobody else remembers."""
        if self.inputs[1] is not None:
            return {}
        return {
            "keys": [list(key) for key in self._witnesses],
            "first": [found.first_tick for found in self._witnesses.values()],
            "reached": [found.reached_tick for found in self._witnesses.values()],
        }

    def restore_extra(self, data: dict[str, object]) -> None:
        left, right = self.inputs
        assert left is not None, "left rows are remembered"
        self._left.rebuild(left)
        if self._wanders:
            self.recall_wanderers(1)
        self._witnesses = {}
        if right is None:
            keys, first, reached = data.get("keys"), data.get("first"), data.get("reached")
            if not (isinstance(keys, list) and isinstance(first, list) and isinstance(reached, list)):
                raise ValueError("a match has keys, first and reached ticks")
            self._witnesses = {tuple(key): Witnesses(1, a, b) for key, a, b in zip(keys, first, reached, strict=True)}
        elif self._condition is not None:
            self._right.rebuild(right)
        else:
            for slot in right.slots():
                key = self._right.key_of(right.row_at(slot))
                if key is not None:
                    self._witness(key, int(right.visible[slot]), right.max_tick[slot])
