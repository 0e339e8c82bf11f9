"""Top-k: for each group the k best rows by a total order; equal rows by key, ascending.

Of events (`TopOfEvents`): the set of candidates only grows, so a row is visible until k better ones exist and never
again. Knowledge: entering rows, and tombstones of rows that were driven out or never got in (T1). A row depends on
itself, an excluded one also on the k rows that exclude it; only the k best are kept.

Of state rows (`Top`): all candidates are kept. If values or visibility may change, the relation is versioned, and any
reach of a group touches all of them: one that is out now may have been in at a coverage that this incarnation skipped.
If rows only come, and final, it need not be: then a row goes once and for all, as with events.

Gap, curiosity: those of the input edge. Final never, before somebody closes the group. Quench: none; by key it would
need the promise that a row's order value cannot improve.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass

from runtime.batch import Batch
from runtime.operators.operator import Operator
from runtime.operators.ordering import Order, SortKey, sort_key
from runtime.operators.row_operator import RowOperator, are_final, old_rows, picker
from runtime.plan import OperatorSpec, PlanError, Relation
from runtime.protocol.coverage import NO_TICK
from runtime.values import Key, Value


@dataclass(frozen=True, slots=True)
class TopSpec(OperatorSpec):
    """Output: the input's columns, and with `rank` one more that counts from 1 (0 while invisible). `with_ties`: also
    rows that equal the k-th in all order columns. `group`: input columns; none = one group."""

    limit: int
    order: tuple[Order, ...]
    group: tuple[int, ...] = ()
    rank: bool = False
    with_ties: bool = False

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator:
        if (inputs[0].key_width, inputs[0].width + self.rank) != (output.key_width, output.width):
            raise PlanError(f"{output.name}: has other columns than {inputs[0].name}")
        if self.limit < 1 or (self.rank and self.with_ties):
            raise PlanError(f"{output.name}: top {self.limit}, and a rank only without ties")
        return TopOfEvents(self, inputs, output) if inputs[0].is_event else Top(self, inputs, output)


Candidate = tuple[SortKey, SortKey, int]  # order columns, key, slot: sorts best first


class _Ranking(RowOperator):
    """What both forms share: the order, and how many of the best are in."""

    def __init__(self, spec: TopSpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        self._limit, self._has_rank, self._with_ties = spec.limit, spec.rank, spec.with_ties
        self._group = picker(spec.group)
        self._order = sort_key(spec.order)
        self._key_order = sort_key([Order(c) for c in range(inputs[0].key_width)])
        self._wanders = not are_final(inputs[0], spec.group)
        self._ranked: dict[Key, list[Candidate]] = {}

    def _inside(self, ranked: list[Candidate]) -> int:
        """How many of the best are visible."""
        count = min(self._limit, len(ranked))
        if self._with_ties and count:
            last = ranked[count - 1][0]
            while count < len(ranked) and ranked[count][0] == last:
                count += 1
        return count

    def _with_rank(self, values: Sequence[Value], rank: int) -> Sequence[Value]:
        return (*values, rank) if self._has_rank else values


class TopOfEvents(_Ranking):
    """`_ranked` lists the visible rows of each group by their slots in `rows`."""

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        touched: list[int] = []
        width = self.relation.key_width
        for row, tick in zip(batch.rows(), batch.max_ticks, strict=True):
            key = row[:width]
            ranked = self._ranked.setdefault(self._group(row), [])
            self.put(key, self._with_rank(row[width:], 0), False, tick, touched)
            candidate = (self._order(row), self._key_order(row), self.rows.slot_of(key))
            at = bisect_left(ranked, candidate)
            ranked.insert(at, candidate)
            self._settle(ranked, at, touched)
        return touched

    def _settle(self, ranked: list[Candidate], first: int, touched: list[int]) -> None:
        """Rows from this place on have got a better one before them: new ranks, or out for good."""
        rows = self.rows
        width = self.input_relations[0].width
        inside = self._inside(ranked)
        # Ticks of the rows themselves: after a bulk install max_tick says nothing about a single row.
        better = max((self._tick(slot) for _, _, slot in ranked[:first]), default=NO_TICK)
        limit_tick = max((self._tick(slot) for _, _, slot in ranked[: self._limit]), default=NO_TICK)
        for place in range(first, len(ranked)):
            slot = ranked[place][2]
            row = rows.row_at(slot)[:width]
            own = self._tick(slot)
            better = max(better, own)
            if place < inside:
                tick = better if self._has_rank else own
                self.put(row[:1], self._with_rank(row[1:], place + 1), True, tick, touched)
            else:
                self.put(row[:1], self._with_rank(row[1:], 0), False, max(own, limit_tick), touched)
        del ranked[inside:]

    def _tick(self, slot: int) -> int:
        tick = self.rows.columns[0][slot]
        assert isinstance(tick, int), "column 0 of an event is its tick"
        return tick

    def restore_extra(self, data: dict[str, object]) -> None:
        self._ranked = {}
        for slot in self.rows.visible_slots():
            row = self.rows.row_at(slot)
            insort(self._ranked.setdefault(self._group(row), []), (self._order(row), self._key_order(row), slot))


class Top(_Ranking):
    """`_ranked` lists the visible input rows of each group by their slots in the copy, `_reached` all there were."""

    def __init__(self, spec: TopSpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(spec, inputs, output)
        self._reached: dict[Key, dict[int, None]] = {}
        self._reached_tick: dict[Key, int] = {}

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        groups: dict[Key, None] = {}
        old = old_rows(self.inputs[edge], slots)
        for i, row in enumerate(batch.rows()):
            tick, slot, before = batch.max_ticks[i], slots[i], old[i]
            if before is not None:
                group = self._group(before)
                ranked = self._ranked[group]
                del ranked[bisect_left(ranked, (self._order(before), self._key_order(before), slot))]
                self._reach(group, slot, tick)
                groups[group] = None
            group = self._group(row)
            self._reach(group, slot, tick)
            groups[group] = None
            if batch.visible[i]:
                insort(self._ranked.setdefault(group, []), (self._order(row), self._key_order(row), slot))
        touched: list[int] = []
        new = {slot: i for i, slot in enumerate(slots)}
        for group in groups:
            self._settle(group, batch, new, touched)
        if self._wanders:
            self.wander(batch, self.rows.slots(), touched)
        return touched

    def _reach(self, group: Key, slot: int, tick: int) -> None:
        self._reached.setdefault(group, {})[slot] = None
        self._reached_tick[group] = max(tick, self._reached_tick.get(group, tick))

    def _settle(self, group: Key, batch: Batch, new: dict[int, int], touched: list[int]) -> None:
        copy = self.inputs[0]
        assert copy is not None, "state rows are remembered"
        ranked = self._ranked.get(group, [])
        ranks = {slot: place + 1 for place, (_, _, slot) in enumerate(ranked[: self._inside(ranked)])}
        width = self.relation.key_width
        for slot in list(self._reached[group]):
            i = new.get(slot, -1)
            row = tuple([column[i] for column in batch.columns]) if i >= 0 else copy.row_at(slot)
            if self._group(row) != group:  # wandered off; its new group decides
                del self._reached[group][slot]
                continue
            rank = ranks.get(slot, 0)
            values = self._with_rank(row[width:], rank)
            self.put(row[:width], values, rank > 0, self._reached_tick[group], touched)

    def restore_extra(self, data: dict[str, object]) -> None:
        copy = self.inputs[0]
        assert copy is not None, "state rows are remembered"
        self._ranked, self._reached, self._reached_tick = {}, {}, {}
        if self._wanders:
            self.recall_wanderers(0)
        for slot in copy.slots():
            row = copy.row_at(slot)
            group = self._group(row)
            self._reach(group, slot, copy.max_tick[slot])
            if copy.visible[slot]:
                insort(self._ranked.setdefault(group, []), (self._order(row), self._key_order(row), slot))
            held = self.rows.slot_of(row[: self.relation.key_width])
            if held >= 0:  # what once reached the group and was replaced is remembered in its rows
                self._reached_tick[group] = max(self._reached_tick[group], self.rows.max_tick[held])
