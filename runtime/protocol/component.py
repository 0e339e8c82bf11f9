"""The component: one transform and its relation as a pure state machine. `handle` takes an event, returns instructions.

This file has what all kinds share: dispatch, refusal, counters, edges by name, timers by name. `receiver.py` adds
in-edges; `stream.py`, `event_component.py`, `state_component.py` and `leaf.py` are the kinds. Shells call `handle` and
nothing else; whatever else is public may be read, by checks and by people, and must not be changed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter

from runtime import plan as plans
from runtime.plan import Mode
from runtime.protocol.asking import jittered
from runtime.protocol.coverage import CoverageError, LineageCoverage
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
    TimerFired,
    WatchBegun,
    WatchEnded,
)
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
        self.is_watched = False
        self.counters: Counter[str] = Counter()
        self._instructions: list[Instruction] = []

    # What shells call

    def handle(self, event: Event) -> list[Instruction]:
        """Do what the event asks for. Input no correct peer sends raises ProtocolError and changes nothing."""
        self._instructions = []
        try:
            self._dispatch(event)
        except ProtocolError as refusal:
            self.counters[f"refused.{refusal.code}"] += 1
            raise
        except CoverageError as broken:
            self.counters[f"refused.{BadRange.code}"] += 1
            raise BadRange(self.name, type(event).__name__, str(broken)) from broken
        instructions, self._instructions = self._instructions, []
        return instructions

    @abstractmethod
    def coverage(self) -> LineageCoverage:
        """K: the concatenation of the in-edges' coverages, never a union or an intersection.

        Stays as it is when the component goes on, and is not to be changed: messages share it.
        """

    def horizon(self) -> int:
        return self.coverage().horizon()

    # Dispatch

    def _dispatch(self, event: Event) -> None:
        if isinstance(event, Restarted):
            self._check_restart(event)
            self._restart(event)
            self.epoch = event.epoch
            self._started(event)
            return
        if self.epoch == 0:
            raise NotStarted(self.name, type(event).__name__, "the first event must be Restarted")
        match event:
            case MessageArrived(edge, message):
                self._message_arrived(edge, message)
            case TimerFired(name, now_us):
                kind, _, edge = name.partition(":")
                self._timer_fired(kind, edge, now_us)
            case ReceiverAttached(edge, mode, every_change):
                self.counters["attached"] += 1
                self._attach(edge, mode, every_change)
            case ReceiverDetached(edge):
                self._out_edge(edge)
                self._detach(edge)
            case WatchBegun():
                self.is_watched = True
                self._watch_begun()
            case WatchEnded():
                self.is_watched = False
            case CheckpointDue():
                self._checkpoint()
            case CheckpointWritten(number):
                self._checkpoint_written(number)
            case CheckpointFailed(number):
                self.counters["checkpoints_failed"] += 1
                self._checkpoint_failed(number)
            case Published() | LogWritten() | LogFailed() | LogRead():
                self._log_event(event)
            case _:
                raise UnexpectedMessage(self.name, type(event).__name__, "not an event of a component")

    def _check_restart(self, event: Restarted) -> None:
        """C2: a restart always takes a new epoch."""
        Place(self.name, "Restarted").check_epoch(event.epoch)
        if event.epoch <= self.epoch:
            raise BadEpoch(self.name, "Restarted", f"epoch {event.epoch} after {self.epoch}")

    def _message_arrived(self, edge: str, message: Message) -> None:
        if isinstance(message, Upstream):
            out_edge = self._out_edge(edge)
            place = Place(self.name, edge)
            place.check_epoch(message.receiver_epoch)
            self._check_upstream(place, message)
            if not out_edge.meet(message.receiver_epoch):
                self.counters["dropped.replaced_receiver"] += 1
                return
            self._from_receiver(out_edge, message)
        else:
            self._from_sender(edge, message)

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

    def _checkpoint(self) -> None:  # noqa: B027
        """Streams have none: their log is what counts."""

    def _checkpoint_written(self, number: int) -> None: ...  # noqa: B027

    def _checkpoint_failed(self, number: int) -> None: ...  # noqa: B027

    def _log_event(self, event: Published | LogWritten | LogFailed | LogRead) -> None:
        raise UnexpectedMessage(self.name, type(event).__name__, "only streams have a log")

    # Instructions

    def emit(self, instruction: Instruction) -> None:
        self._instructions.append(instruction)

    def send(self, edge: str, message: Message) -> None:
        self.counters[f"sent.{type(message).__name__}"] += 1
        self._instructions.append(Send(edge, message))

    def arm(self, name: str, delay_us: int) -> None:
        self._instructions.append(ArmTimer(name, delay_us))

    def arm_push(self, edge: OutEdge) -> None:
        """Push: what is not acknowledged is repeated, ever more slowly."""
        delay_us = min(self.tuning.push_us << min(edge.push_attempt, 20), self.tuning.ask_delay_us_max)
        edge.is_pushing = True
        self.arm(f"push:{edge.name}", jittered(delay_us, self.name, edge.name, edge.push_attempt))
