"""Best: for each group the row that comes first in an order; `latest` and `first` of rows that are not events.

Domain: of rows that only come and never change, a row dominated by one that comes earlier in the order: only the winner
counts, so max_tick is the winner's. Of rows that change or vanish the relation is versioned: all candidates are kept,
and a group depends on every tick that reached it. Knowledge: (group, winning row). Gap, curiosity: those of the input
edge. Final never, before somebody closes the group. Quench: none.

Events by their own tick have `latest.py`, which keeps the winners only.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass

from runtime.batch import Batch
from runtime.loops.code import Code
from runtime.operators.operator import Operator
from runtime.operators.ordering import Order, SortKey, reversed_text, sort_key_text
from runtime.operators.row_operator import EarlyStore, Table, are_final, names_of, picker
from runtime.plan import OperatorSpec, PlanError, Relation
from runtime.rows import Rows
from runtime.values import Key

Candidate = tuple[SortKey, int]  # place in the order, slot
Ranked = tuple[Key, Candidate | None, Key | None, Candidate | None]  # group and place, now and before


@dataclass(frozen=True)
class _Loop:
    """`places`, `group`: of a row c0, c1, ...; `shown`: columns of the copy that make the `values` of an output row."""

    read: tuple[int, ...]
    places: tuple[str, ...]
    group: tuple[str, ...]
    shown: tuple[int, ...]
    values: tuple[str, ...]
    table: Table


@dataclass(frozen=True, slots=True)
class BestSpec(OperatorSpec):
    """`columns`: for each output column, the group's first, its number in the input row. `order` tells every two rows
    of a group apart."""

    columns: tuple[int, ...]
    order: tuple[Order, ...]

    def code(self, inputs: tuple[Relation, ...], output: Relation) -> Code:
        group, values = self.columns[: output.key_width], self.columns[output.key_width :]
        loop = _Loop(
            tuple(sorted({*group, *(part.column for part in self.order)})),
            (sort_key_text(self.order, inputs[0]),),
            names_of(group),
            tuple(dict.fromkeys(values)),
            tuple(f"h{number}[at]" for number in values),
            Table.of(output),
        )
        return Code("best.py.j2", loop)

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator:
        if len(self.columns) != output.width:
            raise PlanError(f"{output.name}: {len(self.columns)} columns chosen for a relation of {output.width}")
        if not output.versioned and not are_final(inputs[0], [part.column for part in self.order]):
            raise PlanError(f"{output.name}: the best by columns that change are versioned")
        return Best(self, inputs, output)


class Best(EarlyStore):
    """`_ranked` lists the visible input rows of each group by their slots in the copy, best first."""

    def __init__(self, spec: BestSpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        self._values = picker(spec.columns[output.key_width :])
        self._wanders = not are_final(inputs[0], spec.columns[: output.key_width])
        self._ranked: dict[Key, list[Candidate]] = {}
        functions = spec.code(inputs, output).load(down=reversed_text)
        self._rank, self._show = functions["rank"], functions["show"]

    def keeps_events(self, edge: int) -> bool:
        return True

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        copy = self.inputs[edge]
        assert copy is not None, "all rows are remembered"
        ranks = self._ranks(batch, slots, copy.visible, copy)
        old = self.store_first(edge, batch, slots)
        reached: dict[Key, tuple[int, Batch, int]] = {}  # with the largest tick, and a row for want of a better one
        for i, (tick, (group, place, old_group, old_place)) in enumerate(zip(batch.max_ticks, ranks, strict=True)):
            if old_group is not None and old_place is not None:
                reached[old_group] = (max(tick, reached.get(old_group, (tick,))[0]), old, i)
                ranked = self._ranked[old_group]
                del ranked[bisect_left(ranked, old_place)]
            reached[group] = (max(tick, reached.get(group, (tick,))[0]), batch, i)
            if place is not None:
                insort(self._ranked.setdefault(group, []), place)
        touched: list[int] = []
        places: list[tuple[Key, int, int]] = []
        for group, (tick, rows, i) in reached.items():
            candidates = self._ranked.get(group)
            if candidates:
                places.append((group, candidates[0][1], tick))
            else:
                self._ranked.pop(group, None)
                row = tuple([column[i] for column in rows.columns])
                self.put(group, self._values(row), False, tick, touched)
        self._show(places, copy.columns, copy.max_tick, self.table(), touched.append)
        if self._wanders:
            self.wander(batch)
        return touched

    def _ranks(self, batch: Batch, slots: Sequence[int], was: Sequence[bool], copy: Rows) -> list[Ranked]:
        ranks: list[Ranked] = []
        self._rank(batch.columns, batch.visible, slots, was, copy.columns, ranks.append)
        return ranks

    def restore_extra(self, data: dict[str, object]) -> None:
        copy = self.inputs[0]
        assert copy is not None, "all rows are remembered"
        self._ranked = {}
        slots = copy.visible_slots()
        for group, place, _, _ in self._ranks(copy.select(slots), slots, [False] * len(copy.visible), copy):
            if place is not None:
                insort(self._ranked.setdefault(group, []), place)
