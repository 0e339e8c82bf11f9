"""Components in one process: started when somebody needs them, joined by one queue, logged where the caller says.

`smile/system.py` owns one, under its lock. The engine does what a broker's shell does (events in, instructions out),
with three simplifications that hold because nothing is lost between components here: no timer fires by itself, a
message goes straight into the queue, and a component that has read its streams' logs needs no further care.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from runtime.batch import Batch
from runtime.embedded.outcomes import LOG_FAILED, Failure, NotOpened, PublishRefused, whole
from runtime.embedded.tuning import BATCH_ROWS_MAX, EMBEDDED
from runtime.log.stream_log import LogError, LogFenced, StreamLog
from runtime.plan import Component, Plan
from runtime.protocol.build import AnyComponent, build_component
from runtime.protocol.event_component import EventComponent
from runtime.protocol.events import (
    AcknowledgePublish,
    AppendToLog,
    ArmTimer,
    Deliver,
    Event,
    Instruction,
    LogFailed,
    LogRead,
    LogState,
    LogWritten,
    MessageArrived,
    Published,
    ReadLog,
    ReceiverAttached,
    ReceiverDetached,
    RefusePublish,
    ReportFailed,
    ReportTrimmed,
    ReserveSilence,
    Restarted,
    RestartMe,
    Send,
    Stepped,
    TimerFired,
    TrimLog,
    WatchBegun,
    WatchEnded,
)
from runtime.protocol.leaf import Leaf
from runtime.protocol.messages import Durable, Message
from runtime.protocol.state_component import StateComponent
from runtime.protocol.stream import StreamComponent
from runtime.values import Value

PRODUCER = "embedded"
CATCH_UP_ROUNDS_IDLE_MAX = 8
"""A component that still lacks something after so many questions without progress is our own mistake."""

CLEAN_EVERY = 1_024
CLEAN_EVERY_ROWS = 65_536
"""After so many publishes, or rows, receivers acknowledge, so that their senders can forget."""

Receive = Callable[[Deliver], None]
See = Callable[[Batch, int], None]


class Engine:
    """`components` are all that could be needed, in reading order; `logs` has one log for each stream among them.

    Everything starts in one new epoch; `next_epoch` gives it, and further ones to streams that start again. `shown` are
    the components whose rows somebody may ask for (`rows_of`): those of events keep all of them.
    """

    def __init__(
        self,
        components: Mapping[str, Component],
        logs: Mapping[str, StreamLog],
        now_us: Callable[[], int],
        next_epoch: Callable[[], int],
        shown: Collection[str],
    ) -> None:
        self.logs = logs
        self._shown = frozenset(shown)
        self.running: dict[str, AnyComponent] = {}
        self.failures: dict[str, Failure] = {}
        self.unfinished: str | None = None
        """What cut a call short in the middle of its work. Then nothing here is known to be true, and nothing may be
        asked any more; the logs have what was acknowledged. WORKING while a call works, which then was not cut short
        if that call is one of those that still run."""
        self._plans = {name: replace(component, tuning=EMBEDDED) for name, component in components.items()}
        self._now_us = now_us
        self._next_epoch = next_epoch
        self._epoch = next_epoch()
        self._queue: deque[tuple[AnyComponent, str, Message]] = deque()
        self._ends: dict[str, tuple[str, str]] = {}  # edge -> (sender, receiver)
        self._acks: dict[tuple[str, str], None] = {}  # (component, timer): acknowledgements that wait
        self._receivers: dict[str, Receive] = {}  # leaf -> who is told
        self._watchers: dict[tuple[str, bool], list[See]] = {}  # (component, latest only)
        self._wants_horizon: dict[str, tuple[str, ...]] = {}  # leaf -> its streams
        self._sequences: dict[str, int] = {}
        self._outcomes: list[AcknowledgePublish | RefusePublish] = []  # of the publish under way
        self._publishes = 0
        self._rows = 0
        self._starting: str | None = None  # the component that catches up now, on behalf of which logs are read
        self._stopped: dict[str, str] = {}  # streams whose log could not be opened again after a failed write: why
        self._carriers = self._instruction_carriers()

    # Starting

    @whole
    def start(self, name: str) -> None:
        """Run this component and all that it reads, and let it catch up with what is already published."""
        needed = self.needed_for(name)
        missing = [component for component in needed if component.name not in self.running]
        for component in needed if missing else ():  # what starts has to read the logs
            if component.name in self._stopped and not self._is_reopened(component.name):
                raise NotOpened(self._stopped[component.name])
        for component in missing:
            self._start(component)

    def needed_for(self, name: str) -> tuple[Component, ...]:
        """This component and all that it reads, in reading order."""
        wanted: dict[str, None] = {}

        def visit(one: str) -> None:
            if one not in wanted:
                for edge in self._plans[one].in_edges:
                    visit(edge.sender)
                wanted[one] = None

        visit(name)
        return tuple(self._plans[one] for one in wanted)

    def _start(self, component: Component) -> None:
        """Its plan ends with itself: receivers are attached one by one, when they start."""
        log = self._opened(component.name) if component.is_stream else None
        self._starting = component.name
        made = build_component(Plan(self.needed_for(component.name)), component.name)
        self.running[component.name] = made
        for edge in component.in_edges:
            self._ends[edge.name] = (edge.sender, component.name)
            self._feed(self.running[edge.sender], ReceiverAttached(edge.name))
        self._feed(made, Restarted(self._epoch, self._now_us(), log=log))
        if component.is_stream:  # silence before the first event, so that views of nothing are known too
            self._feed(made, TimerFired("silence", 1))
        self.drain()
        self._catch_up(made)
        self._starting = None

    def _opened(self, stream: str) -> LogState:
        try:
            log = self.logs[stream].open(self._epoch)
        except LogError as error:
            raise NotOpened(str(error)) from error
        newest = max((number for _, number, _ in log.publishes), default=-1)
        self._sequences[stream] = max(self._sequences.get(stream, 0), newest + 1)
        return log

    def _catch_up(self, component: AnyComponent) -> None:
        """A log answers in pieces; whoever lacks the rest asks again at once instead of after an idle time."""
        idle_rounds = 0
        while self.failure_of(component.name) is None and not self.is_caught_up(component):
            before = component.coverage().copy()
            for between in self.needed_for(component.name):  # they pass on what they no longer hold, a piece at a time
                passing = self.running[between.name]
                if isinstance(passing, EventComponent) and passing is not component:
                    for edge in between.in_edges:
                        self._feed(passing, TimerFired(f"ask:{edge.name}", self._now_us()))
            for edge in component.plan.in_edges:
                for timer in ("ask", "idle", "idle"):  # the first of two only notes that the edge was quiet
                    self._feed(component, TimerFired(f"{timer}:{edge.name}", self._now_us()))
            self.drain()
            idle_rounds = 0 if component.coverage() != before else idle_rounds + 1
            assert idle_rounds < CATCH_UP_ROUNDS_IDLE_MAX, f"{component.name} does not catch up with what it reads"

    def is_caught_up(self, component: AnyComponent) -> bool:
        """Does it cover all that its senders cover?"""
        if isinstance(component, StreamComponent):
            return True
        return all(
            component.in_edges[edge.name].coverage.contains(self.running[edge.sender].coverage())
            for edge in component.plan.in_edges
        )

    # Leaves

    @whole
    def attach(self, leaf: Component, receive: Receive, *, wants_horizon: bool) -> Leaf:
        """Start a subscriber's leaf; it delivers to `receive`, from inside `drain`. The snapshot comes at once."""
        (edge,) = leaf.in_edges
        self.start(edge.sender)
        self._plans[leaf.name] = replace(leaf, tuning=EMBEDDED)
        self._receivers[leaf.name] = receive
        if wants_horizon:
            streams = (one.name for one in self.needed_for(leaf.name) if one.is_stream)
            self._wants_horizon[leaf.name] = tuple(streams)
        self._start(self._plans[leaf.name])
        self.drain()
        made = self.running[leaf.name]
        assert isinstance(made, Leaf)
        return made

    @whole
    def detach(self, leaf: str) -> None:
        """Nobody listens to this leaf any more. What it read goes on running."""
        if leaf not in self.running:
            return
        for edge in self._plans[leaf].in_edges:
            self._feed(self.running[edge.sender], ReceiverDetached(edge.name))
            del self._ends[edge.name]
        del self.running[leaf], self._plans[leaf], self._receivers[leaf]
        self._wants_horizon.pop(leaf, None)
        self.failures.pop(leaf, None)
        self._acks = {ack: None for ack in self._acks if ack[0] != leaf}

    # Watching

    @whole
    def watch(self, name: str, see: See, *, latest: bool = False) -> None:
        """Tell `see`, from inside `drain`, what each step of this component changes; no copy of its rows is kept.

        `latest`: how the rows are after the step, each once, instead of every change.
        """
        self.start(name)
        watchers = self._watchers.setdefault((name, latest), [])
        if not watchers:
            self._feed(self.running[name], WatchBegun(latest))
        watchers.append(see)

    @whole
    def unwatch(self, name: str, see: See, *, latest: bool = False) -> None:
        watchers = self._watchers[name, latest]
        watchers.remove(see)
        if not watchers:
            del self._watchers[name, latest]
            self._feed(self.running[name], WatchEnded(latest))

    # Publishing

    @whole
    def publish(self, stream: str, columns: tuple[Sequence[Value], ...]) -> Sequence[int]:
        """Log these rows and put what follows into the queue; `drain` does it. The ticks are durable now."""
        if stream not in self.running:
            self.start(stream)
        if stream in self._stopped and not self._is_reopened(stream):
            raise PublishRefused(self._stopped[stream], uncertain=False)
        sequence = self._sequences[stream]
        self._sequences[stream] = sequence + 1  # never the same again: an uncertain publish may be in the log
        self._publishes += 1
        self._rows += len(columns[0]) if columns else 1
        self._feed(self.running[stream], Published(PRODUCER, sequence, columns, self._now_us()))
        outcome = self._outcomes.pop()  # a log in this process answers at once
        if isinstance(outcome, RefusePublish):
            raise PublishRefused(outcome.reason, outcome.uncertain)
        return outcome.ticks

    # Work

    @whole
    def drain(self) -> None:
        """Carry messages until there are none, then let horizons advance for those who asked for that."""
        self._work()
        if self._wants_horizon:
            self._advance_horizons({stream for streams in self._wants_horizon.values() for stream in streams})
        if self._publishes >= CLEAN_EVERY or self._rows >= CLEAN_EVERY_ROWS:
            self.clean()

    def _work(self) -> None:
        queue, running, ends = self._queue, self.running, self._ends
        while queue:
            component, edge, message = queue.popleft()
            if running.get(component.name) is component and edge in ends:  # it may have left meanwhile
                self._feed(component, MessageArrived(edge, message))

    def _advance_horizons(self, streams: set[str]) -> None:
        """Silence on streams that lag behind the newest event, so that rows can be known to be exact or final."""
        known = [component for name in streams if isinstance(component := self.running[name], StreamComponent)]
        newest = max(component.covered_tick for component in known)
        for component in known:
            if component.covered_tick < newest:
                self._feed(component, TimerFired("silence", newest // component.spec.ticks_per_us + 1))
        self._work()

    @whole
    def clean(self) -> None:
        """Acknowledge everywhere, so that tombstones and events that everybody has can be forgotten."""
        self._publishes = self._rows = 0
        streams = {name for name, component in self.running.items() if isinstance(component, StreamComponent)}
        if streams:
            self._advance_horizons(streams)
        acks, self._acks = self._acks, {}
        for name, timer in acks:
            if name in self.running:
                self._feed(self.running[name], TimerFired(timer, self._now_us()))
        for component in self.running.values():
            self._forget_events(component)
        self._work()

    def _forget_events(self, component: AnyComponent) -> None:
        """C5, for what is between a stream and its views: in one process nobody ever falls back, and whoever starts
        later gets the events from the log, computed again."""
        if isinstance(component, StreamComponent):
            return
        has_failed = component.name in self.failures  # for good: it will not ask for anything
        for edge in component.in_edges.values():
            sender = self.running[self._ends[edge.name][0]]
            if isinstance(sender, EventComponent) and sender.name not in self._shown:
                horizon = sender.horizon() if has_failed else edge.coverage.horizon()
                self._feed(sender, MessageArrived(edge.name, Durable(component.epoch, horizon)))

    def _feed(self, component: AnyComponent, event: Event) -> None:
        name = component.name
        if name in self.failures:
            return
        for instruction in component.handle(event):
            if type(instruction) is Send:
                sender, receiver = self._ends[instruction.edge]
                target = self.running.get(receiver if name == sender else sender)
                if target is not None:
                    self._queue.append((target, instruction.edge, instruction.message))
            else:
                self._carriers[type(instruction)](component, instruction)

    def _instruction_carriers(self) -> dict[type, Callable[[AnyComponent, Instruction], None]]:
        carriers: Any = {  # each takes exactly the type it is listed under
            Stepped: self._stepped,
            Deliver: self._deliver,
            ArmTimer: self._arm,
            AppendToLog: self._append,
            ReserveSilence: self._reserve,
            ReadLog: self._read,
            TrimLog: self._trim,
            AcknowledgePublish: self._answered,
            RefusePublish: self._answered,
            ReportFailed: self._failed,
            ReportTrimmed: self._lost,
            RestartMe: self._restart_stream,
        }
        return dict(carriers)

    def _stepped(self, component: AnyComponent, step: Stepped) -> None:
        for see in self._watchers[component.name, step.latest]:
            see(step.rows, step.horizon)

    def _deliver(self, component: AnyComponent, told: Deliver) -> None:
        self._receivers[component.name](told)

    def _arm(self, component: AnyComponent, arm: ArmTimer) -> None:
        if arm.name.startswith("ack:"):
            self._acks[component.name, arm.name] = None

    def _answered(self, _: AnyComponent, answer: AcknowledgePublish | RefusePublish) -> None:
        self._outcomes.append(answer)

    def _failed(self, component: AnyComponent, failed: ReportFailed) -> None:
        self.failures[component.name] = Failure(component.name, failed.code, failed.reason)

    def _lost(self, component: AnyComponent, report: ReportTrimmed) -> None:
        """In one process nothing is trimmed, so a repair has lost them: what lacks them cannot be known."""
        sender, _ = self._ends[report.edge]
        reason = f"events of `{sender}` are lost, at ticks {report.ranges}"
        self.failures[component.name] = Failure(component.name, "lost", reason)

    # Logs

    def _append(self, component: AnyComponent, append: AppendToLog) -> None:
        try:
            log = self.logs[component.name]
            log.append(append.epoch, append.rows, append.producer, append.sequence, append.forgotten)
        except LogError as error:
            self._write_failed(component, error)
        else:
            self._feed(component, LogWritten(append.number))

    def _reserve(self, component: AnyComponent, reserve: ReserveSilence) -> None:
        try:
            self.logs[component.name].reserve(reserve.epoch, reserve.tick)
        except LogError as error:
            self._write_failed(component, error)
        else:
            self._feed(component, LogWritten(reserve.number))

    def _write_failed(self, component: AnyComponent, error: LogError) -> None:
        self._feed(component, LogFailed(str(error), isinstance(error, LogFenced)))

    def _read(self, component: AnyComponent, read: ReadLog) -> None:
        try:
            cover, rows, trimmed = self.logs[component.name].read(read.ticks, read.rows_max)
        except LogError as error:  # whoever needs it cannot be right without it; others may never do
            receiver = self._starting or self._ends[read.edge][1]
            self.failures[receiver] = Failure(receiver, LOG_FAILED, str(error))
        else:
            self._feed(component, LogRead(read.edge, cover, rows, trimmed))

    def _trim(self, component: AnyComponent, trim: TrimLog) -> None:
        self.logs[component.name].trim(trim.tick)

    def _restart_stream(self, component: AnyComponent, _: RestartMe) -> None:
        """After a failed write only the log knows what is durable; receivers keep what they have."""
        name = component.name
        made = build_component(Plan((self._plans[name],)), name)
        try:
            self._epoch = self._next_epoch()
            log = self.logs[name].open(self._epoch)
        except LogError as error:  # a full disk, say; what is shown stays true, and the next call tries again
            self._stopped[name] = str(error)
            return
        self._stopped.pop(name, None)
        self.running[name] = made
        self._feed(made, Restarted(self._epoch, self._now_us(), log=log))
        for latest in component.watches:
            self._feed(made, WatchBegun(latest))
            missed = made.coverage().difference(component.coverage())[0]  # logged, though nobody was told
            rows = self.logs[name].read(missed, BATCH_ROWS_MAX)[1]
            if len(rows):
                self._stepped(made, Stepped(rows, latest, made.horizon()))
        receivers = {edge: receiver for edge, (sender, receiver) in self._ends.items() if sender == name}
        for edge in receivers:
            self._feed(made, ReceiverAttached(edge))
        for receiver in receivers.values():
            self._catch_up(self.running[receiver])

    def _is_reopened(self, stream: str) -> bool:
        """The log of a stream that has stopped, tried again."""
        self._restart_stream(self.running[stream], RestartMe(self._stopped[stream]))
        return stream not in self._stopped

    # Reading

    def failure_of(self, name: str) -> Failure | None:
        """Why this component, or one that it reads, has stopped; None if it has not."""
        for component in self.needed_for(name):
            if component.name in self.failures:
                return self.failures[component.name]
        return None

    def rows_of(self, name: str) -> Batch:
        """The visible rows of a running component, in no particular order."""
        component = self.running[name]
        if isinstance(component, StateComponent):
            table = component.operator.rows
            return table.select(table.visible_slots())
        if isinstance(component, EventComponent):
            return component.held.select(component.coverage())
        return Batch.concat([Batch.empty(component.relation.width, events=True), *self.history(name)])

    def horizon_of(self, name: str) -> int:
        return self.running[name].horizon()

    def history(self, stream: str, rows_max: int = 1 << 62) -> Iterator[Batch]:
        """All events of a running stream, about `rows_max` at a time."""
        wanted = self.running[stream].coverage()[0]
        while wanted:
            cover, rows, trimmed = self.logs[stream].read(wanted, rows_max)
            wanted = wanted.difference(cover).difference(trimmed)
            yield rows
