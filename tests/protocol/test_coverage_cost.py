"""Goal: a coverage costs what its docstring says: O(1) at the highest range, O(log n) elsewhere, memory by gaps.

Cost is counted in comparisons and bytes; the only clock is a ratio with a wide margin.
"""

import gc
import math
import sys
from collections.abc import Callable

import pytest

from runtime.protocol.coverage import Coverage
from tests.measures import least_cpu_s


class Counted(int):
    """An int that counts how often it is compared: how many ranges an operation looked at."""

    comparisons = 0

    def _count(self, compared: bool) -> bool:
        Counted.comparisons += 1
        return compared

    def __lt__(self, other: int) -> bool:
        return self._count(int(self) < int(other))

    def __le__(self, other: int) -> bool:
        return self._count(int(self) <= int(other))

    def __gt__(self, other: int) -> bool:
        return self._count(int(self) > int(other))

    def __ge__(self, other: int) -> bool:
        return self._count(int(self) >= int(other))

    def __eq__(self, other: object) -> bool:
        return self._count(isinstance(other, int) and int(self) == int(other))

    def __hash__(self) -> int:
        return hash(int(self))

    def __add__(self, other: int) -> "Counted":
        return Counted(int(self) + other)

    def __sub__(self, other: int) -> "Counted":
        return Counted(int(self) - other)


def comparisons_of(work: Callable[..., object], *arguments: object) -> int:
    Counted.comparisons = 0
    work(*arguments)
    return Counted.comparisons


def with_gaps(gaps: int) -> Coverage:
    """0..9, then `gaps` gaps of ten ticks, each followed by ten covered ticks."""
    return Coverage.of(*((20 * i, 20 * i + 9) for i in range(gaps + 1)))


GAPS = [0, 1, 10, 100, 1_000, 10_000]


@pytest.mark.parametrize("gaps", GAPS)
def test_adding_at_or_above_the_highest_range_looks_at_nothing_else(gaps: int) -> None:
    coverage = with_gaps(gaps)
    end = coverage.highest()
    for first, last in [(end + 1, end + 1), (end, end + 5), (end - 3, end - 1), (end + 8, end + 9)]:
        assert 0 < comparisons_of(coverage.add, Counted(first), Counted(last)) <= 6
    assert coverage.highest() == end + 9
    assert coverage.ranges_count() == gaps + 2


@pytest.mark.parametrize("gaps", GAPS)
def test_everything_about_one_place_costs_the_logarithm(gaps: int) -> None:
    coverage = with_gaps(gaps)
    low, high = (Counted(gaps // 2 * 20 + more) for more in (13, 15))  # inside the middle gap
    asked = Coverage()
    asked.add(low, high)
    bound = 2 * math.ceil(math.log2(gaps + 2)) + 16
    assert 0 < comparisons_of(coverage.__contains__, low) <= bound
    assert 0 < comparisons_of(coverage.missing_within, (low, high)) <= bound
    assert 0 < comparisons_of(coverage.count_above, low) <= bound
    assert 0 < comparisons_of(coverage.contains, asked) <= bound
    assert 0 < comparisons_of(coverage.overlaps, asked) <= bound
    assert 0 < comparisons_of(coverage.intersection, asked) <= bound
    assert 0 < comparisons_of(asked.difference, coverage) <= bound
    assert 0 < comparisons_of(coverage.update, asked) <= bound
    assert high in coverage


def bytes_of(coverage: Coverage) -> int:
    """Of everything that it refers to; counted, not traced, because other threads allocate meanwhile."""
    seen: dict[int, object] = {}
    left: list[object] = [coverage]
    while left:
        found = left.pop()
        if id(found) not in seen and not isinstance(found, type):
            seen[id(found)] = found
            left += gc.get_referents(found)
    return sum(map(sys.getsizeof, seen.values()))


def extended_in_order(ticks_count: int) -> Coverage:
    coverage = Coverage()
    for tick in range(ticks_count):
        coverage.add(tick, tick)
    return coverage


def test_memory_follows_the_gaps_not_the_ticks() -> None:
    assert extended_in_order(20_000).ranges_count() == 1
    assert bytes_of(extended_in_order(20_000)) <= bytes_of(extended_in_order(10)) + 200
    for gaps in (100, 1_000, 10_000):
        # two list entries and two ints per gap, and lists over-allocate
        assert 16 * gaps <= bytes_of(with_gaps(gaps)) <= 100 * gaps + 2_000


def test_closing_the_gaps_gives_the_memory_back() -> None:
    coverage = with_gaps(1_000)
    for first, last in list(coverage.gaps()):
        coverage.add(first, last)
    assert list(coverage) == [(0, 20_009)]
    wide = with_gaps(1_000)
    wide.add(5, 30_000)
    assert list(wide) == [(0, 30_000)]


def test_extending_takes_no_longer_with_ten_thousand_gaps() -> None:
    """The best of several turns, taken alternately; equal in truth, and a factor of eight would still be no scan."""

    def seconds(coverage: Coverage) -> float:
        end = coverage.highest()
        add = coverage.add

        def extend() -> None:
            for tick in range(end, end + 2_000):
                add(tick, tick + 1)

        return least_cpu_s(extend, times=1)

    plain, gappy = with_gaps(0), with_gaps(10_000)
    turns = [(seconds(plain), seconds(gappy)) for _ in range(7)]
    assert min(slow for _, slow in turns) < 8 * min(fast for fast, _ in turns)
