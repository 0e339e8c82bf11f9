"""Union as a set, and union of rows that remember where they came from."""

import random

import pytest
from hypothesis import given

from runtime.operators.union import UnionAllSpec, UnionSpec
from runtime.plan import PlanError
from tests.operators.histories import EVENTS, FINAL, UP, Source, Stage, View, relation
from tests.operators.inputs import Maker, allowed, alone, attack, events, generators, middle, positive, small, totals


@pytest.mark.parametrize(("make", "versioned"), [(events, False), (alone, True), (allowed, True)])
@given(generator=generators)
def test_set_of_whole_rows(make: Maker, versioned: bool, generator: random.Random) -> None:
    def compute(left: View, right: View) -> View:
        return {(*key, *row): () for rows in (left, right) for key, row in rows.items()}

    output = relation("out", 5, versioned=versioned)
    attack(generator, lambda *inputs: Stage(UnionSpec(), output, compute, *inputs), make, events)


@pytest.mark.parametrize("makers", [(small, totals), (middle, small)])
@given(generator=generators)
def test_set_of_rows_that_change(makers: tuple[Maker, Maker], generator: random.Random) -> None:
    def compute(left: View, right: View) -> View:
        return {(*key, *row): () for rows in (left, right) for key, row in rows.items()}

    output = relation("out", 2, versioned=True)
    attack(generator, lambda *inputs: Stage(UnionSpec(), output, compute, *inputs), *makers)


@pytest.mark.parametrize(
    ("makers", "kinds", "versioned"),
    [((totals, middle), (UP,), False), ((positive, positive), (UP, UP), True), ((events, alone), (FINAL,) * 4, False)],
)
@given(generator=generators)
def test_tagged(makers: tuple[Maker, Maker], kinds: tuple, versioned: bool, generator: random.Random) -> None:
    def compute(left: View, right: View) -> View:
        return {(number, *key): row for number, rows in enumerate((left, right)) for key, row in rows.items()}

    output = relation("out", 2, kinds, versioned=versioned)
    attack(generator, lambda *inputs: Stage(UnionAllSpec(), output, compute, *inputs), *makers)


def test_plan_mistakes_are_refused() -> None:
    with pytest.raises(PlanError, match="number in front"):
        UnionAllSpec().build((EVENTS, EVENTS), EVENTS)
    with pytest.raises(PlanError, match="belongs to its key"):
        UnionSpec().build((EVENTS, EVENTS), EVENTS)
    assert Source().lineages
