"""Goal: a Coverage is a set of ticks, whatever the order it grew in; a LineageCoverage is several that never mix.

The model is a plain set of ints (`naive_ticks`).
"""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runtime.protocol.coverage import NO_TICK, TICK_MAX, Coverage, CoverageError, Range
from runtime.protocol.lineage_coverage import LineageCoverage
from tests.protocol.naive_ticks import (
    Ticks,
    all_up_to,
    any_range_lists,
    coverages,
    range_lists,
    ranges,
    ticks,
    ticks_of,
    ticks_of_ranges,
)

# Growing


@given(any_range_lists)
@example([(TICK_MAX, TICK_MAX), (0, 0)])
def test_adding_ranges_is_set_union_and_reports_growth(pairs: list[Range]) -> None:
    coverage, model = Coverage(), frozenset[int]()
    for first, last in pairs:
        grown = model | frozenset(range(first, last + 1))
        assert coverage.add(first, last) == (grown != model)
        model = grown
        assert ticks_of(coverage) == model


@given(range_lists, range_lists)
def test_update_is_union_in_place_and_reports_growth(mine: list[Range], theirs: list[Range]) -> None:
    left, right = Coverage.of(*mine), Coverage.of(*theirs)
    before = ticks_of(left)
    assert left.update(right) == (not ticks_of_ranges(theirs) <= before)
    assert ticks_of(left) == before | ticks_of_ranges(theirs)
    assert right == Coverage.of(*theirs)


@given(coverages)
def test_update_with_itself_changes_nothing(coverage: Coverage) -> None:
    before = coverage.key()
    assert coverage.update(coverage) is False
    assert coverage.key() == before


@given(st.integers(0, 2**600 - 1), range_lists)
def test_update_of_many_ranges_with_few(bits: int, few: list[Range]) -> None:
    """Few ranges are added one by one, many by merging; both are the union, and neither shares lists afterwards."""
    scattered = {tick for tick in range(600) if bits >> tick & 1}
    many = Coverage.of(*((tick, tick) for tick in scattered))
    small = Coverage.of(*few)
    grown, merged = many.copy(), small.copy()
    grown.update(small)
    merged.update(many)
    assert ticks_of(grown) == ticks_of(merged) == ticks_of_ranges(few) | scattered
    merged.add(5000, 5000)
    assert 5000 not in many
    assert 5000 not in grown


@given(range_lists, ranges)
def test_a_copy_is_independent(pairs: list[Range], more: Range) -> None:
    original = Coverage.of(*pairs)
    copied = original.copy()
    assert copied == original
    copied.add(*more)
    assert ticks_of(original) == ticks_of_ranges(pairs)


@pytest.mark.parametrize(
    ("first", "last"), [(5, 4), (-1, 3), (-3, -1), (-1, -1), (0, TICK_MAX + 1), (TICK_MAX + 1, TICK_MAX + 1), (12, 11)]
)
@pytest.mark.parametrize("start", [[], [(0, 10)], [(0, 3), (8, 20)], [(0, TICK_MAX)]])
def test_impossible_ranges_are_refused_and_change_nothing(start: list[Range], first: int, last: int) -> None:
    coverage = Coverage.of(*start)
    before = coverage.key()
    for attempt in (
        lambda: coverage.add(first, last),
        lambda: coverage.missing_within((first, last)),
        lambda: Coverage.of((first, last)),
    ):
        with pytest.raises(CoverageError):
            attempt()
    assert coverage.key() == before


def test_impossible_horizons_are_refused() -> None:
    for make in (Coverage.prefix, Coverage().missing_up_to):
        assert make(NO_TICK) == Coverage.empty()
        for tick in (-2, TICK_MAX + 1):
            with pytest.raises(CoverageError):
                make(tick)


# Combining and asking


@given(range_lists, range_lists)
def test_combinations_equal_those_of_sets(mine: list[Range], theirs: list[Range]) -> None:
    left, right = Coverage.of(*mine), Coverage.of(*theirs)
    left_model, right_model = ticks_of_ranges(mine), ticks_of_ranges(theirs)
    assert ticks_of(left.union(right)) == left_model | right_model
    assert ticks_of(left.difference(right)) == left_model - right_model
    assert ticks_of(left.intersection(right)) == left_model & right_model
    assert left.contains(right) == (left_model >= right_model)
    assert left.overlaps(right) == bool(left_model & right_model)
    assert (left == right) == (left_model == right_model)
    assert (left.key() == right.key()) == (left_model == right_model)
    assert ticks_of(left) == left_model, "an operand was changed"
    assert ticks_of(right) == right_model, "an operand was changed"


