"""What the components of a host want from their logs: writes of one round in one commit, reads one after the other.

The host puts instructions in and feeds the events that come out. Everything that a round asks for becomes durable
together, which is what makes small publishes cheap under load.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from runtime.log.stream_log import LogCorrupt, LogError, LogFenced, StreamLog
from runtime.protocol.coverage import NO_TICK, TICK_MAX
from runtime.protocol.events import AppendToLog, LogFailed, LogRead, LogWritten, ReadLog, ReserveSilence, TrimLog

Group = Callable[[], AbstractContextManager[object]]
"""Opens a block whose writes, to all logs, become durable together when it ends."""

TrimLimit = Callable[[str], int]
"""The highest tick up to which the log of a stream may be trimmed now."""

Write = AppendToLog | ReserveSilence | TrimLog
_Waiting = tuple[str, StreamLog, Write]
Written = tuple[str, LogWritten | LogFailed, LogError | None]
"""What to tell a component, and what went wrong with its log."""


def no_limit(_stream: str) -> int:
    """Checkpoints alone decide."""
    return TICK_MAX


@dataclass(slots=True)
class Times:
    """How long something took, for people who look at a broker."""

    count: int = 0
    total_us: int = 0
    longest_us: int = 0

    def note(self, us: int) -> None:
        self.count += 1
        self.total_us += us
        if us > self.longest_us:
            self.longest_us = us

    def data(self) -> dict[str, int]:
        return {
            "count": self.count,
            "mean_us": self.total_us // max(1, self.count),
            "longest_us": self.longest_us,
        }


@dataclass(frozen=True, slots=True)
class _Read:
    component: str
    log: StreamLog
    wanted: ReadLog
    source: bytes | None


class LogAccess:
    """At most one read per out-edge waits (the components see to that); writes wait for the end of the round.

    `waiting_writes` and `waiting_reads` are there to be looked at.

    Checkpoints say up to where a component's log is not needed any more. It is trimmed up to there or to `trim_limit`,
    whichever is less; the rest follows with later commits, as the limit rises.
    """

    def __init__(self, group: Group) -> None:
        self.commits = Times()
        self.reads = Times()
        self._group = group
        self.waiting_writes: list[_Waiting] = []
        self.waiting_reads: deque[_Read] = deque()
        self.trim_limit: TrimLimit = no_limit
        self._trims: dict[str, tuple[StreamLog, int, int]] = {}  # component -> log, tick wanted, tick trimmed

    def write(self, component: str, log: StreamLog, write: Write) -> None:
        self.waiting_writes.append((component, log, write))

    def trim(self, component: str, log: StreamLog, wanted: TrimLog) -> None:
        """As far as the limit allows, now or later."""
        _, _, trimmed = self._trims.get(component, (log, NO_TICK, NO_TICK))
        self._trims[component] = (log, wanted.tick, trimmed)
        self._trim()

    def _trim(self) -> None:
        for component, (log, wanted, trimmed) in self._trims.items():
            tick = min(wanted, self.trim_limit(component))
            if tick > trimmed:
                self._trims[component] = (log, wanted, tick)
                self.waiting_writes.append((component, log, TrimLog(tick)))

    def read_later(self, component: str, log: StreamLog, wanted: ReadLog, source: bytes | None) -> None:
        self.waiting_reads.append(_Read(component, log, wanted, source))

    def forget(self, component: str) -> None:
        """It starts again: what it asked for is no longer of interest, and half of it must not be written."""
        self.waiting_writes = [write for write in self.waiting_writes if write[0] != component]
        self.waiting_reads = deque(read for read in self.waiting_reads if read.component != component)
        self._trims.pop(component, None)

    def commit(self) -> list[Written]:
        """All writes that wait, durable together or not at all; what to tell each component, and what went wrong."""
        if self._trims:
            self._trim()
        writes, self.waiting_writes = self.waiting_writes, []
        began = time.perf_counter_ns()
        try:
            return self._write(writes)
        finally:
            self.commits.note((time.perf_counter_ns() - began) // 1_000)

    def _write(self, writes: list[_Waiting]) -> list[Written]:
        newest: dict[str, int] = {}
        try:
            with self._group():
                for component, log, write in writes:
                    if isinstance(write, AppendToLog):  # nearly all of them, and the one that has to be quick
                        log.append(write.epoch, write.rows, write.producer, write.sequence, write.forgotten)
                        newest[component] = write.number
                    elif isinstance(write, ReserveSilence):
                        log.reserve(write.epoch, write.tick)
                        newest[component] = write.number
                    else:
                        log.trim(write.tick)
        except LogError as error:
            components = dict.fromkeys(component for component, _, _ in writes)
            if isinstance(error, LogCorrupt) and len(components) > 1:
                # One of them is damaged, and that one alone is to stop.
                apart = ([write for write in writes if write[0] == component] for component in components)
                return [told for own in apart for told in self._write(own)]
            failed = dict.fromkeys(component for component, _, write in writes if not isinstance(write, TrimLog))
            event = LogFailed(str(error), isinstance(error, LogFenced))
            return [(component, event, error) for component in failed]
        return [(component, LogWritten(number), None) for component, number in newest.items()]

    def read(self) -> tuple[str, LogRead | LogFailed, bytes | None, LogError | None]:
        """The read that has waited longest."""
        read = self.waiting_reads.popleft()
        began = time.perf_counter_ns()
        try:
            cover, rows, trimmed = read.log.read(read.wanted.ticks, read.wanted.rows_max)
        except LogError as error:
            return read.component, LogFailed(str(error), isinstance(error, LogFenced)), None, error
        finally:
            self.reads.note((time.perf_counter_ns() - began) // 1_000)
        return read.component, LogRead(read.wanted.edge, cover, rows, trimmed), read.source, None
