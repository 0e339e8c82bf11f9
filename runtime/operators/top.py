"""Top-k: for each group the k best rows by a total order; equal rows by key, ascending.

Of events (`TopOfEvents`): the set of candidates only grows, so a row is visible until k better ones exist and never
again. Knowledge: entering rows, and tombstones of rows that were driven out or never got in (T1). A row depends on
itself, an excluded one also on the k rows that exclude it; only the k best are kept.

Of state rows (`Top`): all candidates are kept, in order. A reach of a group touches the rows that are in, those that
were, and those that reached it. Any other one that is out now may have been in at a coverage that this incarnation
skipped; to touch them all would make each event cost as much as its group is large, so they are hidden (`hidden_tick`):
whoever knew another incarnation gets all rows that are in, which are few. If values or visibility may change, the
relation is versioned. If rows only come, and final, it need not be: then a row goes once and for all, as with events.

Gap, curiosity: those of the input edge. Final never, before somebody closes the group. Quench: none; by key it would
need the promise that a row's order value cannot improve.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from runtime.batch import Batch
from runtime.loops.code import Code
from runtime.operators.operator import Operator
from runtime.operators.ordering import Order, SortKey, reversed_text, sort_key_text
from runtime.operators.row_operator import EarlyStore, Table, are_final, names_of
from runtime.plan import OperatorSpec, PlanError, Relation
from runtime.rows import Rows
from runtime.values import Key


@dataclass(frozen=True)
class _Loop:
    """`places` (by order, then by key) and `group`: of a row c0, c1, ...; `held_group`, `key`, `values`: of a row in
    the copy, or of an event. `ranks`: the table as far as it changes when only ranks do."""

    is_event: bool
    read: tuple[int, ...]
    places: tuple[str, ...]
    group: tuple[str, ...]
    wanders: bool
    width: int
    held_group: tuple[str, ...]
    key: tuple[str, ...]
    values: tuple[str, ...]
    columns: tuple[int, ...]
    table: Table
    ranks: Table


@dataclass(frozen=True, slots=True)
class TopSpec(OperatorSpec):
    """Output: the input's columns, and with `rank` one more that counts from 1 (0 while invisible). `with_ties`: also
    rows that equal the k-th in all order columns. `group`: input columns; none = one group."""

    limit: int
    order: tuple[Order, ...]
    group: tuple[int, ...] = ()
    rank: bool = False
    with_ties: bool = False

    def code(self, inputs: tuple[Relation, ...], output: Relation) -> Code:
        (source,) = inputs
        keys = range(source.key_width)
        held = tuple(f"h{number}[at]" for number in range(source.width))
        rows = names_of(range(source.width)) if source.is_event else held
        table = Table.of(output)
        loop = _Loop(
            source.is_event,
            tuple(sorted({*self.group, *keys, *(part.column for part in self.order)})),
            (sort_key_text(self.order, source), sort_key_text([Order(number) for number in keys], source)),
            names_of(self.group),
            not are_final(source, self.group),
            source.width,
            tuple(held[number] for number in self.group),
            rows[: source.key_width],
            (*rows[source.key_width :], *((("0" if source.is_event else "rank"),) if self.rank else ())),
            tuple(range(source.width)),
            table,
            replace(table, key_width=output.width - self.rank),
        )
        return Code("top.py.j2", loop)

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator:
        if (inputs[0].key_width, inputs[0].width + self.rank) != (output.key_width, output.width):
            raise PlanError(f"{output.name}: has other columns than {inputs[0].name}")
        if self.limit < 1 or (self.rank and self.with_ties):
            raise PlanError(f"{output.name}: top {self.limit}, and a rank only without ties")
        return TopOfEvents(self, inputs, output) if inputs[0].is_event else Top(self, inputs, output)


Candidate = tuple[SortKey, SortKey, int]  # order columns, key, slot: sorts best first
Place = tuple[int, int, int]  # slot, rank (0 = out), the tick it depends on


class _Ranking(EarlyStore):
    """What both forms share: the order, and how many of the best are in."""

    def __init__(self, spec: TopSpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        self._limit, self._has_rank, self._with_ties = spec.limit, spec.rank, spec.with_ties
        self._ranked: dict[Key, list[Candidate]] = {}
        self._functions = spec.code(inputs, output).load(down=reversed_text)
        self._rank = self._functions["rank"]

    def _inside(self, ranked: list[Candidate]) -> int:
        """How many of the best are visible."""
        count = min(self._limit, len(ranked))
        if self._with_ties and count:
            last = ranked[count - 1][0]
            while count < len(ranked) and ranked[count][0] == last:
                count += 1
        return count


class TopOfEvents(_Ranking):
    """`_ranked` lists the visible rows of each group by their slots in `rows`."""

    def __init__(self, spec: TopSpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(spec, inputs, output)
        functions = self._functions
        self._hold, self._show = functions["hold"], functions["show"]

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        touched: list[int] = []
        self._hold(batch.columns, batch.max_ticks, self.table(), touched.append)
        places: list[Place] = []
        own_slots = [self.rows.index[key] for key in batch.keys(self.relation.key_width)]
        for group, candidate in self._ranks(batch, own_slots):
            ranked = self._ranked.setdefault(group, [])
            at = bisect_left(ranked, candidate)
            ranked.insert(at, candidate)
            self._settle(ranked, at, places)
        self._show(places, self.table(), touched.append)
        return touched

    def _ranks(self, batch: Batch, slots: Sequence[int]) -> list[tuple[Key, Candidate]]:
        """The group of each row, and the row as a candidate."""
        ranks: list[tuple[Key, Candidate]] = []
        self._rank(batch.columns, slots, ranks.append)
        return ranks

    def _settle(self, ranked: list[Candidate], first: int, places: list[Place]) -> None:
        """Rows from this place on have got a better one before them: new ranks, or out for good."""
        inside = self._inside(ranked)
        own_tick = self.rows.columns[0]  # after a bulk install max_tick says nothing about a single row
        ticks: list[Any] = [own_tick[slot] for _, _, slot in ranked]
        shift = self._has_rank or self._always_touched  # otherwise those behind the first stay as they are
        for place in range(first, inside if shift else min(first + 1, inside)):
            tick = max(ticks[: place + 1]) if self._has_rank else ticks[place]
            places.append((ranked[place][2], place + 1, tick))
        if inside < len(ranked):
            limit_tick = max(ticks[: self._limit])
            out = range(max(first, inside), len(ranked))
            places += [(ranked[place][2], 0, max(ticks[place], limit_tick)) for place in out]
            del ranked[inside:]

    def restore_extra(self, data: dict[str, object]) -> None:
        self._ranked = {}
        slots = self.rows.visible_slots()
        for group, candidate in self._ranks(self.rows.select(slots), slots):
            insort(self._ranked.setdefault(group, []), candidate)


class Top(_Ranking):
    """`_ranked` lists the visible input rows of each group by their slots in the copy, `_in` those that are shown."""

    def __init__(self, spec: TopSpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(spec, inputs, output)
        self._in: dict[Key, list[int]] = {}
        self._reached_tick: dict[Key, int] = {}
        self._settle_all = self._functions["settle"]

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        copy = self.inputs[edge]
        assert copy is not None, "state rows are remembered"
        groups: dict[Key, list[int]] = {}
        places = self._places(batch, slots, copy.visible, copy)
        for slot, tick, (group, place, old_group, old) in zip(slots, batch.max_ticks, places, strict=True):
            if old_group is not None and old is not None:
                ranked = self._ranked[old_group]
                del ranked[bisect_left(ranked, old)]
                self._reach(old_group, tick)
                groups.setdefault(old_group, []).append(slot)
            self._reach(group, tick)
            groups.setdefault(group, []).append(slot)
            if place is not None:
                insort(self._ranked.setdefault(group, []), place)
        copy.store(slots, batch)
        touched: list[int] = []
        for group, reached in groups.items():
            self._settle(group, reached, copy, touched)
        self.hidden_tick = max([self.hidden_tick, *batch.max_ticks])
        return touched

    def _places(
        self, batch: Batch, slots: Sequence[int], was: Sequence[bool] | dict[int, bool], copy: Rows
    ) -> list[tuple[Key, Candidate | None, Key | None, Candidate | None]]:
        """The group and the place of each row, and of the one that it replaces."""
        places: list[tuple[Key, Candidate | None, Key | None, Candidate | None]] = []
        self._rank(batch.columns, batch.visible, slots, was, copy.columns, places.append)
        return places

    def _reach(self, group: Key, tick: int) -> None:
        self._reached_tick[group] = max(tick, self._reached_tick.get(group, tick))

    def _shown_of(self, group: Key) -> list[int]:
        ranked = self._ranked.get(group, [])
        return [slot for _, _, slot in ranked[: self._inside(ranked)]]

    def _settle(self, group: Key, reached: list[int], copy: Rows, touched: list[int]) -> None:
        shown = self._shown_of(group)
        ranks = {slot: place for place, slot in enumerate(shown, 1)}
        asked = dict.fromkeys([*shown, *self._in.get(group, ()), *reached])
        last = self._reached_tick[group]
        self._settle_all(group, asked, ranks.get, last, copy.columns, self.table(), touched.append)
        self._in[group] = shown

    def restore_extra(self, data: dict[str, object]) -> None:
        copy = self.inputs[0]
        assert copy is not None, "state rows are remembered"
        self._ranked, self._reached_tick = {}, {}
        slots = copy.slots()
        rows = copy.select(slots)
        nothing = dict.fromkeys(slots, False)
        for slot, key, (group, place, _, _) in zip(
            slots, rows.keys(copy.key_width), self._places(rows, slots, nothing, copy), strict=True
        ):
            self._reach(group, copy.max_tick[slot])
            if place is not None:
                self._ranked.setdefault(group, []).append(place)
            held = self.rows.slot_of(key)
            if held >= 0:  # what once reached the group and was replaced is remembered in its rows
                self._reached_tick[group] = max(self._reached_tick[group], self.rows.max_tick[held])
        for ranked in self._ranked.values():
            ranked.sort()
        self._in = {group: self._shown_of(group) for group in self._ranked}
