"""Project: rows keep their key and lose columns, or lose key columns and become a set."""

import random

import pytest
from hypothesis import given

from runtime.batch import Batch
from runtime.operators.operator import EventOperator, Operator
from runtime.operators.project import ProjectSpec
from runtime.plan import PlanError
from tests.operators.histories import DOM, EVENTS, FINAL, UP, Source, Stage, View, relation
from tests.operators.inputs import Maker, allowed, alone, attack, events, generators, last, middle, positive


@pytest.mark.parametrize(("make", "versioned"), [(alone, False), (allowed, True), (events, False)])
@given(generator=generators)
def test_final_columns_in_another_order(make: Maker, versioned: bool, generator: random.Random) -> None:
    def compute(rows: View) -> View:
        return {key: (row[2], row[0]) for key, row in rows.items()}

    output = relation("out", 1, (FINAL, FINAL), versioned=versioned)
    attack(generator, lambda source: Stage(ProjectSpec((0, 3, 1)), output, compute, source), make)


@given(generator=generators)
def test_nothing_but_the_key_of_a_row_that_may_be_skipped(generator: random.Random) -> None:
    output = relation("out", 1)
    attack(
        generator, lambda source: Stage(ProjectSpec((0,)), output, lambda rows: dict.fromkeys(rows, ()), source), middle
    )


@given(generator=generators)
def test_dominated_column_without_its_tick(generator: random.Random) -> None:
    """g may be 0, 1, 0: a receiver that saw the 1 must be told, although 0 became 0 here."""

    def compute(rows: View) -> View:
        return {key: row[1:2] for key, row in rows.items()}

    output = relation("out", 1, (DOM,))
    attack(generator, lambda source: Stage(ProjectSpec((0, 2)), output, compute, source), last)


@given(generator=generators)
def test_part_of_a_versioned_row(generator: random.Random) -> None:
    def compute(rows: View) -> View:
        return {key: row[:1] for key, row in rows.items()}

    output = relation("out", 1, (UP,), versioned=True)
    attack(generator, lambda source: Stage(ProjectSpec((0, 1)), output, compute, source), positive)


@pytest.mark.parametrize(("make", "versioned"), [(events, False), (alone, True), (allowed, True)])
@given(generator=generators)
def test_dropped_key_makes_a_set(make: Maker, versioned: bool, generator: random.Random) -> None:
    def compute(rows: View) -> View:
        return {(row[1], row[0]): () for row in rows.values()}

    output = relation("out", 2, versioned=versioned)
    attack(generator, lambda source: Stage(ProjectSpec((2, 1)), output, compute, source), make)


def test_events_stay_events() -> None:
    operator = ProjectSpec((0, 3)).build((EVENTS,), relation("out", 1, (FINAL,), is_event=True))
    assert isinstance(operator, EventOperator)
    mapped = operator.map(0, Batch.events([4, 9], [[1, 2], [0, 1], [3, 4], [0, -1]], [0, 2]))
    assert (mapped.rows(), mapped.max_ticks, mapped.lineages) == ([(4, 3), (9, 4)], [4, 9], [0, 2])


def test_change_of_a_dropped_column_touches_nothing() -> None:
    operator = ProjectSpec((0,)).build((relation("in", 1, (UP,)),), relation("out", 1))
    assert isinstance(operator, Operator)
    assert operator.take(0, Batch.of_rows(2, [(7, 1)], [3], [True])) == [0]
    assert operator.take(0, Batch.of_rows(2, [(7, 2)], [5], [True])) == []
    assert operator.rows.max_tick == [3]


def test_plan_mistakes_are_refused() -> None:
    with pytest.raises(PlanError, match="2 columns chosen"):
        ProjectSpec((0, 1)).build((EVENTS,), relation("out", 1))
    with pytest.raises(PlanError, match="keep their tick"):
        ProjectSpec((1, 0)).build((EVENTS,), relation("out", 1, (FINAL,), is_event=True))
    with pytest.raises(PlanError, match="belongs to its key"):
        ProjectSpec((1, 2)).build((EVENTS,), relation("out", 1, (FINAL,)))
    assert Source().relation is EVENTS
