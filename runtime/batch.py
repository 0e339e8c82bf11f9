"""A batch: some rows of one relation, as columns. The unit that operators compute on and messages carry.

Made by operators, by the log and by `Rows.select`; read by everybody; changed by nobody once it is in a message. It
knows neither the relation's meaning nor the wire.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from runtime.values import Key, Value


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows by column; key columns come first, and column 0 of an event relation is the tick itself.

    `max_ticks` is the largest tick each row's value depends on (for an event: its own tick). `lineages` is present on
    event batches only: the lineage, counted within the edge, whose stream logged the event.
    """

    columns: tuple[Sequence[Value], ...]
    max_ticks: Sequence[int]
    visible: Sequence[bool]
    lineages: Sequence[int] | None = None

    def __len__(self) -> int:
        return len(self.max_ticks)

    @staticmethod
    def empty(width: int, *, events: bool = False) -> Batch:
        return Batch(tuple([] for _ in range(width)), [], [], [] if events else None)

    @staticmethod
    def events(
        ticks: Sequence[int], columns: Iterable[Sequence[Value]], lineages: Sequence[int] | None = None
    ) -> Batch:
        """Events with their payload columns (without the tick, which becomes column 0)."""
        return Batch((ticks, *columns), ticks, [True] * len(ticks), [0] * len(ticks) if lineages is None else lineages)

    @staticmethod
    def of_rows(
        width: int, rows: Iterable[Sequence[Value]], max_ticks: Sequence[int], visible: Sequence[bool]
    ) -> Batch:
        """State rows from row tuples: for tests and small batches."""
        columns: tuple[list[Value], ...] = tuple([] for _ in range(width))
        for row in rows:
            for column, value in zip(columns, row, strict=True):
                column.append(value)
        return Batch(columns, max_ticks, visible)

    def take(self, indices: Sequence[int]) -> Batch:
        """The rows at these positions, in this order."""
        columns = (column if isinstance(column, list) else list(column) for column in self.columns)
        return Batch(
            tuple([column[i] for i in indices] for column in columns),
            [self.max_ticks[i] for i in indices],
            [self.visible[i] for i in indices],
            None if self.lineages is None else [self.lineages[i] for i in indices],
        )

    def slice(self, first: int, end: int) -> Batch:
        """Rows first, first + 1, ..., end - 1."""
        return Batch(
            tuple(column[first:end] for column in self.columns),
            self.max_ticks[first:end],
            self.visible[first:end],
            None if self.lineages is None else self.lineages[first:end],
        )

    def with_lineages_from(self, offset: int) -> Batch:
        """The same events with lineages numbered from `offset`: an edge's lineages within its component."""
        if offset == 0 or self.lineages is None:
            return self
        return Batch(self.columns, self.max_ticks, self.visible, [lineage + offset for lineage in self.lineages])

    def keys(self, key_width: int) -> list[Key]:
        if key_width == 0:
            return [()] * len(self)
        return list(zip(*self.columns[:key_width], strict=True))

    def rows(self) -> list[tuple[Value, ...]]:
        """Row tuples: for tests, deliveries and stories, not for hot paths."""
        if not self.columns:
            return [()] * len(self)
        return list(zip(*self.columns, strict=True))

    @staticmethod
    def concat(batches: Sequence[Batch]) -> Batch:
        first = batches[0]
        if len(batches) == 1:
            return first
        return Batch(
            tuple([v for batch in batches for v in batch.columns[c]] for c in range(len(first.columns))),
            [tick for batch in batches for tick in batch.max_ticks],
            [seen for batch in batches for seen in batch.visible],
            None if first.lineages is None else [n for batch in batches for n in (batch.lineages or ())],
        )
