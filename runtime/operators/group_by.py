"""Group-by: one row for each group that has rows, with aggregates over them.

Domain: the product of the aggregates' domains. Knowledge: (group, values), whichever ticks made them. Gap, curiosity:
those of the input edge; what is superseded is never asked for again. Rows of events never leave, so the group stays
visible and aggregates take their cheap form. State rows replace their predecessor: its part is taken away, theirs
added; if they may vanish the relation is versioned and a group without rows becomes invisible, with its aggregates at
their identity (absent and zero are the same statement). Final only when somebody closes the group. Quench: none, every
row counts.

Without group-by columns there is at most one row. `one_row` keeps it visible even over no input, as MPL says; it then
depends on tick 0, so that a receiver that knows nothing is sent it.

If a column to group by is not final, input rows wander between groups, perhaps unseen between two messages: then any
row may have been another in between, also one that was never held here (`RowOperator.wander`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from runtime.batch import Batch
from runtime.loops.code import Code
from runtime.loops.scalar import Inline, inlined
from runtime.operators.aggregate import Aggregate, AggregateSpec, Counted, Form, Result
from runtime.operators.errors import INT_MAX, INT_MIN, Overflow
from runtime.operators.operator import Operator
from runtime.operators.row_operator import RowOperator, Table, are_final, names_of
from runtime.plan import OperatorSpec, PlanError, Relation
from runtime.protocol.coverage import NO_TICK
from runtime.shown import shown_group, shown_row
from runtime.values import Key, Value

VALUES = 3
"""Where the values of a group are in its part of a batch: see the template."""


@dataclass(frozen=True)
class _AggregateText:
    """One aggregate in the loop. `first`: the number of its first column after the key. `witness`: where the tick of an
    extreme is. `number`, `order`, `targets`: of one with state of its own, its lists and where its values go."""

    form: str
    first: int
    argument: Inline | None
    where: Inline | None
    starts_null: bool
    witness: int
    number: int
    order: tuple[str, ...] | None
    targets: tuple[str, ...]


@dataclass(frozen=True)
class _Loop:
    """`totals` are the places that must not overflow; `remembers`: the input's rows are kept, and replaced."""

    by: tuple[str, ...]
    read: tuple[int, ...]
    aggregates: tuple[_AggregateText, ...]
    others: tuple[int, ...]
    totals: tuple[int, ...]
    witnesses: int
    values: tuple[str, ...]
    remembers: bool
    rows_may_leave: bool
    one_row: bool
    is_lone_extreme: bool
    table: Table
    low: int = INT_MIN
    high: int = INT_MAX


