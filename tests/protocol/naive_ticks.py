"""Naive ticks: the model that coverages are compared with, a plain set of ints, and the strategies to draw ranges.

Shares no code with the ranges under test. Used by the tests of this folder only.
"""

from itertools import pairwise

from hypothesis import strategies as st

from runtime.protocol.coverage import TICK_MAX, Coverage, Range

SPAN = 40
"""Ticks used by most tests: few enough that ranges meet all the time."""

Ticks = frozenset[int]


def ranges_in(low: int, high: int) -> st.SearchStrategy[Range]:
    ends = st.tuples(st.integers(low, high), st.integers(low, high))
    short = st.builds(lambda first, more: (first, min(high, first + more)), st.integers(low, high), st.integers(0, 3))
    return st.one_of(short, ends.map(lambda pair: (min(pair), max(pair))))


def walks_in(low: int, high: int) -> st.SearchStrategy[list[Range]]:
    """Each range begins near the end of the one before: where ranges overlap, touch, or just fail to."""

    def walk(strides: list[tuple[int, int]]) -> list[Range]:
        walked, last = [], low - 1
        for stride, more in strides:
            first = min(high, max(low, last + stride))
            last = min(high, first + more)
            walked.append((first, last))
        return walked

    return st.lists(st.tuples(st.integers(-3, 5), st.integers(0, 3)), max_size=12).map(walk)


def range_lists_in(low: int, high: int) -> st.SearchStrategy[list[Range]]:
    return st.one_of(walks_in(low, high), st.lists(ranges_in(low, high), max_size=12))


ranges = ranges_in(0, SPAN)
range_lists = range_lists_in(0, SPAN)
any_range_lists = st.one_of(range_lists, range_lists_in(TICK_MAX - SPAN, TICK_MAX))
coverages = range_lists.map(lambda pairs: Coverage.of(*pairs))
ticks = st.integers(0, SPAN + 2)


def ticks_of_ranges(pairs: list[Range]) -> Ticks:
    return frozenset(tick for first, last in pairs for tick in range(first, last + 1))


def ticks_of(coverage: Coverage) -> Ticks:
    """What the coverage says it holds, after checking that its ranges are in canonical form."""
    pairs = list(coverage)
    for first, last in pairs:
        assert 0 <= first <= last <= TICK_MAX
    for (_, last), (first, _) in pairwise(pairs):
        assert last + 1 < first, f"{pairs} has ranges that overlap, touch or are out of order"
    return ticks_of_ranges(pairs)


def all_up_to(tick: int) -> Ticks:
    return frozenset(range(tick + 1))
