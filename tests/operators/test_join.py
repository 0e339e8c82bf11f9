"""Join: pairs of events, rows with the row of their key, left outer with defaults, many to many, with itself."""

import random

import pytest
from hypothesis import given

from runtime.batch import Batch
from runtime.operators.join import JoinSpec
from runtime.operators.operator import Operator
from runtime.plan import ColumnKind, PlanError
from tests.operators.histories import DOM, EVENTS, FINAL, UP, VERSIONED, Source, Stage, View, relation
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
    ("makers", "versioned"),
    [
        ((events, events), False),
        ((alone, events), False),
        ((alone, alone), False),
        ((events, allowed), True),
        ((allowed, alone), True),
    ],
)
@given(generator=generators)
def test_pairs_on_final_columns(makers: tuple[Maker, Maker], versioned: bool, generator: random.Random) -> None:
    def compute(left: View, right: View) -> View:
        return {
            (*a, *b): (row[0], row[3], other[3])
            for a, row in left.items()
            for b, other in right.items()
            if row[:2] == other[:2]
        }

    spec = JoinSpec(((1, 1), (2, 2)), (0, 5, 1, 4, 9))
    output = relation("out", 2, (FINAL,) * 3, versioned=versioned)
    attack(generator, lambda *inputs: Stage(spec, output, compute, *inputs), *makers)


@given(generator=generators)
def test_pairs_of_one_stream_with_itself_under_a_condition(generator: random.Random) -> None:
    def compute(left: View, right: View) -> View:
        return {
            (*a, *b): (row[0],)
            for a, row in left.items()
            for b, other in right.items()
            if row[0] == other[0] and row[2] < other[2]
        }

    def rises(*both: int) -> bool:
        return both[3] < both[8]

    spec = JoinSpec(((1, 1),), (0, 5, 1), condition=rises)
    output = relation("out", 2, (FINAL,))

    def build(source: Source, _other: Source) -> Stage:
        return Stage(spec, output, compute, source, source)

    attack(generator, build, events, events)


@pytest.mark.parametrize(
    ("makers", "versioned"),
    [((events, totals), False), ((events, middle), False), ((alone, small), False), ((allowed, totals), True)],
)
@given(generator=generators)
def test_rows_with_the_row_of_their_key(makers: tuple[Maker, Maker], versioned: bool, generator: random.Random) -> None:
    def compute(left: View, right: View) -> View:
        return {key: (row[0], *right[row[:1]]) for key, row in left.items() if row[:1] in right}

    spec = JoinSpec(((1, 0),), (0, 1, 6))
    output = relation("out", 1, (FINAL, UP), versioned=versioned)
    attack(generator, lambda *inputs: Stage(spec, output, compute, *inputs), *makers)


@pytest.mark.parametrize("swapped", [False, True])
@given(generator=generators)
def test_anchor_may_be_on_either_side(swapped: bool, generator: random.Random) -> None:
    def compute(left: View, right: View) -> View:
        events_view, rows = (right, left) if swapped else (left, right)
        return {key: (row[3], *rows[row[:1]]) for key, row in events_view.items() if row[:1] in rows}

    spec = JoinSpec(((0, 1),), (2, 6, 1)) if swapped else JoinSpec(((1, 0),), (0, 4, 6))
    output = relation("out", 1, (FINAL, UP), versioned=True)
    makers = (small, alone) if swapped else (alone, small)
    attack(generator, lambda *inputs: Stage(spec, output, compute, *inputs), *makers)


@pytest.mark.parametrize(
    ("makers", "kind"),
    [
        ((events, totals), UP),  # the default 0 is where totals start
        ((alone, totals), UP),
        ((events, small), VERSIONED),
        ((totals, middle), VERSIONED),
        ((small, totals), UP),
        ((allowed, small), VERSIONED),
    ],
)
@given(generator=generators)
def test_left_outer_with_default(makers: tuple[Maker, Maker], kind: ColumnKind, generator: random.Random) -> None:
    def compute(left: View, right: View) -> View:
        return {key: (row[0], *right.get(row[:1] if by else key, (0,))) for key, row in left.items()}

    by = makers[0] in (events, alone, allowed)
    spec = (
        JoinSpec(((1, 0),), (0, 1, 6), default=(None, 0)) if by else JoinSpec(((0, 0),), (0, 1, 3), default=(None, 0))
    )
    versioned = kind is VERSIONED or makers[0] is allowed
    output = relation("out", 1, (FINAL if by else UP, kind), versioned=versioned)
    attack(generator, lambda *inputs: Stage(spec, output, compute, *inputs), *makers)


@pytest.mark.parametrize("makers", [(events, events), (alone, allowed), (allowed, alone)])
@given(generator=generators)
def test_left_outer_many_to_many(makers: tuple[Maker, Maker], generator: random.Random) -> None:
    """An unmatched left row has nulls in the right side's key columns."""

    def compute(left: View, right: View) -> View:
        result = {}
        for a, row in left.items():
            found = [(b, other) for b, other in right.items() if row[0] == other[0] and row[2] <= other[2]]
            for b, other in found or [((None,), (None, None, -1, None))]:
                result[(*a, *b)] = (row[0], other[2])
        return result

    def at_most(*both: int) -> bool:
        return both[3] <= both[8]

    spec = JoinSpec(((1, 1),), (0, 5, 1, 8), condition=at_most, default=(None, None, None, -1, None))
    output = relation("out", 2, (FINAL, VERSIONED), versioned=True)
    attack(generator, lambda *inputs: Stage(spec, output, compute, *inputs), *makers)


