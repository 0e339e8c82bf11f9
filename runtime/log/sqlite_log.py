"""The log of one stream in the SQLite file of its folder: what it writes, and what it checks when it reads.

Every batch names the tick at which the one before it ended. So an answer that calls ticks silent is certain: a batch
that were missing between two others would leave a hole in the chain. Made by `LogDirectory.stream`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from runtime.batch import Batch
from runtime.log import codec
from runtime.log.checksums import batch_checksum, publish_checksum
from runtime.log.schema import Columns, padded
from runtime.log.state import Position
from runtime.log.stream_log import LogCorrupt, LogError, LogFenced, Reading, StreamLog
from runtime.protocol.coverage import Coverage
from runtime.protocol.events import LogState

if TYPE_CHECKING:
    from runtime.log.sqlite import LogDirectory, Waiting

_WINDOW_SLACK = 8
"""A producer's publishes are forgotten an eighth of a window at a time, not one by one."""


BODY_BYTES_MAX = 900_000_000
"""Of one publish. A row of SQLite can have a thousand million."""


class SqliteLog(StreamLog):
    """`added`: the columns that the stream gets when it is opened, if they are not what they were."""

    def __init__(
        self,
        directory: LogDirectory,
        name: str,
        number: int,
        columns: Columns,
        producer_window: int,
        added: str | None = None,
    ) -> None:
        self.name = name
        self.number = number
        """Counts the streams of the folder from 1, in the order in which they first appeared; never changes."""
        self._directory = directory
        self._columns = columns
        self._added = added
        self._window = producer_window
        self._window_max = producer_window + producer_window // _WINDOW_SLACK
        self._remembered: dict[str, int] = {}  # publishes of each producer, about

    def open(self, epoch: int) -> LogState:
        publishes = self._read_publishes()
        self._remembered = {}
        for producer, _, _ in publishes:
            self._remembered[producer] = self._remembered.get(producer, 0) + 1
        self._check_end()
        if self._added is not None:
            self._directory.set_columns(self.name, self._added)
            self._added = None
        waiting = self._directory.begin()
        position = self._directory.position(self.number, waiting)
        waiting.positions[self.number] = replace(position, epoch=max(epoch, position.epoch))
        self._directory.end(waiting)
        self._directory.trim(self.number)
        return LogState(position.last_tick, position.reserved_tick, position.trimmed_tick, self._newest(publishes))

    def _read_publishes(self) -> list[tuple[str, int, Sequence[int]]]:
        """All that are stored, by producer and sequence, and surely all."""
        position = self._directory.position(self.number)
        found, digest = [], 0
        for producer, sequence, ticks, checksum in self._directory.query(
            "select producer, sequence, ticks, checksum from publishes where stream = ? order by producer, sequence",
            (self.number,),
        ):
            assert isinstance(producer, str)
            assert isinstance(sequence, int)
            assert isinstance(ticks, bytes)
            assert isinstance(checksum, int)
            if checksum != publish_checksum(self.number, producer, sequence, ticks):
                raise self._corrupt(f"publish {sequence} of producer `{producer}` is damaged (checksum)")
            found.append((producer, sequence, codec.decode_ticks(ticks)))
            digest ^= checksum
        if (len(found), digest) != (position.publishes, position.publishes_digest):
            raise self._corrupt(f"{len(found)} publishes are remembered, there were {position.publishes}")
        return found

    def _newest(self, publishes: list[tuple[str, int, Sequence[int]]]) -> tuple[tuple[str, int, Sequence[int]], ...]:
        """Not more than a window of each producer."""
        kept, before, at = [], "", 0
        for one in publishes:
            at = at + 1 if one[0] == before else 1
            before = one[0]
            if at > self._remembered[before] - self._window:
                kept.append(one)
        return tuple(kept)

    def _check_end(self) -> None:
        """The newest batch is where the stream's position says."""
        position = self._directory.position(self.number)
        found = self._directory.query("select max(last_tick) from batches where stream = ?", (self.number,))
        expected = position.last_tick if position.last_tick > position.trimmed_tick else found[0][0]
        if found[0][0] != expected:
            raise self._corrupt(f"the newest batch ends at tick {found[0][0]}, not at {position.last_tick}")

    def append(self, epoch: int, rows: Batch, producer: str, sequence: int, forgotten: tuple[str, ...] = ()) -> None:
        body, ticks = codec.encode(rows), codec.encode_ticks(rows.max_ticks)
        if len(body) > BODY_BYTES_MAX:
            raise LogError(
                f"{len(rows)} rows are {len(body)} bytes, a log takes {BODY_BYTES_MAX} at once; nothing is written."
                " Publish fewer rows at a time"
            )
        first, last = rows.max_ticks[0], rows.max_ticks[-1]
        number = self.number
        waiting = self._directory.begin()
        position = self._fenced_position(epoch, waiting)
        previous = position.last_tick
        assert first > previous, "ticks of a stream rise"
        checksum = batch_checksum(number, last, first, previous, producer, sequence, body)
        remembered = publish_checksum(number, producer, sequence, ticks)
        waiting.batches.append((number, last, first, previous, producer, sequence, checksum, body))
        waiting.publishes.append((number, producer, sequence, ticks, remembered))
        waiting.body_bytes += len(body)
        waiting.positions[number] = Position(  # as `replace` would, in a tenth of the time
            position.epoch,
            last,
            position.reserved_tick,
            position.trimmed_tick,
            position.publishes + 1,
            position.publishes_digest ^ remembered,
            position.lost,
        )
        for gone in forgotten:
            waiting.gone.append((number, gone))
            self._remembered.pop(gone, None)
        self._count(waiting, producer)
        self._directory.end(waiting)

    def _count(self, waiting: Waiting, producer: str) -> None:
        count = self._remembered.get(producer, 0) + 1
        if count > self._window_max:
            waiting.forgotten[self.number, producer] = self._window
            count = self._window
        self._remembered[producer] = count

    def reserve(self, epoch: int, tick: int) -> None:
        waiting = self._directory.begin()
        position = self._fenced_position(epoch, waiting)
        waiting.positions[self.number] = replace(position, reserved_tick=max(position.reserved_tick, tick))
        self._directory.end(waiting)

    def _fenced_position(self, epoch: int, waiting: Waiting) -> Position:
        position = self._directory.position(self.number, waiting)
        if epoch < position.epoch:
            raise LogFenced(f"stream `{self.name}`: epoch {epoch} after {position.epoch}")
        return position

    def trim(self, tick: int) -> None:
        waiting = self._directory.begin()
        position = self._directory.position(self.number, waiting)
        waiting.positions[self.number] = replace(position, trimmed_tick=max(position.trimmed_tick, tick))
        self._directory.trim(self.number)
        self._directory.end(waiting)

    def read(self, wanted: Coverage, rows_max: int) -> tuple[Coverage, Batch, Coverage]:
        position = self._directory.position(self.number)
        gone = Coverage.of((0, position.trimmed_tick)) if position.trimmed_tick >= 0 else Coverage()
        for first, last in position.lost:
            gone.add(first, last)
        trimmed = wanted.intersection(gone)
        reading = Reading(len(self._columns) + 1, rows_max)
        for first, last in wanted.difference(trimmed):
            if reading.is_full:
                break
            known = self._read_range(reading, first, last, position.last_tick)
            if known >= first:
                reading.cover.add(first, known)
        return reading.cover, reading.rows(), trimmed

    def _read_range(self, reading: Reading, first: int, last: int, newest_tick: int) -> int:
        """Every batch must follow the one before it, and the last one found must be the newest: then what lies between
        is silence. Of the first it is enough that the one before it ends before the range."""
        if first > newest_tick:
            return last
        found = self._directory.rows(
            "select last_tick, first_tick, previous_tick, producer, sequence, checksum, body from batches"
            " where stream = ? and last_tick >= ? order by last_tick",
            (self.number, first),
        )
        with closing(found):
            return self._read_batches(reading, first, last, newest_tick, found)

    def _read_batches(
        self, reading: Reading, first: int, last: int, newest_tick: int, found: Generator[tuple[Any, ...]]
    ) -> int:
        end_before: int | None = None
        for batch_last, batch_first, previous, producer, sequence, checksum, body in found:
            if previous >= first if end_before is None else previous != end_before:
                raise self._corrupt(f"the batch before the one that ends at tick {batch_last} is missing")
            if checksum != batch_checksum(self.number, batch_last, batch_first, previous, producer, sequence, body):
                raise self._corrupt(f"the batch that ends at tick {batch_last} is damaged (checksum)")
            if batch_first > last:
                return last
            if reading.is_full:
                return int(batch_first) - 1
            end = min(last, batch_last)
            known = reading.add(self._decoded(body, batch_last), first, end, is_ours=True)
            if known < end or end == last:
                return known
            end_before = batch_last
        if end_before != newest_tick:
            raise self._corrupt(f"the batch that ends at tick {newest_tick} is missing")
        return last

    def _decoded(self, body: bytes, tick: int) -> Batch:
        try:
            return padded(codec.decode(body), self._columns)
        except ValueError as broken:
            raise self._corrupt(f"the batch that ends at tick {tick}: {broken}") from broken

    def _corrupt(self, reason: str) -> LogCorrupt:
        return self._directory.corrupt(f"stream `{self.name}`: {reason}")
