"""Goal: a coverage survives the wire, is small on it, and no received value does more harm than a CoverageError."""

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.protocol.coverage import TICK_MAX, Coverage, CoverageError, Range
from runtime.protocol.lineage_coverage import LineageCoverage
from tests.protocol.naive_ticks import any_range_lists, coverages


@given(any_range_lists)
def test_wire_round_trip(pairs: list[Range]) -> None:
    coverage = Coverage.of(*pairs)
    packed = msgpack.packb(coverage.to_wire())
    assert Coverage.from_wire(msgpack.unpackb(packed), coverage.ranges_count()) == coverage
    assert Coverage.from_wire(msgpack.unpackb(packed, use_list=False), coverage.ranges_count()) == coverage


def test_wire_size_is_that_of_the_distances_not_of_the_ticks() -> None:
    """A present-day tick takes nine bytes; two hundred gaps near it must not take nine each."""
    now = 1_750_000_000_000_000 * 1024
    assert len(msgpack.packb(Coverage.prefix(now).to_wire())) <= 11
    gappy = Coverage.of((0, now), *((now + 50 * i, now + 50 * i + 20) for i in range(1, 201)))
    assert len(msgpack.packb(gappy.to_wire())) <= 15 + 200 * 2


wire_atoms = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
)
hostile = st.recursive(
    wire_atoms,
    lambda inner: st.one_of(st.lists(inner, max_size=8), st.dictionaries(st.text(max_size=2), inner, max_size=3)),
    max_leaves=20,
)


def check_hostile(value: object, ranges_max: int) -> None:
    try:
        read = Coverage.from_wire(value, ranges_max)
    except CoverageError:
        return
    assert isinstance(value, list | tuple)
    assert read.ranges_count() <= ranges_max
    ticks_ranges = list(read)
    assert all(0 <= first <= last <= TICK_MAX for first, last in ticks_ranges)
    assert Coverage.of(*ticks_ranges) == read, "accepted, but not in canonical form"
    assert read.to_wire() == list(value), "two wire values for one set"


@given(hostile, st.integers(0, 4))
def test_hostile_wire_values_raise_nothing_but_coverage_errors(value: object, ranges_max: int) -> None:
    check_hostile(value, ranges_max)


@given(any_range_lists, st.data())
def test_damaged_wire_values_raise_nothing_but_coverage_errors(pairs: list[Range], data: st.DataObject) -> None:
    wire: list[object] = [*Coverage.of(*pairs).to_wire()]
    at = data.draw(st.integers(0, len(wire)))
    wire[at : at + data.draw(st.integers(0, 2))] = data.draw(st.lists(wire_atoms, max_size=2))
    check_hostile(wire, ranges_max=data.draw(st.integers(0, 12)))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "not NoneType"),
        ({0: 3}, "not dict"),
        (b"\x00\x03", "not bytes"),
        ("03", "not str"),
        ([0], "one is missing"),
        ([0, 1, 0], "one is missing"),
        ([0, True], "not bool"),
        ([0.0, 1], "not float"),
        ([0, -1], "negative"),
        ([-1, 5], "negative"),
        ([0, 5, -1, 3], "negative"),
        ([0, TICK_MAX + 1], "beyond int64"),
        ([TICK_MAX, 1], "beyond int64"),
        ([0, TICK_MAX - 1, 0, 0], "beyond int64"),
        ([0, 0] * 4, "exceeds the bound of 3"),
        ([0] * 9, "exceeds the bound of 3"),
    ],
)
def test_wire_errors_say_what_is_wrong(value: object, reason: str) -> None:
    with pytest.raises(CoverageError, match=reason):
        Coverage.from_wire(value, ranges_max=3)
    with pytest.raises(CoverageError, match=reason):  # where single ranges have a way of their own
        LineageCoverage.from_wire([[0, 7], value], 2, ranges_max=3)


@pytest.mark.parametrize("value", [[0, 10**5000], [10**5000, 0], [0, -(10**5000)]], ids=["long", "far", "back"])
def test_ints_too_long_to_print_are_refused_like_others(value: list[int]) -> None:
    """Python refuses to print them, so a message that quotes the value would fail with another error."""
    with pytest.raises(CoverageError):
        Coverage.from_wire(value, ranges_max=3)


def test_a_wire_value_at_the_bound_is_read() -> None:
    assert Coverage.from_wire([0, 0] * 3, ranges_max=3) == Coverage.of((0, 0), (2, 2), (4, 4))
    assert Coverage.from_wire([], ranges_max=0) == Coverage.empty()
    assert Coverage.from_wire([0, TICK_MAX], ranges_max=1) == Coverage.prefix(TICK_MAX)


@given(st.lists(coverages, min_size=1, max_size=4))
def test_lineages_round_trip(parts: list[Coverage]) -> None:
    coverage = LineageCoverage(parts)
    ranges_max = max(part.ranges_count() for part in coverage)
    unpacked = msgpack.unpackb(msgpack.packb(coverage.to_wire()))
    assert LineageCoverage.from_wire(unpacked, len(coverage), ranges_max) == coverage
    for lineages_count in (len(coverage) - 1, len(coverage) + 1):
        with pytest.raises(CoverageError, match="the plan has"):
            LineageCoverage.from_wire(unpacked, lineages_count, ranges_max)
    if ranges_max:
        with pytest.raises(CoverageError, match="exceeds the bound"):
            LineageCoverage.from_wire(unpacked, len(coverage), ranges_max - 1)


@given(hostile, st.integers(0, 3))
def test_hostile_lineages_raise_nothing_but_coverage_errors(value: object, lineages_count: int) -> None:
    try:
        read = LineageCoverage.from_wire(value, lineages_count, ranges_max=3)
    except CoverageError:
        return
    assert isinstance(value, list)
    assert read.to_wire() == value
    assert len(read) == lineages_count


@given(st.lists(st.tuples(coverages, coverages), min_size=1, max_size=4))
def test_lineages_are_compared_one_by_one(pairs: list[tuple[Coverage, Coverage]]) -> None:
    """One range each is the usual case and has a way of its own."""
    mine, theirs = (LineageCoverage(parts) for parts in zip(*pairs, strict=True))
    assert mine.contains(theirs) == all(one.contains(other) for one, other in pairs)
    assert mine.horizon() == min(one.horizon() for one, _ in pairs)


def test_ranges_that_begin_alike_may_still_lack_something() -> None:
    mine, theirs = Coverage.of((0, 3), (5, 6)), Coverage.of((0, 2), (5, 9))
    assert not LineageCoverage([mine]).contains(LineageCoverage([theirs]))
