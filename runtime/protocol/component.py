"""The component: one transform and its relation as a pure state machine. `handle` takes an event, returns instructions.

This file has what all kinds share: dispatch, refusal, counters, edges by name, timers by name. `receiver.py` adds
in-edges; `stream.py`, `event_component.py`, `state_component.py` and `leaf.py` are the kinds. Shells call `handle` and
nothing else; whatever else is public may be read, by checks and by people, and must not be changed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import get_args

from runtime import plan as plans
from runtime.batch import Batch
from runtime.plan import Mode
from runtime.protocol.asking import jittered
from runtime.protocol.coverage import CoverageError
from runtime.protocol.errors import BadEpoch, BadRange, NotStarted, ProtocolError, UnexpectedMessage, UnknownEdge
from runtime.protocol.events import (
    ArmTimer,
    CheckpointDue,
    CheckpointFailed,
    CheckpointWritten,
    Event,
    Instruction,
    LogFailed,
    LogRead,
    LogWritten,
    MessageArrived,
    Published,
    ReceiverAttached,
    ReceiverDetached,
    Restarted,
    Send,
    Stepped,
    TimerFired,
    WatchBegun,
    WatchEnded,
)
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Message, Upstream
from runtime.protocol.out_edge import OutEdge
from runtime.protocol.validation import Place


class Component(ABC):
    """`counters` survive restarts of the object; everything else belongs to one incarnation."""

    def __init__(self, plan: plans.Plan, name: str) -> None:
        self.plan = plan.by_name[name]
        self.name = name
        self.relation = self.plan.relation
        self.tuning = self.plan.tuning
        self.lineages_count = len(plan.lineages[name])
        self.planned_out_edges = plan.out_edges[name]
        self.epoch = 0
        self.watches: set[bool] = set()  # who watches: those who want every change (False), the latest only (True)
        self.counters: Counter[str] = Counter()
        self._instructions: list[Instruction] = []

    # What shells call

    def handle(self, event: Event) -> list[Instruction]:
        """Do what the event asks for. Input no correct peer sends raises ProtocolError and changes nothing."""
        instructions: list[Instruction] = []
        self._instructions = instructions
        try:
            name = _HANDLERS.get(type(event))
            if self.epoch == 0 or name is None:
                self._check_first(event)
            getattr(self, name)(event)  # type: ignore[arg-type]  # not None, or refused
        except ProtocolError as refusal:
            self.counters[f"refused.{refusal.code}"] += 1
            raise
        except CoverageError as broken:
            self.counters[f"refused.{BadRange.code}"] += 1
            raise BadRange(self.name, type(event).__name__, str(broken)) from broken
        return instructions

    def begin_epoch(self, epoch: int) -> None:
        """C2, without a restart: for one that has told nobody anything yet, and now takes another one's place (C6)."""
        self._check_restart(Restarted(epoch))
        self.epoch = epoch

    @abstractmethod
    def coverage(self) -> LineageCoverage:
        """K: the concatenation of the in-edges' coverages, never a union or an intersection.

        Stays as it is when the component goes on, and is not to be changed: messages share it.
        """

    def horizon(self) -> int:
        return self.coverage().horizon()

    # Dispatch

    def _check_first(self, event: object) -> None:
        kind = type(event)
        if kind not in _HANDLERS:
            raise UnexpectedMessage(self.name, kind.__name__, "not an event of a component")
        if kind is not Restarted:
            raise NotStarted(self.name, kind.__name__, "the first event must be Restarted")

    def _restarted(self, event: Restarted) -> None:
        self._check_restart(event)
        self._restart(event)
        self.epoch = event.epoch
        self._started(event)

    def _fired(self, event: TimerFired) -> None:
        kind, _, edge = event.name.partition(":")
        self._timer_fired(kind, edge, event.now_us)

    def _attached(self, event: ReceiverAttached) -> None:
        self.counters["attached"] += 1
        self._attach(event.edge, event.mode, event.every_change)

    def _detached(self, event: ReceiverDetached) -> None:
        self._out_edge(event.edge)
        self._detach(event.edge)

    def _begin_watch(self, event: WatchBegun) -> None:
        self.watches.add(event.latest)
        self._watch_begun()

    def _end_watch(self, event: WatchEnded) -> None:
        self.watches.discard(event.latest)
        self._watch_ended()

    def _checkpoint_due(self, event: CheckpointDue) -> None:
        self._checkpoint()

    def _checkpoint_is_written(self, event: CheckpointWritten) -> None:
        self._checkpoint_written(event.number)

    def _checkpoint_has_failed(self, event: CheckpointFailed) -> None:
        self.counters["checkpoints_failed"] += 1
        self._checkpoint_failed(event.number)

    def _publish(self, event: Published) -> None:
        self._refuse_log_event(event)

    def _log_written(self, event: LogWritten) -> None:
        self._refuse_log_event(event)

    def _log_failed(self, event: LogFailed) -> None:
        self._refuse_log_event(event)

    def _log_read(self, event: LogRead) -> None:
        self._refuse_log_event(event)

    def _refuse_log_event(self, event: object) -> None:
        raise UnexpectedMessage(self.name, type(event).__name__, "only streams have a log")

    def _check_restart(self, event: Restarted) -> None:
        """C2: a restart always takes a new epoch."""
        Place(self.name, "Restarted").check_epoch(event.epoch)
        if event.epoch <= self.epoch:
            raise BadEpoch(self.name, "Restarted", f"epoch {event.epoch} after {self.epoch}")

    def _message_arrived(self, event: MessageArrived) -> None:
        edge, message = event.edge, event.message
        if type(message) not in _UPSTREAM:
            self._from_sender(edge, message)
            return
        assert isinstance(message, Upstream)
        out_edge = self._out_edge(edge)
        place = Place(self.name, edge)
        place.check_epoch(message.receiver_epoch)
        self._check_upstream(place, message)
        if not out_edge.meet(message.receiver_epoch):
            self.counters["dropped.replaced_receiver"] += 1
            return
        self._from_receiver(out_edge, message)

    @abstractmethod
    def _out_edge(self, edge: str) -> OutEdge:
        """The out-edge of this name, or UnknownEdge."""

    def unknown_edge(self, edge: str) -> UnknownEdge:
        return UnknownEdge(self.name, edge, "no such edge here, in this direction")

    # What each kind of component defines

    @abstractmethod
    def _restart(self, event: Restarted) -> None:
        """Replace all state of the incarnation, or refuse and leave it. `epoch` is still the old one."""

    @abstractmethod
    def _started(self, event: Restarted) -> None:
        """First instructions of the new incarnation."""

    @abstractmethod
    def _from_sender(self, edge: str, message: Message) -> None: ...

    @abstractmethod
    def _check_upstream(self, place: Place, message: Upstream) -> None:
        """Refuse what cannot be meant for this kind of relation, before anything changes."""

    @abstractmethod
    def _from_receiver(self, edge: OutEdge, message: Upstream) -> None: ...

    @abstractmethod
    def _timer_fired(self, kind: str, edge: str, now_us: int) -> None: ...

    @abstractmethod
    def _attach(self, edge: str, mode: Mode, every_change: bool) -> None: ...

    @abstractmethod
    def _detach(self, edge: str) -> None: ...

    def _watch_begun(self) -> None:  # noqa: B027
        """From now on Stepped is emitted for every step."""

    def _watch_ended(self) -> None:  # noqa: B027
        """Somebody watches no more."""

    def _checkpoint(self) -> None:  # noqa: B027
        """Streams have none: their log is what counts."""

    def _checkpoint_written(self, number: int) -> None: ...  # noqa: B027

    def _checkpoint_failed(self, number: int) -> None: ...  # noqa: B027

    # Instructions

    def emit(self, instruction: Instruction) -> None:
        self._instructions.append(instruction)

    def send(self, edge: str, message: Message) -> None:
        self.counters[_SENT[type(message)]] += 1
        self._instructions.append(Send(edge, message))

    def tell_watchers(self, rows: Batch) -> None:
        """Events: each is a row of its own, so that all changes and the latest are the same."""
        horizon = self.horizon()
        self._instructions.extend(Stepped(rows, latest, horizon) for latest in self.watches)

    def arm(self, name: str, delay_us: int) -> None:
        self._instructions.append(ArmTimer(name, delay_us))

    def arm_push(self, edge: OutEdge) -> None:
        """Push: what is not acknowledged is repeated, ever more slowly."""
        delay_us = min(self.tuning.push_us << min(edge.push_attempt, 20), self.tuning.ask_delay_us_max)
        edge.is_pushing = True
        self.arm(f"push:{edge.name}", jittered(delay_us, self.name, edge.name, edge.push_attempt))


_HANDLERS: dict[type, str] = {
    MessageArrived: "_message_arrived",
    Published: "_publish",
    LogWritten: "_log_written",
    LogRead: "_log_read",
    LogFailed: "_log_failed",
    TimerFired: "_fired",
    Restarted: "_restarted",
    ReceiverAttached: "_attached",
    ReceiverDetached: "_detached",
    WatchBegun: "_begin_watch",
    WatchEnded: "_end_watch",
    CheckpointDue: "_checkpoint_due",
    CheckpointWritten: "_checkpoint_is_written",
    CheckpointFailed: "_checkpoint_has_failed",
}
"""The method that does what each kind of event asks for."""

_UPSTREAM = frozenset(get_args(Upstream))

_SENT = {kind: f"sent.{kind.__name__}" for kind in get_args(Message)}
"""The counter of each kind of message."""
