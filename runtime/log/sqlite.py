"""Logs on disk: one SQLite file in one folder for all streams of a process, one blob per batch.

WAL mode; with `sync="always"`, what `append` or `group` wrote survives a crash of process and machine when they return.
Everything stored has a checksum, batches are chained, publishes counted: damage is an error, never a skipped row. The
folder is locked, so that two processes cannot both write. The epoch counter lives here too: every incarnation takes a
number that none before it had. docs/log.md says what which damage looks like.

A commit that only appends writes rows of `batches`, nothing else: one page, if it is small. What it would change in the
other tables follows from those rows until a later commit, one of a few hundred, writes it there.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from runtime.files import make_folder, sync_folder
from runtime.log.acknowledged import AcknowledgedFile
from runtime.log.checksums import stream_checksum
from runtime.log.database import ACKNOWLEDGED_NAME, FILE_NAME, LOCK_NAME, WAL_NAME, as_log_error, locked, opened, remedy
from runtime.log.keeper import Keeper
from runtime.log.schema import as_columns, as_text, check_growth
from runtime.log.sqlite_log import SqliteLog
from runtime.log.state import GROWN_STREAMS_MAX, Position, Seal, State, encode_advance
from runtime.log.stream_log import LogCorrupt, LogError, SchemaChanged
from runtime.log.waiting import Publish, Waiting, stored
from runtime.protocol.coverage import NO_TICK

__all__ = ["LogDirectory", "SqliteLog", "Sync", "Waiting"]

Sync = Literal["always", "interval", "never"]
INTERVAL_MS = 50
STREAMS_MAX = 512
"""Ever, in one folder: their numbers are shares of the ticks, and are never given to another stream."""

TRIMMED_BATCHES_MAX = 64
"""Deleted by one commit: the rest waits for the next, or for `idle`."""

UNPUBLISHED_MAX = 256
"""Publishes that are only in their batches: then a commit writes them to their table, which takes it a millisecond."""

_PAGE_BYTES = 4096
_BATCH_PAGES = 2  # of a small one, about: sometimes its page is full, and then it is more
_COMMIT_PAGES = 3  # of a commit that does not only append, beside those of its batches

_INSERT_BATCH = "insert into batches values (?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_PUBLISH = "insert into publishes values (?, ?, ?, ?, ?)"


class Group:
    """The block of `LogDirectory.group`: what waits is committed at its end, unless it raises."""

    __slots__ = ("_directory",)

    def __init__(self, directory: LogDirectory) -> None:
        self._directory = directory

    def __enter__(self) -> None:
        self._directory.begin_group()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._directory.end_group(is_wanted=kind is None)


class LogDirectory:
    """Open one per process and folder; `stream` gives the log of one stream. Close it, or the lock stays. A process
    that is forked meanwhile cannot use it: both would write at the place that they take for the end.

    `sync`: "always" waits for the disk in every commit. "interval" lets a thread do it, at most every `interval_ms`:
    a power loss may cost what was acknowledged in that time. "never" leaves it to the system, which takes half a
    minute. A crash of the process alone loses nothing in any of them.
    """

    def __init__(
        self, folder: str | os.PathLike[str], sync: Sync = "always", *, interval_ms: int = INTERVAL_MS
    ) -> None:
        self.folder = Path(folder)
        self._process = os.getpid()
        self.counters: Counter[str] = Counter()
        self._is_synced = sync == "always"
        self._guard = threading.Lock()
        self._waiting: Waiting | None = None
        self._group = Group(self)
        self._is_sure = True  # what is known here is what is on disk; not if a commit was interrupted
        self._trims: set[int] = set()  # streams with batches that wait for their deletion
        self._opened: set[int] = set()  # streams of which all publishes are in their table or in the next line
        self._unpublished: list[Publish] = []
        self._forgotten: dict[tuple[int, str], int] = {}  # what commits that only appended have left to do
        make_folder(self.folder)
        self._lock = locked(self.folder / LOCK_NAME)
        try:
            self.connection, contents = opened(self.folder, is_synced=self._is_synced)
            state, self._streams = contents.state, dict(contents.streams)
            self._committed, self._epoch, self._floor_tick = state.seal.number, state.epoch, state.floor_tick
            self._positions = list(state.positions)
            self._base, self._grown = contents.base, dict(contents.grown)
            try:
                self._acknowledged = AcknowledgedFile(self.folder / ACKNOWLEDGED_NAME)
                interval_s = interval_ms / 1000 if sync == "interval" else None
                self._keeper = Keeper(self.folder, self._guard, self._acknowledged, self._number, interval_s)
            except BaseException:
                self.connection.close()
                raise
        except BaseException:
            os.close(self._lock)
            raise
        self._acknowledged.sync()
        sync_folder(self.folder)

    def _number(self) -> int:
        return self._committed

    def check_process(self) -> None:
        """Raises LogError in a process that was forked from the one which opened it."""
        if os.getpid() != self._process:
            raise LogError(
                f"{self.folder} was opened by process {self._process}, and this is a fork of it: use the log there, or"
                " open another folder here"
            )

    def next_epoch(self, at_least: int = 0) -> int:
        """A number higher than all before it, durable when this returns, whatever `sync` says."""
        assert self._waiting is None
        epoch = max(self._epoch + 1, at_least)
        self._commit(Waiting(), epoch)
        try:
            self._keeper.sync()
        except OSError as error:
            raise LogError(f"{self.folder}: {error}. Check the disk") from error
        return epoch

    def stream(
        self, name: str, columns: Sequence[tuple[str, str]], rules: str = "", producer_window: int = 1
    ) -> SqliteLog:
        """The log of this stream. `columns` are names and types of its payload, `rules` whatever else its events were
        checked against; if they are not what they were when it was last opened, SchemaChanged says what differs. Only
        columns that are nullable or have a default may be added: that is remembered when the log is opened.

        The newest `producer_window` publishes of every producer are remembered, whatever is trimmed.
        """
        self.check_stream(name, columns, rules)
        stored = as_text(columns)
        declared = tuple(columns)
        if name not in self._streams:
            return SqliteLog(self, name, self._add_stream(name, stored, rules), declared, producer_window)
        number, stored_before, _ = self._streams[name]
        added = stored if stored != stored_before else None
        return SqliteLog(self, name, number, declared, producer_window, added)

    def check_stream(self, name: str, columns: Sequence[tuple[str, str]], rules: str = "") -> None:
        """Raises what `stream` would raise, and changes nothing."""
        self.check_room([name])
        known = self._streams.get(name)
        if known is None:
            return
        _, stored_before, rules_before = known
        check_growth(name, as_columns(stored_before), tuple(columns))
        if rules_before != rules:
            raise SchemaChanged(
                f"stream `{name}` was logged with the rules ({rules_before}); the program now says ({rules})"
            )

    def check_room(self, names: Collection[str]) -> None:
        """Raises LogError if the new ones among these would be too many."""
        if len(self._streams.keys() | set(names)) > STREAMS_MAX:
            raise LogError(f"{self.folder} has had {len(self._streams)} streams, and can keep {STREAMS_MAX} apart")

    def all_streams(self) -> Iterator[SqliteLog]:
        """Every stream that was ever opened here, whatever its columns, to be read."""
        for name, (number, columns, _) in self._streams.items():
            yield SqliteLog(self, name, number, as_columns(columns), producer_window=1)

    def accept_loss(self) -> int:
        """From now on ticks that a repair could not save count as ticks without events; how many ranges there were."""
        floor = self._floor_tick
        changed = {}
        for number, position in enumerate(self._positions, 1):
            is_new = floor > NO_TICK and position.trimmed_tick == floor  # it began after the repair
            if position.lost or is_new:
                changed[number] = replace(position, lost=(), trimmed_tick=NO_TICK if is_new else position.trimmed_tick)
        count = sum(max(1, len(self._positions[number - 1].lost)) for number in changed)
        if changed or floor > NO_TICK:
            self._floor_tick = NO_TICK
            self._commit(Waiting(changed), self._epoch)
        return count

    def _add_stream(self, name: str, columns: str, rules: str) -> int:
        number = len(self._streams) + 1
        row = (number, name, columns, rules, stream_checksum(number, name, columns, rules))
        assert self._waiting is None
        begin = Position(reserved_tick=self._floor_tick, trimmed_tick=self._floor_tick)
        self._commit(Waiting({number: begin}), self._epoch, row)
        self._streams[name] = (number, columns, rules)
        self._opened.add(number)
        return number

    def set_columns(self, name: str, columns: str) -> None:
        """From now on this stream has these."""
        number, _, rules = self._streams[name]
        assert self._waiting is None
        row = (number, name, columns, rules, stream_checksum(number, name, columns, rules))
        self._commit(Waiting(), self._epoch, row)
        self._streams[name] = (number, columns, rules)

    # Writing

    def group(self) -> Group:
        """One transaction for all that is appended, reserved and trimmed inside, in all streams: durable when the block
        ends. If it raises LogError there, or the block raises anything, nothing of it is in the log."""
        return self._group

    def begin_group(self) -> None:
        assert self._waiting is None, "a group within a group"
        self._waiting = Waiting()

    def end_group(self, *, is_wanted: bool) -> None:
        waiting, self._waiting = self._waiting, None
        assert waiting is not None
        if is_wanted and waiting.positions:
            self._commit(waiting, self._epoch)

    def begin(self) -> Waiting:
        """Where a stream's log puts what it wants to write: the open group, or a transaction of its own."""
        return Waiting() if self._waiting is None else self._waiting

    def end(self, waiting: Waiting) -> None:
        """Committed when this returns, or with the group that is open."""
        if waiting is not self._waiting:
            self._commit(waiting, self._epoch)

    def position(self, number: int, waiting: Waiting | None = None) -> Position:
        """Of this stream: as committed, or as it will be after what waits."""
        if waiting is not None and number in waiting.positions:
            return waiting.positions[number]
        return self._positions[number - 1]

    def is_opened(self, number: int) -> bool:
        """May be appended to: all that this stream remembers of publishes is known."""
        return number in self._opened

    def set_unpublished(self, number: int, publishes: list[Publish]) -> None:
        """The publishes of this stream that are only in their batches."""
        self._unpublished = [one for one in self._unpublished if one[0] != number] + publishes
        self._opened.add(number)

    def _commit(self, waiting: Waiting, epoch: int, stream_row: tuple[object, ...] | None = None) -> None:
        if os.getpid() != self._process:
            self.check_process()
        if self._keeper.is_behind:
            self._wait_for_keeper()
        began = time.perf_counter_ns()
        number = self._committed + 1
        synced = self._committed if self._is_synced else self._keeper.synced
        batches = waiting.batches
        pages = _BATCH_PAGES * len(batches)
        with self._guard:
            self._is_sure = False
            try:
                try:
                    if not (batches and waiting.only_appends and self._append(waiting, number, synced)):
                        self._write(waiting, number, synced, epoch, stream_row)
                        pages += _COMMIT_PAGES
                except BaseException:
                    if self.connection.in_transaction:
                        self.connection.execute("rollback")
                    raise
            except sqlite3.Error as error:
                self._is_sure = True
                self.counters["log_failures"] += 1
                raise as_log_error(self.folder, error) from error
            self._committed = number
            self._is_sure = True
            self._keeper.wrote(waiting.body_bytes + _PAGE_BYTES * pages)
        if self._is_synced:
            self._keeper.note_synced(number)
        self.counters["log_commits"] += 1
        self.counters["log_batches"] += len(batches)
        self.counters["log_bytes"] += waiting.body_bytes
        self.counters["log_commit_ns"] += time.perf_counter_ns() - began

    def _append(self, waiting: Waiting, number: int, synced: int) -> bool:
        """Rows of `batches` and nothing else, the last of them with an `Advance`; False if it is time for all tables.

        What is to be done in the others, if this is committed, is noted."""
        batches, positions = waiting.batches, waiting.positions
        grown = self._grown.copy()
        for stream, position in positions.items():
            grown[stream] = position.last_tick
        if self._trims or len(self._unpublished) + len(batches) > UNPUBLISHED_MAX or len(grown) > GROWN_STREAMS_MAX:
            return False
        newest = stored(*batches[-1], encode_advance(number, synced, self._base, grown))
        if len(batches) == 1:
            self.connection.execute(_INSERT_BATCH, newest)  # a transaction of its own
        else:
            self.connection.execute("begin immediate")
            self.connection.executemany(_INSERT_BATCH, [*(stored(*row) for row in batches[:-1]), newest])
            self.connection.execute("commit")
        self._grown = grown
        for stream, position in positions.items():
            self._positions[stream - 1] = position
        self._unpublished += waiting.publishes
        if waiting.forgotten:
            self._forgotten.update(waiting.forgotten)
        return True

    def _write(
        self, waiting: Waiting, number: int, synced: int, epoch: int, stream_row: tuple[object, ...] | None
    ) -> None:
        """All that has changed, in all tables."""
        connection = self.connection
        positions = self._positions.copy()
        for stream, position in waiting.positions.items():
            positions[stream - 1 : stream] = [position]
        connection.execute("begin immediate")
        if stream_row is not None:
            connection.execute("insert or replace into streams values (?, ?, ?, ?, ?)", stream_row)
        connection.executemany(_INSERT_BATCH, (stored(*row) for row in waiting.batches))
        self._publish(positions, self._unpublished)
        for stream, producer in waiting.gone:
            self._forget(positions, stream, producer, 0)
        self._publish(positions, waiting.publishes)
        for (stream, producer), kept in {**self._forgotten, **waiting.forgotten}.items():
            self._forget(positions, stream, producer, kept)
        trimmed = [stream for stream in self._trims if self._delete_trimmed(stream, positions[stream - 1])]
        state = State(Seal(number, synced), epoch, tuple(positions), self._floor_tick)
        connection.execute("update state set body = ? where id = 1", (state.encode(),))
        connection.execute("commit")
        self._epoch, self._positions = epoch, positions
        self._base, self._grown = number, {}
        self._unpublished, self._forgotten = [], {}
        self._trims.difference_update(trimmed)

    def _publish(self, positions: list[Position], publishes: list[Publish]) -> None:
        """These are remembered whatever is trimmed; they are all that is new in their streams."""
        self.connection.executemany(_INSERT_PUBLISH, publishes)
        found: dict[int, tuple[int, int]] = {}
        for stream, _, _, _, checksum in publishes:
            count, digest = found.get(stream, (0, 0))
            found[stream] = count + 1, digest ^ checksum
        for stream, (count, digest) in found.items():
            position = positions[stream - 1]
            positions[stream - 1] = replace(
                position,
                publishes=position.publishes + count,
                publishes_digest=position.publishes_digest ^ digest,
                published_tick=position.last_tick,
            )

    def _forget(self, positions: list[Position], number: int, producer: str, kept: int) -> None:
        """Of a producer's publishes keep the newest `kept`."""
        gone = self.connection.execute(
            "delete from publishes where stream = ?1 and producer = ?2 and sequence <= (select sequence from publishes"
            " where stream = ?1 and producer = ?2 order by sequence desc limit 1 offset ?3) returning checksum",
            (number, producer, kept),
        ).fetchall()
        position = positions[number - 1]
        digest = position.publishes_digest
        for (checksum,) in gone:
            digest ^= checksum
        positions[number - 1] = replace(position, publishes=position.publishes - len(gone), publishes_digest=digest)

    def _wait_for_keeper(self) -> None:
        self.counters["log_waits"] += 1
        deadline = time.monotonic() + 1.0  # then the disk is not only slow, and the commit itself will say so
        while self._keeper.is_behind and time.monotonic() < deadline:
            time.sleep(0.002)

    # Trimming

    def trim(self, number: int) -> None:
        """Trimmed batches of this stream are to be deleted, a few with every commit."""
        self._trims.add(number)

    def idle(self) -> bool:
        """Do a bit of what can wait; is there more? For a loop that has nothing else to do."""
        if self._waiting is None:
            self._trims = {number for number in self._trims if self._has_trimmed(number)}
            if self._trims:
                try:
                    self._commit(Waiting(), self._epoch)
                except LogCorrupt:
                    raise
                except LogError:  # a full disk, say: this can wait for that too
                    return False
        return bool(self._trims)

    def _has_trimmed(self, number: int) -> bool:
        end = _deletable(self._positions[number - 1])
        found = self.query("select 1 from batches where stream = ? and last_tick <= ? limit 1", (number, end))
        return bool(found)

    def _delete_trimmed(self, number: int, position: Position) -> bool:
        """Some of them; was that all?"""
        found = self.connection.execute(
            "select last_tick from batches where stream = ? and last_tick <= ? order by last_tick limit ?",
            (number, _deletable(position), TRIMMED_BATCHES_MAX),
        ).fetchall()
        if found:
            self.connection.execute("delete from batches where stream = ? and last_tick <= ?", (number, found[-1][0]))
        return len(found) < TRIMMED_BATCHES_MAX

    # Reading

    def query(self, text: str, values: Sequence[object]) -> list[tuple[object, ...]]:
        self.check_process()
        try:
            return self.connection.execute(text, values).fetchall()
        except sqlite3.Error as error:
            raise as_log_error(self.folder, error) from error

    def rows(self, text: str, values: Sequence[object]) -> Generator[tuple[Any, ...]]:
        """The same, one by one: read them at once, because they keep the write-ahead log from beginning anew."""
        self.check_process()
        try:
            cursor = self.connection.execute(text, values)
            with closing(cursor):
                yield from cursor
        except sqlite3.Error as error:
            raise as_log_error(self.folder, error) from error

    def corrupt(self, reason: str) -> LogCorrupt:
        return LogCorrupt(f"{self.folder}: {reason}; {remedy(self.folder)}")

    def status(self) -> dict[str, int]:
        """Numbers for people and metrics: commits, syncs, moves, and bytes on disk."""
        sizes = (path.stat().st_size for path in (self.folder / FILE_NAME, self.folder / WAL_NAME) if path.exists())
        return {**self.counters, **self._keeper.counters, "log_file_bytes": sum(sizes)}

    # The end

    def close(self) -> None:
        if os.getpid() == self._process:  # in a fork the thread is not there, and SQLite's files are the parent's
            if self._unpublished and self._is_sure:
                with suppress(LogError):  # it is all in the batches
                    self._commit(Waiting(), self._epoch)
            self._keeper.close()
            self._acknowledged.sync()
            self.connection.close()
        self._acknowledged.close()
        os.close(self._lock)


def _deletable(position: Position) -> int:
    """The end of what is trimmed; but while a publish is only in its batch, that stays."""
    return min(position.trimmed_tick, position.published_tick)
