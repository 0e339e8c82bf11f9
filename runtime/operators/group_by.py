"""Group-by: one row for each group that has rows, with aggregates over them.

An aggregate is added to and, when an input row changes or vanishes, taken from. Each keeps its state in its own output
columns where that is enough (sum, count), or beside them. A group without rows is invisible, and its aggregates are at
their identity: absent and zero are the same statement.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.batch import Batch
from runtime.operators.operator import Operator
from runtime.plan import OperatorSpec, Relation
from runtime.rows import Rows
from runtime.values import Value

Row = tuple[Value, ...]


class Aggregate(ABC):
    """One aggregate of all groups. `columns` are its output columns by slot; slots come and go with the groups."""

    def __init__(self, rows: Rows, first_column: int, width: int) -> None:
        self.columns = rows.columns[first_column : first_column + width]

    @abstractmethod
    def open(self, slot: int) -> None:
        """A group without rows."""

    @abstractmethod
    def add(self, slot: int, row: Row, tick: int) -> bool:
        """An input row has joined the group. Did an output column change?"""

    @abstractmethod
    def remove(self, slot: int, row: Row) -> bool:
        """An input row has left the group. Did an output column change?"""

    def close(self, slot: int) -> None:  # noqa: B027
        """The group is forgotten."""

    def export(self, slots: Sequence[int]) -> object:  # noqa: ARG002
        """State that is not in the output columns, for these groups in this order."""
        return None

    def restore(self, data: object) -> None:  # noqa: B027
        """Read `export` back; the groups are now slots 0, 1, 2, ..."""


class AggregateSpec(ABC):
    """Parameters of an aggregate: a frozen dataclass. `argument` functions take all columns of an input row."""

    width: int
    """Number of output columns."""

    @abstractmethod
    def build(self, rows: Rows, first_column: int) -> Aggregate: ...


@dataclass(frozen=True, slots=True)
class GroupBySpec(OperatorSpec):
    """`by`: input columns that make the key, in output order; aggregate columns follow in order."""

    by: tuple[int, ...]
    aggregates: tuple[AggregateSpec, ...]

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator:
        return GroupBy(self, inputs, output)


class GroupBy(Operator):
    """`support[slot]`: how many visible input rows the group has."""

    def __init__(self, spec: GroupBySpec, inputs: tuple[Relation, ...], output: Relation) -> None:
        super().__init__(inputs, output)
        self._by = spec.by
        self._specs = spec.aggregates
        self.support: list[int] = []
        self.aggregates: list[Aggregate] = []
        self._build_aggregates()

    def _build_aggregates(self) -> None:
        first = self.relation.key_width
        self.aggregates = []
        for spec in self._specs:
            self.aggregates.append(spec.build(self.rows, first))
            first += spec.width

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        copy = self.inputs[edge]
        touched: list[int] = []
        for i, row in enumerate(batch.rows()):
            tick = batch.max_ticks[i]
            if copy is not None and copy.visible[slots[i]]:
                self._change(copy.row_at(slots[i]), tick, touched, joins=False)
            if batch.visible[i]:
                self._change(row, tick, touched, joins=True)
            elif copy is not None and copy.is_new(slots[i]) and None not in [row[c] for c in self._by]:
                self._reach(row, tick, touched)  # T1: vanished before we ever saw it
        return self._settle(touched)

    def _slot(self, row: Row) -> int:
        slot = self.rows.slot_for(tuple([row[c] for c in self._by]))
        if self.rows.is_new(slot):
            if slot == len(self.support):
                self.support.append(0)
            self.support[slot] = 0
            for aggregate in self.aggregates:
                aggregate.open(slot)
        return slot

    def _change(self, row: Row, tick: int, touched: list[int], *, joins: bool) -> None:
        slot = self._slot(row)
        is_new = self.rows.is_new(slot)
        if joins:
            changed = [aggregate.add(slot, row, tick) for aggregate in self.aggregates]
        else:
            changed = [aggregate.remove(slot, row) for aggregate in self.aggregates]
        self.support[slot] += 1 if joins else -1
        becomes = self.support[slot] > 0
        if any(changed) or is_new or becomes != self.rows.visible[slot] or self.relation.versioned:
            self._touch(slot, tick, touched)

    def _reach(self, row: Row, tick: int, touched: list[int]) -> None:
        slot = self._slot(row)
        if self.rows.is_new(slot) or self.relation.versioned:
            self._touch(slot, tick, touched)

    def _touch(self, slot: int, tick: int, touched: list[int]) -> None:
        """Sums and counts depend on every contributing tick, so the largest counts, whichever came last."""
        floor = self.in_floor if self.relation.versioned else tick
        self.rows.max_tick[slot] = max(self.rows.max_tick[slot], tick, floor)
        touched.append(slot)

    def _settle(self, touched: list[int]) -> list[int]:
        for slot in touched:
            self.rows.visible[slot] = self.support[slot] > 0
        return touched

    def forget(self, slot: int) -> None:
        for aggregate in self.aggregates:
            aggregate.close(slot)
        super().forget(slot)

    def export_extra(self) -> dict[str, object]:
        slots = self.rows.slots()
        return {
            "support": [self.support[slot] for slot in slots],
            "aggregates": [aggregate.export(slots) for aggregate in self.aggregates],
        }

    def restore_extra(self, data: dict[str, object]) -> None:
        support, aggregates = data["support"], data["aggregates"]
        if not isinstance(support, list) or not isinstance(aggregates, list) or len(support) != len(self.rows):
            raise ValueError("group-by state has a support for each group")
        self.support = list(support)
        self._build_aggregates()
        for aggregate, saved in zip(self.aggregates, aggregates, strict=True):
            aggregate.restore(saved)


# Sum and count. min, max, avg and count distinct have files of their own.


@dataclass(frozen=True, slots=True)
class SumSpec(AggregateSpec):
    """Sum of an argument, nulls left out."""

    argument: Callable[..., Value]
    width: int = 1

    def build(self, rows: Rows, first_column: int) -> Aggregate:
        return Sum(self.argument, rows, first_column)


@dataclass(frozen=True, slots=True)
class CountSpec(AggregateSpec):
    """Number of rows, or of those whose argument is not null."""

    argument: Callable[..., Value] | None = None
    width: int = 1

    def build(self, rows: Rows, first_column: int) -> Aggregate:
        argument = self.argument
        if argument is None:
            return Sum(lambda *_: 1, rows, first_column)
        return Sum(lambda *row: None if argument(*row) is None else 1, rows, first_column)


class Sum(Aggregate):
    def __init__(self, argument: Callable[..., Value], rows: Rows, first_column: int) -> None:
        super().__init__(rows, first_column, 1)
        self._argument = argument
        self._total = self.columns[0]

    def open(self, slot: int) -> None:
        self._total[slot] = 0

    def add(self, slot: int, row: Row, tick: int) -> bool:  # noqa: ARG002
        return self._move(slot, self._argument(*row), 1)

    def remove(self, slot: int, row: Row) -> bool:
        return self._move(slot, self._argument(*row), -1)

    def _move(self, slot: int, value: Value, sign: int) -> bool:
        if value is None or value == 0:
            return False
        total = self._total[slot]
        assert isinstance(value, int | float)
        assert isinstance(total, int | float)
        self._total[slot] = total + sign * value
        return True
