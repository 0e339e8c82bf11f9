"""What a state component does with messages of its state in-edges: rules S2, S3, S6, S7 carried out.

`StateInEdge` judges, this file acts: applies rows through the operator, holds, asks, adopts, quenches.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from runtime import plan as plans
from runtime.batch import Batch
from runtime.operators.errors import OperatorError
from runtime.operators.operator import Operator
from runtime.protocol.coverage import NO_TICK, TICK_MAX
from runtime.protocol.errors import BadRange, BadShape, BadType, TooLarge
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Heartbeat, Knowledge, Part, Quench, Snapshot
from runtime.protocol.receiver import Receiver
from runtime.protocol.state_in_edge import StateInEdge, Verdict
from runtime.protocol.validation import Place, is_plain_row


def _is_plain_head(message: Knowledge, lineages_count: int) -> bool:
    """Is all but the rows as nearly always, with nothing wrong in it? Quickly; a no means that somebody has to look."""
    epoch, from_step, to_step, floor = message.epoch, message.from_step, message.to_step, message.floor
    return (
        type(epoch) is type(from_step) is type(to_step) is type(floor) is int
        and epoch >= 1
        and 0 <= from_step < to_step
        and NO_TICK <= floor <= TICK_MAX
        and message.filtered_for is None
        and type(message.coverage) is LineageCoverage
        and len(message.coverage) == lineages_count
    )


class StateReceiver(Receiver):
    """`in_floor`: the largest floor that a sender has told, or that the operator hides below."""

    operator: Operator

    def __init__(self, plan: plans.Plan, name: str) -> None:
        super().__init__(plan, name)
        self.in_floor = NO_TICK

    @abstractmethod
    def _advance(self, touched: Sequence[int]) -> None: ...

    @abstractmethod
    def _floors(self) -> tuple[int, int, int]: ...

    @abstractmethod
    def _floors_with(self, floor: int) -> tuple[int, int, int]: ...

    @abstractmethod
    def _set_floors(self, floors: tuple[int, int, int]) -> None: ...

    @abstractmethod
    def _inherit(self, floor: int) -> None: ...

    # Checks

    def _check_knowledge(self, edge: StateInEdge, message: Knowledge) -> None:
        if not _is_plain_head(message, edge.lineages_count):
            place = Place(self.name, edge.name)
            self._check_head(place, edge, message)
            place.check_step(message.from_step)
            place.check_tick(message.floor)
            if message.from_step >= message.to_step:
                raise BadRange(self.name, edge.name, f"steps ({message.from_step}, {message.to_step}]")
        if not self.tuning.trusts_peers and not is_plain_row(message.rows, edge.types):
            Place(self.name, edge.name).check_changes(message.rows, edge.relation)

    def _check_snapshot(self, edge: StateInEdge, message: Snapshot) -> None:
        place = Place(self.name, edge.name)
        self._check_head(place, edge, message)
        place.check_tick(message.horizon)
        place.check_tick(message.floor)
        if type(message.complete) is not bool:
            raise BadType(self.name, edge.name, f"complete is {message.complete!r}")
        if not self.tuning.trusts_peers:
            place.check_rows(message.rows, edge.relation)

    def _check_head(self, place: Place, edge: StateInEdge, message: Knowledge | Snapshot) -> None:
        place.check_epoch(message.epoch)
        place.check_step(message.to_step)
        place.check_coverage(message.coverage, edge.lineages_count)
        if message.filtered_for is not None:
            place.check_epoch(message.filtered_for)

    # Messages

    def _knowledge_arrived(self, edge: StateInEdge, message: Knowledge) -> None:
        self._check_knowledge(edge, message)
        if edge.is_filtered_for_another(message.filtered_for, self.epoch):
            self._drop(edge, "filtered")
            self._fall_behind(edge)
            return
        edge.hear_of(message.epoch)
        verdict = edge.judge_knowledge(message)
        if verdict is Verdict.APPLY:
            self._check_growth(edge, message.coverage)
            self._continue(edge, message)
        elif verdict is Verdict.DROP:
            self._drop(edge, "stale")
        else:
            if verdict is Verdict.HOLD and not edge.hold(message, self.tuning.held_messages_max):
                self.counters["dropped.no_room"] += 1
            if edge.should_hasten(message.epoch, message.coverage):
                edge.asker.answered()
            self._fall_behind(edge)

    def _continue(self, edge: StateInEdge, message: Knowledge) -> None:
        """S2: apply, then whatever was held back for it."""
        following: Knowledge | None = message
        while following is not None:
            if not self._take(edge, following, following.rows):
                return
            following = edge.release() if edge.held else None
        self._caught_up(edge)

    def _check_growth(self, edge: StateInEdge, coverage: LineageCoverage) -> None:
        """Knowledge only grows: within an epoch no correct sender says less than before."""
        if not coverage.contains(edge.coverage):
            raise BadRange(self.name, edge.name, "the sender's coverage shrank within its epoch")

    def _snapshot_arrived(self, edge: StateInEdge, message: Snapshot) -> None:
        self._check_snapshot(edge, message)
        if edge.is_filtered_for_another(message.filtered_for, self.epoch):
            self._drop(edge, "filtered")
            self._fall_behind(edge)
            return
        edge.hear_of(message.epoch)
        verdict = edge.judge_snapshot(message)
        if verdict is Verdict.APPLY:
            self._adopt(edge, message)
        elif verdict is Verdict.DROP:
            self._drop(edge, "stale")
        else:  # S6: rejected; the question is asked again with the present coverage, in its own time
            self.counters["snapshots_rejected"] += 1
            self._fall_behind(edge)

    def _adopt(self, edge: StateInEdge, message: Snapshot) -> None:
        """S6. The operator sees rows that replace rows, as always."""
        copy = self.operator.inputs[edge.index]
        assert copy is not None, "state edges are always copied"
        rows, floors = message.rows, self._floors()
        if message.complete:
            self._set_floors(self._floors_with(message.floor))  # the operator computes with them
            rows = edge.rows_of_complete(message, copy)
        if not self._take(edge, message, rows):
            self._set_floors(floors)
            return
        self.counters["snapshots_adopted"] += 1
        following = edge.release()
        if following is not None:
            self._continue(edge, following)
        else:
            self._caught_up(edge)

    def _take(self, edge: StateInEdge, message: Knowledge | Snapshot, rows: Batch) -> bool:
        """S1: one message is one step. Without new ticks there is one only if rows were touched all the same.

        False if the operator could not compute it: then nothing has changed, and the edge stays behind.
        """
        try:
            touched = self.operator.take(edge.index, rows)
        except OperatorError as failure:
            self._report_failure(edge, failure)
            self._fall_behind(edge)
            return False
        before = edge.coverage
        if type(message) is Knowledge:
            edge.continue_to(message)
            self._inherit(message.floor)
        else:
            assert isinstance(message, Snapshot)
            edge.adopt(message)
        self._coverage = None
        edge.progressed = True
        self._has_changed = True
        if len(touched) or edge.coverage != before:
            self._advance(touched)
        if self.tuning.quench_keys:
            self._quench(edge, rows)
        return True

    def _heartbeat_arrived(self, edge: StateInEdge, message: Heartbeat) -> None:
        place = Place(self.name, edge.name)
        place.check_epoch(message.epoch)
        place.check_step(message.step)
        place.check_coverage(message.coverage, edge.lineages_count)
        edge.hear_of(message.epoch)
        if edge.is_ahead(message):
            if edge.should_hasten(message.epoch, message.coverage):
                edge.asker.answered()
            self._fall_behind(edge)
        elif message.epoch == edge.adopted_epoch:
            edge.progressed = True
            self._caught_up(edge)
        else:
            self._drop(edge, "stale")

    def _part_arrived(self, edge: StateInEdge, part: Part) -> None:
        message = part.message
        if not isinstance(message, Knowledge | Snapshot):
            raise BadShape(self.name, edge.name, f"a part of {type(message).__name__}")
        if not 0 <= part.index < part.count or part.rows_count < 0:
            raise BadShape(self.name, edge.name, f"part {part.index} of {part.count}")
        if part.rows_count > self.tuning.assembly_rows_max:
            raise TooLarge(self.name, edge.name, f"{part.rows_count} rows, bound {self.tuning.assembly_rows_max}")
        if isinstance(message, Knowledge):
            self._check_knowledge(edge, message)
            verdict = edge.judge_knowledge(message)
        else:
            self._check_snapshot(edge, message)
            verdict = edge.judge_snapshot(message)
        if verdict is Verdict.DROP:
            self._drop(edge, "stale")
            return
        try:
            whole = edge.assembly.add(part)
        except ValueError as broken:
            raise BadShape(self.name, edge.name, str(broken)) from broken
        edge.asker.helped()
        if isinstance(whole, Knowledge):
            self._knowledge_arrived(edge, whole)
        elif whole is not None:
            self._snapshot_arrived(edge, whole)

    # What follows

    def _drop(self, edge: StateInEdge, why: str) -> None:
        """A repetition tells us that an acknowledgement may have been lost."""
        self.counters[f"dropped.{why}"] += 1
        self._acknowledge_later(edge)

    def _fall_behind(self, edge: StateInEdge) -> None:
        """S3: ask, and go on asking until answered."""
        edge.is_behind = True
        self.ask(edge)

    def _caught_up(self, edge: StateInEdge) -> None:
        if not edge.is_ack_armed:
            self._acknowledge_later(edge)
        if edge.held:  # still a gap before these
            self._fall_behind(edge)
        elif not edge.awaits_newer():  # otherwise two live incarnations would make us ask at the speed of the network
            edge.is_behind = False
            edge.asker.answered()

    def _quench(self, edge: StateInEdge, rows: Batch) -> None:
        """T4: tell the sender which rows can no longer matter to this incarnation."""
        if len(edge.quenched) >= self.tuning.quenched_keys_max:
            return
        dead = self.operator.dead_input_keys(edge.index, rows)
        if dead:
            edge.quenched.update(dead)
            self.send(edge.name, Quench(self.epoch, tuple(dead)))
