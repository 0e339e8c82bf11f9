"""More mistakes that somebody could plausibly make, in the protocol, the operators, the stores and the shell.

Number 46, `in_floor` missing in the checkpoint, is not here: it changes nothing that can be observed. Where a floor
lies above the horizon, the operator that hides rows has already raised the max_tick of every row to it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from runtime.kernels.copy import ColumnarCopy
from runtime.operators.copy import Copy
from runtime.operators.count_distinct import OfDistinct
from runtime.operators.join import Join
from runtime.operators.latest import Latest
from runtime.operators.operator import Operator
from runtime.operators.select import SelectState
from runtime.operators.top import TopOfEvents
from runtime.protocol import event_component, parts, stream
from runtime.protocol.checkpoint import Checkpoint
from runtime.protocol.coverage import NO_TICK, Coverage
from runtime.protocol.event_component import EventComponent
from runtime.protocol.event_in_edge import EventInEdge
from runtime.protocol.events import AcknowledgePublish
from runtime.protocol.leaf import Leaf
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Events, Quench
from runtime.protocol.out_edge import StateOutEdge
from runtime.protocol.receiver import Receiver
from runtime.protocol.standing_quench import StandingQuench
from runtime.protocol.state_component import StateComponent
from runtime.protocol.state_in_edge import StateInEdge
from runtime.protocol.state_receiver import StateReceiver
from runtime.protocol.stream import StreamComponent
from runtime.rows import Rows
from runtime.simulation import build
from runtime.simulation.planting import Mistake, always, misprinted
from runtime.simulation.stores import CheckpointStore, LogStore


def _learn_one_more(self: Any, novel: LineageCoverage) -> None:
    for mine, new in zip(self.coverage, novel, strict=True):
        for first, last in new:
            mine.add(first, last + 1)


_ACKNOWLEDGE = StateOutEdge.acknowledge


def _acknowledge_any_epoch(self: Any, ack: Any, _: int) -> bool:
    return _ACKNOWLEDGE(self, ack, ack.adopted_epoch)


_LOAD = StateComponent._load


def _load_without_rows(self: Any, checkpoint: Checkpoint | None) -> None:
    _LOAD(self, checkpoint)
    if isinstance(self, Leaf) and checkpoint is not None:
        self.operator = self._fresh_operator()


def _release_newest(self: Any) -> Any:
    self.held = [message for message in self.held if message.to_step > self.applied_step]
    return self.held.pop() if self.held else None


def _cover_again(_: Any, cover: LineageCoverage) -> LineageCoverage:
    return cover


def _answer_unknown(self: Any, wanted: LineageCoverage, known: LineageCoverage) -> LineageCoverage:
    below = LineageCoverage.prefix(self.lineages_count, self.trimmed_tick)
    known = LineageCoverage(Coverage.prefix(part.highest()) for part in known)
    return wanted.intersection(known).difference(below)


_EXPORT = Rows.export


def _export_without_tombstone_ticks(self: Any) -> dict[str, object]:
    data = _EXPORT(self)
    visible, ticks = data["visible"], data["max_tick"]
    assert isinstance(visible, list)
    assert isinstance(ticks, list)
    data["max_tick"] = [tick if seen else min(tick, 0) for seen, tick in zip(visible, ticks, strict=True)]
    return data


def _compact_a_live_entry(self: Any) -> None:
    if len(self.journal_steps) > 4:
        del self.journal_steps[0], self.journal_slots[0]


_ANCHORED = Join._anchored


def _forget_default(self: Any, reached: Any, sides: Any, results: Any) -> None:
    """Once a row had a partner, losing it hides the row instead of showing the default again."""
    before = dict(results)
    _ANCHORED(self, reached, sides, results)
    if self._default is None:
        return
    for key, (visible, depends, *values) in results.items():
        held = self.rows.slot_of(key)
        default = values[-1:] == list(self._default[-1:])
        if key not in before and visible and held >= 0 and default and self.rows.columns[-1][held] != values[-1]:
            results[key] = (False, depends, *values)


ONE_MORE = r"(part\[[0-9]+\] (.)= value\n *part\[[0-9]+\] \2= 1)\n"
"""Where a row adds its value and one to an average, or takes them away."""


def _latest_arrival(self: Any, _: int, batch: Any, __: Any) -> list[int]:
    touched: list[int] = []
    width = self.relation.key_width
    for row, tick in zip(batch.rows(), batch.max_ticks, strict=True):
        made = [row[number] for number in self.spec.columns]
        self.put(tuple(made[:width]), made[width:], True, tick, touched)
    return touched


def _any_parts(part: Any) -> tuple[object, ...]:
    return (part.count, type(part.message))


_OPEN = LogStore.open


def _open_without_fence(self: Any, epoch: int) -> Any:
    before = self.fence_epoch
    found = _OPEN(self, epoch)
    self.fence_epoch = before
    return found


_FROM_RECEIVER = StateComponent._from_receiver


def _quench_drops(self: Any, edge: Any, message: Any) -> None:
    """T5: a quench only filters an edge."""
    _FROM_RECEIVER(self, edge, message)
    if isinstance(message, Quench):
        for key in message.keys:
            slot = self.operator.rows.slot_of(key)
            if slot >= 0:
                self._tombstones.pop(slot, None)
                self.operator.forget_all([slot])


_CHECKPOINT = StateComponent.checkpoint


def _checkpoint_without_floor(self: Any) -> Checkpoint:
    made = _CHECKPOINT(self)
    return Checkpoint(made.component, made.edges, NO_TICK, made.in_floor, made.state, made.bulk_horizon)


def _checkpoint_torn(self: Any) -> Checkpoint:
    """The edges of now with the rows of the last time: not one cut (C1)."""
    made = _CHECKPOINT(self)
    state = getattr(self, "_earlier_state", made.state)
    self._earlier_state = made.state
    return Checkpoint(made.component, made.edges, made.drop_floor, made.in_floor, state)


def _highest_durable_horizon(out_edges: Any) -> int:
    return max((edge.durable_horizon or NO_TICK for edge in out_edges.values()), default=NO_TICK)


def _reported_durable_horizon(out_edges: Any) -> int:
    reported = [edge.durable_horizon for edge in out_edges.values() if edge.durable_horizon is not None]
    return min(reported, default=NO_TICK)


def _highest_position(self: Any) -> tuple[int, int, int]:
    return self.adopted_epoch, self.applied_step, self.coverage.highest()


_PUBLISH = StreamComponent._publish


def _acknowledge_at_once(self: Any, event: Any) -> None:
    _PUBLISH(self, event)
    for write in self._pending:
        if getattr(write, "producer", None) == event.producer and write.sequence == event.sequence:
            self.emit(AcknowledgePublish(event.producer, event.sequence, tuple(write.rows.max_ticks), repeated=False))


def _assign_by_clock(self: Any, now_us: int, count: int) -> list[int]:
    lowest = now_us * self.spec.ticks_per_us
    first = lowest + (self.spec.residue - lowest) % self.spec.modulus
    self.assigned_tick = first + (count - 1) * self.spec.modulus
    return [first + i * self.spec.modulus for i in range(count)]


def _widen_to_first(self: Any, _: Any, cover: LineageCoverage) -> LineageCoverage:
    made = [Coverage() for _ in range(self.lineages_count)]
    made[: len(cover)] = list(cover)
    return LineageCoverage(made)


def _tell_before_logged(self: Any, event: Any) -> None:
    _PUBLISH(self, event)
    if self._pending and hasattr(self._pending[-1], "rows"):
        rows = self._pending[-1].rows
        self._tell(max(rows.max_ticks), rows)


def _choose_any(self: Any, wish: str) -> tuple[Checkpoint | None, bool]:
    """The shell forgets C4: with `none` it starts from nothing although a checkpoint was acknowledged."""
    if wish == "none":
        return None, True
    for stored in reversed([*([self.reported] if self.reported else []), *self.later]):
        checkpoint = stored.load()
        if checkpoint is not None:
            return checkpoint, True
    return None, True


def _show_driven_out(self: Any, ranked: Any, first: int, places: list[Any]) -> None:
    """Rows driven out of the top are dropped from the ranking, but nobody hides them."""
    for place in range(first, min(self._inside(ranked), len(ranked))):
        slot = ranked[place][2]
        places.append((slot, place + 1, self.rows.columns[0][slot]))
    del ranked[self._inside(ranked) :]


def _quench_unseen(self: Any, edge: int, batch: Any) -> list[Any]:  # noqa: ARG001
    """Rows that are rejected now are taken for rejected for ever."""
    rows = self.rows
    keys = batch.keys(self.relation.key_width)
    return [key for key, seen in zip(keys, batch.visible, strict=True) if seen and not rows.visible[rows.slot_of(key)]]


_RESTORE_EXTRA = Operator.restore


def _restore_without_inputs(self: Any, data: dict[str, object], bulk_horizon: int | None = None) -> None:
    _RESTORE_EXTRA(self, data, bulk_horizon)
    for edge, relation in enumerate(self.input_relations):
        if self.inputs[edge] is not None and self.inputs[edge] is not self.rows:
            self.inputs[edge] = Rows(relation.key_width, relation.width)


def _changes_without_tombstones(self: Any, touched: list[int]) -> Any:
    return self.rows.select([slot for slot in touched if self.rows.visible[slot]])


def _changed_and_visible(self: Any, touched: list[int]) -> Any:
    told = self.every_change(touched)
    return told.take([i for i, seen in enumerate(told.visible) if seen])


_WANTED_OF = build.wanted_of


def _the_opposite(node: Any, kinds: Any) -> Any:
    wanted = _WANTED_OF(node, kinds)
    return None if wanted is None else lambda *row: not wanted(*row)


_QUENCHED = StandingQuench.applied


def _more_than_asked(self: Any, message: Any) -> Any:
    """Stronger than what the receiver selects: the last event too."""
    left: Any = _QUENCHED(self, message)
    return replace(left, rows=left.rows.slice(0, len(left.rows) - 1)) if isinstance(left, Events) else left


def _quench_ticks(self: Any, message: Any) -> Any:
    """What is left out is not known either: the receiver will ask for ever."""
    left: Any = _QUENCHED(self, message)
    if left is not message:
        gone = set(message.rows.max_ticks) - set(left.rows.max_ticks)
        unknown = LineageCoverage(Coverage.of(*((tick, tick) for tick in gone)) for _ in message.cover)
        left = Events(message.cover.difference(unknown), left.rows)
    return left


FURTHER: tuple[Mistake, ...] = (
    Mistake("30 one tick more", "coverage grows by one tick too many", ((EventInEdge, "learn", _learn_one_more),)),
    Mistake(
        "31 ack of another epoch", "T2 without the epoch", ((StateOutEdge, "acknowledge", _acknowledge_any_epoch),)
    ),
    Mistake(
        "32 token without rows",
        "a subscriber resumes, but its rows are gone",
        ((StateComponent, "_load", _load_without_rows),),
    ),
    Mistake("33 held in wrong order", "the newest held message first", ((StateInEdge, "release", _release_newest),)),
    Mistake("34 repeats counted", "known ticks are applied again", ((EventInEdge, "novel_cover", _cover_again),)),
    Mistake(
        "35 reservation ignored",
        "a restarted stream starts after its last event",
        ((StreamComponent, "first_covered", lambda _, last, __: last),),
    ),
    Mistake("36 answered unknown", "gaps are answered as silence", ((EventComponent, "answerable", _answer_unknown),)),
    Mistake(
        "37 tombstone tick lost",
        "a checkpoint forgets max_tick of tombstones",
        ((Rows, "export", _export_without_tombstone_ticks),),
    ),
    Mistake(
        "38 journal entry lost", "compaction drops a live entry", ((Rows, "_compact_a_piece", _compact_a_live_entry),)
    ),
    Mistake(
        "39 default not restored",
        "a left row that loses its partner vanishes",
        ((Join, "_anchored", _forget_default),),
    ),
    Mistake(
        "40 average of parts",
        "zeros do not count in an average",
        (misprinted("group_by.py.j2", (ONE_MORE, r"\1 if value else 0\n")),),
    ),
    Mistake("41 latest arrival", "latest by order of arrival", ((Latest, "apply", _latest_arrival),)),
    Mistake(
        "42 distinct forgotten",
        "count distinct restarts with an empty set",
        ((OfDistinct, "export", lambda self: [[], self._total.export()]),),
    ),
    Mistake("43 mixed parts", "parts of different answers put together", ((parts, "_identity", _any_parts),)),
    Mistake("44 no fence", "the log takes writes of an older incarnation", ((LogStore, "open", _open_without_fence),)),
    Mistake(
        "45 quench drops", "a quench lets the sender drop the row", ((StateComponent, "_from_receiver", _quench_drops),)
    ),
    Mistake(
        "47 floor not saved", "F is not in the checkpoint", ((StateComponent, "checkpoint", _checkpoint_without_floor),)
    ),
    Mistake(
        "48 complete without tombstones",
        "held tombstones are not listed",
        ((StateComponent, "rows_of_complete", lambda self: self.operator.rows.visible_slots()),),
    ),
    Mistake(
        "49 torn checkpoint",
        "coverage and rows of different moments",
        ((StateComponent, "checkpoint", _checkpoint_torn),),
    ),
    Mistake(
        "50 trim by the highest",
        "trimmed above the lowest durable horizon",
        (
            (stream, "lowest_durable_horizon", _highest_durable_horizon),
            (event_component, "lowest_durable_horizon", _highest_durable_horizon),
        ),
    ),
    Mistake(
        "51 trim without asking",
        "a receiver that never reported does not block",
        (
            (stream, "lowest_durable_horizon", _reported_durable_horizon),
            (event_component, "lowest_durable_horizon", _reported_durable_horizon),
        ),
    ),
    Mistake(
        "52 ack of the highest",
        "acknowledges the highest tick, not the horizon",
        ((StateInEdge, "position", _highest_position),),
    ),
    Mistake("53 cut too early", "a cut is delivered before it is one", ((Leaf, "is_cut", always(True)),)),
    Mistake(
        "54 final too early",
        "visible is called final",
        ((Leaf, "is_final", lambda self, slot, _: self.operator.rows.visible[slot]),),
    ),
    Mistake(
        "55 old snapshot",
        "a snapshot of an older step is taken",
        ((StateInEdge, "is_newer", always(True)), (StateInEdge, "dominates", always(True))),
    ),
    Mistake(
        "56 ack before log",
        "a publish is acknowledged before it is durable",
        ((StreamComponent, "_publish", _acknowledge_at_once),),
    ),
    Mistake("57 tick by clock", "ticks follow a clock that jumps", ((StreamComponent, "_assign", _assign_by_clock),)),
    Mistake(
        "58 lineage mixed up",
        "a merge says it all about its first source",
        ((EventComponent, "_widen", _widen_to_first),),
    ),
    Mistake(
        "59 told before logged",
        "events are sent before they are durable",
        ((StreamComponent, "_publish", _tell_before_logged),),
    ),
    Mistake(
        "60 C4 forgotten",
        "started from nothing after a durable acknowledgement",
        ((CheckpointStore, "choose", _choose_any),),
    ),
    Mistake("61 driven out, still shown", "top-k hides nothing", ((TopOfEvents, "_settle", _show_driven_out),)),
    Mistake(
        "62 quench too early",
        "rejected now is taken for rejected for ever",
        ((SelectState, "dead_input_keys", _quench_unseen),),
    ),
    Mistake(
        "63 input state lost",
        "a checkpoint restores rows, not the input state",
        ((Operator, "restore", _restore_without_inputs),),
    ),
    Mistake(
        "64 filtered for another",
        "messages filtered for another incarnation are taken",
        ((StateInEdge, "is_filtered_for_another", always(False)), (StateOutEdge, "forget_quench", always(None))),
    ),
    Mistake(
        "66 never asks again",
        "one lost question is never repeated",
        ((Receiver, "_ask_again", always(None)), (Receiver, "_poll", always(None))),
    ),
    Mistake(
        "67 unknown tombstones",
        "hidden wanderers do not raise F",
        ((StateComponent, "knows_tombstones_above", always(True)),),
    ),
    Mistake(
        "68 lost coverage on hold",
        "held messages are dropped and not asked for",
        ((StateReceiver, "_fall_behind", always(None)),),
    ),
    Mistake(
        "69 changes without tombstones",
        "an edge that tells every change leaves out what was never visible",
        ((Operator, "every_change", _changes_without_tombstones), (Copy, "every_change", Copy.changed)),
    ),
    Mistake(
        "70 gone, not told",
        "those who watch a subscriber are not told of rows that vanish",
        ((Copy, "changed", _changed_and_visible), (ColumnarCopy, "changed", _changed_and_visible)),
    ),
    Mistake("71 the wanted quenched", "a standing quench the other way round", ((build, "wanted_of", _the_opposite),)),
    Mistake(
        "72 quenched too much",
        "a standing quench leaves out what the receiver would select",
        ((StandingQuench, "applied", _more_than_asked),),
    ),
    Mistake(
        "73 quenched ticks unknown",
        "a standing quench takes ticks out of the cover",
        ((StandingQuench, "applied", _quench_ticks),),
    ),
    Mistake(
        "74 forgotten and not known",
        "a receiver that asks in the same epoch is not told that tombstones were forgotten",
        ((StateComponent, "remembers_since", always(True)),),
    ),
)
