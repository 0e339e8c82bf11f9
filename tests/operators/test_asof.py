"""Asof join: the latest partner that is not later, of events and of rows that change, vanish or wander."""

import random
from typing import Any

import pytest
from hypothesis import given

from runtime.batch import Batch
from runtime.operators.asof import AsofSpec
from runtime.operators.operator import Operator
from runtime.operators.ordering import Order
from runtime.plan import PlanError
from tests.operators.histories import DOM, EVENTS, FINAL, UP, VERSIONED, Stage, View, relation
from tests.operators.inputs import Maker, allowed, alone, attack, events, generators, last, positive, totals


def latest(rows: View, match: Any, column: int, time: Any, time_column: int) -> tuple | None:
    """The whole right row with the largest time, then tick or key, of those that are not later than `time`."""
    wholes = [(*key, *row) for key, row in rows.items()]
    found = [row for row in wholes if row[column] == match and row[time_column] <= time]
    return max(found, key=lambda row: (row[time_column], row[0]), default=None)


@pytest.mark.parametrize("keep_unmatched", [False, True])
@pytest.mark.parametrize(
    ("makers", "versioned"),
    [
        ((events, events), False),
        ((alone, events), False),
        ((events, events), True),
        ((events, alone), True),
        ((allowed, allowed), True),
    ],
)
@given(generator=generators)
def test_by_final_times(
    makers: tuple[Maker, Maker], versioned: bool, keep_unmatched: bool, generator: random.Random
) -> None:
    def compute(left: View, right: View) -> View:
        result: View = {}
        for key, row in left.items():
            partner = latest(right, row[0], 1, row[2], 3)
            if partner is not None or keep_unmatched:
                result[key] = (row[2], *((partner[0], partner[3]) if partner else (None, None)))
        return result

    spec = AsofSpec(((1, 1),), (3, 3), (Order(0, descending=True),), (0, 3, 5, 8), keep_unmatched)
    kind = VERSIONED if versioned else DOM
    output = relation("out", 1, (FINAL, kind, kind), versioned=versioned)
    attack(generator, lambda *inputs: Stage(spec, output, compute, *inputs), *makers)


@pytest.mark.parametrize("make", [totals, positive])
@given(generator=generators)
def test_by_times_that_change(make: Maker, generator: random.Random) -> None:
    """Totals as times: the right row of the same k, while its total is not above the event's v."""

    def compute(left: View, right: View) -> View:
        found = {key: latest(right, row[0], 0, row[2], 1) for key, row in left.items()}
        return {key: (partner[1],) for key, partner in found.items() if partner is not None}

    spec = AsofSpec(((1, 0),), (3, 1), (Order(0),), (0, 6))
    output = relation("out", 1, (VERSIONED,), versioned=True)
    attack(generator, lambda *inputs: Stage(spec, output, compute, *inputs), events, make)


@pytest.mark.parametrize("makers", [(events, last), (last, events)])
@given(generator=generators)
def test_rows_that_wander(makers: tuple[Maker, Maker], generator: random.Random) -> None:
    """Match on g of the latest event of each k: rows get other partners."""
    on, times, columns = ((2, 2), (3, 3), (0, 3, 8)) if makers[0] is events else ((2, 2), (3, 3), (0, 3, 7))

    def compute(left: View, right: View) -> View:
        result: View = {}
        for key, row in left.items():
            whole = (*key, *row)
            partner = latest(right, whole[2], 2, whole[3], 3)
            result[key] = (whole[3], None if partner is None else partner[3])
        return result

    spec = AsofSpec((on,), times, (Order(0, descending=True),), columns, keep_unmatched=True)
    output = relation("out", 1, (VERSIONED,) * 2, versioned=True)
    attack(generator, lambda *inputs: Stage(spec, output, compute, *inputs), *makers)


def build(*, keep_unmatched: bool = False) -> Operator:
    spec = AsofSpec(((1, 1),), (3, 3), (Order(0, descending=True),), (0, 8), keep_unmatched)
    operator = spec.build((EVENTS, EVENTS), relation("out", 1, (DOM,)))
    assert isinstance(operator, Operator)
    return operator


def test_row_depends_on_itself_and_its_partner() -> None:
    operator = build()
    operator.take(0, Batch.events([5], [[1], [0], [10], [0]]))
    assert operator.take(1, Batch.events([9], [[1], [0], [8], [0]])) == [0]
    assert (operator.rows.row_at(0), operator.rows.max_tick) == ((5, 8), [9])
    assert operator.take(1, Batch.events([11, 12], [[1, 1], [0, 0], [7, 11], [0, 0]])) == []  # earlier, and too late
    assert operator.take(1, Batch.events([2], [[1], [0], [10], [0]])) == [0]
    assert (operator.rows.row_at(0), operator.rows.max_tick) == ((5, 10), [5])


def test_null_times_and_null_matches_have_no_partner() -> None:
    operator = build(keep_unmatched=True)
    operator.take(1, Batch.events([1, 2], [[1, None], [0, 0], [None, 3], [0, 0]]))
    operator.take(0, Batch.events([3, 4, 5], [[1, None, 1], [0, 0, 0], [9, 9, None], [0, 0, 0]]))
    assert [operator.rows.row_at(slot) for slot in operator.rows.visible_slots()] == [(3, None), (4, None), (5, None)]


def test_plan_mistakes_are_refused() -> None:
    rows = relation("rows", 1, (UP,))
    with pytest.raises(PlanError, match="columns chosen"):
        AsofSpec(((1, 1),), (3, 3), (), (0,)).build((EVENTS, EVENTS), relation("out", 1, (DOM,)))
    with pytest.raises(PlanError, match="another key"):
        AsofSpec(((1, 1),), (3, 3), (), (5, 0)).build((EVENTS, EVENTS), relation("out", 1, (DOM,)))
    with pytest.raises(PlanError, match="versioned"):
        AsofSpec(((1, 0),), (3, 1), (), (0, 6)).build((EVENTS, rows), relation("out", 1, (DOM,)))
