"""Group-by and its aggregates, over events and over rows that rise, vanish, come and go, or wander between groups."""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.batch import Batch
from runtime.operators.aggregate import AggregateSpec
from runtime.operators.count_distinct import CountDistinctSpec, OfDistinctSpec
from runtime.operators.errors import NotFinite, Overflow
from runtime.operators.extremes import AllSpec, AnySpec, MaxSpec, MinSpec
from runtime.operators.group_by import GroupBySpec
from runtime.operators.operator import Operator
from runtime.operators.totals import AverageSpec, CountSpec, SignedSumSpec, SumSpec
from runtime.operators.witness import WitnessSpec
from runtime.plan import Column, PlanError, Relation, ValueType
from tests.operators.histories import DOM, DOWN, EVENTS, FINAL, UP, VERSIONED, Row, Stage, View, relation
from tests.operators.inputs import (
    Maker,
    allowed,
    alone,
    attack,
    events,
    generators,
    last,
    middle,
    positive,
    small,
    totals,
)


def v(*row: Any) -> Any:
    """v of an event-like row; a null for 4, which must then not count."""
    return None if row[3] == 4 else row[3]


def w(*row: Any) -> Any:
    return row[4]


def even(*row: Any) -> bool:
    return bool(row[4] % 2 == 0)


def numbers(rows: Sequence[Row]) -> list[int]:
    return [row[3] for row in rows if row[3] != 4]


def name(*row: Any) -> Any:
    return None if row[3] == 4 else "abcd"[row[3]]


def large(*row: Any) -> Any:
    return None if row[3] == 4 else row[3] > 1


def evens(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row[4] % 2 == 0]


def first_of(values: list[int]) -> Row:
    return (values[0] if values else None,)


def by_w(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row[4], row[0]))


# spec, column kinds over events, naive value of a list of whole rows
AGGREGATES: dict[str, tuple[AggregateSpec, tuple, Callable[[list[Row]], Row]]] = {
    "sum": (SumSpec(v), (UP,), lambda rows: (sum(numbers(rows)),)),
    "signed": (
        SignedSumSpec(w),
        (UP, UP),
        lambda rows: (sum(r[4] for r in rows if r[4] > 0), -sum(r[4] for r in rows if r[4] < 0)),
    ),
    "count": (CountSpec(), (UP,), lambda rows: (len(rows),)),
    "count v": (CountSpec(v), (UP,), lambda rows: (len(numbers(rows)),)),
    "count even": (CountSpec(None, even), (UP,), lambda rows: (len([r for r in rows if r[4] % 2 == 0]),)),
    "average": (AverageSpec(v), (UP, UP), lambda rows: (sum(numbers(rows)), len(numbers(rows)))),
    "min": (MinSpec(v), (DOWN,), lambda rows: (min(numbers(rows), default=None),)),
    "max": (MaxSpec(w), (UP,), lambda rows: (max(r[4] for r in rows),)),
    "max even": (MaxSpec(w, even), (UP,), lambda rows: (max((r[4] for r in rows if r[4] % 2 == 0), default=None),)),
    "count text": (CountSpec(name), (UP,), lambda rows: (len(numbers(rows)),)),
    "distinct text": (CountDistinctSpec(name), (UP,), lambda rows: (len(set(numbers(rows))),)),
    "distinct": (CountDistinctSpec(v), (UP,), lambda rows: (len(set(numbers(rows))),)),
    "distinct even": (
        CountDistinctSpec(v, even),
        (UP,),
        lambda rows: (len(set(numbers(evens(rows)))),),
    ),
    "sum distinct": (OfDistinctSpec(SumSpec(v)), (UP,), lambda rows: (sum(set(numbers(rows))),)),
    "average distinct": (
        OfDistinctSpec(AverageSpec(v, even)),
        (UP, UP),
        lambda rows: (lambda found: (sum(found), len(found)))(set(numbers(evens(rows)))),
    ),
    "any": (AnySpec(large), (UP,), lambda rows: (any(n > 1 for n in numbers(rows)),)),
    "all": (AllSpec(large, even), (DOWN,), lambda rows: (all(n > 1 for n in numbers(evens(rows))),)),
    "first": (WitnessSpec(v, None, (0,)), (DOM,), lambda rows: first_of(numbers(sorted(rows)))),
    "last even": (
        WitnessSpec(v, even, (0,), last=True),
        (DOM,),
        lambda rows: first_of(numbers(sorted(evens(rows)))[::-1]),
    ),
    "first by w": (WitnessSpec(v, None, (4, 0)), (DOM,), lambda rows: first_of(numbers(by_w(rows)))),
}