@pytest.mark.parametrize("makers", [(totals, totals), (positive, totals), (middle, positive)])
@given(generator=generators)
def test_state_relations_of_one_key(makers: tuple[Maker, Maker], generator: random.Random) -> None:
    def compute(left: View, right: View) -> View:
        return {key: (row[0], right[key][0]) for key, row in left.items() if key in right}

    width = 3 if makers[0] is positive else 2
    spec = JoinSpec(((0, 0),), (0, 1, width + 1))
    output = relation("out", 1, (UP, UP), versioned=positive in makers)
    attack(generator, lambda *inputs: Stage(spec, output, compute, *inputs), *makers)


@pytest.mark.parametrize("outer", [False, True])
@given(generator=generators)
def test_match_column_that_changes(outer: bool, generator: random.Random) -> None:
    """Each key's latest g is looked up in the totals: the partner changes, unseen between two messages."""

    def compute(left: View, right: View) -> View:
        missing = {(g,): (-1,) for g in (0, 1)} if outer else {}
        partners = {**missing, **right}
        return {key: (row[1], *partners[row[1:2]]) for key, row in left.items() if row[1:2] in partners}

    spec = JoinSpec(((2, 0),), (0, 2, 5), default=(None, -1) if outer else None)
    output = relation("out", 1, (DOM, VERSIONED), versioned=True)
    attack(generator, lambda *inputs: Stage(spec, output, compute, *inputs), last, totals)


@given(generator=generators)
def test_partners_that_change_what_they_match(generator: random.Random) -> None:
    """An unmatched left row depends on every right row that may have matched it unseen."""

    def compute(left: View, right: View) -> View:
        result = {}
        for key, row in left.items():
            for b in [b for b, other in right.items() if other[1] == key[0]] or [(None,)]:
                result[(*key, *b)] = row
        return result

    spec = JoinSpec(((0, 2),), (0, 2, 1), default=(None,) * 4)
    output = relation("out", 2, (UP,), versioned=True)
    attack(generator, lambda *inputs: Stage(spec, output, compute, *inputs), totals, last)


@given(generator=generators)
def test_pairs_by_a_column_that_changes(generator: random.Random) -> None:
    def compute(left: View, right: View) -> View:
        return {(*a, *b): (row[1],) for a, row in left.items() for b, other in right.items() if row[1] == other[1]}

    spec = JoinSpec(((2, 2),), (0, 4, 2))
    output = relation("out", 2, (VERSIONED,), versioned=True)
    attack(generator, lambda *inputs: Stage(spec, output, compute, *inputs), last, last)


def pair_join(**parameters: object) -> Operator:
    spec = JoinSpec(((1, 1),), (0, 5, 1), **parameters)  # type: ignore[arg-type]
    operator = spec.build((EVENTS, EVENTS), relation("out", 2, (FINAL,)))
    assert isinstance(operator, Operator)
    return operator


def test_the_side_that_arrived_first_counts() -> None:
    operator = pair_join()
    assert operator.take(1, Batch.events([6], [[1], [0], [0], [0]])) == []
    assert operator.take(0, Batch.events([5], [[1], [0], [0], [0]])) == [0]
    assert operator.rows.max_tick == [6]


def test_vanished_partner_leaves_a_tombstone_for_whoever_comes_later() -> None:
    spec = JoinSpec(((1, 0),), (0, 1, 6))
    operator = spec.build((EVENTS, relation("right", 1, (UP,))), relation("out", 1, (FINAL, UP)))
    assert isinstance(operator, Operator)
    operator.take(1, Batch.of_rows(2, [(3, 8)], [7], [False]))
    assert operator.take(0, Batch.events([5], [[3], [0], [0], [0]])) == [0]
    assert (operator.rows.visible, operator.rows.max_tick) == ([False], [7])


def test_null_matches_nothing() -> None:
    operator = pair_join()
    operator.take(0, Batch.events([5], [[None], [0], [0], [0]]))
    assert operator.take(1, Batch.events([6], [[None], [0], [0], [0]])) == []


def test_failing_condition_changes_nothing() -> None:
    def ratio(*both: int) -> bool:
        return both[3] / both[8] > 1

    operator = pair_join(condition=ratio)
    operator.take(0, Batch.events([1], [[1], [0], [4], [0]]))
    before = operator.rows.export()
    with pytest.raises(ZeroDivisionError):
        operator.take(1, Batch.events([2, 3], [[1, 1], [0, 0], [2, 0], [0, 0]]))
    assert operator.rows.export() == before
    assert operator.take(1, Batch.events([2], [[1], [0], [2], [0]])) == [0]
    assert operator.rows.row_at(0) == (1, 2, 1)


def test_plan_mistakes_are_refused() -> None:
    with pytest.raises(PlanError, match="3 columns chosen"):
        JoinSpec(((1, 1),), (0, 5, 1)).build((EVENTS, EVENTS), relation("out", 2))
    with pytest.raises(PlanError, match="the default has 1"):
        JoinSpec(((1, 1),), (0, 5), default=(1,)).build((EVENTS, EVENTS), relation("out", 2))
    with pytest.raises(PlanError, match="of the left side"):
        JoinSpec(((1, 1),), (5,), default=(None,) * 5).build((EVENTS, EVENTS), relation("out", 1))
