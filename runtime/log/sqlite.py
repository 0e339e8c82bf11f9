"""Logs on disk: one SQLite file in one folder for all streams of a process, one blob per batch.

WAL mode with full synchronisation: when `append` returns, the batch survives a crash of process and machine. Every blob
has a checksum; damage is an error, never a skipped row. The folder is locked, so that two processes cannot both write.
The epoch counter lives here too: every incarnation takes a number that none before it had.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from runtime.batch import Batch
from runtime.log import codec
from runtime.log.stream_log import LogCorrupt, LogError, LogFenced, Reading, StreamLog
from runtime.protocol.coverage import NO_TICK, Coverage
from runtime.protocol.events import LogState

FORMAT = 1
STREAMS_MAX = 512
"""Ever, in one folder: their numbers are shares of the ticks, and are never given to another stream."""

FILE_NAME = "events.sqlite"
LOCK_NAME = "lock"

_TABLES = """
create table if not exists facts (name text primary key, value integer not null) strict;
create table if not exists streams (
    stream text primary key, number integer not null unique, columns text not null, rules text not null,
    epoch integer not null default 0, reserved_tick integer not null default -1,
    trimmed_tick integer not null default -1, last_tick integer not null default -1
) strict;
create table if not exists publishes (
    stream integer not null, producer text not null, sequence integer not null, ticks blob not null,
    primary key (stream, producer, sequence)
) strict, without rowid;
create table if not exists batches (
    stream integer not null, last_tick integer not null, first_tick integer not null,
    checksum integer not null, body blob not null,
    primary key (stream, last_tick)
) strict, without rowid;
"""


class LogLocked(LogError):
    """Another process, or another system in this one, has this folder."""


class SchemaChanged(LogError):
    """The log has events of a stream of this name with other columns."""


class LogDirectory:
    """Open one per process and folder; `stream` gives the log of one stream. Close it, or the lock stays."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(self.folder / LOCK_NAME)
        try:
            self._connection = _connected(self.folder / FILE_NAME)
        except BaseException:
            os.close(self._lock)
            raise

    def next_epoch(self) -> int:
        """A number higher than all before it, durable when this returns."""
        with self.writing() as connection:
            connection.execute(
                "insert into facts values ('epoch', 1) on conflict (name) do update set value = value + 1"
            )
            (epoch,) = connection.execute("select value from facts where name = 'epoch'").fetchone()
            return int(epoch)

    def stream(
        self, name: str, columns: Sequence[tuple[str, str]], rules: str = "", producer_window: int = 1
    ) -> SqliteLog:
        """The log of this stream. `columns` are names and types of its payload, `rules` whatever else its events were
        checked against; if they are not what they were when it was first opened, SchemaChanged says what differs.

        The newest `producer_window` publishes of every producer are remembered, whatever is trimmed.
        """
        stored = "\n".join(f"{column}\t{kind}" for column, kind in columns)
        width = len(columns) + 1
        with self.writing() as connection:
            known = connection.execute(
                "select number, columns, rules from streams where stream = ?", (name,)
            ).fetchone()
            if known is None:
                (highest,) = connection.execute("select coalesce(max(number), 0) from streams").fetchone()
                if highest >= STREAMS_MAX:
                    raise LogError(f"{self.folder} has had {highest} streams, which is the most that it can keep apart")
                connection.execute(
                    "insert into streams (stream, number, columns, rules) values (?, ?, ?, ?)",
                    (name, highest + 1, stored, rules),
                )
                return SqliteLog(self, name, highest + 1, width, producer_window)
            number, stored_before, rules_before = known
            if stored_before != stored:
                had = dict(line.split("\t") for line in stored_before.splitlines())
                raise SchemaChanged(f"stream `{name}`: {_difference(had, dict(columns))}")
            if rules_before != rules:
                raise SchemaChanged(
                    f"stream `{name}` was logged with the rules ({rules_before}); the program now says ({rules})"
                )
            return SqliteLog(self, name, number, width, producer_window)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: committed, hence durable, at the end of the block."""
        connection = self._connection
        try:
            connection.execute("begin immediate")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()
        except sqlite3.Error as error:
            raise _as_log_error(self.folder, error) from error

    def query(self, text: str, values: Sequence[object]) -> list[tuple[object, ...]]:
        try:
            return self._connection.execute(text, values).fetchall()
        except sqlite3.Error as error:
            raise _as_log_error(self.folder, error) from error

    def close(self) -> None:
        self._connection.close()
        os.close(self._lock)


def _locked(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise LogLocked(f"{path.parent} is in use by another process, or by another system of this one") from None
    return handle


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        connection.executescript(_TABLES)
        connection.execute("insert into facts values ('format', ?) on conflict (name) do nothing", (FORMAT,))
        (found,) = connection.execute("select value from facts where name = 'format'").fetchone()
        if found != FORMAT:
            raise LogError(f"{path} has format {found}; this version reads format {FORMAT}")
    except sqlite3.Error as error:
        connection.close()
        raise _as_log_error(path, error) from error
    except LogError:
        connection.close()
        raise
    return connection


def _as_log_error(path: Path, error: sqlite3.Error) -> LogError:
    if type(error) is sqlite3.DatabaseError:  # "not a database", "malformed"
        return LogCorrupt(f"{path}: {error}")
    return LogError(f"{path}: {error}")


def _difference(had: Mapping[str, str], has: Mapping[str, str]) -> str:
    """The first column that differs, in words."""
    for name, kind in had.items():
        if name not in has:
            return f"the log has a column `{name}` ({kind}) that the program no longer declares"
        if has[name] != kind:
            return f"column `{name}` is {kind} in the log and {has[name]} in the program"
    for name, kind in has.items():
        if name not in had:
            return f"column `{name}` ({kind}) is new; the log has events without it"
    return "its columns are in another order in the log"


class SqliteLog(StreamLog):
    """The log of one stream; made by `LogDirectory.stream`."""

    def __init__(self, directory: LogDirectory, name: str, number: int, width: int, producer_window: int) -> None:
        self.name = name
        self._producer_window = producer_window
        self._directory = directory
        self.number = number
        """Counts the streams of the folder from 1, in the order in which they first appeared; never changes."""
        self._width = width
        self._trimmed_tick = NO_TICK

    def open(self, epoch: int) -> LogState:
        with self._directory.writing() as connection:
            connection.execute("update streams set epoch = max(epoch, ?) where number = ?", (epoch, self.number))
            last, reserved, self._trimmed_tick = connection.execute(
                "select last_tick, reserved_tick, trimmed_tick from streams where number = ?", (self.number,)
            ).fetchone()
            found = connection.execute(
                "select producer, sequence, ticks from publishes where stream = ? order by producer, sequence",
                (self.number,),
            ).fetchall()
        publishes = tuple((producer, sequence, codec.decode_ticks(ticks)) for producer, sequence, ticks in found)
        return LogState(last, reserved, self._trimmed_tick, publishes)

    def append(self, epoch: int, rows: Batch, producer: str, sequence: int) -> None:
        body = codec.encode(rows)
        first, last = rows.max_ticks[0], rows.max_ticks[-1]
        with self._directory.writing() as connection:
            self._check_epoch(connection, epoch)
            connection.execute(
                "insert into batches values (?, ?, ?, ?, ?)", (self.number, last, first, zlib.crc32(body), body)
            )
            connection.execute("update streams set last_tick = ? where number = ?", (last, self.number))
            connection.execute(
                "insert into publishes values (?, ?, ?, ?)",
                (self.number, producer, sequence, codec.encode_ticks(rows.max_ticks)),
            )
            connection.execute(
                "delete from publishes where stream = ? and producer = ? and sequence <= ?",
                (self.number, producer, sequence - self._producer_window),
            )

    def reserve(self, epoch: int, tick: int) -> None:
        with self._directory.writing() as connection:
            self._check_epoch(connection, epoch)
            connection.execute(
                "update streams set reserved_tick = max(reserved_tick, ?) where number = ?", (tick, self.number)
            )

    def _check_epoch(self, connection: sqlite3.Connection, epoch: int) -> None:
        (newest,) = connection.execute("select epoch from streams where number = ?", (self.number,)).fetchone()
        if epoch < newest:
            raise LogFenced(f"stream `{self.name}`: epoch {epoch} after {newest}")

    def read(self, wanted: Coverage, rows_max: int) -> tuple[Coverage, Batch, Coverage]:
        trimmed = wanted.intersection(Coverage.prefix(self._trimmed_tick))
        reading = Reading(self._width, rows_max)
        for first, last in wanted.difference(trimmed):
            if reading.is_full:
                break
            known = self._read_range(reading, first, last)
            if known >= first:
                reading.cover.add(first, known)
        return reading.cover, reading.rows(), trimmed

    def _read_range(self, reading: Reading, first: int, last: int) -> int:
        after = first - 1
        while True:
            found = self._directory.query(
                "select first_tick, last_tick, checksum, body from batches"
                " where stream = ? and last_tick > ? order by last_tick limit 1",
                (self.number, after),
            )
            if not found:
                return last
            batch_first, batch_last, checksum, body = found[0]
            assert isinstance(batch_first, int)
            assert isinstance(batch_last, int)
            if batch_first > last:
                return last
            if reading.is_full:
                return batch_first - 1
            end = min(last, batch_last)
            known = reading.add(self._decoded(body, checksum, batch_last), first, end)
            if known < end:
                return known
            after = batch_last
            if after >= last:
                return last

    def _decoded(self, body: object, checksum: object, tick: int) -> Batch:
        assert isinstance(body, bytes)
        if zlib.crc32(body) != checksum:
            raise LogCorrupt(f"stream `{self.name}`: the batch that ends at tick {tick} is damaged (checksum)")
        try:
            batch = codec.decode(body)
        except ValueError as broken:
            raise LogCorrupt(f"stream `{self.name}`: the batch that ends at tick {tick}: {broken}") from broken
        if len(batch.columns) != self._width:
            raise LogCorrupt(f"stream `{self.name}`: the batch that ends at tick {tick} has other columns")
        return batch

    def trim(self, tick: int) -> None:
        with self._directory.writing() as connection:
            connection.execute(
                "update streams set trimmed_tick = max(trimmed_tick, ?) where number = ?", (tick, self.number)
            )
            connection.execute("delete from batches where stream = ? and last_tick <= ?", (self.number, tick))
        self._trimmed_tick = max(self._trimmed_tick, tick)
