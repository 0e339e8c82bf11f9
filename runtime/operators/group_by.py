"""Group-by: one row for each group that has rows, with aggregates over them.

Domain: the product of the aggregates' domains. Knowledge: (group, values), whichever ticks made them. Gap, curiosity:
those of the input edge; what is superseded is never asked for again. Rows of events never leave, so the group stays
visible and aggregates take their cheap form. State rows replace their predecessor: its part is taken away, theirs
added; if they may vanish the relation is versioned and a group without rows becomes invisible, with its aggregates at
their identity (absent and zero are the same statement). Final only when somebody closes the group. Quench: none, every
row counts.

Without group-by columns there is at most one row. `one_row` keeps it visible even over no input, as MPL says; it then
depends on tick 0, so that a receiver that knows nothing is sent it.

If a column to group by is not final, input rows wander between groups, perhaps unseen between two messages: then every
row depends on every tick, and rows never held here may be visible downstream (`RowOperator.wander`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.batch import Batch
from runtime.operators.aggregate import AggregateSpec, Flow, Result
from runtime.operators.operator import Operator
from runtime.operators.row_operator import Row, RowOperator, are_final, old_rows, picker
from runtime.plan import OperatorSpec, PlanError, Relation
from runtime.protocol.coverage import NO_TICK
from runtime.values import Key, Value


@dataclass(frozen=True, slots=True)
class GroupBySpec(OperatorSpec):
    """`by`: input columns that make the key, in output order; aggregate columns follow in order."""

    by: tuple[int, ...]
    aggregates: tuple[AggregateSpec, ...]
    one_row: bool = False

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
        self._group = picker(spec.by)
        self._one_row = spec.one_row
        self._rows_may_leave = output.versioned and not inputs[0].is_event
        self._wanders = not are_final(inputs[0], spec.by)
        self._is_lone_extreme = len(spec.aggregates) == 1 and spec.aggregates[0].is_extreme
        self.members: dict[Key, int] = {}
        self._spans: list[tuple[int, int]] = []
        first = output.key_width
        for aggregate in spec.aggregates:
            self._spans.append((first, first + aggregate.width))
            first += aggregate.width
        self._aggregates = [
            aggregate.build(output.name, output.columns[start:end], rows_may_leave=self._rows_may_leave)
            for aggregate, (start, end) in zip(spec.aggregates, self._spans, strict=True)
        ]
        if spec.one_row:
            self.put((), self._identity(), True, 0, [])

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        flow, reached = self._flow(batch, old_rows(self.inputs[edge], slots))
        prepared = [aggregate.prepare(flow) for aggregate in self._aggregates]
        results = [
            aggregate.evaluate(counted, lambda group, span=span: self._before(group, span))  # type: ignore[misc]
            for aggregate, counted, span in zip(self._aggregates, prepared, self._spans, strict=True)
        ]
        for aggregate, counted, result in zip(self._aggregates, prepared, results, strict=True):
            aggregate.commit(counted, result)
        joined = self._count_members(flow)
        touched: list[int] = []
        for group, tick in reached.items():
            self._put_group(group, tick, joined, results, touched)
        if self._wanders:
            self.wander(batch, self.rows.slots(), touched)
        return touched

    def _flow(self, batch: Batch, old: list[Row | None]) -> tuple[Flow, dict[Key, int]]:
        """The rows that leave and join, and the groups reached with the largest tick that reached them."""
        flow = Flow()
        reached: dict[Key, int] = {}
        for i, row in enumerate(batch.rows()):
            tick = batch.max_ticks[i]
            before = old[i] if old else None
            if before is not None:
                group = self._group(before)
                flow.add(group, before, -1, tick)
                reached[group] = max(tick, reached.get(group, tick))
            group = self._group(row)
            if batch.visible[i]:
                flow.add(group, row, 1, tick)
            reached[group] = max(tick, reached.get(group, tick))  # T1: also by what vanished before we saw it
        return flow, reached

    def _count_members(self, flow: Flow) -> set[Key]:
        """Groups that a row joined. Members are counted only where they may leave."""
        if not self._rows_may_leave:
            return {group for group, sign in zip(flow.groups, flow.signs, strict=True) if sign > 0}
        members = self.members
        for group, sign in zip(flow.groups, flow.signs, strict=True):
            members[group] = members.get(group, 0) + sign
        for group in flow.groups:
            if not members.get(group, 1):
                del members[group]
        return set()

    def _put_group(
        self, group: Key, reached_tick: int, joined: set[Key], results: list[Result], touched: list[int]
    ) -> None:
        slot = self.rows.slot_of(group)
        was_visible = slot >= 0 and self.rows.visible[slot]
        visible = group in self.members if self._rows_may_leave else was_visible or group in joined
        values: list[Value] = []
        tick = NO_TICK
        for result, aggregate, span in zip(results, self._aggregates, self._spans, strict=True):
            if group in result:
                values += result[group][0]
                tick = max(tick, result[group][1])
            else:
                values += self._before(group, span) if was_visible else aggregate.identity
        if self.relation.versioned or not was_visible:
            # A contribution also proves that the group exists; without one, whoever reached it does.
            tick = reached_tick if self.relation.versioned or tick == NO_TICK else tick
        elif not self._is_lone_extreme:
            tick = max(tick, self.rows.max_tick[slot])
        elif tick == NO_TICK:
            tick = self.rows.max_tick[slot]
        self.put(group, values, visible or self._one_row, tick, touched)

    def _before(self, group: Key, span: tuple[int, int]) -> Sequence[Value]:
        slot = self.rows.slot_of(group)
        if slot < 0 or not self.rows.visible[slot]:
            return self._aggregates[self._spans.index(span)].identity
        return [column[slot] for column in self.rows.columns[span[0] : span[1]]]

    def _identity(self) -> list[Value]:
        return [value for aggregate in self._aggregates for value in aggregate.identity]

    def export_extra(self) -> dict[str, object]:
        """Only what events left behind: the rest is counted again from the copy of the input."""
        if self.inputs[0] is not None:
            return {}
        return {"aggregates": [aggregate.export() for aggregate in self._aggregates]}

    def restore_extra(self, data: dict[str, object]) -> None:
        copy = self.inputs[0]
        if copy is None:
            saved = data.get("aggregates")
            if not isinstance(saved, list) or len(saved) != len(self._aggregates):
                raise ValueError("group-by state has a part for each aggregate")
            for aggregate, part in zip(self._aggregates, saved, strict=True):
                aggregate.restore(part)
            return
        if self._wanders:
            self.recall_wanderers(0)
        flow = Flow()
        for slot in copy.visible_slots():
            row = copy.row_at(slot)
            flow.add(self._group(row), row, 1, copy.max_tick[slot])
        for aggregate in self._aggregates:
            counted = aggregate.prepare(flow)
            aggregate.commit(counted, aggregate.evaluate(counted, lambda _: aggregate.identity))  # noqa: B023
        self._count_members(flow)
