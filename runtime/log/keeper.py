"""The thread that keeps the write-ahead log of a folder short, and syncs it where commits do not.

SQLite would move commits to the database inside a commit, which then takes milliseconds. Here a second connection does
it while commits go on. What was committed meanwhile is little, and is moved while commits wait, so that SQLite begins
to write its log from the start again instead of letting it grow: without that last bit a log under steady load never
ends. When the log has grown to `WAL_BYTES_MAX` although the thread works, commits wait for it.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from runtime.log.acknowledged import AcknowledgedFile
from runtime.log.database import FILE_NAME, WAL_NAME, connected

log = logging.getLogger("smile.log")

WAL_BYTES_KEPT = 16 * 2**20
"""From here on the thread moves commits to the database."""

WAL_BYTES_MAX = 128 * 2**20
"""Commits wait until the thread has caught up. Only a disk that cannot write what it is given gets there."""

_ROUNDS_MAX = 4
_FRAMES_LEFT_MAX = 64
"""What may be moved while commits wait."""

_PAUSE_S = 0.01
_PATIENCE_S = 1.0
"""Between two attempts if one failed, such as on a full disk."""


class Keeper:
    """`guard` is held by every commit; `committed` gives the number of the newest one."""

    def __init__(
        self,
        folder: Path,
        guard: threading.Lock,
        acknowledged: AcknowledgedFile,
        committed: Callable[[], int],
        interval_s: float | None,
    ) -> None:
        self._connection = connected(folder / FILE_NAME, is_synced=True)
        self._guard = guard
        self._acknowledged = acknowledged
        self._committed = committed
        self._interval_s = interval_s
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._is_wanted = False
        self._is_blocked = False
        self._is_doubtful = False
        self._syncing = threading.Lock()
        self.wal_bytes = 0
        """About what the write-ahead log holds; commits add to it."""
        self.counters: Counter[str] = Counter()
        # Kept open: later there may be too many open files.
        self._wal = os.open(folder / WAL_NAME, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fdatasync(self._wal)  # what an earlier process has written may be on its way only
        except OSError:
            self._connection.close()
            os.close(self._wal)
            raise
        self._synced = 0
        self.note_synced(committed())
        self._thread = threading.Thread(target=self._run, name="smile-log-keeper", daemon=True)
        self._thread.start()

    @property
    def synced(self) -> int:
        """The newest commit that is surely on disk."""
        return self._synced

    @property
    def is_behind(self) -> bool:
        """Should commits wait? Not for somebody in another process who reads for ever: then the log may grow."""
        return self.wal_bytes > WAL_BYTES_MAX and not self._is_blocked

    def wrote(self, count_bytes: int) -> None:
        """A commit has added this to the write-ahead log."""
        self.wal_bytes += count_bytes
        is_new = self.wal_bytes > WAL_BYTES_KEPT and not self._is_wanted
        if is_new:
            self._is_wanted = True
        if is_new or self._interval_s is not None:
            self._wake.set()

    def note_synced(self, number: int) -> None:
        """This commit and all before it are on disk."""
        with self._syncing:
            if number > self._synced:
                self._synced = number
                try:
                    self._acknowledged.write(number)
                except OSError:  # a full disk, say: an older number there is less proof, but no lie
                    self.counters["log_acknowledge_failures"] += 1

    def sync(self) -> None:
        """Everything committed is on disk when this returns.

        Once the disk has failed to take something, the system may have forgotten it, and says nothing of it when asked
        again: from then on nothing is called synced.
        """
        number = self._committed()
        if number > self._synced:
            if self._is_doubtful:
                raise OSError("syncing has failed before, and what it was for may be lost; open the log again")
            try:
                os.fdatasync(self._wal)
            except OSError as error:
                self._is_doubtful = True
                log.error("what was committed lately may not survive a power loss: %s", error)
                raise
            self.counters["log_syncs"] += 1
            self.note_synced(number)

    def close(self) -> None:
        self._closing.set()
        self._wake.set()
        try:
            self._thread.join()
        except KeyboardInterrupt:
            self._thread.join()  # it uses what is closed next
            raise
        finally:
            self._connection.close()
        try:
            if self._interval_s is not None and not self._is_doubtful:
                self.sync()
        finally:
            os.close(self._wal)

    def _run(self) -> None:
        while not self._closing.is_set():
            self._wake.wait()
            self._wake.clear()
            try:
                if self._interval_s is not None:
                    if not self._is_doubtful:
                        self.sync()
                    self._closing.wait(self._interval_s)
                if self._is_wanted and not self._closing.is_set() and not self.move():
                    self._try_again(_PAUSE_S)
            except (sqlite3.Error, OSError):
                # The log keeps everything; moving it can wait, and if the disk stays broken, commits will say so.
                self.counters["log_move_failures"] += 1
                self._try_again(_PATIENCE_S)

    def _try_again(self, delay_s: float) -> None:
        self._closing.wait(delay_s)
        self._wake.set()

    def move(self) -> bool:
        """Move commits to the database, so that the next commit can begin the write-ahead log anew; False if somebody
        else was in the way."""
        began = time.perf_counter_ns()
        number, moved = self._committed(), 0
        self._acknowledged.sync()  # so that a damaged log is noticed even where the database is ahead of it
        for _ in range(_ROUNDS_MAX):
            before, (_, moved) = moved, self._moved()
            if moved - before <= _FRAMES_LEFT_MAX:
                break
        with self._guard:
            waited = time.perf_counter_ns()
            there, moved = self._moved()
            if there == moved:
                self.wal_bytes = 0
                self._is_wanted = False
            self._is_blocked = there != moved
            now = time.perf_counter_ns()
        if there == moved and not self._is_doubtful:
            self.note_synced(number)  # SQLite syncs its log before it moves anything
        self.counters["log_moves" if there == moved else "log_moves_blocked"] += 1
        self.counters["log_move_ns"] += now - began
        self.counters["log_move_wait_ns_max"] = max(self.counters["log_move_wait_ns_max"], now - waited)
        return there == moved

    def _moved(self) -> tuple[int, int]:
        """Move what is there: how many pages the write-ahead log had, and how many of them are moved now."""
        is_busy, there, moved = self._connection.execute("pragma wal_checkpoint(passive)").fetchone()
        if is_busy:  # another program moves them just now, and SQLite says neither how many there are nor what it did
            return 1, 0
        return int(there), int(moved)
