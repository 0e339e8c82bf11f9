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
from runtime.loops.code import Code
from runtime.loops.scalar import Inline, inlined
from runtime.operators.matching import MatchIndex, Matching, Move
from runtime.operators.operator import Operator
from runtime.operators.row_operator import Row, Table, are_final, picker
from runtime.plan import OperatorSpec, PlanError, Relation
from runtime.values import Key, Value

Results = dict[Key, tuple[Value, ...]]  # visible, tick, and then the values


@dataclass(frozen=True)
class _RowText:
    """How the key and the values of an output row are read."""

    key: tuple[str, ...]
    values: tuple[str, ...]


@dataclass(frozen=True)
class _Loop:
    """`cells`: how each column of the left row followed by the right row is read; `pair`, `default`, `alone`: the row
    of a pair, of a left row with the default, of an anchor that has met nobody."""

    anchor: int | None
    has_anchors: bool
    has_default: bool
    condition: Inline | None
    cells: tuple[str, ...]
    left_read: tuple[int, ...]
    right_read: tuple[int, ...]
    pair: _RowText
    default: _RowText
    alone: _RowText
    results: tuple[str, ...]
    table: Table


@dataclass(frozen=True, slots=True)
class JoinSpec(OperatorSpec):
    """`on`: pairs (left column, right column) that must be equal. `columns`: for each output column, key first, its
    number in the left row followed by the right row. `condition`: a function of all left, then all right columns.
    `default`: for an outer join, a whole row in place of a missing right one."""

    on: tuple[tuple[int, int], ...]
    columns: tuple[int, ...]
    condition: Callable[..., bool] | None = None
    default: Row | None = None

    def anchor(self, inputs: tuple[Relation, ...], output: Relation) -> int | None:
        """The side whose rows have one output row each, if there is one."""
        sides = {c >= inputs[0].width for c in self.columns[: output.key_width]}
        return None if len(sides) > 1 else int(True in sides)

    def code(self, inputs: tuple[Relation, ...], output: Relation) -> Code:
        width = inputs[0].width
        (condition,), tables = inlined([self.condition], width + inputs[1].width)
        anchor = self.anchor(inputs, output)
        left, right = [f"l{n}[a]" for n in range(width)], [f"r{n}[b]" for n in range(inputs[1].width)]
        cells = (*left, *right)
        default = (*left, *(f"default[{n}]" for n in range(inputs[1].width)))
        alone = (*["None"] * width, *right) if anchor == 1 else (*left, *["None"] * inputs[1].width)
        read = {*self.columns, *(condition.columns if condition is not None else ())}

        def row(texts: Sequence[str]) -> _RowText:
            chosen = tuple(texts[number] for number in self.columns)
            return _RowText(chosen[: output.key_width], chosen[output.key_width :])

        loop = _Loop(
            anchor,
            anchor is not None or self.default is not None,
            self.default is not None,
            condition,
            cells,
            tuple(sorted(n for n in read if n < width)),
            tuple(sorted(n - width for n in read if n >= width)),
            row(cells),
            row(default),
            row(alone),
            tuple(f"x{n}" for n in range(output.key_width, output.width)),
            Table.of(output),
        )
        return Code("join.py.j2", loop, tables)

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator:
        if len(self.columns) != output.width:
            raise PlanError(f"{output.name}: {len(self.columns)} columns chosen for a relation of {output.width}")
        if self.default is not None and len(self.default) != inputs[1].width:
            raise PlanError(f"{output.name}: the default has {len(self.default)} columns, {inputs[1].name} has more")
        return Join(self, inputs, output)


class Join(Matching):
    def __init__(self, spec: JoinSpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        on = ([left for left, _ in spec.on], [right for _, right in spec.on])
        self._default = spec.default
        self._key = picker(spec.columns[: output.key_width])
        self._values = picker(spec.columns[output.key_width :])
        self._index = (MatchIndex(on[0]), MatchIndex(on[1]))
        self._wanders = [not are_final(relation, columns) for relation, columns in zip(inputs, on, strict=True)]
        self._anchor = spec.anchor(inputs, output)
        self._has_anchors = self._anchor is not None or self._default is not None
        if self._default is not None and self._anchor == 1:
            raise PlanError(f"{output.name}: a left join needs a key column of the left side")
        functions = spec.code(inputs, output).load()
        self._pairs = [functions.get("pairs_0"), functions.get("pairs_1")]
        self._join_anchored = functions.get("anchored")
        self._store = functions["store"]

    def keeps_events(self, edge: int) -> bool:
        return True

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        moves = self._index[edge].store(batch, slots)
        old = self.store_first(edge, batch, slots)
        try:
            results = self._results(edge, batch, moves, old)
        except BaseException:  # a condition may fail on some row
            self._index[edge].undo(moves)
            self.store_again(edge, slots, old)
            raise
        touched: list[int] = []
        self._store(results, self.table(), touched.append)
        if self._wanders[edge]:
            self.wander(batch)
        return touched

    def _results(self, edge: int, batch: Batch, moves: list[Move], old: Batch) -> Results:
        sides = self.sides()
        results: Results = {}
        pairs = self._pairs[edge]
        if pairs is not None:
            if self._wanders[edge]:
                self._part(edge, moves, old, results)
            pairs(moves, self._index[1 - edge].by_key.get, sides, results)
        if self._has_anchors:
            self._anchored(self._reached(edge, batch, moves), sides, results)
        return results

    def _anchored(self, reached: dict[int, int], sides: list[object], results: Results) -> None:
        """One row for each row of one side."""
        anchor = self._anchor or 0
        assert self._join_anchored is not None
        key_of, partners = self._index[anchor].key, self._index[1 - anchor].by_key.get
        self._join_anchored(reached, key_of, partners, self.rows.index.get, self._default, sides, results)

    def _reached(self, edge: int, batch: Batch, moves: list[Move]) -> dict[int, int]:
        """Rows of the anchor's side that the batch has to do with, and the largest tick that reached each."""
        anchor = self._anchor or 0
        if edge == anchor:
            return {slot: tick for (slot, _, _), tick in zip(moves, batch.max_ticks, strict=True)}
        reached: dict[int, int] = {}
        by_key = self._index[anchor].by_key
        for (_, before, key), tick in zip(moves, batch.max_ticks, strict=True):
            for match in (key,) if before == key else (key, before):
                for partner in by_key.get(match, ()) if match is not None else ():
                    if reached.get(partner, tick) <= tick:
                        reached[partner] = tick
        return reached

    def _part(self, edge: int, moves: list[Move], old: Batch, results: Results) -> None:
        """Rows that have wandered off: their old pairs vanish."""
        copy, other = self.inputs[edge], self.inputs[1 - edge]
        assert copy is not None, "a join remembers both sides"
        assert other is not None, "a join remembers both sides"
        for (slot, before, key), row in zip(moves, old.rows(), strict=True):
            if before is None or before == key:
                continue
            for partner in self._index[1 - edge].slots(before):
                whole = row + other.row_at(partner) if edge == 0 else other.row_at(partner) + row
                tick = max(copy.max_tick[slot], other.max_tick[partner])
                results[self._key(whole)] = (False, tick, *self._values(whole))

    def restore_extra(self, data: dict[str, object]) -> None:
        for index, copy in zip(self._index, self.inputs, strict=True):
            assert copy is not None, "a join remembers both sides"
            index.rebuild(copy)
