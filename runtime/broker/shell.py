"""The inner part of a host: feeds components, carries out their instructions, works off one round at a time.

`host.py` builds on it and decides which components there are and what becomes of them. A component that refuses its
input is counted; one that breaks starts again alone. One round ends with one commit for all logs. Publishers are
answered when everybody else has been told: subscribers wait for what they are told, publishers only for the disk.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from dataclasses import replace
from typing import Protocol

from runtime.broker.hosted import RUNNING, SECOND, Failure, Hosted, Told, second_name
from runtime.broker.log_access import Group, LogAccess
from runtime.broker.publishing import RETRY_BUSY_MS, RETRY_STOPPED_MS, Answer, Publishing, PublishOutcome
from runtime.broker.questions import Questions
from runtime.broker.timers import Clock, Timers
from runtime.log.stream_log import LogCorrupt
from runtime.protocol.errors import ProtocolError
from runtime.protocol.events import (
    AcknowledgePublish,
    AppendToLog,
    ArmTimer,
    Deliver,
    Event,
    Instruction,
    LogRead,
    MessageArrived,
    ReadLog,
    RefusePublish,
    ReportFailed,
    ReportTrimmed,
    ReserveSilence,
    RestartMe,
    Send,
    Stepped,
    Stopped,
    TimerFired,
    TrimLog,
)
from runtime.protocol.messages import Events, Knowledge, Message, Snapshot, Upstream
from runtime.protocol.standing_quench import StandingQuench

log = logging.getLogger("smile.host")

QUESTIONS_PER_ROUND = 64
READS_PER_ROUND = 16
ANSWERING_US = 4_000
"""Questions from other processes, and reads of logs, are worked off for so long per round, at least one of each: an
answer may be a whole view, and whoever publishes meanwhile should not wait for all of them."""

SECOND_ROWS_MAX = 4_096
"""Rows that a component which stands by gets in one answer: what it has missed must hold up nobody."""

IDLE_US = 1_000_000
"""Without any timer a round is due after this."""

HOST = ""
"""Timers of the host itself go by this name instead of a component's."""

RESTART = "\0restart"
"""The timer that starts a component again: the host's, not the component's own."""


class Link(Protocol):
    def send(self, component: str, edge: str, message: Message, to: bytes | None) -> None:
        """Give it to the other end of the edge, elsewhere. `to`: only to this peer, which has asked; None: to whoever
        is there. May drop it."""


