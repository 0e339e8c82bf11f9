"""Logs on disk: one SQLite file in one folder for all streams of a process, one blob per batch.

WAL mode; with `sync="always"`, what `append` or `group` wrote survives a crash of process and machine when they return.
Everything stored has a checksum, batches are chained, publishes counted: damage is an error, never a skipped row. The
folder is locked, so that two processes cannot both write. The epoch counter lives here too: every incarnation takes a
number that none before it had. docs/log.md says what which damage looks like.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
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
from runtime.log.state import Position, Seal, State
from runtime.log.stream_log import LogCorrupt, LogError, SchemaChanged
from runtime.protocol.coverage import NO_TICK

__all__ = ["LogDirectory", "SqliteLog", "Sync", "Waiting"]

log = logging.getLogger("smile.log")

Sync = Literal["always", "interval", "never"]
INTERVAL_MS = 50
STREAMS_MAX = 512
"""Ever, in one folder: their numbers are shares of the ticks, and are never given to another stream."""

TRIMMED_BATCHES_MAX = 64
"""Deleted by one commit: the rest waits for the next, or for `idle`."""

_PAGE_BYTES = 4096
_COMMIT_PAGES = 4  # of a small commit: leaves of three tables, and the head of each page


class Waiting:
    """What one transaction will write. `positions` has those that change."""

    __slots__ = ("batches", "body_bytes", "forgotten", "gone", "positions", "publishes", "trimmed")

    def __init__(self, positions: dict[int, Position] | None = None) -> None:
        self.positions = {} if positions is None else positions
        self.batches: list[tuple[object, ...]] = []
        self.publishes: list[tuple[int, str, int, bytes, int]] = []
        self.gone: list[tuple[int, str]] = []  # producers that are forgotten before anything is added
        self.forgotten: dict[tuple[int, str], int] = {}  # of a producer, how many are remembered
        self.trimmed: list[int] = []  # streams whose trimmed batches are all deleted
        self.body_bytes = 0


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
        self._trims: set[int] = set()  # streams with batches that wait for their deletion
        self._is_unsure = False  # was a commit cut short, so that nobody knows whether it is there?
        self._open = ExitStack()
        try:
            self._begin(interval_ms / 1000 if sync == "interval" else None)
        except BaseException as error:
            with suppress(OSError):
                self._open.close()
            if isinstance(error, OSError):
                raise LogError(f"{self.folder}: {error}. Check the disk and the rights on this folder") from error
            raise

    def _begin(self, interval_s: float | None) -> None:
        """Whatever is open at the end of this, or when it fails, `_open` closes in the reverse order."""
        make_folder(self.folder)
        self._lock = locked(self.folder / LOCK_NAME)
        self._open.callback(os.close, self._lock)
        self.connection, contents = opened(self.folder, is_synced=self._is_synced)
        self._open.callback(self.connection.close)
        self._state, self._streams = contents.state, dict(contents.streams)
        self._acknowledged = AcknowledgedFile(self.folder / ACKNOWLEDGED_NAME)
        self._open.callback(self._acknowledged.close)
        self._open.callback(self._acknowledged.sync)
        self._keeper = Keeper(self.folder, self._guard, self._acknowledged, self._number, interval_s)
        self._open.callback(self._keeper.close)
        self._acknowledged.sync()
        sync_folder(self.folder)

    def _number(self) -> int:
        return self._state.seal.number

    def check_usable(self) -> None:
        """Raises LogError in a process that was forked from the one which opened it, and after a commit that was cut
        short by Ctrl-C: what is known here may be older than what is in the log."""
        if os.getpid() != self._process:
            raise LogError(
                f"{self.folder} was opened by process {self._process}, and this is a fork of it: use the log there, or"
                " open another folder here"
            )
        if self._is_unsure:
            raise LogError(
                f"{self.folder}: writing was interrupted, and what it has is not known here; close it and open it again"
            )

    def next_epoch(self, at_least: int = 0) -> int:
        """A number higher than all before it, durable when this returns, whatever `sync` says."""
        assert self._waiting is None
        epoch = max(self._state.epoch + 1, at_least)
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
        floor = self._state.floor_tick
        changed = {}
        for number, position in enumerate(self._state.positions, 1):
            is_new = floor > NO_TICK and position.trimmed_tick == floor  # it began after the repair
            if position.lost or is_new:
                changed[number] = replace(position, lost=(), trimmed_tick=NO_TICK if is_new else position.trimmed_tick)
        count = sum(max(1, len(self._state.positions[number - 1].lost)) for number in changed)
        if changed or floor > NO_TICK:
            self._state = replace(self._state, floor_tick=NO_TICK)
            self._commit(Waiting(changed), self._state.epoch)
        return count

    def _add_stream(self, name: str, columns: str, rules: str) -> int:
        number = len(self._streams) + 1
        row = (number, name, columns, rules, stream_checksum(number, name, columns, rules))
        assert self._waiting is None
        begin = Position(reserved_tick=self._state.floor_tick, trimmed_tick=self._state.floor_tick)
        self._commit(Waiting({number: begin}), self._state.epoch, row)
        self._streams[name] = (number, columns, rules)
        return number

    def set_columns(self, name: str, columns: str) -> None:
        """From now on this stream has these."""
        number, _, rules = self._streams[name]
        assert self._waiting is None
        row = (number, name, columns, rules, stream_checksum(number, name, columns, rules))
        self._commit(Waiting(), self._state.epoch, row)
        self._streams[name] = (number, columns, rules)

    # Writing

    def group(self) -> Group:
        """One transaction for all that is appended, reserved and trimmed inside, in all streams: durable when the block
        ends. If it raises LogError there, or the block raises anything, nothing of it is in the log."""
        return Group(self)

    def begin_group(self) -> None:
        assert self._waiting is None, "a group within a group"
        self._waiting = Waiting()

    def end_group(self, *, is_wanted: bool) -> None:
        waiting, self._waiting = self._waiting, None
        assert waiting is not None
        if is_wanted and waiting.positions:
            self._commit(waiting, self._state.epoch)

    def begin(self) -> Waiting:
        """Where a stream's log puts what it wants to write: the open group, or a transaction of its own."""
        return Waiting() if self._waiting is None else self._waiting

    def end(self, waiting: Waiting) -> None:
        """Committed when this returns, or with the group that is open."""
        if waiting is not self._waiting:
            self._commit(waiting, self._state.epoch)

    def position(self, number: int, waiting: Waiting | None = None) -> Position:
        """Of this stream: as committed, or as it will be after what waits."""
        if waiting is not None and number in waiting.positions:
            return waiting.positions[number]
        return self._state.positions[number - 1]

    def _commit(self, waiting: Waiting, epoch: int, stream_row: tuple[object, ...] | None = None) -> None:
        try:
            self._commit_once(waiting, epoch, stream_row)
        except LogCorrupt as error:
            if not self._trims:
                raise
            self._give_up_trims(error)
            self._commit_once(waiting, epoch, stream_row)

    def _give_up_trims(self, error: LogCorrupt) -> None:
        """Perhaps the damage is among what is trimmed: nobody reads that any more, so that it must stop nobody."""
        self._trims.clear()
        self.counters["log_trims_damaged"] += 1
        if self.counters["log_trims_damaged"] == 1:
            log.error("trimmed events stay where they are: %s", error)

    def _commit_once(self, waiting: Waiting, epoch: int, stream_row: tuple[object, ...] | None) -> None:
        self.check_usable()
        if self._keeper.is_behind:
            self._wait_for_keeper()
        began = time.perf_counter_ns()
        with self._guard:
            self._is_unsure = True
            try:
                self.connection.execute("begin immediate")
                try:
                    state = self._write(waiting, epoch, stream_row)
                    self.connection.execute("commit")
                except BaseException:
                    if self.connection.in_transaction:
                        self.connection.execute("rollback")
                        self._is_unsure = False
                    raise
            except sqlite3.Error as error:
                self._is_unsure = False  # SQLite has taken all of it back
                self.counters["log_failures"] += 1
                raise as_log_error(self.folder, error) from error
            self._state = state
            self._trims.difference_update(waiting.trimmed)
            self._keeper.wrote(waiting.body_bytes + _PAGE_BYTES * (_COMMIT_PAGES + len(waiting.batches)))
            self._is_unsure = False
        if self._is_synced:
            self._keeper.note_synced(state.seal.number)
        self.counters["log_commits"] += 1
        self.counters["log_batches"] += len(waiting.batches)
        self.counters["log_bytes"] += waiting.body_bytes
        self.counters["log_commit_ns"] += time.perf_counter_ns() - began

    def _write(self, waiting: Waiting, epoch: int, stream_row: tuple[object, ...] | None) -> State:
        connection, positions = self.connection, dict(waiting.positions)  # what waits may be written once more
        if stream_row is not None:
            connection.execute("insert or replace into streams values (?, ?, ?, ?, ?)", stream_row)
        if waiting.batches:
            connection.executemany("insert into batches values (?, ?, ?, ?, ?, ?, ?, ?)", waiting.batches)
        for number, producer in waiting.gone:
            positions[number] = self._forget(positions[number], number, producer, 0)
        if waiting.publishes:
            connection.executemany("insert into publishes values (?, ?, ?, ?, ?)", waiting.publishes)
        for (number, producer), kept in waiting.forgotten.items():
            positions[number] = self._forget(positions[number], number, producer, kept)
        merged = list(self._state.positions)
        for number, position in positions.items():
            merged[number - 1 : number] = [position]
        waiting.trimmed = [one for one in self._trims if self._delete_trimmed(one, merged[one - 1].trimmed_tick)]
        number = self._state.seal.number + 1
        synced = number - 1 if self._is_synced else self._keeper.synced
        state = State(Seal(number, synced), epoch, tuple(merged), self._state.floor_tick)
        connection.execute("update state set body = ? where id = 1", (state.encode(),))
        return state

    def _forget(self, position: Position, number: int, producer: str, kept: int) -> Position:
        """Of a producer's publishes keep the newest `kept`."""
        gone = self.connection.execute(
            "delete from publishes where stream = ?1 and producer = ?2 and sequence <= (select sequence from publishes"
            " where stream = ?1 and producer = ?2 order by sequence desc limit 1 offset ?3) returning checksum",
            (number, producer, kept),
        ).fetchall()
        digest = position.publishes_digest
        for (checksum,) in gone:
            digest ^= checksum
        return replace(position, publishes=position.publishes - len(gone), publishes_digest=digest)

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
            try:
                self._trims = {number for number in self._trims if self._has_trimmed(number)}
                if self._trims:
                    self._commit_once(Waiting(), self._state.epoch, None)
            except LogCorrupt as error:  # whoever needs what is damaged hears of it when reading
                self._give_up_trims(error)
            except LogError:  # a full disk, say: this can wait for that too
                return False
        return bool(self._trims)

    def _has_trimmed(self, number: int) -> bool:
        trimmed = self._state.positions[number - 1].trimmed_tick
        found = self.query("select 1 from batches where stream = ? and last_tick <= ? limit 1", (number, trimmed))
        return bool(found)

    def _delete_trimmed(self, number: int, trimmed_tick: int) -> bool:
        """Some of them; was that all?"""
        found = self.connection.execute(
            "select last_tick from batches where stream = ? and last_tick <= ? order by last_tick limit ?",
            (number, trimmed_tick, TRIMMED_BATCHES_MAX),
        ).fetchall()
        if found:
            self.connection.execute("delete from batches where stream = ? and last_tick <= ?", (number, found[-1][0]))
        return len(found) < TRIMMED_BATCHES_MAX

    # Reading

    def query(self, text: str, values: Sequence[object]) -> list[tuple[object, ...]]:
        self.check_usable()
        try:
            return self.connection.execute(text, values).fetchall()
        except sqlite3.Error as error:
            raise as_log_error(self.folder, error) from error

    def rows(self, text: str, values: Sequence[object]) -> Generator[tuple[Any, ...]]:
        """The same, one by one: read them at once, because they keep the write-ahead log from beginning anew."""
        self.check_usable()
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
        """What cannot be closed well is told when all the rest is closed."""
        if os.getpid() == self._process:
            self._open.close()
        else:  # in a fork the thread is not there, and SQLite's files are the parent's
            self._open.pop_all()
            self._acknowledged.close()
            os.close(self._lock)
