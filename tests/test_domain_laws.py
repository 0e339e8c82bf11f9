"""Goal: every monotonic domain in `mpl.domains.DOMAINS` obeys the laws that safety rests on.

The order is an order, bottom is below everything, merge is the least upper bound (hence associative, commutative and
idempotent), and nothing lies strictly above a final value. Where a merge is partial, values that contradict each other
raise `Contradiction`, and then no value refines both, except where something better may supersede the two.
"""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mpl.domains import DOMAINS, Contradiction, Domain
from mpl.domains.dominated import Ranked
from mpl.domains.event_value import Event, Knowing
from mpl.domains.grow_only_set import GrowOnlySet
from mpl.domains.number import FallingNumber, RisingNumber
from mpl.domains.rising_parts import up_down_number
from mpl.domains.versioned import Version
from mpl.domains.visibility import Status

SMALL = st.integers(0, 4)
NUMBERS = st.one_of(st.none(), SMALL)
# A key has one score and a tick has one value: half of the draws respect that, the others may contradict.
HONEST_ENTRIES = st.lists(SMALL.map(lambda key: (key * 7 % 3, key)), max_size=6)
ANY_ENTRIES = st.lists(st.tuples(SMALL, SMALL), max_size=3)


def _top_3(entries: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    one_per_key = {key: score for score, key in entries}
    best = sorted(((score, key) for key, score in one_per_key.items()), key=lambda entry: (-entry[0], entry[1]))
    return tuple(best[:3])


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "event value": st.one_of(st.sampled_from(Knowing), st.builds(Event, st.tuples(SMALL))),
    "rising number": NUMBERS,
    "falling number": NUMBERS,
    "up-down number": st.tuples(NUMBERS, NUMBERS),
    "average": st.tuples(NUMBERS, NUMBERS, NUMBERS),
    "latest": st.one_of(st.none(), st.builds(Ranked, st.tuples(SMALL, SMALL), SMALL)),
    "first": st.one_of(st.none(), st.builds(Ranked, st.tuples(SMALL, SMALL), SMALL)),
    "grow-only set": st.frozensets(SMALL),
    "top-k": st.one_of(HONEST_ENTRIES, ANY_ENTRIES).map(_top_3),
    "visibility": st.sampled_from(Status),
    "interval": st.tuples(SMALL, SMALL).map(lambda pair: (float(min(pair)), float(max(pair)))),
    "versioned": st.one_of(st.none(), st.builds(Version, st.frozensets(SMALL, max_size=3), st.integers(0, 1))),
}

BOUNDED: tuple[Domain[Any], ...] = (
    RisingNumber(highest=4),
    FallingNumber(lowest=0),
    up_down_number(highest=4),
    GrowOnlySet(universe=frozenset({0, 1, 2, 3, 4})),
)
"""The same domains where a largest value is declared: only then can they be final."""

SUPERSEDING = ("latest", "first", "top-k", "versioned")
"""Something better may hide a contradiction here: a common refinement can exist although both cannot be true."""

every_domain = pytest.mark.parametrize("domain", [*DOMAINS, *BOUNDED], ids=lambda domain: domain.name)


def merge_or_none(domain: Domain[Any], a: object, b: object) -> tuple[object] | None:
    try:
        return (domain.merge(a, b),)
    except Contradiction:
        return None


def test_every_domain_has_values_to_test_with() -> None:
    assert [domain.name for domain in DOMAINS] == list(VALUES)


@every_domain
@given(data=st.data())
def test_order(domain: Domain[Any], data: st.DataObject) -> None:
    a, b, c = (data.draw(VALUES[domain.name]) for _ in range(3))
    assert domain.leq(a, a)
    assert domain.leq(domain.bottom, a)
    if domain.leq(a, b) and domain.leq(b, a):
        assert a == b
    if domain.leq(a, b) and domain.leq(b, c):
        assert domain.leq(a, c)


@every_domain
@given(data=st.data())
def test_merge_is_the_least_upper_bound(domain: Domain[Any], data: st.DataObject) -> None:
    a, b, c = (data.draw(VALUES[domain.name]) for _ in range(3))
    merged = merge_or_none(domain, a, b)
    common = domain.leq(a, c) and domain.leq(b, c)
    if merged is not None:
        assert domain.leq(a, merged[0])
        assert domain.leq(b, merged[0])
        assert not common or domain.leq(merged[0], c)
    elif domain.name not in SUPERSEDING:
        assert not common, "a contradiction, yet one value refines both"
    assert (merged == (b,)) == domain.leq(a, b)


@every_domain
@given(data=st.data())
def test_merge_laws(domain: Domain[Any], data: st.DataObject) -> None:
    a, b, c = (data.draw(VALUES[domain.name]) for _ in range(3))
    assert domain.merge(a, a) == a
    assert domain.merge(domain.bottom, a) == a
    assert merge_or_none(domain, a, b) == merge_or_none(domain, b, a)
    left = merge_or_none(domain, a, b)
    right = merge_or_none(domain, b, c)
    one = merge_or_none(domain, left[0], c) if left else None
    other = merge_or_none(domain, a, right[0]) if right else None
    if one is not None and other is not None:
        assert one == other
    elif domain.name not in SUPERSEDING:
        assert one is None
        assert other is None


@every_domain
@given(data=st.data())
def test_nothing_is_above_a_final_value(domain: Domain[Any], data: st.DataObject) -> None:
    a, b = (data.draw(VALUES[domain.name]) for _ in range(2))
    if domain.is_final(a) and domain.leq(a, b):
        assert a == b
    assert not domain.is_final(domain.bottom)


FINAL_VALUES: dict[str, list[Any]] = {
    "event value": [Knowing.SILENCE, Event((3,))],
    "rising number": [4],
    "falling number": [0],
    "up-down number": [(4, 4)],
    "grow-only set": [frozenset({0, 1, 2, 3, 4})],
    "visibility": [Status.PERMANENTLY_VISIBLE, Status.PERMANENTLY_INVISIBLE],
    "interval": [(2.0, 2.0)],
}


def test_values_with_nothing_above_them_are_final() -> None:
    by_name = {domain.name: domain for domain in (*DOMAINS, *BOUNDED)}
    for name, values in FINAL_VALUES.items():
        for value in values:
            assert by_name[name].is_final(value), (name, value)


def test_a_partially_ordered_key_would_break_associativity() -> None:
    """Why `Dominated` insists on a total order: with vectors, who meets first decides who wins."""

    def merge(a: tuple[int, int, str], b: tuple[int, int, str]) -> tuple[int, int, str]:
        if a[0] <= b[0] and a[1] <= b[1]:
            return b
        if b[0] <= a[0] and b[1] <= a[1]:
            return a
        return (max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]))

    x, y, z = (1, 0, "x"), (0, 1, "a"), (0, 2, "y")
    assert merge(merge(x, y), z) != merge(x, merge(y, z))


@given(rows=st.lists(HONEST_ENTRIES.map(_top_3), min_size=1, max_size=5), seed=st.randoms())
def test_top_k_does_not_depend_on_who_meets_first(rows: list[Any], seed: Any) -> None:
    domain = next(domain for domain in DOMAINS if domain.name == "top-k")
    forward = domain.bottom
    for part in rows:
        forward = domain.merge(forward, part)
    shuffled = list(rows)
    seed.shuffle(shuffled)
    backward = domain.bottom
    for part in shuffled:
        backward = domain.merge(backward, part)
    assert forward == backward
    assume(len(forward) == 3)
    assert forward == _top_3([entry for part in rows for entry in part])
