"""The 29 mistakes of the protocol's own table, each planted by replacing the method that holds the rule.

Two of them concern shapes that this engine does not have (4-6: state edges in any order); they are planted in the
nearest form that it could have taken. Two have two halves (24, 28) and are listed twice.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from runtime.operators.join import Join
from runtime.operators.row_operator import RowOperator
from runtime.protocol import checkpoint
from runtime.protocol.checkpoint import Checkpoint
from runtime.protocol.component import Component
from runtime.protocol.coverage import NO_TICK, TICK_MAX, Coverage
from runtime.protocol.event_component import EventComponent
from runtime.protocol.events import Restarted
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Knowledge
from runtime.protocol.out_edge import StateOutEdge
from runtime.protocol.parts import Assembly, split_events
from runtime.protocol.producers import Producers
from runtime.protocol.receiver import Receiver
from runtime.protocol.state_component import StateComponent
from runtime.protocol.state_in_edge import StateInEdge, Verdict
from runtime.protocol.state_receiver import StateReceiver
from runtime.protocol.stream import StreamComponent
from runtime.simulation import build
from runtime.simulation.planting import Mistake, always, misprinted
from runtime.simulation.world import World


def _tell_whole_coverage(self: Any, up_to_tick: int, rows: Any) -> None:
    self.covered_tick = up_to_tick
    self.assigned_tick = max(self.assigned_tick, up_to_tick)
    cover = LineageCoverage([Coverage.prefix(up_to_tick)])
    for piece in split_events(cover, rows, self.tuning.message_rows_max):
        for edge in self.out_edges.values():
            self.send(edge.name, piece)


_answer_same_epoch = StateComponent._answer_same_epoch


def _answer_first_step_only(self: Any, edge: Any, question: Any) -> None:
    """4: rows of the first missing step, labelled as if all were there."""
    rows = self.operator.rows
    first = [s for s in rows.touched_since(question.applied_step) if rows.last_step[s] == question.applied_step + 1]
    if question.applied_step == self.step or not self.remembers_since(question.coverage.horizon()):
        _answer_same_epoch(self, edge, question)
        return
    batch = self._filtered(edge, rows.select(first))
    message = Knowledge(self.epoch, question.applied_step, self.step, self.coverage(), batch, edge.quench_epoch)
    self._send_state(edge, message)


def _answer_by_highest_tick(self: Any, edge: Any, question: Any) -> None:
    """6: rows that depend on a later tick than any covered one, as if order did not matter."""
    if question.applied_step == self.step:
        self._send_heartbeat(edge)
        return
    batch = self._filtered(edge, self.operator.rows.select(self.operator.rows.above(question.coverage.highest())))
    message = Knowledge(self.epoch, question.applied_step, self.step, self.coverage(), batch, edge.quench_epoch)
    self._send_state(edge, message)


def _unite_coverage(self: Any, message: Any) -> LineageCoverage:
    united: LineageCoverage = self.coverage.copy()
    united.update(message.coverage)
    return united


_restarted = Component._restarted


def _keep_epoch(self: Any, event: Any) -> None:
    if not isinstance(self, StreamComponent):
        event = replace(event, epoch=1)
    _restarted(self, event)


_put = RowOperator.put


def _keep_first_tick(self: Any, key: Any, values: Any, visible: bool, tick: int, touched: list[int]) -> None:
    slot = self.rows.slot_of(key)
    held = self.rows.max_tick[slot] if slot >= 0 else NO_TICK
    _put(self, key, values, visible, tick, touched)
    if held != NO_TICK:
        self.rows.max_tick[slot] = held


_adopt = StateInEdge.adopt


def _adopt_without_step(self: Any, message: Any) -> None:
    _adopt(self, message)
    self.applied_step = 0


_results = Join._results


def _own_side_only(self: Any, edge: int, batch: Any, moves: Any, old: Any) -> Any:
    """The ticks of all rows are hidden, except those that just arrived."""
    sides = self.sides()
    arrived = {slot for slot, _, _ in moves}
    for side in (0, 1):
        ticks = enumerate(sides[3 * side + 2])
        sides[3 * side + 2] = [tick if side == edge and slot in arrived else NO_TICK for slot, tick in ticks]
    self.sides = lambda: sides
    found = _results(self, edge, batch, moves, old)
    del self.sides
    return found


def _skip_unchanged(self: Any, key: Any, values: Any, visible: bool, tick: int, touched: list[int]) -> None:
    slot = self.rows.slot_of(key)
    if slot >= 0 and self.rows.visible[slot] == visible and self.rows.row_at(slot)[len(key) :] == tuple(values):
        return
    _put(self, key, values, visible, tick, touched)


def _skip_equal(floor: re.Match[str]) -> str:
    """The same in a loop: where a versioned row is about to be written, with what is written after it."""
    indent, changes = floor["indent"], re.findall(r"(o[0-9]+\[slot\]) = (.*)", floor["changes"])
    same = "".join(f" and {cell} == {value}" for cell, value in changes)
    return f"{indent}if shown[slot] == seen{same}:\n{indent}    continue\n{floor[0]}"


LATER_TICK = r"\(seen or tick <= ticks\[slot\]\)|\(tick == ticks\[slot\] if seen else tick <= ticks\[slot\]\)"
VERSIONED_PUT = r"(?P<indent> *)if tick < floor:\n *tick = floor\n(?P<changes>(?: *o[0-9]+\[slot\] = .*\n)*)"


_send_snapshot = StateComponent._send_snapshot


def _complete_from_horizon(self: Any, edge: Any, question: Any, *, complete: bool) -> None:
    self.rows_of_complete = lambda: self.rows_above(question.coverage.horizon())
    _send_snapshot(self, edge, question, complete=complete)
    del self.rows_of_complete


_init = Receiver.__init__


def _remember_streams(self: Any, plan: Any, name: str) -> None:
    _init(self, plan, name)
    self.streams = plan.lineages[name]


_coverage = Receiver.coverage


def _any_edge_covers(self: Any) -> LineageCoverage:
    parts = list(_coverage(self))
    same = [[p for p, t in zip(parts, self.streams, strict=True) if t == s] for s in self.streams]
    united = []
    for group in same:
        whole = Coverage()
        for part in group:
            whole.update(part)
        united.append(whole)
    return LineageCoverage(united)


def _all_edges_cover(self: Any) -> LineageCoverage:
    parts = list(_coverage(self))
    common = []
    for stream in self.streams:
        whole = Coverage.prefix(TICK_MAX)
        for part, other in zip(parts, self.streams, strict=True):
            if other == stream:
                whole = whole.intersection(part)
        common.append(whole)
    return LineageCoverage(common)


def _durable_from_memory(self: Any, in_checkpoint: dict[str, int]) -> dict[str, int]:
    return {name: self.in_edges[name].coverage.horizon() for name in in_checkpoint}


def _trimmed_as_silence(self: Any, event: Any) -> None:
    self._reply(event.edge, event.cover.union(event.trimmed), event.rows)


def _answer_below_trim(_: Any, wanted: LineageCoverage, known: LineageCoverage) -> LineageCoverage:
    return wanted.intersection(known)


def _first_part_is_all(_: Any, part: Any) -> Any:
    return part.message


_judge_knowledge = StateInEdge.judge_knowledge


def _go_on_in_new_epoch(self: Any, message: Any) -> Verdict:
    if self.adopted_epoch and message.epoch > self.adopted_epoch:
        self.adopted_epoch, self.applied_step = message.epoch, message.from_step
    return _judge_knowledge(self, message)


_checkpoint_for = World._checkpoint_for


def _bulk_under_live(self: Any, name: str, wish: str) -> Any:
    found = _checkpoint_for(self, name, wish)
    live = self.live(name)
    if found is None or found[0] is None or found[0].bulk_horizon is None or live is None:
        return found
    mine = live.component.checkpoint()
    edges = []
    for own, bulk in zip(mine.edges, found[0].edges, strict=True):
        united = own.coverage.copy()
        united.update(bulk.coverage)
        edges.append(replace(own, coverage=united))
    return Checkpoint(name, tuple(edges), mine.drop_floor, mine.in_floor, mine.state), found[1]


_bulk_install = checkpoint.bulk_install


def _bulk_without_floor(*arguments: Any) -> Checkpoint:
    return replace(_bulk_install(*arguments), drop_floor=NO_TICK, in_floor=NO_TICK)


def _bulk_keeps_epoch(self: Any, event: Any) -> None:
    bulk = isinstance(event, Restarted) and event.checkpoint is not None and event.checkpoint.bulk_horizon is not None
    if bulk and event.epoch > 1:
        event = replace(event, epoch=event.epoch - 1)
    _restarted(self, event)


def _bulk_too_old(self: Any, name: str, wish: str) -> Any:
    found = _checkpoint_for(self, name, wish)
    if found is None or found[0] is None or found[0].bulk_horizon is None:
        return found
    return build.bulk_checkpoint(self.plan, self.oracle, name, found[0].bulk_horizon // 2), -1


NO_GROWTH_CHECK = (StateReceiver, "_check_growth", always(None))

SPECIFIED: tuple[Mistake, ...] = (
    Mistake(
        "1 cover of all", "a stream's message covers all its ticks", ((StreamComponent, "_tell", _tell_whole_coverage),)
    ),
    Mistake("2 gap accepted", "knowledge with from > applied", ((StateInEdge, "leaves_a_gap", always(False)),)),
    Mistake("3 stale accepted", "to <= applied", ((StateInEdge, "is_stale", always(False)), NO_GROWTH_CHECK)),
    Mistake(
        "4 part of the gap",
        "the rows of the first missing step pass for all",
        ((StateComponent, "_answer_same_epoch", _answer_first_step_only),),
    ),
    Mistake(
        "5 any order, united",
        "state rows in any order, coverages united",
        (
            (StateInEdge, "leaves_a_gap", always(False)),
            (StateInEdge, "is_stale", lambda self, message: self.coverage.contains(message.coverage)),
            (StateInEdge, "coverage_after", _unite_coverage),
            NO_GROWTH_CHECK,
        ),
    ),
    Mistake(
        "6 repeats by tick",
        "an answer lists rows by tick, not by step",
        ((StateComponent, "_answer_same_epoch", _answer_by_highest_tick),),
    ),
    Mistake("7 epoch kept", "a restart keeps the epoch", ((Component, "_restarted", _keep_epoch),)),
    Mistake(
        "8 first tick",
        "max_tick stays that of the first event",
        (
            (RowOperator, "put", _keep_first_tick),
            misprinted(".*", (r"ticks\[slot\] = tick\n", "ticks[slot] = tick if ticks[slot] < 0 else ticks[slot]\n")),
        ),
    ),
    Mistake(
        "9 no domination",
        "snapshots offered and taken without comparing coverages",
        ((StateComponent, "may_offer", always(True)), (StateInEdge, "dominates", always(True))),
    ),
    Mistake(
        "10 fell back",
        "a snapshot taken by a receiver that fell back since it asked",
        ((StateInEdge, "reaches_back_enough", always(True)),),
    ),
    Mistake(
        "11 before the snapshot",
        "messages of the new epoch from before the snapshot count after it",
        ((StateInEdge, "adopt", _adopt_without_step), NO_GROWTH_CHECK),
    ),
    Mistake("12 one side", "a join's max_tick is that of the arriving side", ((Join, "_results", _own_side_only),)),
    Mistake(
        "13 unchanged group",
        "a reached versioned row is not resent",
        ((RowOperator, "put", _skip_unchanged), misprinted(".*", (VERSIONED_PUT, _skip_equal), (LATER_TICK, "True"))),
    ),
    Mistake(
        "14 forgotten early",
        "tombstones go before all acknowledged",
        ((StateComponent, "forgettable_tick", always(TICK_MAX)),),
    ),
    Mistake(
        "15 floor lost",
        "forgetting does not raise F",
        ((StateComponent, "floor_after", lambda self, _: self.drop_floor),),
    ),
    Mistake(
        "16 floor not inherited",
        "a complete snapshot does not raise F",
        ((StateComponent, "inherited_floor", lambda self, _: self.drop_floor),),
    ),
    Mistake(
        "17 never visible",
        "no tombstone for a row never visible here",
        (
            misprinted(
                "match.py.j2", (r"( *)slot = enter\(key\)\n", r"\1if not seen:\n\1    continue\n\1slot = enter(key)\n")
            ),
        ),
    ),
    Mistake(
        "18 complete as asked",
        "a complete snapshot lists only what lies above the horizon",
        ((StateComponent, "_send_snapshot", _complete_from_horizon),),
    ),
    Mistake("19 quench survives", "a quench outlives the receiver", ((StateOutEdge, "forget_quench", always(None)),)),
    Mistake(
        "20 union of edges",
        "a tick is covered when one edge has it",
        ((Receiver, "__init__", _remember_streams), (Receiver, "coverage", _any_edge_covers)),
    ),
    Mistake(
        "21 intersection of edges",
        "a tick is covered when all edges have it",
        ((Receiver, "__init__", _remember_streams), (Receiver, "coverage", _all_edges_cover)),
    ),
    Mistake(
        "22 durable from memory",
        "durable is the present horizon",
        ((Receiver, "durable_horizons", _durable_from_memory),),
    ),
    Mistake(
        "23 trimmed as silence",
        "trimmed ticks are answered as silence",
        ((StreamComponent, "_answer_read", _trimmed_as_silence), (EventComponent, "answerable", _answer_below_trim)),
    ),
    Mistake("24 unreserved", "silence promised without reservation", ((StreamComponent, "is_reserved", always(True)),)),
    Mistake("24b repeat logged", "a repeated publish is logged again", ((Producers, "ticks_of", always(None)),)),
    Mistake(
        "25 coverage before rows", "the first part of an answer counts as all", ((Assembly, "add", _first_part_is_all),)
    ),
    Mistake(
        "26 on in a new epoch",
        "a new epoch continues where it is",
        ((StateInEdge, "judge_knowledge", _go_on_in_new_epoch), NO_GROWTH_CHECK),
    ),
    Mistake(
        "27 bulk under live", "bulk coverage united with live rows", ((World, "_checkpoint_for", _bulk_under_live),)
    ),
    Mistake("28 bulk without F", "a bulk install raises no floor", ((build, "bulk_install", _bulk_without_floor),)),
    Mistake(
        "28b bulk in the epoch", "a bulk install without a new epoch", ((Component, "_restarted", _bulk_keeps_epoch),)
    ),
    Mistake(
        "29 old bulk",
        "a bulk install older than the own durable acknowledgement",
        ((World, "_checkpoint_for", _bulk_too_old), (Receiver, "is_bulk_too_old", always(False))),
    ),
)
