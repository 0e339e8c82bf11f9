"""When a row counts as touched: the rules of S1 and T1, one by one, and the helpers that operators share."""

from collections.abc import Sequence

import pytest

from runtime.batch import Batch
from runtime.operators.matching import MatchIndex
from runtime.operators.row_operator import Overlay, RowOperator, are_final, picker
from runtime.plan import ColumnKind, Relation
from runtime.rows import Rows
from tests.operators.histories import DOM, FINAL, UP, VERSIONED, relation


class Putting(RowOperator):
    """Does nothing but put what it is given."""

    def apply(self, edge: int, batch: Batch, slots: Sequence[int]) -> list[int]:
        touched: list[int] = []
        for row, visible, tick in zip(batch.rows(), batch.visible, batch.max_ticks, strict=True):
            self.put(row[:1], row[1:], visible, tick, touched)
        return touched


def putting(kind: ColumnKind = UP, *, versioned: bool = False) -> Putting:
    output = relation("out", 1, (kind,), versioned=versioned)
    return Putting((output,), output)


def put(operator: Putting, value: int, tick: int, *, visible: bool = True) -> tuple[bool, int]:
    """Whether the row was touched, and its max_tick."""
    touched = operator.take(0, Batch.of_rows(2, [(7, value)], [tick], [visible]))
    return touched == [0], operator.rows.max_tick[0]


def test_visible_row_without_change_is_left_alone() -> None:
    operator = putting()
    assert put(operator, 1, 5) == (True, 5)
    assert put(operator, 1, 9) == (False, 5)
    assert put(operator, 2, 8) == (True, 8)


def test_max_tick_is_that_of_the_value_even_if_lower() -> None:
    operator = putting()
    assert put(operator, 1, 9) == (True, 9)
    assert put(operator, 2, 4) == (True, 4)


def test_invisible_row_is_touched_when_it_depends_on_a_later_tick() -> None:
    """Between the two it may have been visible, at a coverage that was skipped here."""
    operator = putting()
    assert put(operator, 1, 5, visible=False) == (True, 5)
    assert put(operator, 1, 5, visible=False) == (False, 5)
    assert put(operator, 1, 9, visible=False) == (True, 9)
    assert put(operator, 1, 6, visible=False) == (False, 9)


def test_dominated_column_is_always_touched() -> None:
    """It may have been another value in between."""
    operator = putting(DOM)
    assert put(operator, 1, 5) == (True, 5)
    assert put(operator, 1, 9) == (True, 9)


def test_versioned_row_is_always_touched_and_only_rises() -> None:
    operator = putting(VERSIONED, versioned=True)
    assert put(operator, 1, 5) == (True, 5)
    assert put(operator, 1, 3) == (True, 5)
    operator.in_floor = 8
    assert put(operator, 1, 6) == (True, 8)
    assert put(operator, 1, 9, visible=False) == (True, 9)


def test_tombstone_keeps_its_values() -> None:
    operator = putting(FINAL)
    put(operator, 4, 5, visible=False)
    assert operator.rows.row_at(0) == (7, 4)


def test_wanderers_are_hidden_and_touch_nothing() -> None:
    operator = putting(VERSIONED, versioned=True)
    operator.take(0, Batch.of_rows(2, [(1, 0), (2, 0)], [3, 9], [True, False]))
    for ticks, hidden in (([4, 6], 6), ([5, 2], 6), ([7, 2], 7)):
        operator.wander(Batch.of_rows(2, [(5, 0), (6, 0)], ticks, [True, True]))
        assert operator.hidden_tick == hidden
    assert operator.rows.max_tick == [3, 9]


@pytest.mark.parametrize(("columns", "picked"), [((), ()), ((2,), ("c",)), ((2, 0), ("c", "a"))])
def test_picker(columns: tuple[int, ...], picked: tuple[str, ...]) -> None:
    assert picker(columns)(("a", "b", "c")) == picked


def test_key_columns_are_final_whatever_they_say() -> None:
    checked = Relation("in", relation("in", 1, (UP, FINAL)).columns, 1)
    assert are_final(checked, (0, 2))
    assert not are_final(checked, (0, 1))


def filled() -> Rows:
    rows = Rows(1, 2)
    batch = Batch.of_rows(2, [(1, 10), (2, 20), (3, None)], [4, 5, 6], [True, False, True])
    rows.store(rows.slots_for(batch), batch)
    return rows


def test_overlay_shows_the_batch_before_it_is_stored() -> None:
    rows = filled()
    overlay = Overlay(rows, Batch.of_rows(2, [(2, 21)], [9], [True]), [1])
    assert [overlay.row(slot) for slot in (0, 1)] == [(1, 10), (2, 21)]
    assert [overlay.visible(slot) for slot in (0, 1)] == [True, True]
    assert [overlay.max_tick(slot) for slot in (0, 1)] == [4, 9]
    assert rows.row_at(1) == (2, 20)


def test_match_index_lists_invisible_rows_and_can_be_undone() -> None:
    rows = filled()
    index = MatchIndex((1,))
    index.rebuild(rows)
    assert [list(index.slots(key)) for key in ((10,), (20,), (None,), None)] == [[0], [1], [], []]
    moves = index.store(Batch.of_rows(2, [(1, 20), (3, 10)], [7, 7], [True, True]), [0, 2])
    assert [list(index.slots(key)) for key in ((10,), (20,))] == [[2], [1, 0]]
    assert (index.key(0), index.key(2)) == ((20,), (10,))
    index.undo(moves)
    assert [list(index.slots(key)) for key in ((10,), (20,))] == [[0], [1]]
    assert index.key(2) is None
