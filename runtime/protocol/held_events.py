"""The events that a merge or a select on events holds for its receivers, by lineage and in tick order.

The component adds what it learns, answers from here (E2), and trims (C5). Nothing here knows which ticks are covered: a
tick without an event is silence only if the component's coverage says so.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import islice
from operator import ge

from runtime.batch import Batch
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.values import Value


class HeldEvents:
    """For each lineage the ticks, ascending, and the columns parallel to them (column 0 is the tick again)."""

    __slots__ = ("columns", "ticks", "width")

    def __init__(self, lineages_count: int, width: int) -> None:
        self.width = width
        self.ticks: list[list[int]] = [[] for _ in range(lineages_count)]
        self.columns: list[tuple[list[Value], ...]] = [tuple([] for _ in range(width)) for _ in range(lineages_count)]

    def __len__(self) -> int:
        return sum(map(len, self.ticks))

    def add(self, batch: Batch) -> None:
        """Events of ticks that are not here yet, in any order; appending at the end is the cheap case."""
        assert batch.lineages is not None
        if len(set(batch.lineages)) == 1 and self._extend(batch.lineages[0], batch):
            return
        for i, (tick, lineage) in enumerate(zip(batch.max_ticks, batch.lineages, strict=True)):
            ticks, columns = self.ticks[lineage], self.columns[lineage]
            at = len(ticks) if not ticks or tick > ticks[-1] else bisect_left(ticks, tick)
            ticks.insert(at, tick)
            for column, values in zip(columns, batch.columns, strict=True):
                column.insert(at, values[i])

    def _extend(self, lineage: int, batch: Batch) -> bool:
        """The usual case: events of one stream in the order of their ticks, all after those that are here."""
        ticks, new = self.ticks[lineage], batch.max_ticks
        if (ticks and new[0] <= ticks[-1]) or any(map(ge, new, islice(new, 1, None))):
            return False
        ticks.extend(new)
        for column, values in zip(self.columns[lineage], batch.columns, strict=True):
            column.extend(values)
        return True

    def select(self, cover: LineageCoverage) -> Batch:
        """All held events in these ticks."""
        found = Batch.empty(self.width, events=True)
        max_ticks: list[int] = []
        lineages: list[int] = []
        columns: tuple[list[Value], ...] = tuple([] for _ in range(self.width))
        for lineage, part in enumerate(cover):
            ticks = self.ticks[lineage]
            for first, last in part:
                low, high = bisect_left(ticks, first), bisect_right(ticks, last)
                max_ticks += ticks[low:high]
                lineages += [lineage] * (high - low)
                for column, held in zip(columns, self.columns[lineage], strict=True):
                    column += held[low:high]
        return Batch(columns, max_ticks, [True] * len(max_ticks), lineages) if max_ticks else found

    def trim(self, tick: int) -> None:
        """Drop the events at or below a tick."""
        for ticks, columns in zip(self.ticks, self.columns, strict=True):
            end = bisect_right(ticks, tick)
            del ticks[:end]
            for column in columns:
                del column[:end]

    def export(self) -> list[object]:
        return [[list(column) for column in columns] for columns in self.columns]

    @staticmethod
    def restore(lineages_count: int, width: int, data: object) -> HeldEvents:
        """What `export` wrote; ValueError otherwise."""
        made = HeldEvents(lineages_count, width)
        if not isinstance(data, list) or len(data) != lineages_count:
            raise ValueError(f"held events of a checkpoint are not of {lineages_count} lineages")
        for lineage, columns in enumerate(data):
            if len(columns) != width or any(len(column) != len(columns[0]) for column in columns):
                raise ValueError(f"held events of a checkpoint do not have {width} columns of one length")
            made.columns[lineage] = tuple(list(column) for column in columns)
            made.ticks[lineage] = list(columns[0])
        return made
