"""Reading the logs of a folder while their owner writes: for the archive, for Spark, for people who look.

A connection of its own that can only read. SQLite shows it a consistent state that was on disk (with `sync=always`);
nothing here takes the folder's lock, and nothing waits for anybody. Damage is LogCorrupt, as for the owner.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

from runtime.batch import Batch
from runtime.log import codec
from runtime.log.checksums import batch_checksum
from runtime.log.database import APPLICATION_ID, FILE_NAME, as_log_error, remedy
from runtime.log.state import State
from runtime.log.stream_log import LogCorrupt, LogError

BUSY_S = 10.0
"""The owner holds locks for milliseconds only; whoever waits longer should hear about it."""


@dataclass(frozen=True)
class LoggedStream:
    """One stream as its log has it: payload columns (name, type), and which ticks are there.

    All events up to `last_tick` are in the log, except those at or below `trimmed_tick` and in `lost`.
    """

    name: str
    number: int
    columns: tuple[tuple[str, str], ...]
    last_tick: int
    trimmed_tick: int
    lost: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class BatchRange:
    """A stored batch: its first and last tick, and its size on disk."""

    first_tick: int
    last_tick: int
    size: int


class LogReader:
    """Open it, read, close it. Every method sees the newest commit; `batches` one state for as long as it runs."""

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
        try:
            self._connection.execute("begin")
            try:
                ((body,),) = self._connection.execute("select body from state").fetchall()
                rows = self._connection.execute(
                    "select number, stream, columns from streams order by number"
                ).fetchall()
            finally:
                self._connection.execute("commit")
            positions = State.decode(body).positions
        except sqlite3.Error as error:
            raise as_log_error(self.folder, error) from error
        except ValueError as broken:
            raise self._corrupt(str(broken)) from broken
        found: dict[str, LoggedStream] = {}
        for number, name, columns in rows:
            if number > len(positions):
                raise self._corrupt(f"stream `{name}` has no position")
            position = positions[number - 1]
            payload = tuple((line.partition("\t")[0], line.partition("\t")[2]) for line in columns.splitlines())
            found[name] = LoggedStream(name, number, payload, position.last_tick, position.trimmed_tick, position.lost)
        return found

    def ranges(self, stream: LoggedStream, first: int, last: int) -> list[BatchRange]:
        """The batches with events in [first..last], in order."""
        found = self._query(
            "select first_tick, last_tick, length(body) from batches"
            " where stream = ? and last_tick >= ? and first_tick <= ? order by last_tick",
            (stream.number, first, last),
        )
        return [BatchRange(*row) for row in found]

    def batches(self, stream: LoggedStream, first: int, last: int) -> Iterator[Batch]:
        """The events in [first..last], batch by batch, each checked; the first and the last may be cut.

        LogError if some of these ticks have left the log, LogCorrupt if a batch is missing or damaged.
        """
        if first <= stream.trimmed_tick or any(low <= last and first <= high for low, high in stream.lost):
            raise LogError(f"stream `{stream.name}`: some ticks in {first}..{last} are no longer in {self.folder}")
        end_before: int | None = None
        found = self._query(
            "select last_tick, first_tick, previous_tick, producer, sequence, checksum, body from batches"
            " where stream = ? and last_tick >= ? and first_tick <= ? order by last_tick",
            (stream.number, first, last),
        )
        for batch_last, batch_first, previous, producer, sequence, checksum, body in found:
            if previous >= first if end_before is None else previous != end_before:
                raise self._corrupt(f"stream `{stream.name}`: the batch before tick {batch_first} is missing")
            if checksum != batch_checksum(stream.number, batch_last, batch_first, previous, producer, sequence, body):
                raise self._corrupt(f"stream `{stream.name}`: the batch that ends at tick {batch_last} is damaged")
            end_before = batch_last
            yield self._cut(stream, body, first, last)
        if end_before is None and first <= stream.last_tick <= last:
            raise self._corrupt(f"stream `{stream.name}`: the batch that ends at tick {stream.last_tick} is missing")

    def _cut(self, stream: LoggedStream, body: bytes, first: int, last: int) -> Batch:
        try:
            batch = codec.decode(body)
        except ValueError as broken:
            raise self._corrupt(f"stream `{stream.name}`: {broken}") from broken
        ticks = batch.max_ticks
        if len(batch.columns) != len(stream.columns) + 1:
            raise self._corrupt(f"stream `{stream.name}`: a batch has other columns")
        if ticks[0] >= first and ticks[-1] <= last:
            return batch
        low = sum(1 for tick in ticks if tick < first)
        high = sum(1 for tick in ticks if tick <= last)
        return batch.slice(low, high)

    def _query(self, text: str, values: tuple[int, ...]) -> Iterator[tuple[Any, ...]]:
        try:
            yield from self._connection.execute(text, values)
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