def grouped(names: Sequence[str], by: Sequence[int], *, versioned: bool, one_row: bool = False) -> Callable[..., Stage]:
    """A stage that groups event-like rows."""

    def compute(view: View) -> View:
        groups: dict[Row, list[Row]] = {(): []} if one_row else {}
        for key, row in view.items():
            whole = (*key, *row)
            groups.setdefault(tuple(whole[c] for c in by), []).append(whole)
        return {
            group: tuple(value for name in names for value in AGGREGATES[name][2](rows))
            for group, rows in groups.items()
        }

    kinds = [VERSIONED if versioned else kind for name in names for kind in AGGREGATES[name][1]]
    spec = GroupBySpec(tuple(by), tuple(AGGREGATES[name][0] for name in names), one_row=one_row)
    return lambda source: Stage(spec, relation("out", len(by), kinds, versioned=versioned), compute, source)


@pytest.mark.parametrize("name", AGGREGATES)
@given(generator=generators)
def test_each_aggregate_of_events(name: str, generator: random.Random) -> None:
    attack(generator, grouped([name], generator.choice([(), (1,), (2, 1)]), versioned=False), events)


@pytest.mark.parametrize("make", [alone, allowed])
@pytest.mark.parametrize("name", AGGREGATES)
@given(generator=generators)
def test_each_aggregate_of_rows_that_vanish(name: str, make: Maker, generator: random.Random) -> None:
    attack(generator, grouped([name], generator.choice([(), (1,), (2, 1)]), versioned=True), make)


@pytest.mark.parametrize(("make", "versioned"), [(events, False), (allowed, True)])
@given(generator=generators)
def test_several_aggregates_in_one_row(make: Maker, versioned: bool, generator: random.Random) -> None:
    names = generator.sample(sorted(AGGREGATES), 3)
    attack(generator, grouped(names, generator.choice([(), (1,)]), versioned=versioned), make)


@given(generator=generators)
def test_rows_that_rise_replace_themselves(generator: random.Random) -> None:
    """Sum, max and count of totals: monotone, the old row's part is taken away."""

    def compute(rows: View) -> View:
        values = [row[0] for row in rows.values()]
        return {(): (sum(values), max(values), len(values))} if values else {}

    def total(k: int, value: int) -> int:
        return value

    spec = GroupBySpec((), (SumSpec(total), MaxSpec(total), CountSpec()))
    attack(generator, lambda source: Stage(spec, relation("out", 0, (UP, UP, UP)), compute, source), totals)


@pytest.mark.parametrize("make", [small, middle, positive])
@given(generator=generators)
def test_changing_values_of_rows_that_vanish(make: Maker, generator: random.Random) -> None:
    def compute(rows: View) -> View:
        groups: dict[Row, list[int]] = {}
        for (k,), row in rows.items():
            groups.setdefault((k,) if by else (), []).append(row[0])
        return {g: (sum(vs), min(vs), max(vs), len(set(vs))) for g, vs in groups.items()}

    by = generator.choice([(), (0,)])

    def first(*row: Any) -> Any:
        return row[1]

    spec = GroupBySpec(by, (SumSpec(first), MinSpec(first), MaxSpec(first), CountDistinctSpec(first)))
    output = relation("out", len(by), (VERSIONED,) * 4, versioned=True)
    attack(generator, lambda source: Stage(spec, output, compute, source), make)


@given(generator=generators)
def test_rows_that_wander_between_groups(generator: random.Random) -> None:
    """How many keys have which latest g: nobody tells us where a key was between two messages."""

    def compute(rows: View) -> View:
        seen = [row[1] for row in rows.values()]
        return {(g,): (seen.count(g),) for g in seen}

    spec = GroupBySpec((2,), (CountSpec(),))
    output = relation("out", 1, (VERSIONED,), versioned=True)
    attack(generator, lambda source: Stage(spec, output, compute, source), last)


@pytest.mark.parametrize(("make", "versioned"), [(events, False), (alone, True)])
@given(generator=generators)
def test_one_row_even_of_nothing(make: Maker, versioned: bool, generator: random.Random) -> None:
    attack(generator, grouped(["count", "sum", "min"], (), versioned=versioned, one_row=True), make)


def test_one_row_is_there_before_anything_else() -> None:
    spec = GroupBySpec((), (CountSpec(), SumSpec(v), MinSpec(v)), one_row=True)
    operator = spec.build((EVENTS,), relation("out", 0, (UP, UP, DOWN)))
    assert isinstance(operator, Operator)
    assert (operator.rows.row_at(0), operator.rows.visible, operator.rows.max_tick) == ((0, 0, None), [True], [0])


def events_batch(*rows: Row) -> Batch:
    return Batch.events([row[0] for row in rows], list(zip(*(row[1:] for row in rows), strict=True)))


def group_by(*aggregates: AggregateSpec, kinds: tuple = (UP,), source: Relation = EVENTS) -> Operator:
    operator = GroupBySpec((1,), aggregates).build((source,), relation("out", 1, kinds))
    assert isinstance(operator, Operator)
    return operator


