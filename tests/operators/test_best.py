"""The best row of each group: of rows that only come, that change, that vanish, and that wander between groups."""

import random

import pytest
from hypothesis import given

from runtime.batch import Batch
from runtime.operators.best import BestSpec
from runtime.operators.operator import Operator
from runtime.operators.ordering import Order
from runtime.operators.project import ProjectSpec
from runtime.plan import PlanError
from tests.operators.histories import DOM, FINAL, UP, VERSIONED, Source, Stage, View, relation
from tests.operators.inputs import Maker, allowed, alone, attack, events, generators, last, middle, positive, totals


def best_by(view: View, group: int | None, order: tuple[int, ...]) -> dict[tuple, tuple]:
    """Largest values first."""
    groups: dict[tuple, list[tuple]] = {}
    for key, row in view.items():
        whole = (*key, *row)
        groups.setdefault(() if group is None else (whole[group],), []).append(whole)
    return {g: max(members, key=lambda row: [row[c] for c in order]) for g, members in groups.items()}


def only_come(stages: list[Stage], source: Source, _other: Source) -> Stage:
    """The events, but as rows of a state relation."""
    stages.append(Stage(ProjectSpec((0, 1, 2, 3, 4)), relation("rows", 1, (FINAL,) * 4), dict, source))
    return stages[-1]


@pytest.mark.parametrize(
    ("make", "versioned"), [(events, False), (only_come, False), (only_come, True), (alone, True), (allowed, True)]
)
@given(generator=generators)
def test_of_final_columns(make: Maker, versioned: bool, generator: random.Random) -> None:
    def compute(view: View) -> View:
        return {g: (row[0], row[3]) for g, row in best_by(view, 1, (3, 0)).items()}

    spec = BestSpec((1, 0, 3), (Order(3, descending=True), Order(0, descending=True)))
    output = relation("out", 1, (VERSIONED if versioned else DOM,) * 2, versioned=versioned)
    attack(generator, lambda source: Stage(spec, output, compute, source), make)


@pytest.mark.parametrize("make", [totals, middle, positive])
@given(generator=generators)
def test_by_a_column_that_changes(make: Maker, generator: random.Random) -> None:
    def compute(view: View) -> View:
        return {g: (row[0], row[1]) for g, row in best_by(view, None, (1, 0)).items()}

    spec = BestSpec((0, 1), (Order(1, descending=True), Order(0, descending=True)))
    output = relation("out", 0, (VERSIONED,) * 2, versioned=True)
    attack(generator, lambda source: Stage(spec, output, compute, source), make)


@given(generator=generators)
def test_rows_that_wander_between_groups(generator: random.Random) -> None:
    def compute(view: View) -> View:
        return {g: (row[0], row[3]) for g, row in best_by(view, 2, (3, 0)).items()}

    spec = BestSpec((2, 0, 3), (Order(3, descending=True), Order(0, descending=True)))
    output = relation("out", 1, (VERSIONED,) * 2, versioned=True)
    attack(generator, lambda source: Stage(spec, output, compute, source), last)


def test_a_group_depends_on_its_winner_alone() -> None:
    rows = relation("rows", 1, (FINAL, FINAL))
    operator = BestSpec((1, 0, 2), (Order(2),)).build((rows,), relation("out", 1, (DOM, DOM)))
    assert isinstance(operator, Operator)
    operator.take(0, Batch.of_rows(3, [(7, 0, 5)], [4], [True]))
    assert operator.take(0, Batch.of_rows(3, [(8, 0, 6)], [9], [True])) == []
    assert operator.take(0, Batch.of_rows(3, [(9, 0, 1)], [2], [True])) == [0]
    assert (operator.rows.row_at(0), operator.rows.max_tick) == ((0, 9, 1), [2])


def test_plan_mistakes_are_refused() -> None:
    rows = relation("rows", 1, (UP,))
    with pytest.raises(PlanError, match="columns chosen"):
        BestSpec((0,), (Order(0),)).build((rows,), relation("out", 0, (DOM, DOM)))
    with pytest.raises(PlanError, match="versioned"):
        BestSpec((0, 1), (Order(1),)).build((rows,), relation("out", 0, (DOM, DOM)))
