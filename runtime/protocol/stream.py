"""The stream: assigns ticks, logs, then tells and acknowledges (rule E3).

Its coverage is always a prefix: writes become durable in order, and every tick between two events is silence. The log
is outside; the stream holds only what is being written and the newest publishes of each producer. It answers curiosity
by reading the log. After a failed write it stops: only a restart, which reads the log, can know what is durable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from runtime import plan as plans
from runtime.batch import Batch
from runtime.plan import Mode, StreamSpec
from runtime.protocol.component import Component
from runtime.protocol.coverage import NO_TICK, TICK_MAX, Coverage
from runtime.protocol.errors import BadCheckpoint, BadRange, BadShape, BadType, TooLarge, UnexpectedMessage
from runtime.protocol.event_component import check_event_upstream, lowest_durable_horizon
from runtime.protocol.events import (
    AcknowledgePublish,
    AppendToLog,
    LogFailed,
    LogRead,
    LogWritten,
    Published,
    ReadLog,
    RefusePublish,
    ReserveSilence,
    Restarted,
    RestartMe,
    Stopped,
    TrimLog,
)
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Durable, EventAck, EventCuriosity, Message, Trimmed, Upstream
from runtime.protocol.out_edge import EventOutEdge, OutEdge
from runtime.protocol.parts import split_events
from runtime.protocol.producers import Producers
from runtime.protocol.validation import Place, allowed_types


class StreamComponent(Component):
    """`covered_tick`: everything up to here is event or promised silence. `assigned_tick` is at least that."""

    def __init__(self, plan: plans.Plan, name: str) -> None:
        super().__init__(plan, name)
        assert isinstance(self.plan.operator, StreamSpec)
        self.spec = self.plan.operator
        self._payload = [(column, allowed_types(column)) for column in self.relation.columns[1:]]
        self._now_us_max = TICK_MAX // self.spec.ticks_per_us // 2
        """Leaves a century of headroom, so that one wild clock cannot use up all ticks of a stream."""
        self.covered_tick = NO_TICK
        self.assigned_tick = NO_TICK
        self.reserved_tick = NO_TICK
        self.trimmed_tick = NO_TICK
        self.producers = Producers(self.tuning.producer_window, self.tuning.producers_max)
        self.out_edges: dict[str, EventOutEdge] = {}
        self.is_stopped = False
        self._pending: deque[AppendToLog | ReserveSilence] = deque()
        self._pending_names: set[tuple[str, int]] = set()
        self._write_number = 0
        self._silence_target = NO_TICK
        self._reading: dict[str, Coverage] = {}

    def coverage(self) -> LineageCoverage:
        return LineageCoverage([Coverage.prefix(self.covered_tick)])

    # Restart

    def _restart(self, event: Restarted) -> None:
        """E3: the next tick is above the reservation, and every unlogged tick up to it is silence."""
        log = event.log
        if log is None:
            raise BadCheckpoint(self.name, "Restarted", "a stream starts from its log")
        place = Place(self.name, "Restarted")
        for tick in (log.last_tick, log.reserved_tick, log.trimmed_tick):
            place.check_tick(tick)
        producers = Producers(self.tuning.producer_window, self.tuning.producers_max)
        producers.recover(log.publishes)
        self.producers = producers
        self.reserved_tick, self.trimmed_tick = log.reserved_tick, log.trimmed_tick
        self.covered_tick = self.assigned_tick = self.first_covered(log.last_tick, log.reserved_tick)
        self.is_stopped = False
        self._pending.clear()
        self._pending_names.clear()
        self._silence_target = NO_TICK
        self._reading = {}
        self.out_edges = {edge.name: EventOutEdge(edge.name, edge.mode, 1) for edge in self.planned_out_edges}

    def first_covered(self, last_tick: int, reserved_tick: int) -> int:
        """E3: an earlier incarnation may have promised silence up to its reservation."""
        return max(last_tick, reserved_tick)

    def _started(self, event: Restarted) -> None:
        self.arm("silence", self.tuning.silence_us)
        for edge in self.out_edges.values():
            if edge.mode is Mode.PUSH:
                self.arm_push(edge)

    # Publishing

    def _publish(self, event: Published) -> None:
        if not event.is_checked:
            self.check_publish(event)
        producer, sequence = event.producer, event.sequence
        first_ticks = self.producers.ticks_of(producer, sequence)
        if first_ticks is not None:  # E3: a repeat returns the first tick
            self.counters["publishes_repeated"] += 1
            self.emit(AcknowledgePublish(producer, sequence, first_ticks, repeated=True))
            return
        if (producer, sequence) in self._pending_names:  # its acknowledgement is on the way
            self.counters["publishes_repeated"] += 1
            return
        refusal = self._reason_to_refuse(event)
        if refusal:
            self.counters["publishes_refused"] += 1
            self.emit(RefusePublish(producer, sequence, refusal))
            return
        forgotten: tuple[str, ...] = ()
        if producer not in self.producers and not self._is_pending(producer):
            room = self._room_for_another(event.now_us)
            if room is None:
                self.counters["publishes_refused"] += 1
                self.emit(RefusePublish(producer, sequence, self._too_many_producers()))
                return
            forgotten = room
        ticks = self._assign(event.now_us, len(event.columns[0]) if event.columns else 1)
        self._write_number = number = self._write_number + 1
        write = AppendToLog(self.epoch, number, Batch.events(ticks, event.columns), producer, sequence, forgotten)
        self._pending.append(write)
        self._pending_names.add((producer, sequence))
        self._instructions.append(write)

    def _room_for_another(self, now_us: int) -> tuple[str, ...] | None:
        """Producers that were forgotten so that a new one can be remembered; None if there is no room for it.

        Here at once, in the log with the append that is to come. Should that fail, the stream starts again from the
        log, which then remembers them still.
        """
        tuning, per_us = self.tuning, self.spec.ticks_per_us
        idle_tick, silent_tick = ((now_us - us) * per_us for us in (tuning.producer_idle_us, tuning.producer_lasts_us))
        gone = self.producers.to_forget(idle_tick, silent_tick, self._is_pending)
        if gone:
            self.producers.forget(gone)
            self.counters["producers_forgotten"] += len(gone)
        return gone

    def _is_pending(self, producer: str) -> bool:
        return any(name == producer for name, _ in self._pending_names)

    def _too_many_producers(self) -> str:
        idle_s = self.tuning.producer_idle_us // 1_000_000
        return (
            f"too many producers: {len(self.producers)} have published here, each within {idle_s} s, and no more are"
            " remembered; publish over fewer connections or idempotency names, or later"
        )

    def is_repeat(self, producer: str, sequence: int) -> bool:
        """Is this publish logged or on its way? Then whoever checks new events must not judge it: it is not new."""
        return self.producers.ticks_of(producer, sequence) is not None or (producer, sequence) in self._pending_names

    def check_publish(self, event: Published) -> None:
        columns, payload = event.columns, self._payload
        if type(event.sequence) is not int or event.sequence < 0 or type(event.producer) is not str:
            raise BadType(self.name, "Published", f"({event.producer!r}, {event.sequence!r}) is not a publish's name")
        if len(columns) != len(payload):
            raise BadShape(self.name, "Published", f"{len(columns)} columns, the stream has {len(payload)}")
        count = len(columns[0]) if payload else 1
        for values in columns:
            if len(values) != count or not count:
                raise BadShape(self.name, "Published", "no rows, or columns of different lengths")
        if count > self.tuning.publish_rows_max:
            raise TooLarge(self.name, "Published", f"{count} rows, bound {self.tuning.publish_rows_max}")
        if not self.tuning.trusts_peers:
            for (column, allowed), values in zip(payload, columns, strict=True):
                if count > 1 or type(values[0]) not in allowed:
                    Place(self.name, "Published").check_values(column, values, None)

    def _reason_to_refuse(self, event: Published) -> str:
        """Empty if there is none. At every bound the publisher is told; nothing is dropped silently."""
        if self.is_stopped:
            return "the stream has stopped"
        if len(self._pending) >= self.tuning.appends_max:
            return "busy: too many publishes wait for the log"
        if not 0 <= event.now_us <= self._now_us_max:
            return "the clock is outside the range of ticks"
        return self.producers.reason_to_refuse(event.producer, event.sequence)

    def _assign(self, now_us: int, count: int) -> Sequence[int]:
        """Never decreasing, whatever the clock does; always above what was promised; in the stream's own class."""
        modulus, residue = self.spec.modulus, self.spec.residue
        lowest = now_us * self.spec.ticks_per_us
        if lowest <= self.assigned_tick:
            lowest = self.assigned_tick + 1
        first = lowest + (residue - lowest) % modulus
        ticks = range(first, first + count * modulus, modulus)
        self.assigned_tick = ticks[-1]
        return ticks

    # The log's answers

    def _log_written(self, event: LogWritten) -> None:
        if not self.is_stopped:
            self._written(event.number)

    def _log_failed(self, event: LogFailed) -> None:
        if not self.is_stopped:
            self._stop(event)

    def _log_read(self, event: LogRead) -> None:
        if not self.is_stopped:
            self._read(event)

    def _written(self, number: int) -> None:
        """E3: only now is anything told or acknowledged."""
        if number > self._write_number:
            raise BadRange(self.name, "LogWritten", f"write {number} was never asked for")
        together: list[AppendToLog] = []
        while self._pending and self._pending[0].number <= number:
            write = self._pending.popleft()
            if isinstance(write, AppendToLog):
                together.append(write)
                continue
            self._appended(together)
            together = []
            self.reserved_tick = max(self.reserved_tick, write.tick)
            self._promise_silence(self._silence_target)
        self._appended(together)

    def _appended(self, writes: list[AppendToLog]) -> None:
        """Publishes that became durable together are told in one message, and acknowledged one by one."""
        if not writes:
            return
        rows = writes[0].rows if len(writes) == 1 else Batch.concat([write.rows for write in writes])
        self._tell(rows.max_ticks[-1], rows)
        for write in writes:
            producer, sequence, ticks = write.producer, write.sequence, write.rows.max_ticks
            self._pending_names.discard((producer, sequence))
            self.producers.remember(producer, sequence, ticks)
            self._instructions.append(AcknowledgePublish(producer, sequence, ticks, repeated=False))

    def _tell(self, up_to_tick: int, rows: Batch) -> None:
        """All ticks since the last message: these events, otherwise silence."""
        cover = LineageCoverage.of_range(self.covered_tick + 1, up_to_tick)
        self.covered_tick = up_to_tick
        if up_to_tick > self.assigned_tick:
            self.assigned_tick = up_to_tick
        if self.watches and len(rows):
            self.tell_watchers(rows)
        for piece in split_events(cover, rows, self.tuning.message_rows_max):
            for edge in self.out_edges.values():
                self.send(edge.name, piece)
                if edge.mode is Mode.PUSH and not edge.is_pushing:
                    self.arm_push(edge)

    def _stop(self, event: LogFailed) -> None:
        """A failed write may have happened or not: nothing is promised, and nobody guesses."""
        self.is_stopped = True
        for write in self._pending:
            if isinstance(write, AppendToLog):
                self.emit(RefusePublish(write.producer, write.sequence, event.reason, uncertain=True))
        self._pending.clear()
        self._pending_names.clear()
        self.emit(Stopped(event.reason) if event.fenced else RestartMe(event.reason))

    # Silence

    def _silence_due(self, now_us: int) -> None:
        """An idle stream promises silence up to now, so that horizons advance."""
        self.arm("silence", self.tuning.silence_us)
        if not 0 < now_us <= self._now_us_max or self._pending:
            return
        self._silence_target = now_us * self.spec.ticks_per_us - 1
        if self._silence_target <= self.covered_tick:
            return
        if self.is_reserved(self._silence_target):
            self._promise_silence(self._silence_target)
        else:
            tick = self._silence_target + self.tuning.reserve_us * self.spec.ticks_per_us
            self._write_number += 1
            write = ReserveSilence(self.epoch, self._write_number, tick)
            self._pending.append(write)
            self.emit(write)

    def is_reserved(self, tick: int) -> bool:
        """E3: durable before it is promised."""
        return tick <= self.reserved_tick

    def _promise_silence(self, tick: int) -> None:
        """Not past a tick that a pending event already has."""
        appends = [write.rows.max_ticks[0] for write in self._pending if isinstance(write, AppendToLog)]
        tick = min([tick, *(first - 1 for first in appends)])
        if tick > self.covered_tick and self.is_reserved(tick):
            self._tell(tick, Batch.empty(self.relation.width, events=True))

    # Receivers

    def _from_sender(self, edge: str, message: Message) -> None:
        raise self.unknown_edge(edge)

    def _out_edge(self, edge: str) -> OutEdge:
        if edge not in self.out_edges:
            raise self.unknown_edge(edge)
        return self.out_edges[edge]

    def _check_upstream(self, place: Place, message: Upstream) -> None:
        check_event_upstream(place, message, 1)

    def _from_receiver(self, edge: OutEdge, message: Upstream) -> None:
        assert isinstance(edge, EventOutEdge)
        if self.is_stopped:
            return
        match message:
            case EventCuriosity(_, wanted):
                self._look_up(edge, wanted[0])
            case EventAck(_, coverage):
                edge.acknowledge(coverage)
            case Durable(_, horizon):
                edge.note_durable(horizon)
                self._trim()
            case _:
                raise AssertionError("refused by _check_upstream")

    def _look_up(self, edge: EventOutEdge, wanted: Coverage) -> None:
        """E2: answered from the log. One read per edge at a time: the receiver asks again for what is not answered."""
        if edge.name in self._reading:
            self.counters["dropped.reading"] += 1
            return
        known = wanted.intersection(Coverage.prefix(self.covered_tick))
        if known:
            self._reading[edge.name] = known
            self.emit(ReadLog(edge.name, known.copy(), self.tuning.answer_rows_max))
        else:  # nothing new: say so, or the receiver cannot tell it from a lost answer
            self._reply(edge.name, Coverage(), Batch.empty(self.relation.width, events=True))

    def _read(self, event: LogRead) -> None:
        asked = self._reading.get(event.edge)
        if asked is None:
            return  # of an earlier incarnation, or the receiver has left
        if not asked.contains(event.cover) or not asked.contains(event.trimmed) or event.cover.overlaps(event.trimmed):
            raise BadRange(self.name, "LogRead", "ticks that were not asked for, or both read and trimmed")
        if not self.tuning.trusts_peers:
            Place(self.name, "LogRead").check_events(event.rows, LineageCoverage([event.cover]), self.relation)
        del self._reading[event.edge]
        if event.edge in self.out_edges:
            self._answer_read(event)

    def _answer_read(self, event: LogRead) -> None:
        """E2: trimmed ticks are answered "trimmed", never as silence."""
        if event.trimmed:
            self.send(event.edge, Trimmed(LineageCoverage([event.trimmed])))
        if event.cover or not event.trimmed:
            self._reply(event.edge, event.cover, event.rows)

    def _reply(self, edge: str, cover: Coverage, rows: Batch) -> None:
        for piece in split_events(LineageCoverage([cover]), rows, self.tuning.message_rows_max):
            self.send(edge, piece)

    def _trim(self) -> None:
        """C5: below the lowest durable horizon of the direct receivers; one without blocks it."""
        tick = self.trim_point()
        if tick > self.trimmed_tick:
            self.trimmed_tick = tick
            self.emit(TrimLog(tick))

    def trim_point(self) -> int:
        return min(lowest_durable_horizon(self.out_edges), self.covered_tick)

    def _timer_fired(self, kind: str, edge: str, now_us: int) -> None:
        if self.is_stopped:
            return
        if kind == "silence":
            self._silence_due(now_us)
        elif kind == "push":
            if edge in self.out_edges:
                self._push(self.out_edges[edge])
        else:
            raise UnexpectedMessage(self.name, f"{kind}:{edge}", "no such timer")

    def _push(self, edge: EventOutEdge) -> None:
        """Push: repeat from the log what is not acknowledged."""
        unacked = Coverage.prefix(self.covered_tick).difference(edge.acked[0])
        if not unacked:
            edge.is_pushing = False
            return
        self._look_up(edge, unacked)
        edge.push_attempt += 1
        self.arm_push(edge)

    def _attach(self, edge: str, mode: Mode, every_change: bool) -> None:
        if edge not in self.out_edges:
            self.out_edges[edge] = EventOutEdge(edge, mode, 1)
            if mode is Mode.PUSH:
                self.arm_push(self.out_edges[edge])

    def _detach(self, edge: str) -> None:
        del self.out_edges[edge]
        self._reading.pop(edge, None)
        self._trim()
