"""Semi-join, anti-join and minus, with witnesses that stay, vanish, come and go, or change what they match."""

import random

import pytest
from hypothesis import given

from runtime.batch import Batch
from runtime.operators.match import MatchSpec, MinusSpec
from runtime.operators.operator import Operator
from runtime.plan import PlanError
from tests.operators.histories import EVENTS, FINAL, UP, Stage, View, relation
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


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize(
    ("makers", "versioned"),
    [
        ((events, events), False),
        ((alone, events), False),
        ((allowed, events), True),
        ((events, alone), True),
        ((alone, allowed), True),
    ],
)
@given(generator=generators)
def test_final_columns(makers: tuple[Maker, Maker], versioned: bool, negated: bool, generator: random.Random) -> None:
    def compute(left: View, right: View) -> View:
        found = {row[:2] for row in right.values()}
        return {key: row for key, row in left.items() if (row[:2] in found) is not negated}

    spec = MatchSpec(((1, 1), (2, 2)), negated)
    output = relation("out", 1, (FINAL,) * 4, versioned=versioned)
    attack(generator, lambda *inputs: Stage(spec, output, compute, *inputs), *makers)


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize(
    ("makers", "versioned"),
    [((totals, totals), False), ((small, totals), False), ((totals, middle), True), ((middle, positive), True)],
)
@given(generator=generators)
def test_rows_of_one_key(makers: tuple[Maker, Maker], versioned: bool, negated: bool, generator: random.Random) -> None:
    def compute(left: View, right: View) -> View:
        return {key: row for key, row in left.items() if (key in right) is not negated}

    output = relation("out", 1, (UP,), versioned=versioned)
    attack(generator, lambda *inputs: Stage(MatchSpec(((0, 0),), negated), output, compute, *inputs), *makers)


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize(("right", "versioned"), [(events, False), (alone, True), (allowed, True)])
@given(generator=generators)
def test_condition(right: Maker, versioned: bool, negated: bool, generator: random.Random) -> None:
    def compute(left: View, other: View) -> View:
        def found(row: tuple) -> bool:
            return any(row[0] == witness[0] and row[2] < witness[2] for witness in other.values())

        return {key: row for key, row in left.items() if found(row) is not negated}

    def is_less(*both: int) -> bool:
        return both[3] < both[8]

    spec = MatchSpec(((1, 1),), negated, is_less)
    output = relation("out", 1, (FINAL,) * 4, versioned=versioned)
    attack(generator, lambda *inputs: Stage(spec, output, compute, *inputs), events, right)


@pytest.mark.parametrize("negated", [False, True])
@given(generator=generators)
def test_witnesses_that_change_what_they_match(negated: bool, generator: random.Random) -> None:
    def compute(left: View, right: View) -> View:
        found = {row[1] for row in right.values()}
        return {key: row for key, row in left.items() if (key[0] in found) is not negated}

    output = relation("out", 1, (UP,), versioned=True)
    attack(generator, lambda *inputs: Stage(MatchSpec(((0, 2),), negated), output, compute, *inputs), totals, last)


@given(generator=generators)
def test_minus(generator: random.Random) -> None:
    def compute(left: View, right: View) -> View:
        return {key: row for key, row in left.items() if right.get(key) != row}

    output = relation("out", 1, (UP,), versioned=True)
    attack(generator, lambda *inputs: Stage(MinusSpec(), output, compute, *inputs), totals, small)


ROWS = relation("rows", 1, (UP,))


def build(*, negated: bool, versioned: bool = False) -> Operator:
    operator = MatchSpec(((0, 0),), negated).build((ROWS, ROWS), relation("out", 1, (UP,), versioned=versioned))
    assert isinstance(operator, Operator)
    return operator


def row(key: int, value: int, tick: int, *, visible: bool = True) -> Batch:
    return Batch.of_rows(2, [(key, value)], [tick], [visible])


