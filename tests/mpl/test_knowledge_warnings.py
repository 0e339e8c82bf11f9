"""Goal: warnings say what an author should know, once, where it begins; every code has a working entry in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mpl.check import check
from mpl.codes import knowledge as codes
from mpl.diagnostic import Severity
from mpl.source import Source

PAGE = (Path(__file__).parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
ENTRY = re.compile(r"^## (MPL05\d\d): (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```mpl\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def warnings(text: str) -> list[tuple[str, str]]:
    """(code, what the place says) in source order."""
    checked = check(Source("t.mpl", text)).require()
    return [(diagnostic.code.name, diagnostic.span.text) for diagnostic in checked.diagnostics]


@pytest.mark.parametrize(("code", "title", "body"), ENTRY.findall(PAGE))
def test_documented_examples(code: str, title: str, body: str) -> None:
    known = {one.name: one for one in codes.CODES}
    assert known[code].title == title
    assert known[code].severity is Severity.WARNING
    failing, repaired = BLOCK.findall(body)
    assert [name for name, _ in warnings(failing)] == [code]
    assert warnings(repaired) == []


def test_every_code_is_documented() -> None:
    assert [entry[0] for entry in ENTRY.findall(PAGE)] == [code.name for code in codes.CODES]


BUY = "stream Buy (item int, qty int[0..9], amount int, at time) event time at late 4 s;"


def test_growth_is_reported_once_per_lineage() -> None:
    text = f"""{BUY}
    view Sold = from Buy |> aggregate total := sum(qty) group by item;
    view Again = from Sold |> where total > 3 |> aggregate n := count() group by item;
    view Third = from Again |> join Sold as S on item = S.item;"""
    assert [name for name, _ in warnings(text)] == ["MPL0503"]


def test_unrelated_views_are_reported_each() -> None:
    text = f"""{BUY}
    view Sold = from Buy |> aggregate total := sum(qty) group by item;
    view Paid = from Buy |> aggregate paid := count() group by item;"""
    assert [name for name, _ in warnings(text)] == ["MPL0503", "MPL0503"]


def test_a_stream_alone_is_no_growing_state() -> None:
    assert warnings(f"{BUY} view Some = from Buy |> where qty > 3 |> extend twice := qty * 2;") == []


def test_an_average_is_no_surprise_but_a_limit_on_it_is() -> None:
    text = f"""{BUY}
    view Mean = from Buy |> aggregate mean := avg(amount);
    view Twice = from Mean |> extend twice := mean * 2;
    view High = from Mean |> where mean > 3;"""
    assert warnings(text) == [("MPL0502", "mean > 3")]


def test_what_is_dropped_is_not_reported() -> None:
    text = f"""{BUY}
    view Sum = from Buy |> aggregate total := sum(qty) |> extend rest := total % 3 |> project total;"""
    assert warnings(text) == []


def test_one_cause_gives_one_warning_for_many_columns() -> None:
    text = f"""{BUY}
    view Sum = from Buy |> aggregate total := sum(qty) |> extend rest := total % 3
      |> extend more := rest + 1, most := rest * 2;"""
    assert warnings(text) == [("MPL0501", "total % 3")]


def test_every_moving_group_column_is_named() -> None:
    text = f"""{BUY}
    view Totals = from Buy |> window tumble(at, 1 h) |> aggregate total := sum(qty) group by item, wstart;
    view Spread = from Totals |> aggregate n := count() group by total;"""
    checked = check(Source("t.mpl", text)).require()
    rows = [one for one in checked.diagnostics if one.code is codes.ROWS_VERSIONED]
    assert [one.label for one in rows] == ["rows change their group while `total` changes"]


@pytest.mark.parametrize(
    ("emit", "expected"),
    [("changes", []), ("final", ["MPL0504"]), ("bounds", ["MPL0505"]), ("as of horizon", [])],
)
def test_subscriptions(emit: str, expected: list[str]) -> None:
    text = f"""{BUY} view Sum = from Buy |> aggregate total := sum(amount);
    subscribe s to Sum emit {emit};"""
    assert [name for name, _ in warnings(text)] == expected


def test_final_fires_at_the_end_of_a_range() -> None:
    text = f"{BUY} view Most = from Buy |> aggregate most := max(qty); subscribe s to Most emit final;"
    assert warnings(text) == []
