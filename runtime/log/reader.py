"""Reading the logs of a folder while their owner writes and trims: for the archive, for Spark, for people who look.

A connection of its own that can only read. SQLite shows it a consistent state that was on disk (with `sync=always`);
nothing here takes the folder's lock, and nothing waits for anybody. Ticks that are not there any more are TicksGone,
damage is LogCorrupt, as for the owner: neither is ever taken for silence.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

from runtime.batch import Batch
from runtime.log import codec
from runtime.log.checksums import batch_checksum
from runtime.log.database import APPLICATION_ID, FILE_NAME, as_log_error, remedy
from runtime.log.schema import Columns, as_columns, padded
from runtime.log.state import State
from runtime.log.stream_log import LogCorrupt, LogError
from runtime.protocol.coverage import Coverage

BUSY_S = 10.0
"""The owner holds locks for milliseconds only; whoever waits longer should hear about it."""

CHUNK_BYTES = 8 * 2**20
"""Read in one transaction. A longer one would keep the owner's write-ahead log from beginning anew."""

Ranges = tuple[tuple[int, int], ...]
Query = Callable[[str, tuple[int, ...]], sqlite3.Cursor]


class TicksGone(LogError):
    """Some of these ticks have left the log: they were trimmed, or a repair could not save them."""


@dataclass(frozen=True)
class LoggedStream:
    """One stream as its log has it: payload columns (name, type), and which ticks are there.

    All events up to `last_tick` are in the log, except those at or below `trimmed_tick` and in `lost`.
    """

    name: str
    number: int
    columns: Columns
    last_tick: int
    trimmed_tick: int
    lost: Ranges

    def gone(self, first: int, last: int) -> Ranges:
        """What of [first..last] the log cannot tell any more."""
        return self._split(first, last)[0]

    def present(self, first: int, last: int) -> Ranges:
        """The rest: events or silence."""
        return self._split(first, last)[1]

    def _split(self, first: int, last: int) -> tuple[Ranges, Ranges]:
        wanted = Coverage.of((first, last)) if first <= last else Coverage()
        gone = Coverage.prefix(self.trimmed_tick)
        for low, high in self.lost:
            gone.add(low, high)
        return tuple(wanted.intersection(gone)), tuple(wanted.difference(gone))


@dataclass(frozen=True)
class BatchRange:
    """A stored batch: its first and last tick, and how many events it has."""

    first_tick: int
    last_tick: int
    events: int


