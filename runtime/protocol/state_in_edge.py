"""The receiving end of a state edge: messages in order, by step (section 5 of the protocol).

Decides what to do with a message; the component does it. Every rule is one method, so that a test can break it alone.
"""

from __future__ import annotations

from enum import Enum

from runtime.batch import Batch
from runtime.plan import InEdge, Relation
from runtime.protocol.asking import Asker
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import NO_EPOCH, Heartbeat, Knowledge, Snapshot
from runtime.protocol.parts import Assembly
from runtime.protocol.validation import types_by_column
from runtime.rows import Rows
from runtime.values import Key


class Verdict(Enum):
    APPLY = "apply"
    DROP = "drop"  # a repetition, or of an incarnation that was replaced
    HOLD = "hold"  # too early: something before it is missing
    ASK = "ask"  # of no use as it is; a question brings what is


class StateInEdge:
    """`coverage` is K_e, the sender's coverage at (`adopted_epoch`, `applied_step`); the copy of the rows is with the
    operator. `quenched` are keys we told this sender to leave out."""

    def __init__(self, plan: InEdge, index: int, offset: int, lineages_count: int, relation: Relation, asker: Asker):
        self.name = plan.name
        self.mode = plan.mode
        self.index = index
        self.offset = offset
        self.relation = relation
        self.types = types_by_column(relation)
        self.lineages_count = lineages_count
        self.asker = asker
        self.coverage = LineageCoverage.empty(lineages_count)
        self.adopted_epoch = NO_EPOCH
        self.applied_step = 0
        self.held: list[Knowledge] = []
        self.assembly = Assembly()
        self.quenched: set[Key] = set()
        self.is_behind = True  # we know, or must assume after a restart, that the sender has more
        self.hastened_epoch = NO_EPOCH
        self.newest_epoch = NO_EPOCH  # of the sender, as far as we have heard
        self.progressed = False
        self.is_ack_armed = False
        self.acked: tuple[int, int, int] | None = None  # the position last acknowledged

    # Judging

    def is_filtered_for_another(self, filtered_for: int | None, my_epoch: int) -> bool:
        """T4: rows were left out on the word of another incarnation of this component."""
        return filtered_for is not None and filtered_for != my_epoch

    def judge_knowledge(self, message: Knowledge) -> Verdict:
        """S2: exactly the messages that continue what was applied."""
        if message.epoch < self.adopted_epoch:  # S7: once a newer epoch is adopted, older ones are over
            return Verdict.DROP
        if message.epoch > self.adopted_epoch:  # only a snapshot leads into another epoch
            return Verdict.ASK
        if self.is_stale(message):
            return Verdict.DROP
        if self.leaves_a_gap(message):
            return Verdict.HOLD
        return Verdict.APPLY

    def is_stale(self, message: Knowledge) -> bool:
        """S2: everything in it is already applied."""
        return message.to_step <= self.applied_step

    def leaves_a_gap(self, message: Knowledge) -> bool:
        """S2: steps between what was applied and this message are missing."""
        return message.from_step > self.applied_step

    def judge_snapshot(self, message: Snapshot) -> Verdict:
        """S6, with the coverage as it is now: we may have moved, or fallen back, since we asked."""
        if not self.is_newer(message):
            return Verdict.DROP
        if not self.dominates(message) or not self.reaches_back_enough(message):
            return Verdict.ASK
        return Verdict.APPLY

    def is_newer(self, message: Snapshot) -> bool:
        """S6: of a newer epoch, or further in the adopted one."""
        if message.epoch == self.adopted_epoch:
            return message.to_step > self.applied_step
        return message.epoch > self.adopted_epoch

    def dominates(self, message: Snapshot) -> bool:
        """S6: it must contain all we have; otherwise our state would fall back."""
        return message.coverage.contains(self.coverage)

    def reaches_back_enough(self, message: Snapshot) -> bool:
        """S6: rows at or below its horizon are not listed, so we must have them."""
        return message.complete or self.coverage.horizon() >= message.horizon

    def is_ahead(self, message: Heartbeat) -> bool:
        """S3: the sender says it has something we have not."""
        if message.epoch == self.adopted_epoch:
            return message.step > self.applied_step
        return message.epoch > self.adopted_epoch

    def hear_of(self, epoch: int) -> None:
        if epoch > self.newest_epoch:
            self.newest_epoch = epoch

    def awaits_newer(self) -> bool:
        """A newer incarnation exists that we have not adopted: whatever the older one says, the question stays open."""
        return self.newest_epoch > self.adopted_epoch

    def should_hasten(self, epoch: int, coverage: LineageCoverage) -> bool:
        """A new epoch has just caught up with us: worth one question now, however slow our retries have become."""
        if epoch <= max(self.adopted_epoch, self.hastened_epoch) or not coverage.contains(self.coverage):
            return False
        self.hastened_epoch = epoch
        return True

    # Changing

    def continue_to(self, message: Knowledge) -> None:
        """S2: accepted. `coverage` is the sender's whole coverage at that step, so it simply replaces ours."""
        self.applied_step = message.to_step
        self.coverage = self.coverage_after(message)

    def coverage_after(self, message: Knowledge | Snapshot) -> LineageCoverage:
        """Not a copy: a state edge's coverage is only ever replaced as a whole."""
        return message.coverage

    def adopt(self, message: Snapshot) -> None:
        """S6, S8: the edge moves to another epoch; the component's own epoch, coverage and steps go on."""
        if message.epoch != self.adopted_epoch:
            self.held.clear()
            self.assembly.clear()
        self.adopted_epoch = message.epoch
        self.applied_step = message.to_step
        self.coverage = self.coverage_after(message)

    def hold(self, message: Knowledge, held_max: int) -> bool:
        """Keep an early message; False if there is no room (then the answer to our question replaces it)."""
        if any(held.from_step == message.from_step and held.to_step == message.to_step for held in self.held):
            return True
        if len(self.held) >= held_max:
            return False
        self.held.append(message)
        return True

    def release(self) -> Knowledge | None:
        """The next held message that fits now; those that have become stale are dropped."""
        self.held = [message for message in self.held if self.judge_knowledge(message) is not Verdict.DROP]
        for i, message in enumerate(self.held):
            if self.judge_knowledge(message) is Verdict.APPLY:
                return self.held.pop(i)
        return None

    def rows_of_complete(self, message: Snapshot, copy: Rows) -> Batch:
        """S6: what a complete snapshot does not list has become invisible, at the latest at `floor`."""
        listed = set(message.rows.keys(self.relation.key_width))
        if message.filtered_for is not None:
            listed |= self.quenched  # left out because we asked for it, not because they vanished
        gone = [slot for slot in copy.visible_slots() if copy.key_at(slot) not in listed]
        if not gone:
            return message.rows
        old = copy.select(gone)
        return Batch.concat([message.rows, Batch(old.columns, [message.floor] * len(gone), [False] * len(gone))])

    def position(self) -> tuple[int, int, int]:
        """What an acknowledgement says: epoch, step, horizon."""
        return self.adopted_epoch, self.applied_step, self.coverage.horizon()
