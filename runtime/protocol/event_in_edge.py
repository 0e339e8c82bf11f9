"""The receiving end of an event edge: ticks in any order, each applied once (section 4 of the protocol)."""

from __future__ import annotations

from runtime.batch import Batch
from runtime.plan import InEdge, Relation
from runtime.protocol.asking import Asker
from runtime.protocol.coverage import TICK_MAX, Coverage
from runtime.protocol.lineage_coverage import LineageCoverage


class EventInEdge:
    """`coverage` is K_e. `lost` are ticks that upstream has trimmed. `relay` are ticks that our receivers want and we
    neither hold nor need ourselves: asked for together with our own gaps, in one question."""

    def __init__(self, plan: InEdge, index: int, offset: int, lineages_count: int, relation: Relation, asker: Asker):
        self.name = plan.name
        self.mode = plan.mode
        self.index = index
        self.offset = offset  # number of this edge's first lineage within the component
        self.relation = relation
        self.asker = asker
        self.coverage = LineageCoverage.empty(lineages_count)
        self.lost = LineageCoverage.empty(lineages_count)
        self.relay = LineageCoverage.empty(lineages_count)
        self.has_heard = False  # anything at all in this incarnation
        self.progressed = False  # since the idle timer last fired
        self.is_ack_armed = False

    @property
    def lineages_count(self) -> int:
        return len(self.coverage)

    def novel_cover(self, cover: LineageCoverage) -> LineageCoverage:
        """E1: the ticks that are new here. All others are ignored, whatever the message says about them."""
        return cover if cover.is_above(self.coverage) else cover.difference(self.coverage)

    def novel_rows(self, rows: Batch, novel: LineageCoverage) -> Batch:
        """E1: the events at new ticks."""
        assert rows.lineages is not None
        keep = [i for i, n in enumerate(rows.lineages) if rows.max_ticks[i] in novel[n]]
        return rows if len(keep) == len(rows) else rows.take(keep)

    def learn(self, novel: LineageCoverage) -> None:
        """These ticks are applied."""
        self.coverage.update(novel)

    def gaps(self) -> LineageCoverage:
        """E2: unknown ticks below known ones, but for those that nobody can tell us any more."""
        return LineageCoverage(c.gaps().difference(lost) for c, lost in zip(self.coverage, self.lost, strict=True))

    def question(self, *, open_end: bool, ranges_max: int) -> LineageCoverage:
        """E2: the ticks to ask for, the lowest ranges first if there are too many.

        With an open end also whatever follows the highest known tick: after a restart, and when the edge is quiet.
        """
        wanted = []
        for known, lost, relay in zip(self.coverage, self.lost, self.relay, strict=True):
            missing = known.missing_up_to(TICK_MAX) if open_end else known.gaps()
            missing = missing.difference(lost).union(relay)
            if missing.ranges_count() > ranges_max:
                end = Coverage.of((known.highest() + 1, TICK_MAX)) if open_end else Coverage()
                missing = missing.lowest_ranges(ranges_max - 1).union(end)
            wanted.append(missing)
        return LineageCoverage(wanted)

    def needs_answer(self) -> bool:
        """Is there a reason to repeat a question that was not answered in time?"""
        if not self.has_heard or self.relay:
            return True
        return not self.coverage.is_prefix() and bool(self.gaps())
