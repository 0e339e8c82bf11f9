"""Goal: the columnar copy is the generic one, faster: the same rows, touched slots, changes and checkpoints.

Random histories of rows that come, change several times in a batch, vanish, are forgotten and come back, in both tiers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from random import Random
from typing import Any

import numpy as np
import pytest

from runtime.batch import Batch
from runtime.columns import Same, flags, numbers, ticks
from runtime.kernels import copy_rows
from runtime.kernels.copy import ColumnarCopy, fits
from runtime.operators.copy import Copy, CopySpec
from runtime.operators.operator import Operator
from runtime.plan import Column, ColumnKind, Relation, ValueType

UP = ColumnKind.UP
ONE = Relation("one", (Column("k"), Column("n", kind=UP), Column("x", ValueType.FLOAT), Column("b", ValueType.BOOL)), 1)
TWO = Relation("two", (Column("k"), Column("l"), Column("n", kind=UP)), 2)
BARE = Relation("bare", (Column("k"),), 1)
VERSIONED = Relation("versioned", (Column("k"), Column("n")), 1, versioned=True)
RELATIONS = {relation.name: relation for relation in (ONE, TWO, BARE, VERSIONED)}


class History:
    """Batches of rows of a relation, as a sender could tell them."""

    def __init__(self, relation: Relation, seed: int) -> None:
        self.relation = relation
        self.random = Random(seed)
        self.later = count(10)

    def row(self) -> tuple[Any, ...]:
        random = self.random
        keys = [random.choice((0, -1, 2**62, -(2**63), random.randrange(40))) for _ in range(self.relation.key_width)]
        values: list[Any] = []
        for column in self.relation.columns[self.relation.key_width :]:
            match column.type:
                case ValueType.FLOAT:
                    values.append(random.choice((0.5, 1e300, -3.25, 4)))  # whole numbers are floats, too
                case ValueType.BOOL:
                    values.append(random.random() < 0.5)
                case _:
                    values.append(random.choice((0, 7, -(2**63), 2**63 - 1)))
        return (*keys, *values)

    def batches(self, number: int, rows_max: int) -> Iterator[Batch]:
        random, width = self.random, self.relation.width
        for _ in range(number):
            rows = [self.row() for _ in range(random.randrange(rows_max + 1))]
            visible = [random.random() < 0.7 for _ in rows]
            ticks_ = [random.randrange(3) for _ in rows]
            if random.random() < 0.3:  # what was never computed is null in a tombstone
                key_width = self.relation.key_width
                blank = (None,) * (width - key_width)
                rows = [row if seen else (*row[:key_width], *blank) for row, seen in zip(rows, visible, strict=True)]
                ticks_ = [next(self.later) for _ in rows]
            yield Batch.of_rows(width, rows, ticks_, visible)


def as_arrays(batch: Batch, relation: Relation) -> Batch:
    """The same as it comes from a wire; nulls stay lists."""
    columns = []
    for column, values in zip(relation.columns, batch.columns, strict=True):
        if None in values or not len(values):
            columns.append(values)
        elif column.type is ValueType.BOOL:
            columns.append(flags(np.array(values, np.bool_)))
        else:
            columns.append(numbers(np.array(values, np.float64 if column.type is ValueType.FLOAT else np.int64)))
    visible: Sequence[bool] = Same(True, len(batch)) if all(batch.visible) else flags(np.array(batch.visible, np.bool_))
    return Batch(tuple(columns), ticks(np.array(batch.max_ticks, np.int64)), visible)


def plain_rows(batch: Batch) -> list[Any]:
    """Rows that can be compared: what nobody sees of a tombstone counts as 0."""
    rows = zip(batch.rows(), batch.max_ticks, batch.visible, strict=True)
    return [(tuple(0 if value is None else value for value in row), tick, bool(seen)) for row, tick, seen in rows]


def held(operator: Operator) -> dict[Any, Any]:
    rows = operator.rows.select(operator.rows.slots())
    return dict(zip(rows.keys(operator.relation.key_width), plain_rows(rows), strict=True))


def compare(generic: Copy, columnar: ColumnarCopy, mine: Sequence[int], theirs: Sequence[int]) -> None:
    keys = [generic.rows.key_at(slot) for slot in mine]
    assert [columnar.rows.key_at(slot) for slot in theirs] == keys, "touched"
    assert len(set(theirs)) == len(theirs)
    for ask in ("changed", "every_change", "latest"):
        assert plain_rows(getattr(columnar, ask)(theirs)) == plain_rows(getattr(generic, ask)(mine)), ask
    assert held(columnar) == held(generic)
    hidden = [generic.rows.key_at(slot) for slot in generic.rows.hidden_among(mine)]
    assert sorted(columnar.rows.key_at(slot) for slot in columnar.rows.hidden_among(theirs)) == sorted(hidden)
    assert len(columnar.rows) == len(generic.rows)


def run(relation: Relation, seed: int, batches: int, rows_max: int) -> int:
    """The number of changes that were compared."""
    history, random = History(relation, seed), Random(-seed)
    generic, columnar = Copy((relation,), relation), ColumnarCopy((relation,), relation)
    changes = 0
    for step, batch in enumerate(history.batches(batches, rows_max), 1):
        mine = generic.take(0, batch)
        theirs = columnar.take(0, as_arrays(batch, relation) if random.random() < 0.5 else batch)
        compare(generic, columnar, mine, theirs)
        changes += len(generic.every_change(mine))
        for operator, touched in ((generic, mine), (columnar, theirs)):
            operator.rows.mark(touched, step)
        since = random.randrange(step)
        both = [sorted(o.rows.key_at(s) for s in o.rows.touched_since(since)) for o in (generic, columnar)]
        assert both[0] == both[1]
        if random.random() < 0.3:
            gone = [generic.rows.key_at(slot) for slot in generic.rows.tombstones() if random.random() < 0.7]
            for one in (generic, columnar):
                one.forget_all([one.rows.slot_of(key) for key in gone])
            assert held(columnar) == held(generic)
        if random.random() < 0.1:
            columnar = restored(relation, columnar, generic)
            generic = restored(relation, generic, columnar, columnar=False)
    return changes


def restored(relation: Relation, old: Any, other: Any, *, columnar: bool = True) -> Any:
    """Goes on from a checkpoint, and each understands the other's."""
    made = CopySpec(columnar).build((relation,), relation)
    made.restore(other.export())
    assert held(made) == held(old)
    # What was touched in which step is of one incarnation: both start anew.
    return made