@given(range_lists, range_lists)
def test_contains_every_subset_it_was_made_from(mine: list[Range], more: list[Range]) -> None:
    """Random pairs are rarely subsets of each other, so make one that is."""
    part, whole = Coverage.of(*mine), Coverage.of(*mine, *more)
    assert whole.contains(part)
    assert part.contains(whole) == (ticks_of_ranges(mine) == ticks_of_ranges(mine + more))


@given(range_lists, ticks)
def test_questions_about_one_tick(pairs: list[Range], tick: int) -> None:
    coverage, model = Coverage.of(*pairs), ticks_of_ranges(pairs)
    assert (tick in coverage) == (tick in model)
    assert ticks_of(coverage.missing_up_to(tick)) == all_up_to(tick) - model
    assert coverage.count() == len(model)
    assert coverage.count_up_to(tick) == len(model & all_up_to(tick))
    assert coverage.count_above(tick) == len(model - all_up_to(tick))
    assert coverage.count_above(NO_TICK) == len(model)
    assert bool(coverage) == bool(model)


@given(range_lists, ranges)
def test_missing_within_a_range(pairs: list[Range], within: Range) -> None:
    assert ticks_of(Coverage.of(*pairs).missing_within(within)) == ticks_of_ranges([within]) - ticks_of_ranges(pairs)


@given(range_lists)
@example([(1, 3)])
@example([(0, 0)])
def test_horizons_and_gaps(pairs: list[Range]) -> None:
    coverage, model = Coverage.of(*pairs), ticks_of_ranges(pairs)
    horizon, highest = coverage.horizon(), coverage.highest()
    assert all_up_to(horizon) <= model
    assert horizon + 1 not in model
    assert highest == max(model, default=NO_TICK)
    assert ticks_of(coverage.gaps()) == all_up_to(highest) - model
    assert coverage.is_prefix() == (all_up_to(highest) <= model)


@given(coverages, coverages, coverages)
def test_laws(a: Coverage, b: Coverage, c: Coverage) -> None:
    union, intersection, difference = Coverage.union, Coverage.intersection, Coverage.difference
    nothing = Coverage.empty()
    for combine in (union, intersection):
        assert combine(a, b) == combine(b, a)
        assert combine(combine(a, b), c) == combine(a, combine(b, c))
        assert combine(a, a) == a
    assert union(a, nothing) == a
    assert intersection(a, nothing) == nothing
    assert intersection(a, union(b, c)) == union(intersection(a, b), intersection(a, c))
    assert union(difference(a, b), intersection(a, b)) == a
    assert not difference(a, b).overlaps(b)
    assert difference(a, union(b, c)) == difference(difference(a, b), c)
    assert union(a, b).contains(a)
    assert a.contains(intersection(a, b))
    assert a.contains(b) == (union(a, b) == a)


@given(coverages, ticks)
def test_complement_laws(coverage: Coverage, tick: int) -> None:
    missing = coverage.missing_up_to(tick)
    everything = Coverage.prefix(tick)
    assert missing == everything.difference(coverage)
    assert not missing.overlaps(coverage)
    assert missing.missing_up_to(tick) == coverage.intersection(everything)
    assert missing.count() + coverage.count_up_to(tick) == tick + 1
    assert missing.union(coverage).horizon() >= tick


@given(coverages, st.integers(0, 14))
def test_the_lowest_ranges_stay_within_the_bound(coverage: Coverage, ranges_max: int) -> None:
    lowest = coverage.lowest_ranges(ranges_max)
    assert list(lowest) == list(coverage)[:ranges_max]
    assert lowest.ranges_count() == min(ranges_max, coverage.ranges_count())


def test_show() -> None:
    coverage = Coverage.of((20, 23), (0, 17), (25, 25))
    assert coverage.show() == "0..17 20..23 25"
    assert repr(coverage) == "Coverage(0..17 20..23 25)"
    assert Coverage.empty().show() == "none"
    many = Coverage.of(*((tick, tick) for tick in range(0, 40, 2)))
    assert repr(many) == "Coverage(0 2 4 6 8 10 12 14 and 12 more)"
    assert many.show().split() == [str(tick) for tick in range(0, 40, 2)]


def test_it_is_mutable_and_so_has_no_hash_but_its_key_has() -> None:
    coverage = Coverage.of((0, 3))
    assert hash(coverage.key()) == hash(Coverage.of((2, 3), (0, 1)).key())
    for value in (coverage, LineageCoverage([coverage])):
        with pytest.raises(TypeError, match="unhashable"):
            hash(value)
    assert coverage != "0..3"


# Lineages

lineage_pairs = st.integers(1, 4).flatmap(
    lambda count: st.tuples(*[st.lists(range_lists, min_size=count, max_size=count)] * 2)
)