class Shell(ABC):
    """`hosted` by name. `keep_logs`: never trim, whatever checkpoints say."""

    def __init__(self, link: Link, clock: Clock, group: Group, answer: Answer, *, keep_logs: bool) -> None:
        self.hosted: dict[str, Hosted] = {}
        self.counters: Counter[str] = Counter()
        self.logs = LogAccess(group)
        self._clock = clock
        self._link = link
        self._keep_logs = keep_logs
        self._publishing = Publishing(answer)
        self._outcomes: list[PublishOutcome] = []  # of publishes that are answered at the end of the round
        self._timers = Timers()
        self._queue: deque[tuple[str, str, Message]] = deque()
        self._questions = Questions()
        self._ends: dict[str, tuple[str, str]] = {}  # edge of a plan -> (sender, receiver)
        self._quenches: dict[str, StandingQuench] = {}  # by edge, of the senders that run here

    @abstractmethod
    def _cannot_go_on(self, hosted: Hosted, reason: str, *, for_good: bool = False) -> None:
        """This incarnation is over."""

    @abstractmethod
    def _begin_again(self, hosted: Hosted) -> None:
        """Start the next one."""

    @abstractmethod
    def _host_timer(self, name: str) -> None:
        """One of the host's own timers is due."""

    # Time

    def fire(self, now_us: int | None = None) -> None:
        """Timers whose time has come; `now_us` by the steady clock, if somebody has just looked."""
        if now_us is None:
            now_us = self._clock.steady_us()
        next_us = self._timers.next_due_us()
        if next_us is None or next_us > now_us:
            return
        for name, timer in self._timers.due(now_us):
            if name == HOST:
                self._host_timer(timer)
                continue
            hosted = self.hosted.get(name)
            if hosted is None:
                continue
            if timer == RESTART:
                self._begin_again(hosted)
            else:
                self._feed(hosted, TimerFired(timer, self._clock.wall_us()))

    def next_due_us(self, now_us: int | None = None) -> int:
        """Microseconds until there is something to do by itself; 0: at once."""
        if self._queue or self._questions or self.logs.waiting_reads or self.logs.waiting_writes:
            return 0
        due_us = self._timers.next_due_us()
        if due_us is None:
            return IDLE_US
        wait_us = due_us - (self._clock.steady_us() if now_us is None else now_us)
        return wait_us if wait_us > 0 else 0

    # One round

    def work(self) -> None:
        """Everything that the round has caused, in a bounded time; one commit for all that the logs were asked for."""
        logs = self.logs
        if self._queue:
            self._drain()
        limit_ns = 0
        if self._questions or logs.waiting_reads:
            limit_ns = time.perf_counter_ns() + ANSWERING_US * 1_000
        if self._questions:
            self._answer_questions(limit_ns)
        if logs.waiting_writes:
            self._commit()
        if logs.waiting_reads:
            self._read_logs(limit_ns or time.perf_counter_ns() + ANSWERING_US * 1_000)
        if logs.waiting_writes:
            self._commit()
        if self._outcomes:
            self._settle()

    def _answer_questions(self, limit_ns: int) -> None:
        for _ in range(QUESTIONS_PER_ROUND):
            if not self._questions:
                break
            self._feed_message(*self._questions.take())
            if time.perf_counter_ns() > limit_ns:
                break
        self._drain()

    def _read_logs(self, limit_ns: int) -> None:
        for _ in range(READS_PER_ROUND):
            if not self.logs.waiting_reads:
                break
            self._read()
            if time.perf_counter_ns() > limit_ns:
                break
        self._drain()

    def _drain(self) -> None:
        queue = self._queue
        while queue:
            component, edge, message = queue.popleft()
            self._feed_message(component, edge, message, None)

    def _commit(self) -> None:
        has_failed = False
        for name, event, error in self.logs.commit():
            self._feed(self.hosted[name], event)
            if error is not None:
                has_failed = True
                if isinstance(error, LogCorrupt):
                    self._cannot_go_on(self.hosted[name], str(error), for_good=True)
        if has_failed:
            self.counters["commits_failed"] += 1
        self._drain()

    def _settle(self) -> None:
        """Answer publishers."""
        outcomes, self._outcomes = self._outcomes, []
        for outcome in outcomes:
            self._publishing.settle(outcome)

    def _read(self) -> None:
        name, event, source, error = self.logs.read()
        hosted = self.hosted[name]
        if isinstance(error, LogCorrupt):
            self._feed(hosted, event)  # refuses what waits
            self._cannot_go_on(hosted, str(error), for_good=True)
        else:
            edge = event.edge if isinstance(event, LogRead) else ""
            self._feed(hosted, event, edge, source)

    # Feeding

    def _feed_message(self, component: str, edge: str, message: Message, source: bytes | None) -> None:
        hosted = self.hosted.get(component)
        if hosted is None:
            return
        if hosted.stands_by:
            edge = edge.removeprefix(SECOND)
        if type(message) is Events or type(message) is Knowledge or type(message) is Snapshot:
            hosted.rows_since_checkpoint += len(message.rows.max_ticks)
        self._feed(hosted, MessageArrived(edge, message), edge, source)

    def _feed(self, hosted: Hosted, event: Event, edge: str = "", source: bytes | None = None) -> None:
        """`source` has asked on `edge`: what is sent on it now is the answer, and for nobody else."""
        if hosted.state != RUNNING:
            return
        try:
            instructions = hosted.component.handle(event)
        except ProtocolError as refusal:
            self._refused(hosted, refusal)
            return
        except Exception as broken:
            log.exception("broke", extra={"component": hosted.name})
            self.counters["components_broken"] += 1
            self._cannot_go_on(hosted, f"{type(broken).__name__}: {broken}")
            return
        self._carry_out_all(hosted, instructions, edge, source)

    def _refused(self, hosted: Hosted, refusal: ProtocolError) -> None:
        hosted.refused[refusal.code] += 1
        if hosted.refused[refusal.code] == 1:
            log.warning("refused: %s", refusal, extra={"component": hosted.name, "edge": refusal.place})

    def _carry_out_all(self, hosted: Hosted, instructions: list[Instruction], edge: str, source: bytes | None) -> None:
        name = hosted.name
        if hosted.stands_by:
            instructions = self._only_upstream(instructions)
        for instruction in instructions:
            if type(instruction) is Send:
                self._send(name, instruction.edge, instruction.message, source if instruction.edge == edge else None)
            elif type(instruction) is AcknowledgePublish:
                self._outcomes.append(
                    PublishOutcome(
                        name, instruction.producer, instruction.sequence, instruction.ticks, instruction.repeated
                    )
                )
            elif type(instruction) is Stepped:
                self._tell(hosted, instruction)
            elif type(instruction) is ArmTimer:
                self._timers.arm(name, instruction.name, self._due_us(instruction))
            else:
                self._carry_out(hosted, instruction, edge, source)

    def _only_upstream(self, instructions: list[Instruction]) -> list[Instruction]:
        """Of a component that stands by: nobody listens to it yet, and its questions go on edges of its own."""
        return [
            Send(second_name(one.edge), one.message) if isinstance(one, Send) else one
            for one in instructions
            if not isinstance(one, Send) or isinstance(one.message, Upstream)
        ]

    def _due_us(self, timer: ArmTimer) -> int:
        """Silence comes from all streams in the same round: then it costs each receiver one message, not one each."""
        now_us = self._clock.steady_us()
        if timer.name == "silence":
            return (now_us // timer.delay_us + 1) * timer.delay_us
        return now_us + timer.delay_us

    def _send(self, name: str, edge: str, message: Message, to: bytes | None) -> None:
        ends = self._ends.get(edge)
        if ends is not None:
            other = ends[1] if name == ends[0] else ends[0]
            if other in self.hosted:
                self._queue.append((other, edge, message))
                return
        quench = self._quenches.get(edge)
        if quench is not None:
            message = quench.applied(message)
        self._link.send(name, edge, message, to)

    def _carry_out(self, hosted: Hosted, instruction: Instruction, edge: str, source: bytes | None) -> None:
        name = hosted.name
        match instruction:
            case AppendToLog() | ReserveSilence():
                assert hosted.log is not None
                self.logs.write(name, hosted.log, instruction)
            case TrimLog():
                assert hosted.log is not None
                if not self._keep_logs and self._publishing.may_trim(name):
                    self.logs.trim(name, hosted.log, instruction)
            case ReadLog():
                assert hosted.log is not None
                if instruction.edge in hosted.second_edges:  # it catches up beside everything else
                    instruction = replace(instruction, rows_max=min(instruction.rows_max, SECOND_ROWS_MAX))
                self.logs.read_later(name, hosted.log, instruction, source if instruction.edge == edge else None)
            case Deliver():
                self._tell(hosted, instruction)
            case RefusePublish():
                self._outcomes.append(_refusal(hosted, instruction))
            case ReportFailed(place, code, reason):
                if hosted.failure is None:
                    log.error("cannot compute: %s", reason, extra={"component": name, "edge": place, "code": code})
                hosted.failure = Failure(place, code, reason)
            case ReportTrimmed(place, _):
                hosted.lost_ticks = True
                log.error("needs ticks that have left the log", extra={"component": name, "edge": place})
            case RestartMe(reason):
                self._cannot_go_on(hosted, reason)
            case Stopped(reason):
                self._cannot_go_on(hosted, reason, for_good=True)
            case _:
                raise AssertionError(f"{name}: {instruction} is not an instruction")

    def _tell(self, hosted: Hosted, told: Told) -> None:
        if hosted.tell is None:
            return
        try:
            hosted.tell(told)
        except Exception:
            self.counters["callbacks_failed"] += 1
            log.exception("a receiver of deliveries failed", extra={"component": hosted.name})


def _refusal(hosted: Hosted, refused: RefusePublish) -> PublishOutcome:
    code, retry_ms = "refused", None
    if refused.uncertain:
        code, retry_ms = "log", RETRY_STOPPED_MS
    elif refused.reason.startswith("busy"):
        code, retry_ms = "busy", RETRY_BUSY_MS
    return PublishOutcome(
        hosted.name,
        refused.producer,
        refused.sequence,
        code=code,
        reason=refused.reason,
        uncertain=refused.uncertain,
        retry_after_ms=retry_ms,
    )
