"""Distinct: a set of values, decided by first witnesses or by counting support."""

import random

import pytest
from hypothesis import given

from runtime.batch import Batch
from runtime.operators.distinct import DistinctSpec
from runtime.operators.operator import Operator
from tests.operators.histories import EVENTS, FINAL, UP, Stage, View, relation
from tests.operators.inputs import Maker, allowed, alone, attack, events, generators, last, small, totals


@pytest.mark.parametrize(("make", "versioned"), [(events, False), (events, True), (alone, True), (allowed, True)])
@given(generator=generators)
def test_final_columns(make: Maker, versioned: bool, generator: random.Random) -> None:
    def compute(rows: View) -> View:
        return {(row[0],): () for row in rows.values()}

    output = relation("out", 1, versioned=versioned)
    attack(generator, lambda source: Stage(DistinctSpec((1,)), output, compute, source), make)


@pytest.mark.parametrize("make", [totals, small])
@given(generator=generators)
def test_rising_column(make: Maker, generator: random.Random) -> None:
    """A total that jumps from 1 to 3 leaves no trace of 2, which somebody may have seen."""

    def compute(rows: View) -> View:
        return dict.fromkeys(rows.values(), ())

    output = relation("out", 1, versioned=True)
    attack(generator, lambda source: Stage(DistinctSpec((1,)), output, compute, source), make)


@given(generator=generators)
def test_dominated_column_beside_the_key(generator: random.Random) -> None:
    def compute(rows: View) -> View:
        return {(row[2], *key): () for key, row in rows.items()}

    output = relation("out", 2, versioned=True)
    attack(generator, lambda source: Stage(DistinctSpec((3, 0)), output, compute, source), last)


@given(generator=generators)
def test_keys_of_rows_that_stay(generator: random.Random) -> None:
    output = relation("out", 1)
    attack(
        generator,
        lambda source: Stage(DistinctSpec((0,)), output, lambda rows: dict.fromkeys(rows, ()), source),
        totals,
    )


def test_further_witnesses_are_no_news() -> None:
    operator = DistinctSpec((1,)).build((EVENTS,), relation("out", 1))
    assert isinstance(operator, Operator)
    assert operator.take(0, Batch.events([9], [[5], [0], [0], [0]])) == [0]
    assert operator.take(0, Batch.events([3, 12], [[5, 5], [0, 0], [0, 0], [0, 0]])) == []
    assert operator.rows.max_tick == [9]


def test_witnessed_rows_are_quenched_only_where_they_stay() -> None:
    batch = Batch.of_rows(2, [(1, 4), (2, 5)], [1, 2], [True, False])
    steady = DistinctSpec((0,)).build((relation("in", 1, (UP,)),), relation("out", 1))
    counted = DistinctSpec((0,)).build((relation("in", 1, (UP,)),), relation("out", 1, versioned=True))
    assert isinstance(steady, Operator)
    assert isinstance(counted, Operator)
    for operator in (steady, counted):
        operator.take(0, batch)
    assert steady.dead_input_keys(0, batch) == [(1,)]
    assert counted.dead_input_keys(0, batch) == []


def test_row_that_vanished_unseen_leaves_a_tombstone() -> None:
    operator = DistinctSpec((1,)).build((relation("in", 1, (FINAL,)),), relation("out", 1, versioned=True))
    assert isinstance(operator, Operator)
    assert operator.take(0, Batch.of_rows(2, [(1, 4)], [7], [False])) == [0]
    assert (operator.rows.key_at(0), operator.rows.visible, operator.rows.max_tick) == ((4,), [False], [7])
