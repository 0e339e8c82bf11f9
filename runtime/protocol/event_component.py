"""Merge and select on events: an event relation computed from event relations, in any order (section 4).

Holds the events that passed, so that it can answer by itself; what it has trimmed, or has never seen, it asks for
upstream, once for all its receivers. It has no steps: a tick means the same in every incarnation.
"""

from __future__ import annotations

from runtime import plan as plans
from runtime.batch import Batch
from runtime.operators.errors import OperatorError
from runtime.operators.operator import EventOperator
from runtime.plan import Mode, Relation
from runtime.protocol.checkpoint import Checkpoint
from runtime.protocol.coverage import NO_TICK, Coverage
from runtime.protocol.errors import UnexpectedMessage
from runtime.protocol.event_in_edge import EventInEdge
from runtime.protocol.events import Restarted
from runtime.protocol.gap_list import GapList
from runtime.protocol.held_events import HeldEvents
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Durable, EventAck, EventCuriosity, Events, Message, Trimmed, Upstream
from runtime.protocol.out_edge import EventOutEdge, OutEdge
from runtime.protocol.parts import split_events
from runtime.protocol.receiver import Receiver
from runtime.protocol.validation import Place


def check_event_upstream(place: Place, message: Upstream, lineages_count: int) -> None:
    """What may come from the receiver of an event edge. Streams use it too."""
    match message:
        case EventCuriosity():
            place.check_coverage(message.wanted, lineages_count)
        case EventAck():
            place.check_coverage(message.coverage, lineages_count)
        case Durable():
            place.check_tick(message.horizon)
        case _:
            raise UnexpectedMessage(place.component, place.name, f"{type(message).__name__} on an event edge")


