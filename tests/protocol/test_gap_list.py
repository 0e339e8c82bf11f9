"""Goal: the gap list of a merge says, tick by tick, which sources are known, what is final, and whom to ask for what.

Compared with a naive picture: one set of ticks per source, and the paper's rule applied to each source's word per tick.
"""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.protocol.coverage import NO_TICK, TICK_MAX, Coverage, CoverageError
from runtime.protocol.gap_list import GapEntry, GapList
from runtime.protocol.lineage_coverage import LineageCoverage
from tests.protocol.naive_ticks import SPAN, Ticks, all_up_to, coverages, ticks_of

few_sources = st.lists(coverages, min_size=1, max_size=5)
# Seventy coverages drawn one by one take most of a second; picks from a few drawn ones differ enough.
many_sources = st.builds(
    lambda pool, picks: [pool[pick % len(pool)] for pick in picks],
    st.lists(coverages, min_size=1, max_size=6),
    st.lists(st.integers(0, 5), min_size=60, max_size=70),
)


def flags_at(models: list[Ticks], tick: int) -> list[bool]:
    return [tick in model for model in models]


def check_against_sets(sources: list[Coverage]) -> None:
    gap_list = GapList.of(sources)
    models = [ticks_of(source) for source in sources]
    touched = frozenset[int]().union(*models)
    assert gap_list.horizon == min(tick for tick in range(SPAN + 3) if not all(flags_at(models, tick))) - 1
    assert gap_list.highest == max(touched, default=NO_TICK)
    listed = [tick for entry in gap_list.entries for tick in range(entry.first, entry.last + 1)]
    assert listed == list(range(gap_list.horizon + 1, gap_list.highest + 1)), "not consecutive, or not from t1 to t2"
    for entry in gap_list.entries:
        for tick in range(entry.first, entry.last + 1):
            assert [entry.knows(source) for source in range(len(sources))] == flags_at(models, tick)
        assert entry.known < 1 << len(sources)
    for one, next_one in pairwise(gap_list.entries):
        assert one.known != next_one.known, "one range told in two entries"
    for tick in range(SPAN + 3):
        flags = flags_at(models, tick)
        assert gap_list.known_at(tick) == sum(1 << source for source, flag in enumerate(flags) if flag)
        assert gap_list.all_known(tick) == all(flags)


@given(few_sources)
def test_flags_equal_the_sets(sources: list[Coverage]) -> None:
    check_against_sets(sources)


@given(many_sources)
def test_flags_equal_the_sets_beyond_sixty_four_sources(sources: list[Coverage]) -> None:
    check_against_sets(sources)


@given(st.one_of(few_sources, many_sources))
def test_questions_close_every_gap_and_ask_for_nothing_known(sources: list[Coverage]) -> None:
    gap_list = GapList.of(sources)
    questions = dict(gap_list.questions())
    for source, coverage in enumerate(sources):
        wanted = all_up_to(gap_list.highest) - ticks_of(coverage)
        assert ticks_of(gap_list.missing_from(source)) == wanted
        assert (source in questions) == bool(wanted)
        assert ticks_of(questions.get(source, Coverage())) == wanted
    assert list(questions) == sorted(questions)
    answered = [coverage.union(questions.get(source, Coverage())) for source, coverage in enumerate(sources)]
    settled = GapList.of(answered)
    assert settled.horizon == settled.highest == gap_list.highest
    assert settled.entries == ()
    assert settled.questions() == ()


@given(few_sources)
def test_horizons_are_those_of_the_lineages(sources: list[Coverage]) -> None:
    """Acknowledgements and trimming use the lineages' horizon; the merge must not have one of its own."""
    gap_list, lineages = GapList.of(sources), LineageCoverage(sources)
    assert gap_list.horizon == lineages.horizon()
    assert gap_list.highest == lineages.highest()


@given(few_sources)
def test_one_source_is_its_coverage(sources: list[Coverage]) -> None:
    gap_list = GapList.of(sources[:1])
    assert gap_list.missing_from(0) == sources[0].gaps()


@given(few_sources, st.sets(st.integers(0, SPAN)))
def test_final_by_owner_is_never_false_and_never_later_than_in_the_paper(
    sources: list[Coverage], event_ticks: set[int]
) -> None:
    """Source i owns the ticks that leave remainder i. A source's word about a tick is an event or silence."""
    gap_list = GapList.of(sources)
    models = [ticks_of(source) for source in sources]
    for tick in range(SPAN + 1):
        owner = tick % len(sources)
        event_received = tick in event_ticks and tick in models[owner]
        final_in_the_paper = event_received or all(flags_at(models, tick))
        final = gap_list.is_final(tick, owner)
        assert final >= final_in_the_paper
        # Never false: what the merge would show now is what it shows when every source has told everything.
        if final:
            assert event_received == (tick in event_ticks)


def test_the_papers_two_buyers() -> None:
    """West (even ticks) lost 46..47, East (odd ticks) has told 0..41 and 47..50."""
    west, east = Coverage.of((0, 45), (48, 50)), Coverage.of((0, 41), (47, 50))
    gap_list = GapList.of([west, east])
    assert gap_list.show() == "0..41 final, 42..45 TF, 46 FF, 47 FT, 48..50 TT, 51.. unknown"
    assert gap_list.questions() == ((0, Coverage.of((46, 47))), (1, Coverage.of((42, 46))))
    assert gap_list.is_final(44, owner=0), "West's own tick, and West has told it"
    assert not gap_list.all_known(44)
    assert not gap_list.is_final(43, owner=1)
    assert gap_list.is_final(12, owner=1)
    assert not gap_list.is_final(51, owner=1)


def test_nothing_known() -> None:
    gap_list = GapList.of([Coverage(), Coverage()])
    assert gap_list == GapList(2, NO_TICK, NO_TICK, ())
    assert gap_list.show() == "0.. unknown"
    assert gap_list.questions() == ()
    assert gap_list.known_at(0) == 0


def test_up_to_the_last_tick() -> None:
    gap_list = GapList.of([Coverage.of((0, TICK_MAX)), Coverage.of((0, 9), (20, TICK_MAX - 1))])
    assert gap_list.entries == (
        GapEntry(10, 19, 0b01),
        GapEntry(20, TICK_MAX - 1, 0b11),
        GapEntry(TICK_MAX, TICK_MAX, 0b01),
    )
    assert gap_list.questions() == ((1, Coverage.of((10, 19), (TICK_MAX, TICK_MAX))),)


def test_a_source_that_runs_ahead_costs_one_entry_however_many_events_it_brings() -> None:
    ahead = Coverage.prefix(10)
    for tick in range(11, 5_000):
        ahead.add(tick, tick)
    assert GapList.of([ahead, Coverage.prefix(10)]).entries == (GapEntry(11, 4_999, 0b01),)


@given(st.one_of(few_sources, many_sources))
def test_entries_are_bounded_by_the_ranges(sources: list[Coverage]) -> None:
    assert len(GapList.of(sources).entries) <= 2 * sum(source.ranges_count() for source in sources)


def test_wrong_questions_are_refused() -> None:
    gap_list = GapList.of([Coverage.prefix(3), Coverage.prefix(5)])
    for source in (-1, 2):
        with pytest.raises(CoverageError, match=f"source {source} of a merge of 2"):
            gap_list.missing_from(source)
        with pytest.raises(CoverageError, match=f"source {source} of a merge of 2"):
            gap_list.is_final(4, source)
    with pytest.raises(CoverageError, match="-1 is not a tick"):
        gap_list.known_at(-1)
    with pytest.raises(CoverageError, match="at least one source"):
        GapList.of([])
