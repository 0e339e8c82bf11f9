"""Keys of columns that move: what was emptied before it was seen has nulls there, which no visible row may have."""

import pytest

from runtime.batch import Batch
from runtime.plan import Column, ColumnKind, Relation
from runtime.protocol.errors import BadType
from runtime.protocol.validation import Place


def relation(kind: ColumnKind) -> Relation:
    return Relation("averages", (Column("group"), Column("average", kind=kind)), 2, versioned=True)


def batch(visible: bool) -> Batch:
    return Batch(([1], [None]), [5], [visible])


def test_an_invisible_row_may_lack_a_moving_part_of_its_key() -> None:
    Place("leaf", "edge").check_rows(batch(visible=False), relation(ColumnKind.VERSIONED))
    Place("leaf", "edge").check_keys([(1, None)], relation(ColumnKind.VERSIONED))


def test_a_visible_row_may_not() -> None:
    with pytest.raises(BadType):
        Place("leaf", "edge").check_rows(batch(visible=True), relation(ColumnKind.VERSIONED))


def test_a_fixed_part_is_never_null() -> None:
    with pytest.raises(BadType):
        Place("leaf", "edge").check_rows(batch(visible=False), relation(ColumnKind.FINAL))
    with pytest.raises(BadType):
        Place("leaf", "edge").check_keys([(1, None)], relation(ColumnKind.FINAL))
