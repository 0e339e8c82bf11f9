"""The shell around the components of one process: feeds them events and carries out what they answer. No sockets.

Brokers and clients have one each, in one thread; tests drive it by hand. Components of the same host reach each other
by a queue, all others through the link. One round is: `arrived`, `publish`, `fire` as often as wanted, then `work`,
which ends with one commit for all logs. A component that cannot go on starts again alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace
from typing import Protocol, get_args

from runtime.broker.hosted import (
    GUEST_EPOCH,
    GUESTS,
    RUNNING,
    SECOND,
    STOPPED,
    WAITING,
    Hosted,
    Position,
    Told,
    guests_edge,
)
from runtime.broker.log_access import Group, TrimLimit, no_limit
from runtime.broker.publishing import RETRY_STOPPED_MS, Answer, Columns, Gate, PublishOutcome
from runtime.broker.shell import HOST, RESTART, Link
from runtime.broker.successors import Successions
from runtime.broker.timers import Clock
from runtime.log.stream_log import LogCorrupt, LogError, StreamLog
from runtime.plan import Mode, Plan
from runtime.protocol.build import build_component
from runtime.protocol.checkpoint import Checkpoint
from runtime.protocol.coverage import TICK_MAX
from runtime.protocol.errors import BadCheckpoint, ProtocolError
from runtime.protocol.events import (
    AppendToLog,
    CheckpointDue,
    CheckpointFailed,
    CheckpointWritten,
    LogState,
    MessageArrived,
    PersistCheckpoint,
    Published,
    ReceiverAttached,
    ReceiverDetached,
    Restarted,
    TimerFired,
    WatchBegun,
)
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Ack, Curiosity, Downstream, Durable, EventCuriosity, Message, Upstream
from runtime.protocol.standing_quench import standing_quenches
from runtime.protocol.state_component import StateComponent
from runtime.protocol.stream import StreamComponent

log = logging.getLogger("smile.host")

RESTART_DELAY_US = 100_000
RESTART_DELAY_US_MAX = 5_000_000
"""A component that cannot go on starts again after this, doubling as long as it does not succeed."""

GUEST_GRACE_US = 10_000_000
"""Tombstones stay for guests this long. One that was away longer gets all rows instead of those that changed."""

POSITION_EVERY_US = 1_000_000

_DOWNSTREAM = frozenset(get_args(Downstream))


def _nobody(_outcome: PublishOutcome, _source: bytes | None) -> None:
    """Hosts without streams have no publishers."""


class CheckpointShelf(Protocol):
    """Where checkpoints are kept (`checkpointing.py`)."""

    def load(self, component: str, digest: str) -> tuple[Checkpoint | None, int]:
        """The newest that fits and the highest horizon acknowledged as durable (-1: none). OSError: try again later."""

    def begin(self, due: list[tuple[Hosted, PersistCheckpoint]]) -> None:
        """Write these, in the background, before the components handle another event."""


class Host(Successions):
    """`answer` tells publishers what became of their publishes."""

    def __init__(
        self,
        link: Link,
        next_epoch: Callable[[], int],
        *,
        clock: Clock | None = None,
        group: Group = nullcontext,
        answer: Answer = _nobody,
        checkpoints: CheckpointShelf | None = None,
        keep_logs: bool = True,
        trim_limit: TrimLimit = no_limit,
    ) -> None:
        super().__init__(link, clock or Clock.system(), group, answer, keep_logs=keep_logs)
        self.logs.trim_limit = trim_limit
        self._next_epoch = next_epoch
        self._checkpoints = checkpoints
        self._host_timer("")

    # Components

    def start(
        self,
        plan: Plan,
        names: Iterable[str],
        *,
        digests: dict[str, str] | None = None,
        logs: dict[str, StreamLog] | None = None,
        gates: dict[str, Gate] | None = None,
        tell: Callable[[Told], None] | None = None,
        kept: Checkpoint | None = None,
    ) -> None:
        """Run these components of the plan, in one new epoch. `kept` is for a single one that brings its own state."""
        epoch = self._next_epoch()
        begun: list[Hosted] = []
        for name in names:
            assert name not in self.hosted, f"{name} runs already"
            made = Hosted(
                plan,
                name,
                build_component(plan, name),
                (digests or {}).get(name, ""),
                (logs or {}).get(name),
                tell,
            )
            for edge in (*plan.by_name[name].in_edges, *plan.out_edges[name]):
                receiver = next(c.name for c in plan.components if edge in c.in_edges)
                self._ends[edge.name] = (edge.sender, receiver)
            self._quenches.update(standing_quenches(plan.out_edges[name], plan.by_name[name].relation))
            if made.log is not None:
                self._publishing.add(name, (gates or {}).get(name))
            self.hosted[name] = made
            begun.append(made)
        for made in begun:
            self._begin(made, epoch, kept)

    def stop(self, name: str) -> None:
        """Take this component off. What it read is not told: guests come and go."""
        gone = self.hosted.pop(name)
        self._timers.forget(name)
        self.logs.forget(name)
        for edge in gone.plan.by_name[name].in_edges:
            self._ends.pop(edge.name, None)

    def watch(self, name: str) -> None:
        """Tell what each step changes, besides deliveries."""
        hosted = self.hosted[name]
        hosted.is_watched = True
        if hosted.is_running:
            self._feed(hosted, WatchBegun())

    def _begin(self, hosted: Hosted, epoch: int, kept: Checkpoint | None = None) -> None:
        """A new incarnation. What cannot start now is tried again later, unless only a person can help."""
        name = hosted.name
        try:
            state = None if hosted.log is None else hosted.log.open(epoch)
            if hosted.log is not None and state is not None:
                self._publishing.recover(name, hosted.log, state)
        except LogError as error:
            self._cannot_go_on(hosted, str(error), for_good=isinstance(error, LogCorrupt))
            return
        acknowledged = -1
        if self._checkpoints is not None and hosted.log is None:
            try:
                kept, acknowledged = self._checkpoints.load(name, hosted.digest)
            except OSError as error:
                self._cannot_go_on(hosted, f"its checkpoint cannot be read now: {error}")
                return
        hosted.state, hosted.reason, hosted.failure = RUNNING, "", None
        hosted.rows_since_checkpoint, hosted.lost_ticks = 0, False
        hosted.positions.clear()
        if not self._restart(hosted, epoch, state, kept, acknowledged):
            return
        hosted.failed_starts = 0
        if hosted.is_watched:
            self._feed(hosted, WatchBegun())
        if hosted.has_guests:
            self._attach_guests(hosted)
        self._attach_seconds(hosted)
        level = logging.INFO if hosted.tell is None else logging.DEBUG  # leaves come and go
        log.log(level, "starts from %s", hosted.began_with, extra={"component": name, "epoch": epoch})

    def _restart(
        self, hosted: Hosted, epoch: int, state: LogState | None, kept: Checkpoint | None, acknowledged: int
    ) -> bool:
        event = Restarted(epoch, self._clock.wall_us(), kept, acknowledged, state)
        hosted.began_with = "its log" if state is not None else "nothing" if kept is None else "a checkpoint"
        try:
            instructions = hosted.component.handle(event)
        except BadCheckpoint as refusal:
            log.warning("checkpoint refused: %s", refusal, extra={"component": hosted.name})
            self.counters["checkpoints_refused"] += 1
            if kept is None:
                self._cannot_go_on(hosted, str(refusal), for_good=True)
                return False
            return self._restart(hosted, epoch, state, None, acknowledged)
        self._carry_out_all(hosted, instructions, "", None)
        return True

    def _cannot_go_on(self, hosted: Hosted, reason: str, *, for_good: bool = False) -> None:
        """This incarnation is over. Everything else goes on."""
        name = hosted.name
        self._timers.forget(name)
        self.logs.forget(name)
        hosted.reason = reason
        if for_good or hosted.stands_by:
            hosted.state = STOPPED
            log.error("has stopped: %s", reason, extra={"component": name})
            return
        hosted.state = WAITING
        delay_us = min(RESTART_DELAY_US << min(hosted.failed_starts, 16), RESTART_DELAY_US_MAX)
        hosted.failed_starts += 1
        hosted.restarts += 1
        log.warning("starts again in %d ms: %s", delay_us // 1_000, reason, extra={"component": name})
        self._timers.arm(name, RESTART, self._clock.steady_us() + delay_us)

    def _begin_again(self, hosted: Hosted) -> None:
        counters = hosted.component.counters
        hosted.component = build_component(hosted.plan, hosted.name)
        hosted.component.counters.update(counters)
        try:
            epoch = self._next_epoch()
        except LogError as error:
            self._cannot_go_on(hosted, str(error))
            return
        self._begin(hosted, epoch)

    # Guests

    def attach_guests(self, name: str) -> None:
        """Somebody outside the plan listens to this component from now on."""
        hosted = self.hosted[name]
        if not hosted.has_guests:
            hosted.has_guests = True
            if hosted.is_running:
                self._attach_guests(hosted)

    def _attach_guests(self, hosted: Hosted) -> None:
        edge = guests_edge(hosted.name)
        self._feed(hosted, ReceiverAttached(edge, Mode.PULL, every_change=True))
        if not isinstance(hosted.component, StateComponent):  # guests never hold up trimming (C5)
            self._feed(hosted, MessageArrived(edge, Durable(GUEST_EPOCH, TICK_MAX)))

    def detach_guests(self, name: str) -> None:
        """The last guest has left: nothing is made for nobody."""
        hosted = self.hosted[name]
        if hosted.has_guests:
            hosted.has_guests = False
            hosted.positions.clear()
            if hosted.is_running:
                self._feed(hosted, ReceiverDetached(guests_edge(name)))

    def _host_timer(self, name: str) -> None:
        """T2: what was current some time ago counts as acknowledged by all guests, so that tombstones can go."""
        now_us = self._clock.steady_us()
        self._timers.arm(HOST, name, now_us + POSITION_EVERY_US)
        for hosted in self.hosted.values():
            component = hosted.component
            if not (hosted.has_guests and hosted.is_running and isinstance(component, StateComponent)):
                continue
            hosted.positions.append(Position(now_us, component.epoch, component.step, component.horizon()))
            while hosted.positions and hosted.positions[0].at_us <= now_us - GUEST_GRACE_US:
                old = hosted.positions.popleft()
                ack = Ack(GUEST_EPOCH, old.epoch, old.step, old.horizon)
                self._feed(hosted, MessageArrived(guests_edge(hosted.name), ack))

    # What comes in

    def arrived(self, component: str, edge: str, message: Message, source: bytes | None) -> None:
        """A message for this component, from another process. Questions wait for their turn."""
        if component not in self.hosted:
            self.counters["message_for_nobody"] += 1
            return
        if type(message) in _DOWNSTREAM:
            self._feed_message(component, edge, message, None)
            return
        if edge.startswith(GUESTS) and isinstance(message, Upstream):
            if not isinstance(message, Curiosity | EventCuriosity):
                return  # one guest's word is not every guest's
            epoch = message.receiver_epoch
            message = replace(message, receiver_epoch=GUEST_EPOCH)
        elif isinstance(message, Curiosity | EventCuriosity):
            epoch = message.receiver_epoch
        else:
            self._feed_message(component, edge, message, None)
            return
        if not self._questions.put(component, edge, epoch, message, source):
            self.counters["questions_dropped"] += 1

    def publish(
        self,
        stream: str,
        producer: str,
        sequence: int,
        columns: Columns,
        *,
        previous: int | None = None,
        source: bytes | None = None,
    ) -> None:
        """What becomes of it is answered, now or at the end of the round."""
        event = Published(producer, sequence, columns, self._clock.wall_us(), is_checked=True)  # by `_judge`
        refusal = self._judge(stream, event, previous)
        if refusal is not None:
            self.counters[f"publish_refused.{refusal.code}"] += 1
            self._publishing.refuse(refusal, source)
            return
        hosted = self.hosted[stream]
        self._publishing.under_way(stream, producer, sequence, source)
        instructions = hosted.component.handle(event)
        for instruction in instructions:
            if type(instruction) is AppendToLog:
                self._publishing.accepted(stream, producer, sequence, columns, instruction.forgotten)
        self._carry_out_all(hosted, instructions, "", None)

    def _judge(self, stream: str, event: Published, previous: int | None) -> PublishOutcome | None:
        """Shape first: gates rely on it. A repeat is not judged again: it is in the log, or on its way."""
        hosted = self.hosted.get(stream)
        if hosted is None or not isinstance(hosted.component, StreamComponent):
            reason = f"no stream `{stream}` on this broker"
            return PublishOutcome(stream, event.producer, event.sequence, code="unknown-stream", reason=reason)
        if hosted.state != RUNNING:
            wait_ms = None if hosted.state == STOPPED else RETRY_STOPPED_MS
            return PublishOutcome(
                stream, event.producer, event.sequence, code="stopped", reason=hosted.reason, retry_after_ms=wait_ms
            )
        try:
            hosted.component.check_publish(event)
        except ProtocolError as error:
            self._refused(hosted, error)
            return PublishOutcome(stream, event.producer, event.sequence, code="shape", reason=str(error))
        if hosted.component.is_repeat(event.producer, event.sequence):
            return None
        return self._publishing.reason_to_refuse(stream, event.producer, event.sequence, previous, event.columns)

    def nudge(self, component: str, edge: str) -> None:
        """The other end of this in-edge is there (again): ask now what it has, instead of after an idle time."""
        hosted = self.hosted.get(component)
        if hosted is not None:
            edge = edge.removeprefix(SECOND) if hosted.stands_by else edge
            for timer in ("ask", "idle", "idle"):  # the first of two only notes that the edge was quiet
                self._feed(hosted, TimerFired(f"{timer}:{edge}", self._clock.wall_us()))

    # Checkpoints

    def checkpoint(self, shelf: CheckpointShelf | None = None) -> int:
        """Write checkpoints of everything that has changed; how many. `shelf`: other than in the background."""
        shelf = shelf or self._checkpoints
        assert shelf is not None
        due: list[tuple[Hosted, PersistCheckpoint]] = []
        for hosted in self.hosted.values():
            if hosted.log is not None or not hosted.is_running or hosted.stands_by:
                continue
            if not hosted.rows_since_checkpoint:
                continue
            hosted.rows_since_checkpoint = 0
            for instruction in hosted.component.handle(CheckpointDue()):
                assert isinstance(instruction, PersistCheckpoint)
                due.append((hosted, instruction))
        if due:
            shelf.begin(due)
        return len(due)

    def checkpointed(self, name: str, epoch: int, number: int, failure: str | None) -> None:
        """What became of a checkpoint that `begin` was given."""
        hosted = self.hosted.get(name)
        if hosted is None or hosted.component.epoch != epoch:
            return
        if failure is None:
            hosted.checkpoint_us = self._clock.wall_us()
            self._feed(hosted, CheckpointWritten(number))
        else:
            hosted.rows_since_checkpoint += 1
            self._feed(hosted, CheckpointFailed(number, failure))

    # Reading

    def events_quenched(self, edge: str) -> int:
        """Events that did not leave on this edge, because its receiver would drop them."""
        quench = self._quenches.get(edge)
        return 0 if quench is None else quench.events_quenched

    def coverages(self, names: Iterable[str]) -> dict[str, LineageCoverage]:
        """Of those components that run here."""
        return {
            name: hosted.component.coverage()
            for name in names
            if (hosted := self.hosted.get(name)) is not None and hosted.is_running
        }