@pytest.mark.parametrize("name", RELATIONS)
def test_equal_to_the_generic_copy(name: str, cases: int) -> None:
    changes = sum(run(RELATIONS[name], seed, 30, (1, 8, 60)[seed % 3]) for seed in range(12 * cases))
    assert changes > 1_000


@pytest.mark.slow
@pytest.mark.parametrize("name", RELATIONS)
def test_equal_in_the_native_tier(name: str, native_tier: None) -> None:
    assert ColumnarCopy((ONE,), ONE).wait_for_native(300)
    for seed in range(20):
        run(RELATIONS[name], seed, 30, (1, 8, 60)[seed % 3])


def test_it_grows_and_uses_slots_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy_rows, "SLOTS_MIN", 2)
    monkeypatch.setattr(copy_rows, "BATCH_MIN", 1)
    for seed in range(5):
        run(ONE, seed, 20, 30)
    copy = ColumnarCopy((BARE,), BARE)
    for first in range(0, 20_000, 1_000):  # a thousand rows at a time, never more
        keys = list(range(first, first + 1_000))
        copy.take(0, Batch((keys,), [1] * 1_000, [True] * 1_000))
        slots = copy.take(0, Batch((keys,), [2] * 1_000, [False] * 1_000))
        copy.forget_all(slots)
    assert len(copy.rows) == 0
    assert copy.table.count == 1_000


def test_events_are_told_as_rows_of_a_state() -> None:
    copy = ColumnarCopy((BARE,), BARE)
    for ticks_ in ([3], [5, 6]):
        touched = copy.take(0, Batch.events(ticks_, []))
        assert copy.changed(touched) == copy.every_change(touched) == Batch((ticks_,), ticks_, Same(True, len(ticks_)))


def test_bulk_rows_depend_on_the_horizon() -> None:
    copy = ColumnarCopy((TWO,), TWO)
    copy.take(0, Batch.of_rows(3, [(1, 2, 3), (4, 5, 6)], [7, 8], [True, False]))
    made = ColumnarCopy((TWO,), TWO)
    made.restore(copy.export(), bulk_horizon=99)
    assert [tick for _, tick, _ in held(made).values()] == [99, 99]


@pytest.mark.parametrize(
    "rows",
    [
        {"columns": [[1, 1], [2, 2], [3, 3]], "visible": [True, True], "max_tick": [0, 0]},
        {"columns": [[1], [2]], "visible": [True], "max_tick": [0]},
        {"columns": [[1], [2], [3, 4]], "visible": [True], "max_tick": [0]},
        {"columns": [[1], [2], [2**63]], "visible": [True], "max_tick": [0]},
    ],
)
def test_a_damaged_checkpoint_is_refused(rows: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="rows of a checkpoint"):
        ColumnarCopy((TWO,), TWO).restore({"rows": rows, "inputs": [None], "extra": {}})


def test_what_is_not_a_number_is_copied_by_the_generic_one() -> None:
    text = Relation("text", (Column("k"), Column("t", ValueType.TEXT)), 1)
    nullable = Relation("null", (Column("k"), Column("n", nullable=True)), 1)
    float_key = Relation("float", (Column("k", ValueType.FLOAT),), 1)
    no_key = Relation("total", (Column("n"),), 0)
    assert [fits(relation) for relation in (text, nullable, float_key, no_key)] == [False] * 4
    assert isinstance(CopySpec().build((text,), text), Copy)
    assert isinstance(CopySpec().build((ONE,), ONE), ColumnarCopy)
