"""Goal: what a subscriber is told is drawn as it is: changed cells marked for a while, final ones for good."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from rich.console import Console
from rich.table import Table

from smile.cli.cells import json_change, json_value, shown
from smile.cli.live_table import CHANGED_STYLE, FINAL_STYLE, LiveTable
from smile.cli.subscribe import changelog_line
from smile.subscription import Change, Kind


def change(kind: Kind, item: int, left: int, *, final: bool = False, as_of: int = 1) -> Change:
    return Change(kind, (item,), {"item": item, "left": left}, final, as_of)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def drawn(table: Table) -> str:
    console = Console(width=80, color_system=None)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def styles(table: LiveTable, column: int) -> list[str]:
    cells = list(table.draw().columns[column].cells)
    return [str(span.style) for cell in cells for span in getattr(cell, "spans", ())]


def test_rows_appear_change_and_go() -> None:
    clock = Clock()
    table = LiveTable("T", ("item", "left"), clock)
    for told in (change("snapshot", 2, 5), change("snapshot", 1, 9), change("changed", 2, 4, as_of=7)):
        table.apply(told)
    assert table.rows == [{"item": 1, "left": 9}, {"item": 2, "left": 4}]
    assert (table.changes, table.as_of) == (3, 7)
    table.apply(change("gone", 2, 0))
    assert table.rows == [{"item": 1, "left": 9}]
    assert "gone" in drawn(table.draw())
    clock.now += 10
    assert "gone" not in drawn(table.draw())


def test_only_cells_that_changed_are_marked_and_only_for_a_while() -> None:
    clock = Clock()
    table = LiveTable("T", ("item", "left"), clock)
    table.apply(change("snapshot", 1, 9))
    assert styles(table, 0) == styles(table, 1) == []
    table.apply(change("changed", 1, 8))
    assert styles(table, 0) == []
    assert styles(table, 1) == [CHANGED_STYLE]
    assert "8*" in drawn(table.draw(plain=True))
    clock.now += 5
    assert styles(table, 1) == []
    table.apply(change("changed", 1, 8, final=True))
    assert styles(table, 1) == [FINAL_STYLE]
    assert "final" in drawn(table.draw())


def test_of_more_rows_than_fit_the_newest_are_drawn() -> None:
    clock = Clock()
    table = LiveTable("T", ("item", "left"), clock)
    for item in range(10):
        table.apply(change("changed", item, 50 + item))
        clock.now += 1
    text = drawn(table.draw(3, caption="x"))
    assert all(str(left) in text for left in (57, 58, 59))
    assert "56" not in text
    assert "7 rows more; x" in text


def test_a_row_that_came_back_is_news() -> None:
    table = LiveTable("T", ("item", "left"), Clock())
    table.apply(change("snapshot", 1, 9))
    table.apply(change("gone", 1, 9))
    table.apply(change("changed", 1, 9))
    assert table.rows == [{"item": 1, "left": 9}]
    assert styles(table, 0) == [CHANGED_STYLE]


def test_bounds_are_drawn_where_they_say_more() -> None:
    table = LiveTable("T", ("item", "left"), Clock())
    table.apply(Change("snapshot", (1,), {"item": 1, "left": 9}, False, 1, {"item": (1, 1), "left": (None, 9)}))
    assert "9 ..9" in drawn(table.draw())


def test_keys_of_all_kinds_have_an_order() -> None:
    table = LiveTable("T", ("k",), Clock())
    for key in (None, 3, "x", 1, Decimal(2)):
        table.apply(Change("snapshot", (key,), {"k": key}, False, 1))
    assert len(table.rows) == 5


def test_changelog_lines() -> None:
    assert changelog_line(change("snapshot", 1, 9)) == "= item=1  left=9"
    assert changelog_line(change("changed", 1, 8, final=True)) == "+ item=1  left=8  !"
    assert changelog_line(change("gone", 1, 8)) == "- item=1  left=8"
    bounded = Change("changed", (1,), {"left": 9}, False, 1, {"left": (3, None)})
    assert changelog_line(bounded) == "+ left=9 (3..)"


def test_values_as_text_and_as_json() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert [shown(value) for value in (None, True, False, Decimal("1.50"), moment)] == [
        "-",
        "true",
        "false",
        "1.50",
        "2026-01-02 03:04:05+00:00",
    ]
    assert json_value(Decimal("1.50")) == "1.50"
    assert json_value(timedelta(seconds=2)) == 2_000_000
    assert json_value(moment) == "2026-01-02T03:04:05+00:00"
    told = json_change(Change("changed", (1,), {"a": Decimal(1)}, True, 7, {"a": (None, Decimal(2))}))
    assert told == {
        "kind": "changed",
        "key": [1],
        "row": {"a": "1"},
        "final": True,
        "as_of": 7,
        "bounds": {"a": [None, "2"]},
    }
