"""Top-k: of events, and of rows that change; ties by key, with all ties, with ranks."""

import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given

from runtime.batch import Batch
from runtime.operators.operator import Operator
from runtime.operators.ordering import Order, sort_key
from runtime.operators.project import ProjectSpec
from runtime.operators.top import TopSpec
from runtime.plan import PlanError
from tests.operators.histories import DOM, EVENTS, FINAL, UP, VERSIONED, Source, Stage, View, relation
from tests.operators.inputs import Maker, allowed, alone, attack, events, generators, last, positive, small, totals


def naive(view: View, limit: int, group: tuple[int, ...], column: int, *, rank: bool, ties: bool) -> View:
    """Largest value of the column first, then smallest key."""
    groups: dict[tuple, list[tuple]] = {}
    for key, row in view.items():
        whole = (*key, *row)
        groups.setdefault(tuple(whole[c] for c in group), []).append((-whole[column], key, row))
    result: View = {}
    for members in groups.values():
        members.sort()
        for place, (value, key, row) in enumerate(members):
            better = sum(other < value for other, _, _ in members)
            if (better if ties else place) < limit:
                result[key] = (*row, place + 1) if rank else row
    return result


def run(
    generator: random.Random, make: Maker, kinds: tuple, column: int, group: tuple[int, ...], *, versioned: bool
) -> None:
    rank, ties = generator.choice([(False, False), (True, False), (False, True)])
    limit = generator.randint(1, 3)
    spec = TopSpec(limit, (Order(column, descending=True),), group, rank=rank, with_ties=ties)
    output = relation("out", 1, (*kinds, *([VERSIONED if versioned else UP] * rank)), versioned=versioned)

    def compute(view: View) -> View:
        return naive(view, limit, group, column, rank=rank, ties=ties)

    attack(generator, lambda source: Stage(spec, output, compute, source), make)


@pytest.mark.parametrize("versioned", [False, True])
@given(generator=generators)
def test_of_events(versioned: bool, generator: random.Random) -> None:
    """Rows leave once k better ones exist, for good: it makes no difference whether the checker knows that."""
    group = generator.choice([(), (1,)])
    run(generator, events, (FINAL,) * 4, 3, group, versioned=versioned)


@pytest.mark.parametrize("make", [totals, small])
@given(generator=generators)
def test_of_rows_that_change(make: Maker, generator: random.Random) -> None:
    run(generator, make, (UP,), 1, (), versioned=True)


@given(generator=generators)
def test_of_rows_that_come_and_go(generator: random.Random) -> None:
    run(generator, positive, (UP, UP), 1, (), versioned=True)


@given(generator=generators)
def test_of_state_rows_that_only_come(generator: random.Random) -> None:
    """The events again, but as rows of a state relation, which nobody calls versioned."""

    def rows(stages: list[Stage], source: Source, _other: Source) -> Stage:
        stages.append(Stage(ProjectSpec((0, 1, 2, 3, 4)), relation("rows", 1, (FINAL,) * 4), dict, source))
        return stages[-1]

    run(generator, rows, (FINAL,) * 4, 3, generator.choice([(), (1,)]), versioned=False)


@pytest.mark.parametrize("make", [alone, allowed])
@given(generator=generators)
def test_groups_of_rows_that_vanish(make: Maker, generator: random.Random) -> None:
    run(generator, make, (FINAL,) * 4, 3, generator.choice([(1,), (2,)]), versioned=True)


@given(generator=generators)
def test_rows_that_wander_between_groups(generator: random.Random) -> None:
    run(generator, last, (DOM,) * 3, 3, (2,), versioned=True)


def test_excluded_row_depends_on_those_that_exclude_it() -> None:
    operator = TopSpec(1, (Order(3, descending=True),)).build((EVENTS,), relation("out", 1, (FINAL,) * 4))
    assert isinstance(operator, Operator)
    operator.take(0, Batch.events([4], [[0], [0], [2], [0]]))
    assert operator.take(0, Batch.events([9], [[0], [0], [3], [0]])) == [1, 0]
    assert (operator.rows.visible, operator.rows.max_tick) == ([False, True], [9, 9])
    assert operator.take(0, Batch.events([2], [[0], [0], [1], [0]])) == [2]
    assert (operator.rows.visible, operator.rows.max_tick) == ([False, True, False], [9, 9, 9])


def test_group_that_was_reached_is_touched_though_unchanged() -> None:
    """Y overtook X and vanished in one step: X must be told again, and so must Y."""
    rows = relation("rows", 1, (UP,))
    spec = TopSpec(1, (Order(1, descending=True),))
    operator = spec.build((rows,), relation("out", 1, (UP,), versioned=True))
    assert isinstance(operator, Operator)
    operator.take(0, Batch.of_rows(2, [(1, 5)], [3], [True]))
    assert operator.take(0, Batch.of_rows(2, [(2, 9)], [7], [False])) == [0, 1]
    assert (operator.rows.visible, operator.rows.max_tick) == ([True, False], [7, 7])


def test_what_a_row_costs_does_not_depend_on_how_many_compete() -> None:
    """Touched: those in, those that were, and the row itself. All others are hidden: they may have been in unseen."""
    rows = relation("rows", 1, (VERSIONED,), versioned=True)
    operator = TopSpec(2, (Order(1, descending=True),)).build((rows,), relation("out", 1, (VERSIONED,), versioned=True))
    assert isinstance(operator, Operator)
    operator.take(0, Batch.of_rows(2, [(key, key) for key in range(500)], [1] * 500, [True] * 500))

    def reach(row: tuple[int, int], tick: int, *, visible: bool = True) -> dict[Any, bool]:
        touched = operator.take(0, Batch.of_rows(2, [row], [tick], [visible]))
        assert {operator.rows.max_tick[slot] for slot in touched} == {tick}
        assert operator.hidden_tick == tick
        return {operator.rows.key_at(slot)[0]: operator.rows.visible[slot] for slot in touched}

    assert reach((5, 7), 2) == {499: True, 498: True, 5: False}
    assert reach((5, 900), 3) == {5: True, 499: True, 498: False}
    assert reach((499, 499), 4, visible=False) == {5: True, 498: True, 499: False}


@given(generator=generators)
def test_order_is_total_and_nulls_are_last(generator: random.Random) -> None:
    rows = [(generator.choice([None, "a", "b", "c"]), generator.choice([None, 1, 2])) for _ in range(6)]
    held: list[Any] = sorted(rows, key=sort_key((Order(0, descending=True), Order(1))))
    for first, second in pairwise(held):
        if first[0] == second[0]:
            assert second[1] is None or (first[1] is not None and first[1] <= second[1])
        else:
            assert second[0] is None or (first[0] is not None and first[0] > second[0])


def test_plan_mistakes_are_refused() -> None:
    ranked_ties = TopSpec(1, (), rank=True, with_ties=True)
    with pytest.raises(PlanError, match="only without ties"):
        ranked_ties.build((EVENTS,), relation("out", 1, (FINAL,) * 5))
    with pytest.raises(PlanError, match="other columns"):
        TopSpec(1, (), rank=True).build((EVENTS,), EVENTS)
