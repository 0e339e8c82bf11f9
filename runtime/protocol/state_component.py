"""Everything computed: a state relation with steps, answered by superseding rows (sections 5 to 7).

Sums, joins, selects on state, copies: the operator differs, this shell does not. Each rule is a method of its own. It
never looks into a row's values, and keeps nothing about a receiver that it could not lose.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime import plan as plans
from runtime.batch import Batch
from runtime.operators.errors import OperatorError
from runtime.operators.operator import Operator
from runtime.plan import Mode
from runtime.protocol.checkpoint import Checkpoint
from runtime.protocol.coverage import NO_TICK, TICK_MAX
from runtime.protocol.errors import BadRange, UnexpectedMessage
from runtime.protocol.event_in_edge import EventInEdge
from runtime.protocol.events import Restarted, Stepped
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import (
    Ack,
    Curiosity,
    Events,
    Heartbeat,
    Knowledge,
    Message,
    Part,
    Quench,
    Snapshot,
    Trimmed,
    Upstream,
)
from runtime.protocol.out_edge import OutEdge, StateOutEdge
from runtime.protocol.parts import split_state
from runtime.protocol.state_receiver import StateReceiver
from runtime.protocol.validation import Place


class StateComponent(StateReceiver):
    """`drop_floor` is F: the largest max_tick of any tombstone forgotten here or inherited. `told_floor` is the part of
    it that was inherited or hidden in this incarnation: receivers that follow in order inherit it too (T3).
    `forgotten_tick` is the part of tombstones forgotten in this incarnation: all that they could have missed of it."""

    def __init__(self, plan: plans.Plan, name: str) -> None:
        super().__init__(plan, name)
        self.operator = self._fresh_operator()
        self.step = 0
        self.drop_floor = NO_TICK
        self.told_floor = NO_TICK
        self.forgotten_tick = NO_TICK
        self.out_edges: dict[str, StateOutEdge] = {}
        self.forgets_at_once = False  # without receivers, no tombstone is needed by anybody
        self._tombstones: dict[int, None] = {}  # slots that may be invisible, oldest first
        self._revision = 0  # changes when the same question would get other rows at the same step

    def _fresh_operator(self) -> Operator:
        operator = self.plan.operator.build(tuple(self._senders.values()), self.relation)
        assert isinstance(operator, Operator), f"{self.name}: a state relation needs a state operator"
        return operator

    # Restart and checkpoint

    def _load(self, checkpoint: Checkpoint | None) -> None:
        """C2: step and every last_step start at 0; floors and rows come from the checkpoint, if there is one."""
        operator = self._fresh_operator()
        in_floor = drop_floor = NO_TICK
        if checkpoint is not None:
            operator.restore(checkpoint.state, checkpoint.bulk_horizon)
            in_floor, drop_floor = checkpoint.in_floor, checkpoint.drop_floor
        operator.in_floor = in_floor
        self.operator, self.in_floor, self.drop_floor = operator, in_floor, drop_floor
        self.forgets_at_once = type(operator).may_forget is Operator.may_forget
        self.step = 0
        self.told_floor = self.forgotten_tick = NO_TICK
        self._tombstones = dict.fromkeys(operator.rows.tombstones())
        self._revision = 0
        self.out_edges = {edge.name: StateOutEdge(edge.name, edge.mode, 0) for edge in self.planned_out_edges}

    def checkpoint(self) -> Checkpoint:
        return Checkpoint(self.name, self.edge_checkpoints(), self.drop_floor, self.in_floor, self.operator.export())

    def _started(self, event: Restarted) -> None:
        super()._started(event)
        self.arm("heartbeat", self.tuning.heartbeat_us)
        for edge in self.out_edges.values():
            if edge.mode is Mode.PUSH:
                self.arm_push(edge)

    # Steps

    def _watch_begun(self) -> None:
        self.operator.watch()

    def _advance(self, touched: Sequence[int]) -> None:
        """S1: one input message that changed something is one step."""
        rows = self.operator.rows
        self.step += 1
        rows.mark(touched, self.step)
        if self.operator.hidden_tick > self.told_floor:
            self._inherit(self.operator.hidden_tick)
        for slot in rows.hidden_among(touched):
            self._tombstones[slot] = None
        self._has_changed = True
        if self.out_edges:
            self._tell_receivers(touched)
        if self._stepped(touched) and self.watches and len(touched):
            self._tell_watchers(touched)
        if not self.out_edges and self._tombstones:
            self._forget_tombstones()

    def _stepped(self, touched: Sequence[int]) -> bool:
        """For leaves: a step was made. Do those who watch still have to be told?"""
        return True

    def _tell_watchers(self, touched: Sequence[int]) -> None:
        operator, every, horizon = self.operator, None, self.horizon()
        for latest in self.watches:
            if latest and operator.repeats_rows:
                self.emit(Stepped(operator.latest(touched), latest, horizon))
            else:
                every = operator.changed(touched) if every is None else every
                self.emit(Stepped(every, latest, horizon))

    def _tell_receivers(self, touched: Sequence[int]) -> None:
        if self._tell_every_change(touched):
            return
        if not self.tuning.gather_us:
            self._tell_all()
        elif any(edge.sent_step == self.step - 1 for edge in self.out_edges.values()):
            self.arm("gather", self.tuning.gather_us)

    def _tell_every_change(self, touched: Sequence[int]) -> bool:
        """At once and never gathered: only the step just made still has its changes. True if that were all edges."""
        rows: Batch | None = None
        are_all = True
        for edge in self.out_edges.values():
            if edge.every_change and edge.sent_step == self.step - 1:
                rows = self.operator.every_change(touched) if rows is None else rows
                self._tell(edge, rows)
            else:
                are_all = False
        return are_all

    def _tell_all(self) -> None:
        """S1: what happened since the last message on each edge, as one message."""
        made: dict[int, Batch] = {}
        for edge in self.out_edges.values():
            if edge.sent_step == self.step:
                continue
            if edge.sent_step not in made:
                made[edge.sent_step] = self.operator.rows.select(self.touched_since(edge.sent_step))
            self._tell(edge, made[edge.sent_step])

    def _tell(self, edge: StateOutEdge, rows: Batch) -> None:
        """What was touched since the last message on this edge, in order."""
        rows = self._filtered(edge, rows) if edge.quenched else rows
        self._send_state(edge, self._knowledge(edge, edge.sent_step, self.coverage(), rows))
        edge.sent_step = self.step
        edge.sent_since_heartbeat = True
        if edge.mode is Mode.PUSH and not edge.is_pushing:
            self.arm_push(edge)

    def _knowledge(self, edge: StateOutEdge, since: int, coverage: LineageCoverage, rows: Batch) -> Knowledge:
        quench_epoch = edge.quench_epoch if edge.quenched else None
        return Knowledge(self.epoch, since, self.step, coverage, rows, quench_epoch, self.told_floor)

    def touched_since(self, step: int) -> list[int]:
        """S1, S4: rows whose last touch is after this step, each once, with the values they have now."""
        return self.operator.rows.touched_since(step)

    def _filtered(self, edge: StateOutEdge, rows: Batch) -> Batch:
        """T4: the sender filters rows, never coverage."""
        if not edge.quenched:
            return rows
        keys = rows.keys(self.relation.key_width)
        return rows.take([i for i, key in enumerate(keys) if key not in edge.quenched])

    def _send_state(self, edge: StateOutEdge, message: Knowledge | Snapshot) -> None:
        if len(message.rows.max_ticks) <= self.tuning.message_rows_max:
            self.send(edge.name, message)
            return
        texts = [at for at, column in enumerate(self.relation.columns) if column.type is plans.ValueType.TEXT]
        for piece in split_state(message, self.tuning.message_rows_max, self._revision, texts):
            self.send(edge.name, piece)

    # From upstream

    def _from_sender(self, edge: str, message: Message) -> None:
        in_edge = self.in_edges.get(edge)
        if in_edge is None:
            raise self.unknown_edge(edge)
        if isinstance(in_edge, EventInEdge):
            if type(message) is Events:
                self._learn_events(in_edge, message)
            elif type(message) is Trimmed:
                self._trimmed_arrived(in_edge, message)
            else:
                raise UnexpectedMessage(self.name, edge, f"{type(message).__name__} on an event edge")
            return
        match message:
            case Knowledge():
                self._knowledge_arrived(in_edge, message)
            case Snapshot():
                self._snapshot_arrived(in_edge, message)
            case Heartbeat():
                self._heartbeat_arrived(in_edge, message)
            case Part():
                self._part_arrived(in_edge, message)
            case _:
                raise UnexpectedMessage(self.name, edge, f"{type(message).__name__} on a state edge")

    def _learn_events(self, edge: EventInEdge, message: Events) -> None:
        news = self._events_arrived(edge, message)
        if news is None:
            return
        novel, rows = news
        try:
            touched = self.operator.take(edge.index, rows)
        except OperatorError as failure:
            self._events_failed(edge, novel, failure)
            return
        self._learned(edge, novel)
        self._advance(touched)
        self._ask_for_gaps(edge)

    def _inherit(self, floor: int) -> None:
        """T3: we know nothing about tombstones up to this floor, and neither does anybody who learns from us. So what
        we hold says nothing about a horizon below it either (I6)."""
        if floor > self.told_floor:
            self._set_floors(self._floors_with(floor))

    def _floors(self) -> tuple[int, int, int]:
        return self.in_floor, self.drop_floor, self.told_floor

    def _floors_with(self, floor: int) -> tuple[int, int, int]:
        """S6, T3: whoever tells us a floor says nothing about tombstones up to it, so neither can we."""
        return max(self.in_floor, floor), self.inherited_floor(floor), max(self.told_floor, floor)

    def _set_floors(self, floors: tuple[int, int, int]) -> None:
        self.in_floor, self.drop_floor, self.told_floor = floors
        self.operator.in_floor = self.in_floor

    def inherited_floor(self, floor: int) -> int:
        """T3: without this, the hole would move one hop down."""
        return max(self.drop_floor, floor)

    # From downstream

    def _out_edge(self, edge: str) -> OutEdge:
        if edge not in self.out_edges:
            raise self.unknown_edge(edge)
        return self.out_edges[edge]

    def _check_upstream(self, place: Place, message: Upstream) -> None:
        match message:
            case Curiosity() | Ack():
                place.check_epoch(message.adopted_epoch, none_allowed=True)
                place.check_step(message.applied_step)
                if isinstance(message, Curiosity):
                    place.check_coverage(message.coverage, self.lineages_count)
                    horizon = message.coverage.horizon()
                else:
                    place.check_tick(message.horizon)
                    horizon = message.horizon
                if message.adopted_epoch == self.epoch and (
                    message.applied_step > self.step or horizon > self.horizon()
                ):
                    raise BadRange(self.name, place.name, f"{type(message).__name__} is ahead of us in our own epoch")
            case Quench(_, keys):
                place.check_keys(keys, self.relation)
            case _:
                raise UnexpectedMessage(self.name, place.name, f"{type(message).__name__} on a state edge")

    def _from_receiver(self, edge: OutEdge, message: Upstream) -> None:
        assert isinstance(edge, StateOutEdge)
        match message:
            case Curiosity():
                self._acked(
                    edge,
                    Ack(
                        message.receiver_epoch, message.adopted_epoch, message.applied_step, message.coverage.horizon()
                    ),
                )
                self._answer(edge, message)
            case Ack():
                self._acked(edge, message)
            case Quench(_, keys):
                if edge.add_quench(keys, self.tuning.quenched_keys_max):
                    self._revision += 1
            case _:
                raise AssertionError("refused by _check_upstream")

    def _acked(self, edge: StateOutEdge, ack: Ack) -> None:
        if edge.acknowledge(ack, self.epoch):
            edge.push_attempt = 0
            self._forget_tombstones()

    def _answer(self, edge: StateOutEdge, question: Curiosity) -> None:
        if question.adopted_epoch > self.epoch:  # a newer incarnation of us exists; it answers
            self.counters["dropped.replaced_sender"] += 1
        elif question.adopted_epoch == self.epoch:
            self._answer_same_epoch(edge, question)
        else:
            self._answer_other_epoch(edge, question)

    def _answer_same_epoch(self, edge: StateOutEdge, question: Curiosity) -> None:
        """S4: the rows touched since, each once."""
        if question.applied_step == self.step:
            self._send_heartbeat(edge)
        elif self.remembers_since(question.coverage.horizon()):
            rows = self.operator.rows.select(self.touched_since(question.applied_step))
            rows = self._filtered(edge, rows)
            self._send_state(edge, self._knowledge(edge, question.applied_step, self.coverage(), rows))
        else:
            self._send_snapshot(edge, question, complete=True)

    def _answer_other_epoch(self, edge: StateOutEdge, question: Curiosity) -> None:
        """S5: a snapshot for somebody who knew another incarnation, or none; only if it cannot fall back."""
        if not self.may_offer(question):
            self._send_heartbeat(edge)
        else:
            complete = not self.knows_tombstones_above(question.coverage.horizon())
            self._send_snapshot(edge, question, complete=complete)

    def may_offer(self, question: Curiosity) -> bool:
        """S5: only if our coverage contains theirs; otherwise we keep catching up."""
        return self.coverage().contains(question.coverage)

    def remembers_since(self, horizon: int) -> bool:
        """S4: in this incarnation no tombstone with a max_tick above this horizon was forgotten. Whoever has followed
        it holds what it held, so that nothing else can have been missed."""
        return horizon >= self.forgotten_tick

    def knows_tombstones_above(self, horizon: int) -> bool:
        """S5: no tombstone with a max_tick above this horizon was ever forgotten, and nothing was hidden."""
        return horizon >= self.drop_floor

    def _send_snapshot(self, edge: StateOutEdge, question: Curiosity, *, complete: bool) -> None:
        horizon = question.coverage.horizon()
        slots = self.rows_of_complete() if complete else self.rows_above(horizon)
        rows = self._filtered(edge, self.operator.rows.select(slots))
        self._send_state(
            edge,
            Snapshot(
                self.epoch, self.step, self.coverage(), horizon, complete, self.drop_floor, rows, edge.quench_epoch
            ),
        )

    def rows_of_complete(self) -> list[int]:
        """S5: all rows, tombstones included: the floor speaks only for those that are forgotten, and a receiver that
        never held the others could not tell its own receivers about them."""
        return self.operator.rows.slots()

    def rows_above(self, horizon: int) -> list[int]:
        """S5: all rows, visible or not, that depend on a tick the receiver may lack."""
        return self.operator.rows.above(horizon)

    def _send_heartbeat(self, edge: StateOutEdge) -> None:
        self.send(edge.name, Heartbeat(self.epoch, self.step, self.coverage()))

    # Tombstones

    def _forget_tombstones(self) -> None:
        """T2: those that every attached receiver has acknowledged; F remembers how far (T3)."""
        limit = self.forgettable_tick()
        rows = self.operator.rows
        if limit == TICK_MAX and self.forgets_at_once:
            gone, self._tombstones = list(self._tombstones), {}
        else:
            gone = [slot for slot in self._tombstones if rows.visible[slot] or self.is_forgettable(slot, limit)]
            for slot in gone:
                del self._tombstones[slot]
        dead = [slot for slot in gone if not rows.visible[slot]]
        if dead:
            last = max([rows.max_tick[slot] for slot in dead])
            self.drop_floor, self.forgotten_tick = self.floor_after(last), max(self.forgotten_tick, last)
            self.operator.forget_all(dead)
            self._revision += 1
            self.counters["tombstones_forgotten"] += len(dead)

    def forgettable_tick(self) -> int:
        """T2: the lowest horizon acknowledged in my present epoch; one that has not acknowledged blocks."""
        edges = self.out_edges.values()
        return min((NO_TICK if edge.acked_step is None else edge.acked_horizon for edge in edges), default=TICK_MAX)

    def is_forgettable(self, slot: int, limit: int) -> bool:
        return self.operator.rows.max_tick[slot] <= limit and self.operator.may_forget(slot)

    def floor_after(self, max_tick: int) -> int:
        """T2: F says what was forgotten to whoever comes from before."""
        return max(self.drop_floor, max_tick)

    # Timers and receivers

    def _timer_fired(self, kind: str, edge: str, now_us: int) -> None:
        match kind:
            case "heartbeat":
                self._heartbeat_all()
            case "gather":
                self._tell_all()
            case "push":
                if edge in self.out_edges:  # it may have been detached meanwhile
                    self._push(self.out_edges[edge])
            case _:
                super()._timer_fired(kind, edge, now_us)

    def _heartbeat_all(self) -> None:
        for edge in self.out_edges.values():
            if edge.mode is Mode.PULL and not edge.sent_since_heartbeat:
                self._send_heartbeat(edge)
            edge.sent_since_heartbeat = False
        self.arm("heartbeat", self.tuning.heartbeat_us)

    def _push(self, edge: StateOutEdge) -> None:
        """Push: repeat what is not acknowledged; a receiver that has not adopted us is told where we stand."""
        if edge.acked_step == self.step:
            edge.is_pushing = False
            return
        if edge.acked_step is None or not self.remembers_since(edge.acked_horizon):
            self._send_heartbeat(edge)
        else:
            rows = self._filtered(edge, self.operator.rows.select(self.touched_since(edge.acked_step)))
            self._send_state(edge, self._knowledge(edge, edge.acked_step, self.coverage(), rows))
        edge.push_attempt += 1
        self.arm_push(edge)

    def _attach(self, edge: str, mode: Mode, every_change: bool) -> None:
        if edge in self.out_edges:
            self.out_edges[edge].every_change = every_change
            return
        self.out_edges[edge] = StateOutEdge(edge, mode, self.step, every_change=every_change)
        if mode is Mode.PUSH:
            self.arm_push(self.out_edges[edge])

    def _detach(self, edge: str) -> None:
        """T2: a detached receiver does not block."""
        del self.out_edges[edge]
        self._forget_tombstones()