def test_row_that_was_never_visible_has_a_tombstone() -> None:
    operator = build(negated=True)
    operator.take(1, row(1, 0, 6))
    assert operator.take(0, row(1, 5, 4)) == [0]
    assert (operator.rows.visible, operator.rows.max_tick) == ([False], [6])


def test_further_witnesses_are_no_news() -> None:
    operator = MatchSpec(((1, 1),)).build((EVENTS, EVENTS), relation("out", 1, (FINAL,) * 4))
    assert isinstance(operator, Operator)
    operator.take(0, Batch.events([2], [[7], [0], [0], [0]]))
    assert operator.take(1, Batch.events([9], [[7], [0], [0], [0]])) == [0]
    assert operator.take(1, Batch.events([5, 11], [[7, 7], [0, 0], [0, 0], [0, 0]])) == []
    assert operator.rows.max_tick == [9]


def test_only_what_can_never_matter_again_is_quenched() -> None:
    anti = build(negated=True)
    anti.take(1, row(1, 0, 6))
    assert anti.dead_input_keys(1, row(1, 0, 6)) == [(1,)]
    for key in (1, 2):
        anti.take(0, row(key, 5, 4))
    assert anti.dead_input_keys(0, row(1, 5, 4)) == [(1,)]
    assert anti.dead_input_keys(0, row(2, 5, 4)) == []
    assert anti.dead_input_keys(1, row(3, 0, 7, visible=False)) == []
    semi = build(negated=False)
    semi.take(1, row(1, 0, 6))
    semi.take(0, row(1, 5, 4))
    assert semi.dead_input_keys(0, row(1, 5, 4)) == []  # its value is shown
    counted = build(negated=True, versioned=True)
    counted.take(1, row(1, 0, 6))
    assert counted.dead_input_keys(1, row(1, 0, 6)) == []


def test_null_matches_nothing() -> None:
    operator = MatchSpec(((1, 1),), negated=True).build((EVENTS, EVENTS), relation("out", 1, (FINAL,) * 4))
    assert isinstance(operator, Operator)
    operator.take(1, Batch.events([1], [[None], [0], [0], [0]]))
    operator.take(0, Batch.events([2], [[None], [0], [0], [0]]))
    assert operator.rows.visible == [True]


def test_null_is_a_value_of_sets() -> None:
    rows = relation("rows", 1, (UP,))
    operator = MinusSpec().build((rows, rows), relation("out", 1, (UP,), versioned=True))
    assert isinstance(operator, Operator)
    batch = Batch.of_rows(2, [(1, None), (2, None)], [3, 4], [True, True])
    operator.take(0, batch)
    operator.take(1, batch.take([0]))
    assert operator.rows.visible == [False, True]
    copied = MinusSpec().build((rows, rows), relation("out", 1, (UP,), versioned=True))
    assert isinstance(copied, Operator)
    copied.restore(operator.export())
    copied.take(1, Batch.of_rows(2, [(1, None)], [5], [False]))
    assert copied.rows.visible == [True, True]


def test_failing_condition_changes_nothing() -> None:
    def ratio(*both: int) -> bool:
        return both[3] / both[8] > 1

    spec = MatchSpec(((1, 1),), condition=ratio)
    operator = spec.build((EVENTS, EVENTS), relation("out", 1, (FINAL,) * 4))
    assert isinstance(operator, Operator)
    operator.take(0, Batch.events([1], [[1], [0], [4], [0]]))
    before = operator.rows.export()
    with pytest.raises(ZeroDivisionError):
        operator.take(1, Batch.events([3], [[1], [0], [0], [0]]))
    assert operator.rows.export() == before
    assert operator.take(1, Batch.events([2], [[1], [0], [2], [0]])) == [0]
    assert operator.rows.visible == [True]


def test_plan_mistakes_are_refused() -> None:
    with pytest.raises(PlanError, match="other columns"):
        MatchSpec(((0, 0),)).build((EVENTS, ROWS), ROWS)
    with pytest.raises(PlanError, match="different columns"):
        MinusSpec().build((EVENTS, ROWS), EVENTS)