def lineages(parts: list[list[Range]]) -> LineageCoverage:
    return LineageCoverage(Coverage.of(*pairs) for pairs in parts)


def ticks_by_lineage(coverage: LineageCoverage) -> list[Ticks]:
    return [ticks_of(part) for part in coverage]


@given(lineage_pairs, ticks)
def test_lineages_combine_one_by_one(both: tuple[list[list[Range]], list[list[Range]]], tick: int) -> None:
    mine, theirs = map(lineages, both)
    models = list(zip(ticks_by_lineage(mine), ticks_by_lineage(theirs), strict=True))
    assert ticks_by_lineage(mine.difference(theirs)) == [a - b for a, b in models]
    assert ticks_by_lineage(mine.intersection(theirs)) == [a & b for a, b in models]
    assert ticks_by_lineage(mine.missing_up_to(tick)) == [all_up_to(tick) - a for a, _ in models]
    assert mine.contains(theirs) == all(a >= b for a, b in models)
    assert (mine == theirs) == (mine.key() == theirs.key()) == all(a == b for a, b in models)
    assert mine.horizon() == min(part.horizon() for part in mine)
    assert mine.highest() == max(part.highest() for part in mine)
    assert bool(mine) == any(a for a, _ in models)
    united = mine.copy()
    assert united.update(theirs) == any(not a >= b for a, b in models)
    assert ticks_by_lineage(united) == [a | b for a, b in models]
    assert ticks_by_lineage(mine) == [a for a, _ in models], "a copy shares its parts"
    assert united.contains(mine)
    assert united.contains(theirs)


def test_two_lineages_of_one_stream_never_mix() -> None:
    """A diamond: the tick arrived by one edge only, so it is not covered and the horizon waits."""
    by_sum, by_max = LineageCoverage([Coverage.of((0, 4))]), LineageCoverage([Coverage.of((0, 3))])
    both = LineageCoverage.concat([by_sum, by_max])
    assert both.horizon() == 3
    assert both.key() == (((0, 4),), ((0, 3),))
    assert not both.contains(LineageCoverage.prefix(2, 4))
    assert both.contains(LineageCoverage.prefix(2, 3))
    assert both.show() == "0..4 | 0..3"
    assert repr(both) == "LineageCoverage(0..4 | 0..3)"
    by_sum[0].add(5, 5)
    assert both.highest() == 4, "a concatenation is a value of its own"
    both[1].add(4, 4)
    assert both.horizon() == 4


def test_lineages_that_do_not_fit_are_refused() -> None:
    one, two = LineageCoverage.empty(1), LineageCoverage.empty(2)
    for combine in (two.contains, two.update, two.difference, two.intersection):
        with pytest.raises(CoverageError, match="2 lineages cannot meet 1"):
            combine(one)
    assert one != two
    with pytest.raises(CoverageError, match="at least one lineage"):
        LineageCoverage([])


@given(st.lists(coverages, min_size=2, max_size=4), coverages, st.data())
def test_the_parts_of_one_edge_are_replaced(parts: list[Coverage], grown: Coverage, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(parts) - 1))
    before = LineageCoverage(parts)
    edge = LineageCoverage([grown])
    after = before.replaced(at, edge)
    assert after == LineageCoverage([*parts[:at], grown, *parts[at + 1 :]])
    assert before == LineageCoverage(parts)
    edge[0].add(10**6, 10**6)
    assert after[at] == grown, "what the edge learns later is not in it"


def test_all_parts_of_an_edge_are_replaced_together() -> None:
    parts = [Coverage.prefix(n) for n in range(4)]
    edge = LineageCoverage([Coverage.of((5, 6)), Coverage.of((0, 9))])
    assert LineageCoverage(parts).replaced(1, edge).show() == "0 | 5..6 | 0..9 | 0..3"


@given(st.lists(coverages, min_size=1, max_size=3))
def test_no_gaps_on_any_lineage(parts: list[Coverage]) -> None:
    assert LineageCoverage(parts).is_prefix() == all(part.is_prefix() for part in parts)
    assert bool(LineageCoverage(parts)) == any(bool(part) for part in parts)
    assert LineageCoverage(parts).to_wire() == [part.to_wire() for part in parts]


@given(coverages, coverages)
def test_above_is_beyond_all_of_the_other(mine: Coverage, theirs: Coverage) -> None:
    expected = bool(mine) and min(ticks_of(mine)) > max(ticks_of(theirs), default=-1)
    assert LineageCoverage([mine]).is_above(LineageCoverage([theirs])) == expected
    assert not LineageCoverage([mine, mine]).is_above(LineageCoverage([theirs, theirs]))
