"""Outer joins: full by key and of pairs, and left joins whose default may be the key of a pair."""

import random
from typing import Any

import pytest
from hypothesis import given

from runtime.batch import Batch
from runtime.operators.operator import Operator
from runtime.operators.outer_join import OuterJoinSpec
from runtime.plan import ColumnKind, PlanError
from tests.operators.histories import EVENTS, FINAL, UP, VERSIONED, Stage, View, relation
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


@pytest.mark.parametrize(
    ("makers", "kind"),
    [
        ((totals, totals), UP),
        ((totals, small), VERSIONED),
        ((middle, totals), VERSIONED),
        ((small, middle), VERSIONED),
    ],
)
@given(generator=generators)
def test_full_by_the_key_of_both(makers: tuple[Maker, Maker], kind: ColumnKind, generator: random.Random) -> None:
    def compute(left: View, right: View) -> View:
        return {key: (*left.get(key, (0,)), *right.get(key, (0,))) for key in {*left, *right}}

    spec = OuterJoinSpec(((0, 0),), (0, 1, 3), (None, 0), (None, 0), shared=((0, 0),))
    output = relation("out", 1, (kind, kind), versioned=kind is VERSIONED)
    attack(generator, lambda *inputs: Stage(spec, output, compute, *inputs), *makers)


def full(left: View, right: View, matches: Any) -> View:
    """Pairs by both keys, None in place of a missing one; k of both, and v of either."""
    pairs = [(a, b) for a in left for b in right if matches((*a, *left[a]), (*b, *right[b]))]
    result: View = {(*a, *b): (left[a][0], right[b][0], left[a][2], right[b][2]) for a, b in pairs}
    result |= {(*a, None): (row[0], None, row[2], -1) for a, row in left.items() if a not in {p for p, _ in pairs}}
    result |= {(None, *b): (None, row[0], -2, row[2]) for b, row in right.items() if b not in {p for _, p in pairs}}
    return result


FULL = {
    "on": ((1, 1),),
    "columns": (0, 5, 1, 6, 3, 8),
    "right_default": (None, None, None, -1, None),
    "left_default": (None, None, None, -2, None),
}


@pytest.mark.parametrize(
    ("makers", "versioned"),
    [((events, events), False), ((events, alone), True), ((allowed, events), True), ((alone, allowed), True)],
)
@pytest.mark.parametrize("has_condition", [False, True])
@given(generator=generators)
def test_full_of_pairs(
    makers: tuple[Maker, Maker], versioned: bool, has_condition: bool, generator: random.Random
) -> None:
    def rises(*both: Any) -> bool:
        return bool(both[3] < both[8])

    def compute(left: View, right: View) -> View:
        return full(left, right, lambda a, b: a[1] == b[1] and (not has_condition or rises(*a, *b)))

    spec = OuterJoinSpec(**FULL, condition=rises if has_condition else None)  # type: ignore[arg-type]
    output = relation("out", 2, (FINAL,) * 4, versioned=versioned)
    attack(generator, lambda *inputs: Stage(spec, output, compute, *inputs), *makers)


@pytest.mark.parametrize("makers", [(last, events), (events, last), (last, positive)])
@given(generator=generators)
def test_full_of_rows_that_wander(makers: tuple[Maker, Maker], generator: random.Random) -> None:
    """The g of the latest event of each k against g of events, or against k."""
    column: dict[Maker, int] = {events: 2, last: 2, positive: 0}
    widths: dict[Maker, int] = {events: 5, last: 4, positive: 3}
    on = [column[make] for make in makers]
    border = widths[makers[0]]

    def compute(left: View, right: View) -> View:
        pairs = [(a, b) for a in left for b in right if (*a, *left[a])[on[0]] == (*b, *right[b])[on[1]]]
        result: View = {(*a, *b): () for a, b in pairs}
        result |= {(*a, None): () for a in left if a not in {p for p, _ in pairs}}
        return result | {(None, *b): () for b in right if b not in {p for _, p in pairs}}

    nothing = [(None,) * widths[make] for make in makers]
    spec = OuterJoinSpec(((on[0], on[1]),), (0, border), nothing[1], nothing[0])
    output = relation("out", 2, (), versioned=True)
    attack(generator, lambda *inputs: Stage(spec, output, compute, *inputs), *makers)


@pytest.mark.parametrize("makers", [(events, events), (allowed, alone)])
@given(generator=generators)
def test_left_with_a_default_that_may_be_a_key(makers: tuple[Maker, Maker], generator: random.Random) -> None:
    """Rows without a partner get the right key 30, which a partner may have."""

    def compute(left: View, right: View) -> View:
        result: View = {}
        for a, row in left.items():
            partners = {(*a, *b): (other[2],) for b, other in right.items() if other[0] == row[0]}
            result |= partners or {(*a, 30): (-1,)}
        return result

    spec = OuterJoinSpec(((1, 1),), (0, 5, 8), (30, None, None, -1, None))
    output = relation("out", 2, (VERSIONED,), versioned=True)
    attack(generator, lambda *inputs: Stage(spec, output, compute, *inputs), *makers)


def build(**changes: Any) -> Operator:
    operator = OuterJoinSpec(**{**FULL, **changes}).build((EVENTS, EVENTS), relation("out", 2, (FINAL,) * 4))
    assert isinstance(operator, Operator)
    return operator


def test_null_matches_nothing_and_is_kept() -> None:
    operator = build()
    operator.take(0, Batch.events([1], [[None], [0], [2], [0]]))
    operator.take(1, Batch.events([2], [[None], [0], [3], [0]]))
    visible = [operator.rows.row_at(slot) for slot in operator.rows.visible_slots()]
    assert visible == [(1, None, None, None, 2, -1), (None, 2, None, None, -2, 3)]


def test_row_that_gave_way_depends_on_the_first_partner() -> None:
    operator = build()
    operator.take(0, Batch.events([1], [[5], [0], [2], [0]]))
    operator.take(1, Batch.events([9], [[5], [0], [3], [0]]))
    lone = operator.rows.slot_of((1, None))
    assert (operator.rows.visible[lone], operator.rows.max_tick[lone]) == (False, 9)
    assert lone not in operator.take(1, Batch.events([12], [[5], [0], [3], [0]]))
    assert lone not in operator.take(1, Batch.events([4], [[5], [0], [3], [0]]))


def test_nothing_changes_if_the_condition_fails() -> None:
    def fails(*both: Any) -> bool:
        return bool(1 // (both[3] - 2))

    operator = build(condition=fails)
    operator.take(0, Batch.events([1], [[5], [0], [2], [0]]))
    with pytest.raises(ZeroDivisionError):
        operator.take(1, Batch.events([3], [[5], [0], [3], [0]]))
    assert operator.rows.visible == [True]
    operator.take(0, Batch.events([4], [[5], [0], [3], [0]]))  # the row that failed is not in the index
    assert len(operator.rows.visible_slots()) == 2


def test_plan_mistakes_are_refused() -> None:
    with pytest.raises(PlanError, match="columns chosen"):
        build(columns=(0, 5))
    with pytest.raises(PlanError, match="a default has"):
        build(left_default=(None,))
