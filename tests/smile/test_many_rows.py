"""Goal: the fast ways through `publish_many` take and refuse exactly what the slow ones do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import smile
from smile.columns import ARRAY_ROWS_MIN

PROGRAM = """
stream Sales (item int, qty int[0..1000], note int null);
view Sold = from Sales |> project item, qty, note;
"""

MANY = ARRAY_ROWS_MIN + 1


@pytest.fixture
def shop() -> Iterator[smile.System]:
    with smile.run(smile.compile(PROGRAM)) as system:
        yield system


def rows_of(system: smile.System) -> list[tuple[object, ...]]:
    return sorted((row["item"], row["qty"], row["note"]) for row in system.rows("Sold"))


@pytest.mark.parametrize("count", [1, 3, MANY])
def test_rows_with_equal_names_in_any_order(shop: smile.System, count: int) -> None:
    rows = [{"item": i, "qty": 2, "note": 7} if i % 2 else {"note": 7, "qty": 2, "item": i} for i in range(count)]
    shop.publish_many("Sales", rows)
    assert rows_of(shop) == [(i, 2, 7) for i in range(count)]


@pytest.mark.parametrize("count", [3, MANY])
def test_rows_with_as_many_but_other_names(shop: smile.System, count: int) -> None:
    rows: list[dict[str, object]] = [{"item": i, "qty": 1} for i in range(count)]
    rows[-1] = {"item": 999, "note": 3}
    with pytest.raises(smile.PublishError, match="qty"):
        shop.publish_many("Sales", rows)
    rows[-1] = {"item": 999, "qty": 1, "note": 3}
    shop.publish_many("Sales", iter(rows))
    assert [note for _, _, note in sorted(rows_of(shop), key=str)].count(None) == count - 1


@pytest.mark.parametrize("count", [3, MANY])
@pytest.mark.parametrize("wrong", [-1, 1001, 2**63, True, "x"])
def test_a_wrong_number_is_named_and_nothing_gets_in(shop: smile.System, count: int, wrong: object) -> None:
    quantities: list[object] = [5] * count
    quantities[count - 1] = wrong
    with pytest.raises(smile.PublishError) as refused:
        shop.publish_many("Sales", {"item": list(range(count)), "qty": quantities})
    assert f"{count - 1}" in str(refused.value)
    assert "qty" in str(refused.value)
    assert shop.rows("Sold") == []


def test_a_list_may_change_after_it_was_published(shop: smile.System) -> None:
    items = list(range(MANY))
    shop.publish_many("Sales", {"item": items, "qty": [1] * MANY})
    items[0] = 77
    assert rows_of_items(shop) == list(range(MANY))


def rows_of_items(system: smile.System) -> list[object]:
    return sorted(row["item"] for row in system.rows("Sold"))  # type: ignore[type-var]


@pytest.mark.parametrize("count", [1, 3, MANY])
def test_rows_that_name_no_column_are_refused_not_forgotten(shop: smile.System, count: int) -> None:
    with pytest.raises(smile.PublishError, match="rows without any column"):
        shop.publish_many("Sales", [{}] * count)
    assert shop.publish_many("Sales", []) == ()
