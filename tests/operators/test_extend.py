"""Extend: computed columns, on events and on rows that rise, vanish or come and go."""

import random

import pytest
from hypothesis import given

from runtime.batch import Batch
from runtime.operators.errors import Overflow
from runtime.operators.extend import ExtendSpec
from runtime.operators.group_by import GroupBySpec
from runtime.operators.operator import EventOperator, Operator
from runtime.operators.totals import CountSpec
from runtime.plan import PlanError
from tests.operators.histories import EVENTS, FINAL, UP, VERSIONED, Source, Stage, View, relation
from tests.operators.inputs import Maker, allowed, alone, attack, generators, middle, positive, small, totals


@pytest.mark.parametrize("make", [totals, small, middle])
@given(generator=generators)
def test_rising_column(make: Maker, generator: random.Random) -> None:
    def compute(rows: View) -> View:
        return {key: (*row, row[0] * 2 + key[0]) for key, row in rows.items()}

    spec = ExtendSpec((lambda k, total: total * 2 + k,))
    attack(generator, lambda source: Stage(spec, relation("out", 1, (UP, UP)), compute, source), make)


@given(generator=generators)
def test_difference_is_versioned(generator: random.Random) -> None:
    def compute(rows: View) -> View:
        return {key: (p, n, p - n) for key, (p, n) in rows.items()}

    spec = ExtendSpec((lambda k, p, n: p - n,))
    output = relation("out", 1, (UP, UP, VERSIONED), versioned=True)
    attack(generator, lambda source: Stage(spec, output, compute, source), positive)


@pytest.mark.parametrize(("make", "versioned"), [(alone, False), (allowed, True)])
@given(generator=generators)
def test_group_by_a_computed_final_column(make: Maker, versioned: bool, generator: random.Random) -> None:
    """Tombstones carry it, so that the group of a row that was never seen alive is still reached."""

    def computed(rows: View) -> View:
        return {key: (*row, row[0] + row[1]) for key, row in rows.items()}

    def compute(rows: View) -> View:
        sums = [row[0] + row[1] for row in rows.values()]
        return {(value,): (sums.count(value),) for value in sums}

    def extended(stages: list[Stage], source: Source, other: Source) -> Stage:
        spec = ExtendSpec((lambda tick, k, g, v, w: k + g,))
        wider = relation("wider", 1, (FINAL,) * 5, versioned=versioned)
        stages.append(Stage(spec, wider, computed, make(stages, source, other)))
        return stages[-1]

    spec = GroupBySpec((5,), (CountSpec(),))
    output = relation("out", 1, (VERSIONED,), versioned=True)
    attack(generator, lambda source: Stage(spec, output, compute, source), extended)


def test_events_stay_events() -> None:
    spec = ExtendSpec((lambda tick, k, g, v, w: v * 10, lambda tick, k, g, v, w: tick))
    operator = spec.build((EVENTS,), relation("out", 1, (FINAL,) * 6, is_event=True))
    assert isinstance(operator, EventOperator)
    mapped = operator.map(0, Batch.events([4], [[1], [0], [3], [-1]], [2]))
    assert (mapped.rows(), mapped.lineages) == ([(4, 1, 0, 3, -1, 30, 4)], [2])


def test_overflow_is_refused_and_changes_nothing() -> None:
    spec = ExtendSpec((lambda k, total: total * 2,))
    operator = spec.build((relation("in", 1, (UP,)),), relation("out", 1, (UP, UP)))
    assert isinstance(operator, Operator)
    operator.take(0, Batch.of_rows(2, [(1, 5)], [1], [True]))
    before = operator.rows.export()
    with pytest.raises(Overflow, match="computed column"):
        operator.take(0, Batch.of_rows(2, [(1, 6), (2, 2**62)], [2, 3], [True, True]))
    assert operator.rows.export() == before


def test_what_fails_for_an_invisible_row_stops_nobody() -> None:
    spec = ExtendSpec((lambda k, a: 10 // a,))
    operator = spec.build((relation("in", 1, (FINAL,)),), relation("out", 1, (FINAL, FINAL)))
    assert isinstance(operator, Operator)
    operator.take(0, Batch.of_rows(2, [(1, 0), (2, 5), (3, None)], [1, 2, 3], [False, True, False]))
    assert operator.rows.select(operator.rows.visible_slots()).rows() == [(2, 5, 2)]
    with pytest.raises(ZeroDivisionError):
        operator.take(0, Batch.of_rows(2, [(4, 0), (5, 0)], [4, 5], [False, True]))


def test_plan_mistake_is_refused() -> None:
    with pytest.raises(PlanError, match="columns more"):
        ExtendSpec(()).build((EVENTS,), relation("out", 1, (FINAL,)))