def test_max_depends_on_its_witness_alone() -> None:
    operator = group_by(MaxSpec(w))
    operator.take(0, events_batch((9, 5, 0, 0, 1)))
    operator.take(0, events_batch((3, 5, 0, 0, 2)))
    assert operator.rows.max_tick == [3]
    assert operator.take(0, events_batch((20, 5, 0, 0, 2))) == []
    assert operator.take(0, events_batch((12, 5, 0, 0, 3), (11, 5, 0, 0, 3))) == [0]
    assert operator.rows.max_tick == [11]


def test_sum_depends_on_every_tick_that_contributed() -> None:
    operator = group_by(SumSpec(w))
    operator.take(0, events_batch((9, 5, 0, 0, 1)))
    operator.take(0, events_batch((3, 5, 0, 0, 2)))
    assert operator.rows.max_tick == [9]
    assert operator.take(0, events_batch((20, 5, 0, 0, 0))) == []
    assert operator.rows.max_tick == [9]


def test_overflow_is_refused_and_changes_nothing() -> None:
    operator = group_by(CountSpec(), SumSpec(w), CountDistinctSpec(w), kinds=(UP, UP, UP))
    operator.take(0, events_batch((1, 5, 0, 0, 2**63 - 2)))
    before = operator.export()
    with pytest.raises(Overflow, match="total"):
        operator.take(0, events_batch((2, 6, 0, 0, 1), (3, 5, 0, 0, 2)))
    assert operator.export() == before
    assert operator.take(0, events_batch((3, 5, 0, 0, 1))) == [0]
    assert operator.rows.row_at(0) == (5, 2, 2**63 - 1, 2)


FLOATS = Relation("floats", (Column("tick"), Column("k"), Column("x", ValueType.FLOAT)), 1, is_event=True)


def float_total(*values: float, order: random.Random | None = None) -> Operator:
    spec = GroupBySpec((1,), (SumSpec(lambda tick, k, x: x), AverageSpec(lambda tick, k, x: x)))
    columns = (Column("k"), *(Column(n, ValueType.FLOAT, UP) for n in ("a", "b")), Column("c", kind=UP))
    operator = spec.build((FLOATS,), Relation("out", columns, 1))
    assert isinstance(operator, Operator)
    events = list(enumerate(values))
    if order is not None:
        order.shuffle(events)
    for tick, value in events:
        operator.take(0, Batch.events([tick], [[7], [value]]))
    return operator


@given(values=st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=8), generator=generators)
def test_sums_of_floats_do_not_depend_on_the_order(values: list[float], generator: random.Random) -> None:
    operator = float_total(*values, order=generator)
    exact = math.fsum(values)
    assert operator.rows.row_at(0) == (7, exact, exact, len(values))
    data = msgpack.unpackb(msgpack.packb(operator.export()))
    restored = float_total()
    restored.restore(data)
    restored.take(0, Batch.events([100], [[7], [0.5]]))
    assert restored.rows.row_at(0)[1] == math.fsum([*values, 0.5])


def test_float_sum_refuses_what_it_could_not_take_back() -> None:
    operator = float_total(1.5)
    for bad in (math.inf, math.nan):
        with pytest.raises(NotFinite, match=r"in the sum of group \(k=7\)"):
            operator.take(0, Batch.events([9], [[7], [bad]]))
    with pytest.raises(Overflow, match=r"the sum of group \(k=7\) is beyond the largest float"):
        operator.take(0, Batch.events([9, 10], [[7, 7], [1.7e308, 1.7e308]]))
    assert operator.rows.row_at(0) == (7, 1.5, 1.5, 1)


def test_group_reached_only_by_a_vanished_row_has_a_tombstone() -> None:
    spec = GroupBySpec((1,), (CountSpec(),))
    operator = spec.build((relation("in", 1, (FINAL,)),), relation("out", 1, (VERSIONED,), versioned=True))
    assert isinstance(operator, Operator)
    operator.in_floor = 5
    assert operator.take(0, Batch.of_rows(2, [(1, 4), (2, 8)], [3, 9], [False, False])) == [0, 1]
    assert (operator.rows.visible, operator.rows.max_tick) == ([False, False], [5, 9])


def test_plan_mistakes_are_refused() -> None:
    with pytest.raises(PlanError, match="do not fit"):
        GroupBySpec((1,), (AverageSpec(v),)).build((EVENTS,), relation("out", 1, (UP,)))
    with pytest.raises(PlanError, match="one row for ever"):
        GroupBySpec((1,), (CountSpec(),), one_row=True).build((EVENTS,), relation("out", 1, (UP,)))


def test_first_of_the_only_row_that_there_can_be() -> None:
    """It has no key and no tick, so there is nothing to order it by."""
    source = Relation("one", (Column("v", kind=VERSIONED),), 0, versioned=True)
    output = Relation("first", (Column("f", kind=VERSIONED, nullable=True),), 0, versioned=True)
    operator = GroupBySpec((), (WitnessSpec(lambda v: v, None, ()),), one_row=True).build((source,), output)
    for tick, value in ((1, 5), (2, 7)):
        operator.take(0, Batch.of_rows(1, [(value,)], [tick], [True]))
        assert operator.rows.row_at(0) == (value,)
