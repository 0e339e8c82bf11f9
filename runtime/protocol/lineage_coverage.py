"""Coverage by lineage: one `Coverage` for each way on which events of a stream reach a component.

What is usual, one range from zero on each lineage, is asked and told of every message: those are the short ways below,
which look into coverages themselves.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from runtime.protocol.coverage import NO_TICK, TICK_MAX, Coverage, CoverageError, Range, check_range, coverage_of

_FROM_ZERO: Final = [0]
"""The beginnings of the ranges of a coverage without gaps, which is the usual one."""


class LineageCoverage:
    """One coverage per lineage, in the order the compiler numbered them.

    Every operation works lineage by lineage. Nothing here unites or intersects two lineages: a tick that reached the
    component by one path says nothing about the other path (a diamond would cover what it lacks).
    """

    __slots__ = ("_lineages",)
    __hash__ = None  # type: ignore[assignment]  # mutable: `key()` is the hashable form

    def __init__(self, lineages: Iterable[Coverage]) -> None:
        """Takes copies, so that the parts and the whole can grow independently."""
        self._lineages = tuple(coverage.copy() for coverage in lineages)
        if not self._lineages:
            raise CoverageError("a component has at least one lineage")

    @staticmethod
    def empty(lineages_count: int) -> "LineageCoverage":
        return LineageCoverage(Coverage() for _ in range(lineages_count))

    @staticmethod
    def prefix(lineages_count: int, last: int) -> "LineageCoverage":
        """All ticks up to `last` on every lineage: what a bulk install starts from."""
        return LineageCoverage(Coverage.prefix(last) for _ in range(lineages_count))

    @staticmethod
    def of_range(first: int, last: int) -> "LineageCoverage":
        """One lineage, one range: what a stream says with every message."""
        if not 0 <= first <= last <= TICK_MAX:
            check_range(first, last)
        return _from_parts((coverage_of([first], [last]),))

    @staticmethod
    def concat(edges: Iterable["LineageCoverage"]) -> "LineageCoverage":
        """A component's coverage from those of its in-edges, in edge order."""
        parts = [coverage_of(part._firsts[:], part._lasts[:]) for edge in edges for part in edge._lineages]
        if not parts:
            raise CoverageError("a component has at least one lineage")
        return _from_parts(tuple(parts))

    def replaced(self, at: int, edge: "LineageCoverage") -> "LineageCoverage":
        """The same with other parts from lineage `at` on: those of one in-edge. The remaining ones are shared, so that
        none of either may be changed any more."""
        parts = [coverage_of(part._firsts[:], part._lasts[:]) for part in edge._lineages]
        return _from_parts((*self._lineages[:at], *parts, *self._lineages[at + len(parts) :]))

    def copy(self) -> "LineageCoverage":
        return LineageCoverage(self._lineages)

    def update(self, other: "LineageCoverage") -> bool:
        """Include all of `other`. True if any of its ticks is new."""
        if len(self._lineages) == len(other._lineages) == 1:
            return self._lineages[0].update(other._lineages[0])
        grew = False
        for mine, theirs in self._pairs(other):
            if theirs:
                grew |= mine.update(theirs)
        return grew

    def difference(self, other: "LineageCoverage") -> "LineageCoverage":
        return _from_parts(tuple(mine.difference(theirs) for mine, theirs in self._pairs(other)))

    def intersection(self, other: "LineageCoverage") -> "LineageCoverage":
        return _from_parts(tuple(mine.intersection(theirs) for mine, theirs in self._pairs(other)))

    def is_above(self, other: "LineageCoverage") -> bool:
        """Have both one lineage, and is there something here, all of it beyond what is there?"""
        mine, theirs = self._lineages, other._lineages
        return len(mine) == len(theirs) == 1 and mine[0].is_above(theirs[0])

    def is_prefix(self) -> bool:
        """Are there no gaps on any lineage?"""
        return not [part for part in self._lineages if part._firsts != _FROM_ZERO and not part.is_prefix()]

    def contains(self, other: "LineageCoverage") -> bool:
        """Does every lineage contain the other's? False also when the two are incomparable."""
        for mine, theirs in self._pairs(other):
            if len(mine._lasts) == 1 and mine._firsts == theirs._firsts and mine._lasts >= theirs._lasts:
                continue  # one range that has grown: of every message this is asked
            if not mine.contains(theirs):
                return False
        return True

    def horizon(self) -> int:
        """h(K): the largest tick up to which every lineage covers everything."""
        lowest = TICK_MAX
        for part in self._lineages:
            if not part._firsts or part._firsts[0]:
                return NO_TICK
            if part._lasts[0] < lowest:
                lowest = part._lasts[0]
        return lowest

    def highest(self) -> int:
        """The largest tick that any lineage covers."""
        return max(coverage.highest() for coverage in self._lineages)

    def missing_up_to(self, tick: int) -> "LineageCoverage":
        return LineageCoverage(coverage.missing_up_to(tick) for coverage in self._lineages)

    def __len__(self) -> int:
        """Number of lineages."""
        return len(self._lineages)

    def __getitem__(self, lineage: int) -> Coverage:
        """The part itself, not a copy: adding to it adds to the whole."""
        return self._lineages[lineage]

    def __iter__(self) -> Iterator[Coverage]:
        return iter(self._lineages)

    def __bool__(self) -> bool:
        """Is any tick covered on any lineage?"""
        for part in self._lineages:  # noqa: SIM110  asked of every message, and a generator takes several times as long
            if part._firsts:
                return True
        return False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LineageCoverage):
            return NotImplemented
        return self._lineages == other._lineages

    def key(self) -> tuple[tuple[Range, ...], ...]:
        """Hashable and equal for equal values."""
        return tuple(coverage.key() for coverage in self._lineages)

    def show(self) -> str:
        return " | ".join(coverage.show() for coverage in self._lineages)

    def __repr__(self) -> str:
        return f"LineageCoverage({' | '.join(coverage.show_briefly() for coverage in self._lineages)})"

    def to_wire(self) -> list[list[int]]:
        return [[0, part._lasts[0]] if part._firsts == _FROM_ZERO else part.to_wire() for part in self._lineages]

    @staticmethod
    def from_wire(value: object, lineages_count: int, ranges_max: int) -> "LineageCoverage":
        """`lineages_count` is what the plan says about the edge, `ranges_max` bounds each lineage."""
        if not isinstance(value, list | tuple):
            raise CoverageError(f"a lineage coverage on the wire is a list, not {type(value).__name__}")
        if len(value) != lineages_count:
            raise CoverageError(f"{len(value)} lineages on the wire where the plan has {lineages_count}")
        if not value:
            raise CoverageError("a component has at least one lineage")
        parts: list[Coverage] = []
        for part in value:
            if type(part) is list and len(part) == 2 and ranges_max > 0:  # one range: the usual case, of every message
                first, length = part
                if type(first) is type(length) is int and first >= 0 <= length and first + length <= TICK_MAX:
                    made = Coverage.__new__(Coverage)
                    made._firsts, made._lasts = [first], [first + length]
                    parts.append(made)
                    continue
            parts.append(Coverage.from_wire(part, ranges_max))
        return _from_parts(tuple(parts))

    def _pairs(self, other: "LineageCoverage") -> Iterator[tuple[Coverage, Coverage]]:
        if len(self._lineages) != len(other._lineages):
            raise CoverageError(f"{len(self._lineages)} lineages cannot meet {len(other._lineages)}")
        return zip(self._lineages, other._lineages, strict=True)


def _from_parts(parts: tuple[Coverage, ...]) -> LineageCoverage:
    """Takes the parts over: nobody else has them."""
    made = LineageCoverage.__new__(LineageCoverage)
    made._lineages = parts
    return made
