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
from runtime.loops.code import Code
from runtime.loops.scalar import Inline, inlined
from runtime.operators.matching import MatchIndex, Matching, Move
from runtime.operators.operator import Operator
from runtime.operators.row_operator import Table, are_final, names_of
from runtime.plan import OperatorSpec, PlanError, Relation
from runtime.protocol.coverage import NO_TICK
from runtime.values import Key

Witnesses = list[int]  # visible rows, the tick of the one that depends on least, the largest tick of any row
NOTHING: Witnesses = [0, NO_TICK, NO_TICK]


@dataclass(frozen=True)
class _Loop:
    """`cells`: how each column of the left row followed by the right row is read, for the condition."""

    condition: Inline | None
    cells: tuple[str, ...]
    left_read: tuple[int, ...]
    right_read: tuple[int, ...]
    right_key: tuple[str, ...]
    right_is_kept: bool
    null_matches: bool
    negated: bool
    key: tuple[str, ...]
    values: tuple[str, ...]
    table: Table


@dataclass(frozen=True, slots=True)
class MatchSpec(OperatorSpec):
    """`on`: pairs (left column, right column) that must be equal. `condition`: a function of all left, then all right
    columns; the right rows are then remembered, otherwise only their match keys. `null_matches`: null equals null."""

    on: tuple[tuple[int, int], ...]
    negated: bool = False
    condition: Callable[..., bool] | None = None
    null_matches: bool = False

    def code(self, inputs: tuple[Relation, ...], output: Relation) -> Code:
        width = inputs[0].width
        (condition,), tables = inlined([self.condition], width + inputs[1].width)
        left = tuple(f"l{n}[a]" for n in range(width))
        used = () if condition is None else condition.columns
        right_on = tuple(right for _, right in self.on)
        loop = _Loop(
            condition,
            (*left, *(f"r{n}[b]" for n in range(inputs[1].width))),
            tuple(n for n in used if n < width),
            tuple(dict.fromkeys(right_on)) if condition is None else tuple(n - width for n in used if n >= width),
            names_of(right_on),
            not inputs[1].is_event,
            self.null_matches,
            self.negated,
            left[: output.key_width],
            left[output.key_width :],
            Table.of(output),
        )
        return Code("match.py.j2", loop, tables)

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


class Match(Matching):
    def __init__(self, spec: MatchSpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        self._has_condition = spec.condition is not None
        super().__init__(inputs, output)
        on = ([left for left, _ in spec.on], [right for _, right in spec.on])
        self._negated = spec.negated
        self._left = MatchIndex(on[0], null_matches=spec.null_matches)
        self._right = MatchIndex(on[1], null_matches=spec.null_matches)  # lists rows only with a condition
        self._witnesses: dict[Key, Witnesses] = {}  # used without one
        self._wanders = not are_final(inputs[1], on[1])
        functions = spec.code(inputs, output).load()
        self._witness, self._decide = functions["witness"], functions["decide"]

    def keeps_events(self, edge: int) -> bool:
        return edge == 0 or self._has_condition

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        if self._has_condition:
            return self._apply_with_condition(edge, batch, slots)
        if edge == 0:
            self._left.store(batch, slots)
            self.store_first(0, batch, slots)
            reached = dict(zip(slots, batch.max_ticks, strict=True))
        else:
            reached = self._reached_by_right(batch, slots)
            if self.inputs[1] is not None:
                self.store_first(1, batch, slots)
        return self._decided(edge, batch, reached, [self._found(self._left.key(slot)) for slot in reached])

    def _decided(self, edge: int, batch: Batch, reached: dict[int, int], found: list[Witnesses]) -> list[int]:
        left = self.inputs[0]
        assert left is not None, "left rows are remembered"
        touched: list[int] = []
        self._decide(reached, found, left.columns, left.visible, left.max_tick, self.table(), touched.append)
        if edge == 1 and self._wanders:
            self.wander(batch)
        return touched

    # Without a condition: match keys on the right

    def _reached_by_right(self, batch: Batch, slots: Sequence[int]) -> dict[int, int]:
        """Count the witnesses; the left rows that this may concern, with the largest tick that reached each."""
        news = self._count(batch, slots)
        reached: dict[int, int] = {}
        for key, tick in news.items():
            for slot in self._left.slots(key):
                reached[slot] = max(tick, reached.get(slot, tick))
        return reached

    def _count(self, batch: Batch, slots: Sequence[int]) -> dict[Key, int]:
        news: dict[Key, int] = {}
        right = self.inputs[1]
        replaced = () if right is None else (slots, right.visible, right.columns)
        witnesses = self._witnesses
        self._witness(
            batch.columns, batch.visible, batch.max_ticks, witnesses, witnesses.get, news, news.get, *replaced
        )
        return news

    def _found(self, key: Key | None) -> Witnesses:
        return NOTHING if key is None else self._witnesses.get(key, NOTHING)

    # With a condition: all right rows

    def _apply_with_condition(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        index = self._left if edge == 0 else self._right
        moves = index.store(batch, slots)
        old = self.store_first(edge, batch, slots)
        reached = self._reached(edge, batch, moves)
        found: list[Witnesses] = []
        try:
            self._witness(reached, self._left.key, self._right.by_key.get, self.sides(), found.append)
        except BaseException:  # the condition may fail on some row
            index.undo(moves)
            self.store_again(edge, slots, old)
            raise
        return self._decided(edge, batch, reached, found)

    def _reached(self, edge: int, batch: Batch, moves: list[Move]) -> dict[int, int]:
        reached: dict[int, int] = {}
        for (slot, before, key), tick in zip(moves, batch.max_ticks, strict=True):
            for mine in (slot,) if edge == 0 else {*self._left.slots(before), *self._left.slots(key)}:
                reached[mine] = max(tick, reached.get(mine, tick))
        return dict(sorted(reached.items()))

    # Quench, checkpoints

    def dead_input_keys(self, edge: int, batch: Batch) -> list[Key]:
        if self.relation.versioned or self._has_condition or self.input_relations[edge].is_event:
            return []
        keys = batch.keys(self.input_relations[edge].key_width)
        if edge == 1:
            return [key for key, visible in zip(keys, batch.visible, strict=True) if visible]
        if not self._negated:
            return []
        return [key for key, row in zip(keys, batch.rows(), strict=True) if self._found(self._left.key_of(row))[0]]

    def export_extra(self) -> dict[str, object]:
        """The match keys of right events, which nobody else remembers."""
        if self.inputs[1] is not None:
            return {}
        return {
            "keys": [list(key) for key in self._witnesses],
            "first": [found[1] for found in self._witnesses.values()],
            "reached": [found[2] for found in self._witnesses.values()],
        }

    def restore_extra(self, data: dict[str, object]) -> None:
        left, right = self.inputs
        assert left is not None, "left rows are remembered"
        self._left.rebuild(left)
        self._witnesses = {}
        if right is None:
            keys, first, reached = data.get("keys"), data.get("first"), data.get("reached")
            if not (isinstance(keys, list) and isinstance(first, list) and isinstance(reached, list)):
                raise ValueError("a match has keys, first and reached ticks")
            self._witnesses = {tuple(key): [1, a, b] for key, a, b in zip(keys, first, reached, strict=True)}
        elif self._has_condition:
            self._right.rebuild(right)
        else:
            rows = right.select(right.slots())
            count = len(rows)
            self._witness(
                *(rows.columns, rows.visible, rows.max_ticks, self._witnesses, self._witnesses.get, {}, {}.get),
                *(range(count), [False] * count, right.columns),
            )
