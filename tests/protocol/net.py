"""A network driven by hand: components of a plan, a mailbox that the test delivers from, logs in memory.

No simulator: a test says which message arrives, which is lost, who restarts from what. Log writes succeed at once
unless a test holds them back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from runtime.batch import Batch
from runtime.operators.copy import CopySpec
from runtime.plan import (
    Column,
    ColumnKind,
    Component,
    Emit,
    InEdge,
    Mode,
    OperatorSpec,
    Plan,
    Relation,
    StreamSpec,
    Tuning,
    ValueType,
)
from runtime.protocol.build import AnyComponent, build_component
from runtime.protocol.checkpoint import Checkpoint
from runtime.protocol.coverage import Coverage
from runtime.protocol.event_in_edge import EventInEdge
from runtime.protocol.events import (
    AcknowledgePublish,
    AppendToLog,
    ArmTimer,
    CheckpointDue,
    CheckpointWritten,
    Event,
    Instruction,
    LogRead,
    LogState,
    LogWritten,
    MessageArrived,
    PersistCheckpoint,
    Published,
    ReadLog,
    ReserveSilence,
    Restarted,
    Send,
    TimerFired,
    TrimLog,
)
from runtime.protocol.messages import Message, Upstream
from runtime.protocol.receiver import Receiver
from runtime.protocol.state_component import StateComponent
from runtime.protocol.state_in_edge import StateInEdge
from runtime.values import Value

M = TypeVar("M")

EVENT_COLUMNS = (Column("tick"), Column("k", ValueType.TEXT), Column("v", contribution_max=100))
TOTALS = Relation("totals", (Column("k", ValueType.TEXT), Column("v", kind=ColumnKind.UP, contribution_max=100)), 1)


def stream(name: str, residue: int = 0, modulus: int = 1, tuning: Tuning | None = None) -> Component:
    relation = Relation(name, EVENT_COLUMNS, 1, is_event=True)
    return Component(name, relation, StreamSpec(residue, modulus, ticks_per_us=1), tuning=tuning or Tuning())


def state(
    name: str,
    operator: OperatorSpec,
    *senders: str,
    relation: Relation = TOTALS,
    emit: Emit | None = None,
    tuning: Tuning | None = None,
    mode: Mode = Mode.PULL,
) -> Component:
    """A component whose edges are called `sender>name`, or `sender>name.1` and so on after the first."""
    edges = tuple(InEdge(f"{s}>{name}" + (f".{i}" if i else ""), s, mode) for i, s in enumerate(senders))
    return Component(name, relation, operator, edges, emit, tuning or Tuning())


def leaf(name: str, sender: str, relation: Relation = TOTALS, emit: Emit = Emit.CHANGES) -> Component:
    return state(name, CopySpec(), sender, relation=relation, emit=emit)


@dataclass
class Log:
    rows: dict[int, tuple[Value, ...]] = field(default_factory=dict)
    publishes: list[tuple[str, int, tuple[int, ...]]] = field(default_factory=list)
    reserved: int = -1
    trimmed: int = -1

    def state(self) -> LogState:
        return LogState(max(self.rows, default=-1), self.reserved, self.trimmed, tuple(self.publishes))

    def read(self, edge: str, asked: Coverage) -> LogRead:
        gone = asked.intersection(Coverage.prefix(self.trimmed))
        cover = asked.difference(gone)
        ticks = [tick for tick in sorted(self.rows) if tick in cover]
        columns = [[self.rows[tick][i] for tick in ticks] for i in range(2)]
        return LogRead(edge, cover, Batch.events(ticks, columns), gone)


@dataclass
class Mail:
    edge: str
    to: str
    message: Message


class Net:
    def __init__(self, *components: Component, start: bool = True) -> None:
        self.plan = Plan(components)
        self.ends = {e.name: (e.sender, c.name) for c in components for e in c.in_edges}
        self.components: dict[str, AnyComponent] = {c.name: build_component(self.plan, c.name) for c in components}
        self.logs = {c.name: Log() for c in components if c.is_stream}
        self.epochs = dict.fromkeys(self.components, 0)
        self.mail: list[Mail] = []
        self.done: dict[str, list[Instruction]] = {name: [] for name in self.components}
        self.timers: dict[str, dict[str, int]] = {name: {} for name in self.components}
        self.holds_log = False
        self.sequence = 0
        if start:
            for name in self.components:
                self.restart(name)
            self.settle()

    # Doing

    def handle(self, name: str, event: Event) -> list[Instruction]:
        instructions = self.components[name].handle(event)
        for instruction in instructions:
            self._carry_out(name, instruction)
        return instructions

    def _carry_out(self, name: str, instruction: Instruction) -> None:
        self.done[name].append(instruction)
        match instruction:
            case Send(edge, message):
                sender, receiver = self.ends[edge]
                self.mail.append(Mail(edge, sender if isinstance(message, Upstream) else receiver, message))
            case ArmTimer(timer, delay_us):
                self.timers[name][timer] = delay_us
            case AppendToLog(_, number, rows, producer, sequence, forgotten):
                if not self.holds_log:
                    log = self.logs[name]
                    log.publishes = [one for one in log.publishes if one[0] not in forgotten]
                    log.rows.update((int(str(row[0])), row[1:]) for row in rows.rows())
                    log.publishes.append((producer, sequence, tuple(rows.max_ticks)))
                    self.handle(name, LogWritten(number))
            case ReserveSilence(_, number, tick):
                if not self.holds_log:
                    self.logs[name].reserved = tick
                    self.handle(name, LogWritten(number))
            case ReadLog(edge, ticks):
                self.handle(name, self.logs[name].read(edge, ticks))
            case TrimLog(tick):
                self.logs[name].trimmed = tick
            case _:
                pass

    def restart(self, name: str, checkpoint: Checkpoint | None = None, acknowledged: int = -1) -> None:
        self.epochs[name] += 1
        log = self.logs[name].state() if name in self.logs else None
        self.handle(
            name,
            Restarted(self.epochs[name], checkpoint=checkpoint, acknowledged_horizon=acknowledged, log=log),
        )

    def publish(self, name: str, at: int, k: str = "A", v: int = 1) -> tuple[int, ...]:
        self.sequence += 1
        self.handle(name, Published("p", self.sequence, ([k], [v]), at))
        acks = (done for done in reversed(self.done[name]) if isinstance(done, AcknowledgePublish))
        return next((tuple(ack.ticks) for ack in acks), ())

    def silence(self, name: str, up_to: int) -> None:
        """Let the stream promise silence up to and including a tick."""
        self.handle(name, TimerFired("silence", up_to + 1))

    # The mailbox

    def find(self, kind: type[M], edge: str | None = None) -> list[M]:
        return [m.message for m in self.mail if isinstance(m.message, kind) and edge in (None, m.edge)]

    def take(self, edge: str | None = None, kind: type | None = None, count: int | None = None) -> list[Mail]:
        """Remove matching messages from the mailbox: what a loss does, or a delay if the test keeps them."""
        taken: list[Mail] = []
        rest: list[Mail] = []
        for mail in self.mail:
            fits = edge in (None, mail.edge) and (kind is None or isinstance(mail.message, kind))
            (taken if fits and (count is None or len(taken) < count) else rest).append(mail)
        self.mail = rest
        return taken

    def deliver(self, *mails: Mail) -> None:
        for mail in mails:
            self.handle(mail.to, MessageArrived(mail.edge, mail.message))

    def pass_on(self, edge: str | None = None, kind: type | None = None, count: int | None = None) -> None:
        self.deliver(*self.take(edge, kind, count))

    def settle(self, without: Callable[[Mail], bool] | None = None) -> None:
        """Deliver everything, and what follows from it, in order; messages for which `without` holds are lost."""
        for _ in range(10_000):
            if not self.mail:
                return
            mail = self.mail.pop(0)
            if without is None or not without(mail):
                self.deliver(mail)
        raise AssertionError("traffic does not settle")

    def sync(self, name: str, edge: str | None = None) -> None:
        """The component asks on its in-edges (as its idle timer would), and the answers arrive."""
        for in_edge in self.receiver(name).in_edges.values():
            if edge in (None, in_edge.name):
                in_edge.progressed = False
                in_edge.asker.answered()
                self.handle(name, TimerFired(f"idle:{in_edge.name}", 0))
        self.settle()

    def acknowledge(self, name: str) -> None:
        """Every in-edge of the component says what it has."""
        for in_edge in self.receiver(name).in_edges.values():
            if isinstance(in_edge, StateInEdge):
                in_edge.acked = None
            self.handle(name, TimerFired(f"ack:{in_edge.name}", 0))
        self.settle()

    def checkpoint(self, name: str, *, written: bool = True) -> Checkpoint:
        done = self.handle(name, CheckpointDue())
        persist = next(i for i in done if isinstance(i, PersistCheckpoint))
        checkpoint = Checkpoint.from_wire(persist.make().to_wire())
        if written:
            self.handle(name, CheckpointWritten(persist.number))
        return checkpoint

    # Looking

    def state(self, name: str) -> StateComponent:
        component = self.components[name]
        assert isinstance(component, StateComponent)
        return component

    def receiver(self, name: str) -> Receiver:
        component = self.components[name]
        assert isinstance(component, Receiver)
        return component

    def event_edge(self, name: str, edge: str) -> EventInEdge:
        found = self.receiver(name).in_edges[edge]
        assert isinstance(found, EventInEdge)
        return found

    def state_edge(self, name: str, edge: str) -> StateInEdge:
        found = self.receiver(name).in_edges[edge]
        assert isinstance(found, StateInEdge)
        return found

    def sent(self, name: str, kind: type[M]) -> list[M]:
        """All messages of a kind that a component has sent since `done` was cleared."""
        return [i.message for i in self.done[name] if isinstance(i, Send) and isinstance(i.message, kind)]

    def did(self, name: str, kind: type[M]) -> list[M]:
        return [i for i in self.done[name] if isinstance(i, kind)]

    def rows(self, name: str) -> dict[Value, tuple[Value, ...]]:
        """Visible rows by the first key column."""
        rows = self.state(name).operator.rows
        return {rows.key_at(slot)[0]: rows.row_at(slot)[1:] for slot in rows.visible_slots()}

    def covers(self, name: str) -> str:
        return self.components[name].coverage().show()
