"""A log in memory: the batches as they were published, in tick order. It lasts as long as its process."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from runtime.batch import Batch
from runtime.log.stream_log import CHUNK_ROWS_MIN, LogFenced, Reading, StreamLog
from runtime.protocol.coverage import NO_TICK, Coverage
from runtime.protocol.events import LogState


class MemoryLog(StreamLog):
    """`width` counts all columns, the tick included."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.last_tick = NO_TICK
        self.reserved_tick = NO_TICK
        self.trimmed_tick = NO_TICK
        self._epoch = 0
        self._chunks: list[Batch] = []
        self._last_ticks: list[int] = []  # of each chunk
        self._publish: tuple[str, int, Sequence[int]] | None = None  # the newest: there is one producer

    def open(self, epoch: int) -> LogState:
        self._epoch = max(self._epoch, epoch)
        publishes = () if self._publish is None else (self._publish,)
        return LogState(self.last_tick, self.reserved_tick, self.trimmed_tick, publishes)

    def append(self, epoch: int, rows: Batch, producer: str, sequence: int, forgotten: tuple[str, ...] = ()) -> None:
        self._check_epoch(epoch)
        assert rows.max_ticks[0] > self.last_tick, "ticks of a stream rise"
        self.last_tick = rows.max_ticks[-1]
        self._publish = (producer, sequence, rows.max_ticks)
        if self._chunks and len(self._chunks[-1]) < CHUNK_ROWS_MIN and len(rows) < CHUNK_ROWS_MIN:
            self._extend_chunk(rows)
            self._last_ticks[-1] = self.last_tick
            return
        # A small batch is copied, because it will be extended; a large one is shared with the message it came in.
        self._chunks.append(rows if len(rows) >= CHUNK_ROWS_MIN else _copied(rows))
        self._last_ticks.append(self.last_tick)

    def _extend_chunk(self, rows: Batch) -> None:
        chunk = self._chunks[-1]
        for column, values in zip(chunk.columns[1:], rows.columns[1:], strict=True):
            column.extend(values)  # type: ignore[attr-defined]  # the lists that `_copied` made
        ticks = chunk.max_ticks
        ticks.extend(rows.max_ticks)  # type: ignore[attr-defined]
        chunk.visible.extend(rows.visible)  # type: ignore[attr-defined]
        chunk.lineages.extend(rows.lineages or ())  # type: ignore[union-attr]

    def reserve(self, epoch: int, tick: int) -> None:
        self._check_epoch(epoch)
        self.reserved_tick = max(self.reserved_tick, tick)

    def _check_epoch(self, epoch: int) -> None:
        if epoch < self._epoch:
            raise LogFenced(f"epoch {epoch} after {self._epoch}")

    def read(self, wanted: Coverage, rows_max: int) -> tuple[Coverage, Batch, Coverage]:
        trimmed = wanted.intersection(Coverage.prefix(self.trimmed_tick))
        reading = Reading(self.width, rows_max)
        for first, last in wanted.difference(trimmed):
            if reading.is_full:
                break
            known = self._read_range(reading, first, last)
            if known >= first:
                reading.cover.add(first, known)
        return reading.cover, reading.rows(), trimmed

    def _read_range(self, reading: Reading, first: int, last: int) -> int:
        for at in range(bisect_left(self._last_ticks, first), len(self._chunks)):
            chunk = self._chunks[at]
            if chunk.max_ticks[0] > last:
                break
            if reading.is_full:
                return chunk.max_ticks[0] - 1
            known = reading.add(chunk, first, min(last, self._last_ticks[at]))
            if known < min(last, self._last_ticks[at]):
                return known
        return last

    def trim(self, tick: int) -> None:
        self.trimmed_tick = max(self.trimmed_tick, tick)
        gone = bisect_left(self._last_ticks, tick + 1)
        del self._chunks[:gone], self._last_ticks[:gone]


def _copied(rows: Batch) -> Batch:
    ticks = list(rows.max_ticks)
    return Batch((ticks, *map(list, rows.columns[1:])), ticks, list(rows.visible), list(rows.lineages or ()))
