"""The receiving half of a component that has in-edges: asking, idle polling, acknowledging, checkpoints.

Event and state components build on it. Timers: `ask:<edge>` repeats a question, `idle:<edge>` polls a quiet edge
(pull), `ack:<edge>` gathers acknowledgements, `checkpoint` writes one now and then.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from runtime import plan as plans
from runtime.batch import Batch
from runtime.operators.errors import OperatorError
from runtime.plan import Mode
from runtime.protocol.asking import Asker, jittered
from runtime.protocol.checkpoint import Checkpoint, EdgeCheckpoint
from runtime.protocol.component import Component
from runtime.protocol.coverage import TICK_MAX
from runtime.protocol.errors import BadCheckpoint, UnexpectedMessage
from runtime.protocol.event_in_edge import EventInEdge
from runtime.protocol.events import PersistCheckpoint, ReportFailed, ReportTrimmed, Restarted
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import NO_EPOCH, Ack, Curiosity, Durable, EventAck, EventCuriosity, Events, Trimmed
from runtime.protocol.state_in_edge import StateInEdge
from runtime.protocol.validation import Place

AnyInEdge = EventInEdge | StateInEdge


@dataclass(frozen=True, slots=True)
class FailedEvents:
    """Ticks of an in-edge that were there and could not be computed: where the component stands until they can."""

    edge: str
    ticks: LineageCoverage

    def are_followed_by(self, edge: str, novel: LineageCoverage) -> bool:
        """Is there anything in this that comes neither before nor with what failed?"""
        return edge != self.edge or any(
            part.highest() > last.highest() for part, last in zip(novel, self.ticks, strict=True)
        )


class Receiver(Component):
    """`in_edges` by name, in plan order."""

    def __init__(self, plan: plans.Plan, name: str) -> None:
        super().__init__(plan, name)
        self._senders = {edge.name: plan.by_name[edge.sender].relation for edge in self.plan.in_edges}
        self._lineages_counts = {edge.name: len(plan.lineages[edge.sender]) for edge in self.plan.in_edges}
        self.in_edges: dict[str, AnyInEdge] = {}
        self._coverage: LineageCoverage | None = None  # the concatenation, but for what `_grown` has learned since
        self._grown: EventInEdge | None = None
        self._checkpoint_number = 0
        self._checkpoints_pending: dict[int, dict[str, int]] = {}
        self._has_changed = False  # since the last checkpoint
        self.failed: FailedEvents | None = None

    def coverage(self) -> LineageCoverage:
        if self._coverage is None:
            self._coverage = LineageCoverage.concat(edge.coverage for edge in self.in_edges.values())
        elif self._grown is not None:
            self._coverage = self._coverage.replaced(self._grown.offset, self._grown.coverage)
        self._grown = None
        return self._coverage

    def horizon(self) -> int:
        lowest = TICK_MAX
        for edge in self.in_edges.values():
            horizon = edge.coverage.horizon()
            if horizon < lowest:
                lowest = horizon
        return lowest

    # Restart

    def _restart(self, event: Restarted) -> None:
        edges = self._fresh_in_edges()
        checkpoint = event.checkpoint
        if checkpoint is not None:
            self._check_checkpoint(event, checkpoint, edges)
            for edge, saved in zip(edges.values(), checkpoint.edges, strict=True):
                edge.coverage = saved.coverage.copy()
                if isinstance(edge, StateInEdge):
                    edge.adopted_epoch, edge.applied_step = saved.adopted_epoch, saved.applied_step
        try:
            self._load(checkpoint)
        except (ValueError, KeyError, TypeError) as broken:
            raise BadCheckpoint(self.name, "Restarted", str(broken)) from broken
        self.in_edges = edges
        self._coverage = None
        self._checkpoints_pending = {}
        self._has_changed = False
        self.failed = None

    def _fresh_in_edges(self) -> dict[str, AnyInEdge]:
        edges: dict[str, AnyInEdge] = {}
        offset = 0
        for index, edge in enumerate(self.plan.in_edges):
            relation, count = self._senders[edge.name], self._lineages_counts[edge.name]
            asker = Asker((self.name, edge.name), self.tuning.ask_delay_us, self.tuning.ask_delay_us_max)
            kind = EventInEdge if relation.is_event else StateInEdge
            edges[edge.name] = kind(edge, index, offset, count, relation, asker)
            offset += count
        return edges

    def _check_checkpoint(self, event: Restarted, checkpoint: Checkpoint, edges: dict[str, AnyInEdge]) -> None:
        if checkpoint.component != self.name:
            raise BadCheckpoint(self.name, "Restarted", f"a checkpoint of {checkpoint.component}")
        if [len(edge.coverage) for edge in checkpoint.edges] != [edge.lineages_count for edge in edges.values()]:
            raise BadCheckpoint(self.name, "Restarted", "in-edges or lineages are not those of the plan")
        if self.is_bulk_too_old(event, checkpoint):
            raise BadCheckpoint(
                self.name,
                "Restarted",
                f"bulk install at {checkpoint.bulk_horizon}, acknowledged {event.acknowledged_horizon} as durable",
            )

    def is_bulk_too_old(self, event: Restarted, checkpoint: Checkpoint) -> bool:
        """C6: what lies between could be trimmed at any time, on our own word."""
        return checkpoint.bulk_horizon is not None and checkpoint.bulk_horizon < event.acknowledged_horizon

    @abstractmethod
    def _load(self, checkpoint: Checkpoint | None) -> None:
        """Replace operator state, rows, floors and out-edges; ValueError leaves the old ones."""

    def _started(self, event: Restarted) -> None:
        """C2: ask on every in-edge."""
        for edge in self.in_edges.values():
            self.ask(edge, open_end=True)
            if edge.mode is Mode.PULL:
                self._arm_idle(edge)
        if self.tuning.checkpoint_us:
            self.arm("checkpoint", self.tuning.checkpoint_us)

    # Asking

    def ask(self, edge: AnyInEdge, *, open_end: bool = False) -> None:
        """S3, E2: send the edge's question unless one is outstanding."""
        if not edge.asker.may_ask():
            return
        if isinstance(edge, StateInEdge):
            self.send(edge.name, Curiosity(self.epoch, edge.adopted_epoch, edge.applied_step, edge.coverage))
        else:
            if self.failed is None:
                wanted = edge.question(open_end=open_end, ranges_max=self.tuning.curiosity_ranges_max)
            else:
                wanted = self._wanted_while_failed(edge, self.failed)
            if not wanted:
                return
            self.send(edge.name, EventCuriosity(self.epoch, wanted))
        self.arm(f"ask:{edge.name}", edge.asker.asked())

    def _wanted_while_failed(self, edge: EventInEdge, failed: FailedEvents) -> LineageCoverage:
        """Not all that has come since, again and again: it could not be taken."""
        wanted = edge.relay.copy()
        if edge.name == failed.edge:
            wanted.update(failed.ticks)
        return wanted

    def _timer_fired(self, kind: str, edge: str, now_us: int) -> None:
        if kind == "checkpoint" and not edge:
            if self._has_changed:
                self._checkpoint()
            self.arm("checkpoint", self.tuning.checkpoint_us)
            return
        if edge not in self.in_edges:
            raise UnexpectedMessage(self.name, f"{kind}:{edge}", "no such timer")
        in_edge = self.in_edges[edge]
        match kind:
            case "ask":
                self._ask_again(in_edge)
            case "idle":
                self._poll(in_edge)
            case "ack":
                self.acknowledge(in_edge)
            case _:
                raise UnexpectedMessage(self.name, f"{kind}:{edge}", "no such timer")

    def _ask_again(self, edge: AnyInEdge) -> None:
        """S3: until answered."""
        if not edge.asker.waiting:
            return
        edge.asker.expired()
        if isinstance(edge, StateInEdge):
            if edge.is_behind:
                self.ask(edge)
        elif edge.needs_answer():
            self.ask(edge, open_end=not edge.has_heard)
        else:
            edge.asker.answered()

    def _poll(self, edge: AnyInEdge) -> None:
        """Pull: a message may be lost without leaving a gap, so a quiet edge is asked (S3, the idle timer)."""
        if not edge.progressed:
            if isinstance(edge, StateInEdge):
                edge.is_behind = True
            self.ask(edge, open_end=True)
        edge.progressed = False
        self._arm_idle(edge)

    def _arm_idle(self, edge: AnyInEdge) -> None:
        self.arm(f"idle:{edge.name}", jittered(self.tuning.idle_us, self.name, edge.name))

    # Event edges

    def _events_arrived(self, edge: EventInEdge, message: Events) -> tuple[LineageCoverage, Batch] | None:
        """E1: the new ticks and their events; None if there is nothing new. They are covered once applied."""
        if not self.tuning.trusts_peers:
            place = Place(self.name, edge.name)
            place.check_coverage(message.cover, edge.lineages_count)
            place.check_events(message.rows, message.cover, edge.relation)
        edge.has_heard = True
        if edge.mode is Mode.PUSH:
            self._acknowledge_later(edge)
        novel = edge.novel_cover(message.cover)
        if not novel:
            self.counters["events_repeated"] += 1
            if not edge.needs_answer():
                edge.asker.answered()
            return None
        if self.failed is not None and self.failed.are_followed_by(edge.name, novel):
            self.counters["dropped.failed"] += 1
            return None
        if novel is message.cover or novel == message.cover:  # the usual case, at no cost per row
            return novel, message.rows
        return novel, edge.novel_rows(message.rows, novel)

    def _events_failed(self, edge: EventInEdge, novel: LineageCoverage, failure: OperatorError) -> None:
        """E5: nothing was applied, so nothing is covered, and nothing that comes after it will be."""
        self._report_failure(edge, failure)
        self.failed = self.failed or FailedEvents(edge.name, novel)
        self.ask(edge, open_end=True)

    def _report_failure(self, edge: AnyInEdge, failure: OperatorError) -> None:
        self.counters[f"failed.{failure.code}"] += 1
        self.emit(ReportFailed(edge.name, failure.code, str(failure)))

    def _learned(self, edge: EventInEdge, novel: LineageCoverage) -> None:
        """E1: applied, hence covered."""
        edge.learn(novel)
        if self._grown is not None and self._grown is not edge:
            self._coverage = None
        self._grown = edge
        edge.progressed = True
        self._has_changed = True
        if self.failed is not None:
            self._learned_what_failed(self.failed, novel)

    def _learned_what_failed(self, failed: FailedEvents, novel: LineageCoverage) -> None:
        """It could be computed after all: a function of the user's may fail once. Then everything is asked for."""
        left = failed.ticks.difference(novel)
        self.failed = FailedEvents(failed.edge, left) if left else None
        if not left:
            for edge in self.in_edges.values():
                if isinstance(edge, EventInEdge):
                    edge.asker.answered()
                    self.ask(edge, open_end=True)

    def _ask_for_gaps(self, edge: EventInEdge) -> None:
        """E2: ask at once if this message left a gap."""
        if edge.needs_answer():
            edge.asker.helped()
            self.ask(edge)
        else:
            edge.asker.answered()

    def _trimmed_arrived(self, edge: EventInEdge, message: Trimmed) -> LineageCoverage:
        """E2: ticks that nobody upstream has any more. Those we lack are reported, not guessed."""
        Place(self.name, edge.name).check_coverage(message.ranges, edge.lineages_count)
        edge.has_heard = True
        lost = message.ranges.difference(edge.coverage).difference(edge.lost)
        if lost:
            edge.lost.update(lost)
            self.counters["trimmed_reports"] += 1
            self.emit(ReportTrimmed(edge.name, lost))
        return lost

    # Acknowledging

    def _acknowledge_later(self, edge: AnyInEdge) -> None:
        """Event edges acknowledge only to stop pushes; state edges also to let tombstones go (T2)."""
        if not edge.is_ack_armed and (isinstance(edge, StateInEdge) or edge.mode is Mode.PUSH):
            edge.is_ack_armed = True
            self.arm(f"ack:{edge.name}", self.tuning.ack_us)

    def acknowledge(self, edge: AnyInEdge) -> None:
        """Pull: once per position; a lost one only delays the sender's cleaning. Push: whenever something repeats."""
        edge.is_ack_armed = False
        if isinstance(edge, StateInEdge):
            position = edge.position()
            if position[0] != NO_EPOCH and (edge.mode is Mode.PUSH or position != edge.acked):
                edge.acked = position
                self.send(edge.name, Ack(self.epoch, *position))
        else:
            self.send(edge.name, EventAck(self.epoch, edge.coverage.copy()))

    # Checkpoints

    def _checkpoint(self) -> None:
        """C1: one consistent cut; we are between two steps whenever an event is handled."""
        self._checkpoint_number += 1
        self._checkpoints_pending[self._checkpoint_number] = {
            name: edge.coverage.horizon() for name, edge in self.in_edges.items() if isinstance(edge, EventInEdge)
        }
        self._has_changed = False
        self.emit(PersistCheckpoint(self._checkpoint_number, self.checkpoint))

    def edge_checkpoints(self) -> tuple[EdgeCheckpoint, ...]:
        return tuple(
            EdgeCheckpoint(edge.adopted_epoch, edge.applied_step, edge.coverage.copy())
            if isinstance(edge, StateInEdge)
            else EdgeCheckpoint(NO_EPOCH, 0, edge.coverage.copy())
            for edge in self.in_edges.values()
        )

    @abstractmethod
    def checkpoint(self) -> Checkpoint:
        """The present state, sharing nothing with it."""

    def _checkpoint_written(self, number: int) -> None:
        """C3, C4: only now may upstream trim, and only up to what is in that checkpoint."""
        horizons = self._checkpoints_pending.get(number)
        if horizons is None:
            return
        self._checkpoints_pending = {n: saved for n, saved in self._checkpoints_pending.items() if n > number}
        for name, horizon in self.durable_horizons(horizons).items():
            self.send(name, Durable(self.epoch, horizon))

    def durable_horizons(self, in_checkpoint: dict[str, int]) -> dict[str, int]:
        """C4: those of the newest durable checkpoint, never of memory."""
        return in_checkpoint

    def _checkpoint_failed(self, number: int) -> None:
        self._checkpoints_pending.pop(number, None)
        self._has_changed = True