class LogReader:
    """Open it, read, close it. Every method sees the newest commit."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        path = self.folder / FILE_NAME
        if not path.exists():
            raise LogError(f"{self.folder} holds no log ({FILE_NAME} is missing)")
        try:
            self._connection = sqlite3.connect(
                f"file:{quote(str(path))}?mode=ro", uri=True, isolation_level=None, timeout=BUSY_S
            )
            (found,) = self._connection.execute("pragma application_id").fetchone()
        except sqlite3.Error as error:
            raise as_log_error(self.folder, error) from error
        if found != APPLICATION_ID:
            self._connection.close()
            raise LogError(f"{path} is not a log that this version can read")

    def streams(self) -> dict[str, LoggedStream]:
        """By name."""
        with self._snapshot() as query:
            return self._streams(query)

    def ranges(self, stream: LoggedStream, first: int, last: int) -> list[BatchRange]:
        """The batches with events in [first..last], in order."""
        with self._snapshot() as query:
            found = query(
                f"select first_tick, last_tick, substr(body, 1, {codec.COUNT_BYTES}) from batches"
                " where stream = ? and last_tick >= ? and first_tick <= ? order by last_tick",
                (stream.number, first, last),
            )
            try:
                return [BatchRange(begin, end, codec.count(head)) for begin, end, head in found]
            except ValueError as broken:
                raise self._corrupt(f"stream `{stream.name}`: {broken}") from broken

    def count(self, stream: LoggedStream, first: int, last: int) -> int:
        """How many events there are in [first..last]."""
        found = 0
        for one in self.ranges(stream, first, last):
            if first <= one.first_tick and one.last_tick <= last:
                found += one.events
            else:
                ends = max(first, one.first_tick), min(last, one.last_tick)
                found += sum(len(batch) for batch in self.batches(stream, *ends))
        return found

    def checksum_at(self, stream: LoggedStream, tick: int) -> int | None:
        """Of the events in the batch that ends with this tick, however they are stored; None if no batch does. It tells
        this log from any other."""
        with self._snapshot() as query:
            found = query(
                "select body from batches where stream = ? and last_tick = ?", (stream.number, tick)
            ).fetchall()
        return zlib.crc32(found[0][0]) if found else None

    def batches(self, stream: LoggedStream, first: int, last: int) -> Iterator[Batch]:
        """The events in [first..last], batch by batch, each checked; the first and the last may be cut.

        TicksGone if some of these ticks have left the log, also while this is read: what came before is right.
        LogCorrupt if a batch is missing or damaged.
        """
        end_before: int | None = None
        while first <= last:
            chunk, is_all = self._chunk(stream, first, last, end_before)
            for body, end in chunk:
                yield self._cut(stream, body, first, last)
                end_before, first = end, end + 1
            if is_all:
                return

    def _chunk(
        self, stream: LoggedStream, first: int, last: int, end_before: int | None
    ) -> tuple[list[tuple[bytes, int]], bool]:
        """The next batches with their last ticks, of one state of the log, and whether these are all."""
        found: list[tuple[bytes, int]] = []
        size = 0
        with self._snapshot() as query:
            now = self._streams(query)[stream.name]
            if gone := now.gone(first, last):
                raise TicksGone(
                    f"stream `{stream.name}`: ticks {gone[0][0]}..{gone[0][1]} are no longer in {self.folder}"
                )
            rows = query(
                "select last_tick, first_tick, previous_tick, producer, sequence, checksum, body from batches"
                " where stream = ? and last_tick >= ? and first_tick <= ? order by last_tick",
                (stream.number, first, last),
            )
            for end, begin, previous, producer, sequence, checksum, body in rows:
                if previous >= first if end_before is None else previous != end_before:
                    raise self._corrupt(f"stream `{stream.name}`: the batch before tick {begin} is missing")
                if checksum != batch_checksum(stream.number, end, begin, previous, producer, sequence, body):
                    raise self._corrupt(f"stream `{stream.name}`: the batch that ends at tick {end} is damaged")
                end_before = end
                found.append((body, end))
                size += len(body)
                if size >= CHUNK_BYTES:
                    return found, False
        if first <= now.last_tick <= last and end_before != now.last_tick:
            raise self._corrupt(f"stream `{stream.name}`: the batch that ends at tick {now.last_tick} is missing")
        return found, True

    def _streams(self, query: Query) -> dict[str, LoggedStream]:
        ((body,),) = query("select body from state", ()).fetchall()
        rows = query("select number, stream, columns from streams order by number", ()).fetchall()
        try:
            positions = State.decode(body).positions
        except ValueError as broken:
            raise self._corrupt(str(broken)) from broken
        found: dict[str, LoggedStream] = {}
        for number, name, columns in rows:
            if number > len(positions):
                raise self._corrupt(f"stream `{name}` has no position")
            at = positions[number - 1]
            found[name] = LoggedStream(name, number, as_columns(columns), at.last_tick, at.trimmed_tick, at.lost)
        return found

    def _cut(self, stream: LoggedStream, body: bytes, first: int, last: int) -> Batch:
        try:
            batch = padded(codec.decode(body), stream.columns)
        except ValueError as broken:
            raise self._corrupt(f"stream `{stream.name}`: {broken}") from broken
        ticks = batch.max_ticks
        if ticks[0] >= first and ticks[-1] <= last:
            return batch
        return batch.slice(bisect_left(ticks, first), bisect_left(ticks, last + 1))

    @contextmanager
    def _snapshot(self) -> Iterator[Query]:
        """Everything that is asked for inside is of one moment."""
        try:
            self._connection.execute("begin")
            try:
                yield self._connection.execute
            finally:
                self._connection.execute("commit")
        except sqlite3.Error as error:
            raise as_log_error(self.folder, error) from error

    def _corrupt(self, reason: str) -> LogCorrupt:
        return LogCorrupt(f"{self.folder / FILE_NAME}: {reason}; {remedy(self.folder)}")

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> LogReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
