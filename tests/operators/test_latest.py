"""Latest and first by key, by tick or by another column."""

import random

import pytest
from hypothesis import given

from runtime.batch import Batch
from runtime.operators.latest import LatestSpec
from runtime.operators.operator import Operator
from runtime.plan import PlanError
from tests.operators.histories import DOM, EVENTS, UP, Stage, View, relation
from tests.operators.inputs import attack, events, generators


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("by", [0, 3])
@given(generator=generators)
def test_winner_of_each_group(by: int, first: bool, generator: random.Random) -> None:
    def compute(rows: View) -> View:
        groups: dict[int, list[tuple]] = {}
        for key, row in rows.items():
            groups.setdefault(row[0], []).append((*key, *row))
        choose = min if first else max
        winners = {k: choose(members, key=lambda row: (row[by], row[0])) for k, members in groups.items()}
        return {(k,): (row[0], row[3], row[4]) for k, row in winners.items()}

    spec = LatestSpec((1, 0, 3, 4), by, first)
    attack(generator, lambda source: Stage(spec, relation("out", 1, (DOM,) * 3), compute, source), events)


def build(spec: LatestSpec) -> Operator:
    operator = spec.build((EVENTS,), relation("out", 1, (DOM, DOM)))
    assert isinstance(operator, Operator)
    return operator


def test_only_the_winner_counts() -> None:
    operator = build(LatestSpec((1, 0, 3), by=3))
    operator.take(0, Batch.events([9], [[5], [0], [2], [0]]))
    assert operator.take(0, Batch.events([20], [[5], [0], [1], [0]])) == []
    assert operator.rows.max_tick == [9]
    assert operator.take(0, Batch.events([3], [[5], [0], [3], [0]])) == [0]
    assert (operator.rows.row_at(0), operator.rows.max_tick) == ((5, 3, 3), [3])


@pytest.mark.parametrize("first", [False, True])
def test_null_is_last_whichever_way(first: bool) -> None:
    operator = build(LatestSpec((1, 0, 3), by=3, first=first))
    operator.take(0, Batch.events([4], [[5], [0], [None], [0]]))
    operator.take(0, Batch.events([2], [[5], [0], [1], [0]]))
    operator.take(0, Batch.events([6], [[5], [0], [None], [0]]))
    assert operator.rows.row_at(0) == (5, 2, 1)


def test_plan_mistakes_are_refused() -> None:
    with pytest.raises(PlanError, match="needs events"):
        LatestSpec((0, 1)).build((relation("in", 1, (UP,)),), relation("out", 1, (DOM,)))
    with pytest.raises(PlanError, match="order column"):
        LatestSpec((1, 0), by=3).build((EVENTS,), relation("out", 1, (DOM,)))
