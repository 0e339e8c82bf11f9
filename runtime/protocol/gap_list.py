"""GapList: what an m-way merge knows, range by range and source by source (the paper's gap descriptor, section 4.1).

A merge keeps one coverage per source. When it must say what is missing and whom to ask, it derives a gap list from
them: two horizons and, between them, consecutive ranges with one flag per source. The list is a picture of one moment,
made when a timer asks for it, not state to be kept up to date with every message.

What a flag means, and what becomes of the paper's "an event from one source makes the tick final": flag k says that
source k has accounted for every tick of the range, by event or silence. An event of source i sets flag i and no other,
although the remaining sources cannot have anything at that tick (two streams never share one). Setting them all would
be true, but
- it would cut the list at every event of a source that runs ahead, so that memory grew with events instead of gaps;
- the other sources would not be asked about that tick, and their coverages would keep a hole there for ever;
- the lower horizon would differ from h(K), the horizon of the coverage that acknowledgements and trimming rest on.
Nothing is lost: only its owner can publish at a tick, so the tick is final as soon as the *owner's* flag is set, by an
event or by silence. `is_final(tick, owner)` says so; `all_known(tick)` needs no owner and may become true later.

Deliberately not here: the events, the messages that ask, and the bounds on those (`Coverage.lowest_ranges`).
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter

from runtime.protocol.coverage import NO_TICK, Coverage, CoverageError


@dataclass(frozen=True, slots=True)
class GapEntry:
    """The paper's <R, f1..fm>: bit k of `known` is the flag of source k. One int, so any number of sources will do."""

    first: int
    last: int
    known: int

    def knows(self, source: int) -> bool:
        return bool(self.known >> source & 1)


@dataclass(frozen=True, slots=True)
class GapList:
    """Ticks up to `horizon` (t1) are known from all sources, ticks above `highest` (t2 - 1) from none.

    `entries` are consecutive, cover exactly the ticks between, and neighbours differ in their flags; so the first entry
    lacks some source and the last has some. There may be entries with all flags set, and entries with none.
    """

    sources_count: int
    horizon: int
    highest: int
    entries: tuple[GapEntry, ...]

    @staticmethod
    def of(sources: Sequence[Coverage]) -> "GapList":
        """Derive it from the coverage of each source. Linear in their ranges, apart from sorting the ends."""
        if not sources:
            raise CoverageError("a merge has at least one source")
        horizon = min(source.horizon() for source in sources)
        highest = max(source.highest() for source in sources)
        # Flags change only where a range begins or ends, so a sweep over those ticks sees every entry. A horizon or
        # highest tick of NO_TICK needs no case of its own: it lies just below the first tick.
        changes: defaultdict[int, int] = defaultdict(int)
        known = 0
        for bit, source in enumerate(sources):
            for first, last in source:
                if last <= horizon:
                    continue
                if first <= horizon + 1:
                    known |= 1 << bit
                else:
                    changes[first] ^= 1 << bit
                changes[last + 1] ^= 1 << bit
        starts = [horizon + 1, *sorted(changes)]
        entries = []
        for first, after in pairwise(starts):
            known ^= changes.get(first, 0)
            entries.append(GapEntry(first, after - 1, known))
        return GapList(len(sources), horizon, highest, tuple(entries))

    def known_at(self, tick: int) -> int:
        """The flags at one tick, as a bit mask over the sources."""
        if tick < 0:
            raise CoverageError(f"{tick} is not a tick")
        if tick <= self.horizon:
            return (1 << self.sources_count) - 1
        if tick > self.highest:
            return 0
        return self.entries[bisect_left(self.entries, tick, key=attrgetter("last"))].known

    def all_known(self, tick: int) -> bool:
        """Has every source accounted for the tick?"""
        return self.known_at(tick) == (1 << self.sources_count) - 1

    def is_final(self, tick: int, owner: int) -> bool:
        """Can the merged value at the tick no longer change? `owner` is the source whose stream owns the tick."""
        self._check_source(owner)
        return bool(self.known_at(tick) >> owner & 1)

    def missing_from(self, source: int) -> Coverage:
        """The ticks up to `highest` that this source has still to account for: what to ask it."""
        self._check_source(source)
        missing = Coverage()
        for entry in self.entries:
            if not entry.knows(source):
                missing.add(entry.first, entry.last)
        return missing

    def questions(self) -> tuple[tuple[int, Coverage], ...]:
        """Every source that lacks something, with what it lacks, in the order of sources."""
        missing = [Coverage() for _ in range(self.sources_count)]
        missing_since: dict[int, int] = {}
        known = (1 << self.sources_count) - 1
        # Work per flag that changes, not per entry and source: a wide merge with many gaps has few changes per entry.
        for entry in (*self.entries, GapEntry(self.highest + 1, self.highest + 1, known)):
            changed = known ^ entry.known
            known = entry.known
            while changed:
                source = changed.bit_length() - 1
                changed ^= 1 << source
                if entry.knows(source):
                    missing[source].add(missing_since.pop(source), entry.first - 1)
                else:
                    missing_since[source] = entry.first
        return tuple((source, asked) for source, asked in enumerate(missing) if asked)

    def show(self) -> str:
        """For example `0..41 final, 42..45 TF, 46 FF, 47..50 FT, 51.. unknown`: one letter per source."""
        parts = [] if self.horizon == NO_TICK else [f"0..{self.horizon} final"]
        for entry in self.entries:
            flags = "".join("T" if entry.knows(source) else "F" for source in range(self.sources_count))
            ticks = f"{entry.first}..{entry.last}" if entry.first < entry.last else f"{entry.first}"
            parts.append(f"{ticks} {flags}")
        return ", ".join([*parts, f"{self.highest + 1}.. unknown"])

    def _check_source(self, source: int) -> None:
        if not 0 <= source < self.sources_count:
            raise CoverageError(f"source {source} of a merge of {self.sources_count}")