@dataclass(frozen=True, slots=True)
class GroupBySpec(OperatorSpec):
    """`by`: input columns that make the key, in output order; aggregate columns follow in order."""

    by: tuple[int, ...]
    aggregates: tuple[AggregateSpec, ...]
    one_row: bool = False

    def code(self, inputs: tuple[Relation, ...], output: Relation) -> Code:
        wanted = [part for one in self.aggregates for part in (one.argument, one.where)]
        texts, tables = inlined(wanted, inputs[0].width)
        forms = self.forms(inputs, output)
        aggregates: list[_AggregateText] = []
        witness = VALUES + output.width - output.key_width
        others = first = 0
        for number, (spec, form) in enumerate(zip(self.aggregates, forms, strict=True)):
            is_extreme = form is not None and form.name in ("min", "max")
            places = range(VALUES + first, VALUES + first + spec.width)
            aggregates.append(
                _AggregateText(
                    "other" if form is None else form.name,
                    first,
                    texts[2 * number],
                    texts[2 * number + 1],
                    is_extreme and form is not None and form.identity == (None,),
                    witness,
                    others,
                    None if spec.needs is None else names_of(spec.needs),
                    tuple(f"part[{place}]" for place in places),
                )
            )
            first += spec.width
            witness += is_extreme
            others += form is None
        read = {*self.by, *(n for one in self.aggregates for n in one.needs or ())}
        read.update(number for text in texts if text is not None for number in text.columns)
        count = output.width - output.key_width
        loop = _Loop(
            names_of(self.by),
            tuple(sorted(read)),
            tuple(aggregates),
            tuple(range(others)),
            tuple(
                VALUES + one.first + offset
                for one, spec in zip(aggregates, self.aggregates, strict=True)
                if one.form in ("sum", "signed", "average", "count")
                for offset in range(spec.width)
            ),
            witness - VALUES - count,
            tuple(f"part[{VALUES + number}]" for number in range(count)),
            not inputs[0].is_event,
            self.rows_may_leave(inputs, output),
            self.one_row,
            len(self.aggregates) == 1 and self.aggregates[0].is_extreme,
            Table.of(output),
        )
        return Code("group_by.py.j2", loop, tables)

    def rows_may_leave(self, inputs: tuple[Relation, ...], output: Relation) -> bool:
        return output.versioned and not inputs[0].is_event

    def forms(self, inputs: tuple[Relation, ...], output: Relation) -> list[Form | None]:
        may_leave = self.rows_may_leave(inputs, output)
        return [
            spec.form(output.columns[start:end], rows_may_leave=may_leave)
            for spec, (start, end) in zip(self.aggregates, self.spans(output), strict=True)
        ]

    def spans(self, output: Relation) -> list[tuple[int, int]]:
        """The output columns of each aggregate: first, and one after the last."""
        found: list[tuple[int, int]] = []
        first = output.key_width
        for aggregate in self.aggregates:
            found.append((first, first + aggregate.width))
            first += aggregate.width
        return found

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator:
        width = len(self.by) + sum(aggregate.width for aggregate in self.aggregates)
        if (len(self.by), width) != (output.key_width, output.width):
            raise PlanError(f"{output.name}: {len(self.by)} group-by columns of {width} do not fit the relation")
        if self.one_row and self.by:
            raise PlanError(f"{output.name}: one row for ever, but grouped by {len(self.by)} columns")
        return GroupBy(self, inputs, output)


