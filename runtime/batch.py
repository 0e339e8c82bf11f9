"""A batch: some rows of one relation, as columns. The unit that operators compute on and messages carry.

Made by operators, by the log and by `Rows.select`; read by everybody; changed by nobody once it is in a message. It
knows neither the relation's meaning nor the wire.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from runtime.columns import Same, joined, taken
from runtime.records import record
from runtime.values import Key, Value

_ONE_VISIBLE = Same(True, 1)
_ONE_LINEAGE = Same(0, 1)


@record(frozen=True, slots=True)
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
        count = len(ticks)
        if count == 1 and lineages is None:
            return Batch((ticks, *columns), ticks, _ONE_VISIBLE, _ONE_LINEAGE)
        return Batch((ticks, *columns), ticks, Same(True, count), Same(0, count) if lineages is None else lineages)

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
        return Batch(
            tuple(taken(column, indices) for column in self.columns),
            taken(self.max_ticks, indices),
            taken(self.visible, indices),
            None if self.lineages is None else taken(self.lineages, indices),
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
        lineages = self.lineages
        if isinstance(lineages, Same):
            lineages = Same(lineages.value + offset, len(lineages))
        else:
            lineages = [lineage + offset for lineage in lineages]
        return Batch(self.columns, self.max_ticks, self.visible, lineages)

    def keys(self, key_width: int) -> list[Key]:
        if key_width == 0:
            return [()] * len(self)
        return list(zip(*self.columns[:key_width], strict=True))

    def latest(self, key_width: int) -> Batch:
        """Of every row the last one, in the order of these."""
        last = sorted({key: i for i, key in enumerate(self.keys(key_width))}.values())
        return self if len(last) == len(self) else self.take(last)

    def rows(self) -> list[tuple[Value, ...]]:
        """Row tuples: for tests, deliveries and stories, not for hot paths."""
        if not self.columns:
            return [()] * len(self)
        return list(zip(*self.columns, strict=True))

    @staticmethod
    def concat(batches: Sequence[Batch]) -> Batch:
        """All rows, one batch after the other; numbers that are arrays in all of them stay an array."""
        first = batches[0]
        if len(batches) == 1:
            return first
        max_ticks = joined([batch.max_ticks for batch in batches])
        columns = [joined([batch.columns[c] for batch in batches]) for c in range(len(first.columns))]
        return Batch(
            tuple(columns),
            max_ticks,
            joined([batch.visible for batch in batches]),
            None if first.lineages is None else joined([batch.lineages or () for batch in batches]),
        )
