"""Coverage: sets of ticks as sorted ranges. The same per lineage is in `lineage_coverage`.

A relation's coverage says which ticks its state includes (the paper's K, its gap descriptor for one source).
Components keep one per in-edge, messages carry them, curiosity is the part that is missing. A stream owns one residue
class of ticks, but ranges run over all ticks: a tick the stream does not own is silent, hence known as soon as the
range around it is. So in normal operation a coverage is ONE range starting at 0, and everything is short in that case.

Costs, with n ranges: an `add` that starts inside or above the highest range is O(1); every other `add`, and every
question about one tick or one range, finds its place in O(log n) and then touches only the ranges concerned (inserting
in the middle also moves list memory). Space is two list entries per range.

Values are mutable and belong to whoever holds them: put a `copy()` into a message. This file does not know about the
sources of a merge (`gap_list`), about messages, or about what a tick contained.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

Range = tuple[int, int]
"""First and last tick, both included."""

TICK_MAX: Final = 2**63 - 1
"""Ticks are non-negative int64."""

NO_TICK: Final = -1
"""What `horizon` and `highest` say when there is no such tick: just below the first tick, so comparisons work."""

_BRIEF_RANGES_MAX: Final = 8
_ADD_ONE_BY_ONE_FACTOR: Final = 8


class CoverageError(ValueError):
    """A range, tick or wire value that cannot be a coverage. Nothing was changed."""


class Coverage:
    """A set of ticks: sorted ranges that neither overlap nor touch, so equal sets have equal ranges."""

    # Two parallel lists rather than a list of pairs: bisect runs on plain ints, and extending the highest range stores
    # one int and allocates no tuple.
    __slots__ = ("_firsts", "_lasts")
    __hash__ = None  # type: ignore[assignment]  # mutable: `key()` is the hashable form

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    # Making

    @staticmethod
    def empty() -> "Coverage":
        return Coverage()

    @staticmethod
    def of(*ranges: Range) -> "Coverage":
        """The union of the given ranges, in any order."""
        made = Coverage()
        for first, last in ranges:
            made.add(first, last)
        return made

    @staticmethod
    def prefix(last: int) -> "Coverage":
        """All ticks up to `last`; empty for `NO_TICK`, so that `prefix(k.horizon())` always works."""
        return Coverage() if last == NO_TICK else Coverage.of((0, last))

    def copy(self) -> "Coverage":
        return coverage_of(self._firsts[:], self._lasts[:])

    # Growing

    def add(self, first: int, last: int) -> bool:
        """Include `first..last`. True if any of these ticks is new."""
        lasts = self._lasts
        # The hot path: every in-order message lands here. `first` cannot be negative as the range it joins is not.
        if lasts and self._firsts[-1] <= first <= lasts[-1] + 1 and first <= last <= TICK_MAX:
            if last > lasts[-1]:
                lasts[-1] = last
                return True
            return False
        return self._add_elsewhere(first, last)

    def _add_elsewhere(self, first: int, last: int) -> bool:
        check_range(first, last)
        firsts, lasts = self._firsts, self._lasts
        if not lasts or first > lasts[-1] + 1:
            firsts.append(first)
            lasts.append(last)
            return True
        low = bisect_left(lasts, first - 1)  # ranges low..high-1 overlap or touch first..last
        high = bisect_right(firsts, last + 1, low)
        if low == high:
            firsts.insert(low, first)
            lasts.insert(low, last)
            return True
        if firsts[low] <= first and last <= lasts[low]:
            return False
        firsts[low:high] = [min(first, firsts[low])]
        lasts[low:high] = [max(last, lasts[high - 1])]
        return True

    def update(self, other: "Coverage") -> bool:
        """Include all of `other`. True if any of its ticks is new."""
        if len(other._firsts) == 1:  # the usual case
            return self.add(other._firsts[0], other._lasts[0])
        if len(other._firsts) * _ADD_ONE_BY_ONE_FACTOR > len(self._firsts) + _ADD_ONE_BY_ONE_FACTOR:
            return self._replace(self.union(other))
        grew = False
        for first, last in zip(other._firsts, other._lasts, strict=True):
            grew |= self.add(first, last)
        return grew

    def _replace(self, larger: "Coverage") -> bool:
        grew = self != larger
        self._firsts, self._lasts = larger._firsts, larger._lasts
        return grew

    # Combining: new values, the operands stay as they are

    def union(self, other: "Coverage") -> "Coverage":
        made = Coverage()
        # Two sorted runs: sorting merges them in linear time, and then every range joins or follows the highest one.
        for first, last in sorted([*self, *other]):
            made.add(first, last)
        return made

    def difference(self, other: "Coverage") -> "Coverage":
        """The ticks of this set that `other` lacks."""
        made = Coverage()
        for first, last in zip(self._firsts, self._lasts, strict=True):
            other._append_missing(first, last, made)
        return made

    def intersection(self, other: "Coverage") -> "Coverage":
        few, many = (self, other) if len(self._firsts) <= len(other._firsts) else (other, self)
        made = Coverage()
        for first, last in zip(few._firsts, few._lasts, strict=True):
            many._append_covered(first, last, made)
        return made

    # Asking

    def is_above(self, other: "Coverage") -> bool:
        """Is there something here, all of it beyond the highest tick of the other? The usual case of a message."""
        return bool(self._firsts) and (not other._lasts or self._firsts[0] > other._lasts[-1])

    def __contains__(self, tick: int) -> bool:
        at = bisect_left(self._lasts, tick)
        return at < len(self._lasts) and self._firsts[at] <= tick

    def contains(self, other: "Coverage") -> bool:
        """Is `other` a subset? The domination test of snapshots (rules S5 and S6)."""
        firsts, lasts = self._firsts, self._lasts
        at = 0
        for first, last in zip(other._firsts, other._lasts, strict=True):
            at = bisect_left(lasts, first, at)
            if at == len(lasts) or first < firsts[at] or last > lasts[at]:
                return False
        return True

    def overlaps(self, other: "Coverage") -> bool:
        few, many = (self, other) if len(self._firsts) <= len(other._firsts) else (other, self)
        firsts, lasts = many._firsts, many._lasts
        at = 0
        for first, last in zip(few._firsts, few._lasts, strict=True):
            at = bisect_left(lasts, first, at)
            if at == len(lasts):
                return False
            if firsts[at] <= last:
                return True
        return False

    def horizon(self) -> int:
        """The paper's t1: the largest tick such that all ticks up to it are covered, `NO_TICK` if tick 0 is not."""
        return self._lasts[0] if self._firsts and self._firsts[0] == 0 else NO_TICK

    def highest(self) -> int:
        """The largest covered tick, `NO_TICK` if there is none. The paper's t2 is the tick after it."""
        return self._lasts[-1] if self._lasts else NO_TICK

    def is_prefix(self) -> bool:
        """Are there no gaps?"""
        firsts = self._firsts
        return not firsts or (len(firsts) == 1 and firsts[0] == 0)

    def gaps(self) -> "Coverage":
        """The ticks below `highest()` that are not covered."""
        return self.missing_up_to(self.highest())

    def missing_up_to(self, tick: int) -> "Coverage":
        """The ticks from 0 to `tick` that are not covered; none for `NO_TICK`."""
        return Coverage() if tick == NO_TICK else self.missing_within((0, tick))

    def missing_within(self, within: Range) -> "Coverage":
        """The ticks of the range that are not covered."""
        first, last = within
        check_range(first, last)
        made = Coverage()
        self._append_missing(first, last, made)
        return made

    def _append_missing(self, first: int, last: int, made: "Coverage") -> None:
        """Append the uncovered parts of `first..last` to `made`, whose ranges all end below `first - 1`."""
        firsts, lasts = self._firsts, self._lasts
        at = bisect_left(lasts, first)
        while at < len(firsts) and firsts[at] <= last:
            if first < firsts[at]:
                made._firsts.append(first)
                made._lasts.append(firsts[at] - 1)
            first = lasts[at] + 1
            at += 1
        if first <= last:
            made._firsts.append(first)
            made._lasts.append(last)

    def _append_covered(self, first: int, last: int, made: "Coverage") -> None:
        """Append the covered parts of `first..last` to `made`, whose ranges all end below `first - 1`."""
        firsts, lasts = self._firsts, self._lasts
        at = bisect_left(lasts, first)
        while at < len(firsts) and firsts[at] <= last:
            made._firsts.append(max(first, firsts[at]))
            made._lasts.append(min(last, lasts[at]))
            at += 1

    # Counting

    def count(self) -> int:
        """Number of covered ticks."""
        return sum(self._lasts) - sum(self._firsts) + len(self._lasts)

    def count_above(self, tick: int) -> int:
        """Number of covered ticks greater than `tick`."""
        at = bisect_right(self._lasts, tick)
        firsts, lasts = self._firsts[at:], self._lasts[at:]
        if firsts and firsts[0] <= tick:
            firsts[0] = tick + 1
        return sum(lasts) - sum(firsts) + len(lasts)

    def count_up_to(self, tick: int) -> int:
        """Number of covered ticks up to and including `tick`."""
        return self.count() - self.count_above(tick)

    def ranges_count(self) -> int:
        return len(self._firsts)

    def lowest_ranges(self, ranges_max: int) -> "Coverage":
        """At most `ranges_max` ranges, the lowest: how a question stays within its message's bound."""
        return coverage_of(self._firsts[:ranges_max], self._lasts[:ranges_max])

    # As a value

    def __iter__(self) -> Iterator[Range]:
        """The ranges in ascending order. Not to be changed meanwhile."""
        return zip(self._firsts, self._lasts, strict=True)

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Coverage):
            return NotImplemented
        return self._firsts == other._firsts and self._lasts == other._lasts

    def key(self) -> tuple[Range, ...]:
        """Hashable, and equal for equal sets."""
        return tuple(self)

    def show(self) -> str:
        """For example `0..17 20..23 25`."""
        return _show_ranges(self) or "none"

    def show_briefly(self) -> str:
        """As `show`, but only the lowest ranges of a long list: for log lines."""
        hidden = len(self._firsts) - _BRIEF_RANGES_MAX
        return self.show() if hidden <= 0 else f"{self.lowest_ranges(_BRIEF_RANGES_MAX).show()} and {hidden} more"

    def __repr__(self) -> str:
        return f"Coverage({self.show_briefly()})"

    # On the wire

    def to_wire(self) -> list[int]:
        """Two small ints per range: the uncovered ticks skipped beyond the one that must lie between two ranges, then
        the length beyond one. Every list of non-negative ints is thus one set in canonical form."""
        if len(self._firsts) == 1:
            return [self._firsts[0], self._lasts[0] - self._firsts[0]]
        wire: list[int] = []
        lowest_first = 0
        for first, last in zip(self._firsts, self._lasts, strict=True):
            wire.append(first - lowest_first)
            wire.append(last - first)
            lowest_first = last + 2
        return wire

    @staticmethod
    def from_wire(value: object, ranges_max: int) -> "Coverage":
        """Read what `to_wire` wrote, trusting nothing: anything else raises `CoverageError`."""
        if not isinstance(value, list | tuple):
            raise CoverageError(f"a coverage on the wire is a list of ints, not {type(value).__name__}")
        if len(value) > 2 * ranges_max:  # before any work is done for a hostile length
            raise CoverageError(f"a coverage of {len(value) // 2} ranges exceeds the bound of {ranges_max}")
        if len(value) % 2:
            raise CoverageError("a coverage on the wire has two ints per range; one is missing")
        if len(value) == 2 and type(value[0]) is type(value[1]) is int:  # one range: the usual case
            first, length = value
            if first >= 0 <= length and first + length <= TICK_MAX:
                return coverage_of([first], [first + length])
        made = Coverage()
        lowest_first = 0
        for at in range(0, len(value), 2):
            first = lowest_first + _wire_int(value[at])
            last = first + _wire_int(value[at + 1])
            if last > TICK_MAX:
                raise CoverageError(f"tick beyond int64 in range {at // 2} of a coverage on the wire")
            made._firsts.append(first)
            made._lasts.append(last)
            lowest_first = last + 2
        return made


def coverage_of(firsts: list[int], lasts: list[int]) -> Coverage:
    """Takes the lists over; the caller answers for their order."""
    made = Coverage.__new__(Coverage)
    made._firsts = firsts
    made._lasts = lasts
    return made


def check_range(first: int, last: int) -> None:
    if not 0 <= first <= last <= TICK_MAX:
        raise CoverageError(f"{first}..{last} is not a range of ticks: needs 0 <= first <= last <= {TICK_MAX}")


def _wire_int(value: object) -> int:
    if type(value) is not int:  # isinstance would let True pass for tick 1
        raise CoverageError(f"a coverage on the wire has ints, not {type(value).__name__}")
    if value < 0:
        raise CoverageError("a coverage on the wire has a negative int: its ranges are out of order")
    return value


def _show_ranges(ranges: Iterable[Range]) -> str:
    return " ".join(f"{first}..{last}" if first < last else f"{first}" for first, last in ranges)