class GroupBy(RowOperator):
    """`members`, if rows may leave: how many visible input rows each group has."""

    def __init__(self, spec: GroupBySpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        self._rows_may_leave = spec.rows_may_leave(inputs, output)
        self._wanders = not are_final(inputs[0], spec.by)
        self.members: dict[Key, int] = {}
        self._others: list[tuple[Aggregate, tuple[int, int]]] = []
        self._nothing: tuple[Value, ...] = ()
        self._forms = spec.forms(inputs, output)
        for one, form, span in zip(spec.aggregates, self._forms, spec.spans(output), strict=True):
            identity = () if form is None else form.identity
            if form is None:
                columns = output.columns[span[0] : span[1]]
                made = one.build(output, columns, rows_may_leave=self._rows_may_leave)
                self._others.append((made, span))
                identity = made.identity
            self._nothing += identity
        functions = spec.code(inputs, output).load(too_large=self._too_large)
        self._gather, self._settle = functions["gather"], functions["settle"]
        if spec.one_row:
            self.put((), self._nothing, True, 0, [])

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        copy = self.inputs[edge]
        replaced = () if copy is None else (slots, copy.visible, copy.columns)
        parts, counted = self._gathered(batch, self.table(), replaced)
        results: list[Result] = [
            aggregate.evaluate(one, lambda group, span=span: self._before(group, span))  # type: ignore[misc]
            for (aggregate, span), one in zip(self._others, counted, strict=True)
        ]
        for (aggregate, _), one, result in zip(self._others, counted, results, strict=True):
            aggregate.commit(one, result)
        touched: list[int] = []
        members = (self.members, self.members.get, self.members.pop) if self._rows_may_leave else ()
        self._settle(parts, self.table(), touched.append, *members, *(result.get for result in results))
        if self._wanders:
            self.wander(batch)
        return touched

    def _gathered(
        self, batch: Batch, table: tuple[object, ...], replaced: tuple[object, ...]
    ) -> tuple[dict[Key, list[int]], list[Counted]]:
        """Each group's part of the batch, and what aggregates with state of their own have to look at."""
        parts: dict[Key, list[int]] = {}
        counted: list[Counted] = [[] for _ in self._others]
        adders = (one.append for one in counted)
        ticks = batch.max_ticks
        self._gather(batch.columns, batch.visible, ticks, parts, parts.get, table, self._nothing, *replaced, *adders)
        return parts, counted

    def _too_large(self, group: Key, part: list[Value]) -> None:
        relation = self.relation
        values = shown_row(relation.columns[relation.key_width :], part[VALUES : VALUES + len(self._nothing)])
        raise Overflow(relation.name, f"{shown_group(relation, group)} would have the total {values}")

    def _before(self, group: Key, span: tuple[int, int]) -> Sequence[Value]:
        slot = self.rows.slot_of(group)
        if slot < 0 or not self.rows.visible[slot]:
            width = self.relation.key_width
            return self._nothing[span[0] - width : span[1] - width]
        return [column[slot] for column in self.rows.columns[span[0] : span[1]]]

    def install(self, count: int, columns: Sequence[Sequence[Any]]) -> None:
        """Give a fresh group-by of events so many groups that were computed outside (C6).

        The columns are those of their key, then those of each aggregate; one that has state of its own has a single
        column instead, with a list for each group of what it has to look at.
        """
        width = self.relation.key_width
        groups: list[Key] = list(zip(*columns[:width], strict=True)) if width else [()] * count
        made: list[Sequence[Value]] = [*columns[:width]]
        others, given = iter(self._others), iter(columns[width:])
        for form in self._forms:
            if form is not None:
                made += islice(given, len(form.identity))
                continue
            aggregate, _ = next(others)
            identity = aggregate.identity
            lists = zip(groups, next(given), strict=True)
            counted = [(group, value, 1, NO_TICK) for group, found in lists for value in found]
            result = aggregate.evaluate(counted, lambda _, nothing=identity: nothing)  # type: ignore[misc]
            result = aggregate.commit(counted, result)
            values = [result[group][0] if group in result else identity for group in groups]
            made += zip(*values, strict=True) if values else [()] * len(identity)
        batch = Batch(tuple(made), [NO_TICK] * count, [True] * count)
        self.rows.store(self.rows.slots_for(batch), batch)

    def export_extra(self) -> dict[str, object]:
        """Only what events left behind: the rest is counted again from the copy of the input."""
        if self.inputs[0] is not None:
            return {}
        return {"aggregates": [aggregate.export() for aggregate, _ in self._others]}

    def restore_extra(self, data: dict[str, object]) -> None:
        copy = self.inputs[0]
        if copy is None:
            saved = data.get("aggregates")
            if not isinstance(saved, list) or len(saved) != len(self._others):
                raise ValueError("group-by state has a part for each aggregate with state of its own")
            for (aggregate, _), part in zip(self._others, saved, strict=True):
                aggregate.restore(part)
            return
        batch = copy.select(copy.visible_slots())
        count = len(batch)
        nobody: dict[Key, int] = {}
        nowhere = (nobody.get, None, self.rows.columns, (), (), NO_TICK)  # all groups begin with nothing
        parts, counted = self._gathered(batch, nowhere, (range(count), [False] * count, copy.columns))
        for (aggregate, span), one in zip(self._others, counted, strict=True):
            width = self.relation.key_width
            nothing = self._nothing[span[0] - width : span[1] - width]
            aggregate.commit(one, aggregate.evaluate(one, lambda _, nothing=nothing: nothing))  # type: ignore[misc]
        if self._rows_may_leave:
            self.members = {group: part[1] for group, part in parts.items() if part[1]}