class EventComponent(Receiver):
    """`held` has the events above `trimmed_tick`; lineages are numbered within the component."""

    def __init__(self, plan: plans.Plan, name: str) -> None:
        super().__init__(plan, name)
        inputs: tuple[Relation, ...] = tuple(self._senders.values())
        operator = self.plan.operator.build(inputs, self.relation)
        assert isinstance(operator, EventOperator), f"{name}: an event relation needs an event operator"
        self.operator = operator
        self.held = HeldEvents(self.lineages_count, self.relation.width)
        self.trimmed_tick = NO_TICK
        self.out_edges: dict[str, EventOutEdge] = {}

    def gap_list(self) -> GapList:
        """The paper's gap descriptor of a merge, made when somebody wants to see who is missing where."""
        return GapList.of(list(self.coverage()))

    # Restart and checkpoint

    def _load(self, checkpoint: Checkpoint | None) -> None:
        held = HeldEvents(self.lineages_count, self.relation.width)
        trimmed_tick = NO_TICK
        if checkpoint is not None:
            held = HeldEvents.restore(self.lineages_count, self.relation.width, checkpoint.state["held"])
            found = checkpoint.state["trimmed_tick"]
            if not isinstance(found, int):
                raise ValueError("trimmed_tick of a checkpoint is a tick")
            trimmed_tick = found
        self.held, self.trimmed_tick = held, trimmed_tick
        self.out_edges = {
            edge.name: EventOutEdge(edge.name, edge.mode, self.lineages_count) for edge in self.planned_out_edges
        }

    def checkpoint(self) -> Checkpoint:
        state: dict[str, object] = {"held": self.held.export(), "trimmed_tick": self.trimmed_tick}
        return Checkpoint(self.name, self.edge_checkpoints(), NO_TICK, NO_TICK, state)

    def _started(self, event: Restarted) -> None:
        super()._started(event)
        for edge in self.out_edges.values():
            if edge.mode is Mode.PUSH:
                self.arm_push(edge)

    # From upstream

    def _from_sender(self, edge: str, message: Message) -> None:
        in_edge = self.in_edges.get(edge)
        if not isinstance(in_edge, EventInEdge):
            raise self.unknown_edge(edge)
        match message:
            case Events():
                self._learn(in_edge, message)
            case Trimmed():
                self._trimmed_arrived(in_edge, message)
                self._relay_trimmed(in_edge, message)
            case _:
                raise UnexpectedMessage(self.name, edge, f"{type(message).__name__} on an event edge")

    def _learn(self, edge: EventInEdge, message: Events) -> None:
        news = self._events_arrived(edge, message)
        try:
            self._relay(edge, message)
        except OperatorError as failure:  # it was computed before: a function of the user's that fails at times
            self._report_failure(edge, failure)
        if news is None:
            return
        novel, rows = news
        try:
            passed = self.operator.map(edge.index, rows).with_lineages_from(edge.offset)
        except OperatorError as failure:
            self._events_failed(edge, novel, failure)
            return
        self._learned(edge, novel)
        self.held.add(passed)
        if self.watches and len(passed):
            self.tell_watchers(passed)
        cover = self._widen(edge, novel)
        for piece in split_events(cover, passed, self.tuning.message_rows_max):
            self._tell_all(piece)
        self._ask_for_gaps(edge)

    def _tell_all(self, message: Events) -> None:
        for edge in self.out_edges.values():
            self.send(edge.name, message)
            if edge.mode is Mode.PUSH and not edge.is_pushing:
                self.arm_push(edge)

    def _widen(self, edge: EventInEdge, cover: LineageCoverage) -> LineageCoverage:
        """Ticks of one in-edge, said about this component's lineages."""
        parts = [Coverage() for _ in range(self.lineages_count)]
        parts[edge.offset : edge.offset + edge.lineages_count] = list(cover)
        return LineageCoverage(parts)

    def _relay(self, edge: EventInEdge, message: Events) -> None:
        """E2: pass on what receivers wanted and we had to ask for."""
        if not edge.relay:
            return
        cover = self._widen(edge, message.cover)
        for out_edge in self.out_edges.values():
            asked = out_edge.wanted.intersection(cover)
            if asked:
                rows = edge_rows(edge, message.rows, asked)
                passed = self.operator.map(edge.index, rows).with_lineages_from(edge.offset)
                self._send_pieces(out_edge, asked, passed)
                out_edge.wanted = out_edge.wanted.difference(asked)
        self._gather_relays()

    def _relay_trimmed(self, edge: EventInEdge, message: Trimmed) -> None:
        ranges = self._widen(edge, message.ranges)
        for out_edge in self.out_edges.values():
            asked = out_edge.wanted.intersection(ranges)
            if asked:
                self.send(out_edge.name, Trimmed(asked))
                out_edge.wanted = out_edge.wanted.difference(asked)
        self._gather_relays()

    def _gather_relays(self) -> None:
        """What all receivers together want from each in-edge: one question per hop."""
        total = LineageCoverage.empty(self.lineages_count)
        for out_edge in self.out_edges.values():
            total.update(out_edge.wanted)
        for edge in self._event_in_edges():
            edge.relay = LineageCoverage(total[edge.offset + n] for n in range(edge.lineages_count))

    def _event_in_edges(self) -> list[EventInEdge]:
        return [edge for edge in self.in_edges.values() if isinstance(edge, EventInEdge)]

    # From downstream

    def _out_edge(self, edge: str) -> OutEdge:
        if edge not in self.out_edges:
            raise self.unknown_edge(edge)
        return self.out_edges[edge]

    def _check_upstream(self, place: Place, message: Upstream) -> None:
        check_event_upstream(place, message, self.lineages_count)

    def _from_receiver(self, edge: OutEdge, message: Upstream) -> None:
        assert isinstance(edge, EventOutEdge)
        match message:
            case EventCuriosity(_, wanted):
                self._answer(edge, wanted)
            case EventAck(_, coverage):
                edge.acknowledge(coverage)
            case Durable(_, horizon):
                edge.note_durable(horizon)
                self._trim()
            case _:
                raise AssertionError("refused by _check_upstream")

    def _answer(self, edge: EventOutEdge, wanted: LineageCoverage) -> None:
        """E2: what we hold we answer; the rest we ask for upstream."""
        known = self.coverage()
        answerable = self.answerable(wanted, known)
        self._send_pieces(edge, answerable, self.held.select(answerable))
        self._answer_lost(edge, wanted)
        edge.wanted.update(self._no_longer_held(wanted, known))
        self._gather_relays()
        for in_edge in self._event_in_edges():
            asked = LineageCoverage(wanted[in_edge.offset + n] for n in range(in_edge.lineages_count))
            unknown = asked.difference(in_edge.coverage).difference(in_edge.lost)
            if in_edge.relay or unknown:
                self.ask(in_edge, open_end=unknown.highest() > in_edge.coverage.highest())

    def answerable(self, wanted: LineageCoverage, known: LineageCoverage) -> LineageCoverage:
        """E2: covered, and above what was trimmed: below, a missing row would pass for silence."""
        below = LineageCoverage.prefix(self.lineages_count, self.trimmed_tick)
        return wanted.intersection(known).difference(below)

    def _no_longer_held(self, wanted: LineageCoverage, known: LineageCoverage) -> LineageCoverage:
        below = LineageCoverage.prefix(self.lineages_count, self.trimmed_tick)
        return wanted.intersection(known).intersection(below)

    def _answer_lost(self, edge: EventOutEdge, wanted: LineageCoverage) -> None:
        lost = LineageCoverage.concat(in_edge.lost for in_edge in self._event_in_edges()).intersection(wanted)
        if lost:
            self.send(edge.name, Trimmed(lost))

    def _send_pieces(self, edge: EventOutEdge, cover: LineageCoverage, rows: Batch) -> None:
        """An answer, even an empty one, in bounded messages; beyond the bound the receiver will ask again."""
        rows_left = self.tuning.answer_rows_max
        for piece in split_events(cover, rows, min(self.tuning.message_rows_max, rows_left)):
            if len(piece.rows) > rows_left:
                self.counters["answers_cut"] += 1
                break
            rows_left -= len(piece.rows)
            self.send(edge.name, piece)

    def _trim(self) -> None:
        """C5: below the lowest durable horizon of the direct receivers; one without blocks it."""
        tick = self.trim_point()
        if tick > self.trimmed_tick:
            self.trimmed_tick = tick
            self.held.trim(tick)

    def trim_point(self) -> int:
        return lowest_durable_horizon(self.out_edges)

    def _timer_fired(self, kind: str, edge: str, now_us: int) -> None:
        if kind != "push":
            super()._timer_fired(kind, edge, now_us)
        elif edge in self.out_edges:  # it may have been detached meanwhile
            self._push(self.out_edges[edge])

    def _push(self, edge: EventOutEdge) -> None:
        """Push: repeat what is not acknowledged until the acknowledgement comes."""
        known = self.coverage()
        unacked = self.answerable(known.difference(edge.acked), known)
        if not unacked:
            edge.is_pushing = False
            return
        self._send_pieces(edge, unacked, self.held.select(unacked))
        edge.push_attempt += 1
        self.arm_push(edge)

    def _attach(self, edge: str, mode: Mode, every_change: bool) -> None:
        if edge not in self.out_edges:
            self.out_edges[edge] = EventOutEdge(edge, mode, self.lineages_count)
            if mode is Mode.PUSH:
                self.arm_push(self.out_edges[edge])

    def _detach(self, edge: str) -> None:
        del self.out_edges[edge]
        self._gather_relays()
        self._trim()


def edge_rows(edge: EventInEdge, rows: Batch, asked: LineageCoverage) -> Batch:
    """The rows of an in-edge's message at the asked ticks of the component."""
    assert rows.lineages is not None
    return rows.take([i for i, n in enumerate(rows.lineages) if rows.max_ticks[i] in asked[edge.offset + n]])


def lowest_durable_horizon(out_edges: dict[str, EventOutEdge]) -> int:
    """C5: NO_TICK while any receiver has not reported, or there is none."""
    horizons = [NO_TICK if edge.durable_horizon is None else edge.durable_horizon for edge in out_edges.values()]
    return min(horizons, default=NO_TICK)
