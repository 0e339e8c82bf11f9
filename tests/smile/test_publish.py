"""Goal: publishing takes every value that a declaration allows, and names stream, column, value and rule otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import smile
from smile.streams import StreamInput
from smile.values import Refused

PROGRAM = """
stream All (
    i int[-5..100], d decimal(8,2)[0..], f float, b bool, t text(5), e enum('x', 'y'), at time, long duration,
    n int null
);
stream Users (id int, name text) unique id unique name;
stream Times (k int, at time) event time at late 10 s until time '2030-01-01 00:00:00';
stream Ticked (a int) tick no;
"""
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
GOOD: dict[str, object] = {
    "i": 1,
    "d": "12.50",
    "f": 1.5,
    "b": True,
    "t": "abc",
    "e": "x",
    "at": NOON,
    "long": timedelta(seconds=1),
    "n": None,
}


@pytest.fixture
def system() -> Iterator[smile.System]:
    with smile.run(smile.compile(PROGRAM)) as running:
        yield running


def refused(system: smile.System, stream: str, row: Any) -> smile.PublishError:
    with pytest.raises(smile.PublishError) as caught:
        system.publish(stream, row)
    return caught.value


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        ("i", np.int32(7), 7),
        ("d", Decimal("0.25"), Decimal("0.25")),
        ("d", 3, Decimal("3.00")),
        ("d", "1e2", Decimal("100.00")),
        ("f", 2, 2.0),
        ("f", -0.0, 0.0),
        ("f", np.float32(0.5), 0.5),
        ("f", np.longdouble(0.5), 0.5),
        ("f", 2**53 + 2, 9007199254740994.0),
        ("b", np.True_, True),
        ("t", "näive", "näive"),
        ("at", "2026-05-01T14:00:00+02:00", NOON),
        ("at", "2026-05-01 12:00:00", NOON),
        ("at", datetime(2026, 5, 1, 12), NOON),  # noqa: DTZ001  without a zone it is UTC
        ("at", NOON.astimezone(timezone(timedelta(hours=-3))), NOON),
        ("at", 1_000_000, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        ("long", 2_000_000, timedelta(seconds=2)),
        ("n", 5, 5),
        ("n", np.ma.masked, None),
    ],
)
def test_values_that_are_taken(system: smile.System, column: str, value: object, shown: object) -> None:
    system.publish("All", {**GOOD, column: value})
    system.publish_many("All", [{**GOOD, column: value}, {**GOOD, column: value}])
    found = [row[column] for row in system.rows("All")]
    assert found == [shown] * 3
    assert {type(one) for one in found} == {type(shown)}


@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("i", 101, "above 100"),
        ("i", -6, "below -5"),
        ("i", 1.0, "float, not a whole number"),
        ("i", True, "bool, not a whole number"),
        ("i", "1", "str, not a whole number"),
        ("i", None, "not declared `null`"),
        ("d", 1.5, "write it as text"),
        ("d", "1.234", "more than 2 digits"),
        ("d", "-0.01", "below 0"),
        ("d", "12345678", "does not fit decimal(8,2)"),
        ("d", "twelve", "is not a number"),
        ("d", "9" * 100, "fits decimal(8,2)"),
        ("d", Decimal("NaN"), "does not fit"),
        ("d", Decimal("1e1000000"), "does not fit"),
        ("f", float("nan"), "not a finite number"),
        ("f", 10**400, "does not fit float"),
        ("f", 2**53 + 1, "cannot be kept exactly (float): the nearest is 9007199254740992.0"),
        ("i", np.array([1]), "not a whole number"),
        ("i", np.array([1, 2]), "not a whole number"),
        ("f", np.int64(-(2**53) - 1), "cannot be kept exactly"),
        ("f", np.longdouble(1) / 3, "cannot be kept exactly"),
        ("b", 1, "not true or false"),
        ("t", "abcdef", "6 characters"),
        ("t", "a\ud800", "not valid Unicode"),
        ("e", "z", "not one of x, y"),
        ("at", "yesterday", "not a time such as"),
        ("at", 2**62, "does not fit time"),
        ("long", "1 s", "not a duration"),
    ],
)
def test_values_that_are_refused(system: smile.System, column: str, value: object, rule: str) -> None:
    error = refused(system, "All", {**GOOD, column: value})
    assert (error.stream, error.column) == ("All", column)
    assert error.value is value
    assert rule in error.rule
    assert "`All`" in str(error)
    assert f"`{column}`" in str(error)
    with pytest.raises(smile.PublishError) as many:
        system.publish_many("All", [GOOD, {**GOOD, column: value}])
    assert [problem.row for problem in many.value.problems] == [1]
    assert rule in many.value.rule
    assert system.rows("All") == []


def test_columns_that_are_missing_or_unknown(system: smile.System) -> None:
    assert "column `name` is missing" in str(refused(system, "Users", {"id": 1}))
    assert "did you mean `name`" in str(refused(system, "Users", {"id": 1, "nmae": "a"}))
    assert "ticks are assigned" in str(refused(system, "Ticked", {"a": 1, "no": 1}))
    assert "a row is a dict" in str(refused(system, "Users", [1, "a"]))
    system.publish("All", {name: value for name, value in GOOD.items() if name != "n"})  # may be null: may be absent
    with pytest.raises(smile.UnknownName, match="did you mean `Users`"):
        system.publish("User", {})
    with pytest.raises(smile.PublishError, match="different lengths"):
        system.publish_many("Users", {"id": [1, 2], "name": ["a"]})
    with pytest.raises(smile.PublishError, match="rows are dicts"):
        system.publish_many("Users", 5)


def test_unique_counts_earlier_calls_and_the_same_call(system: smile.System) -> None:
    system.publish("Users", {"id": 1, "name": "ann"})
    error = refused(system, "Users", {"id": 2, "name": "ann"})
    assert (error.column, error.value) == ("name", "ann")
    with pytest.raises(smile.PublishError) as caught:
        system.publish_many("Users", {"id": [5, 6, 5, 1], "name": ["a", "b", "c", "d"]})
    assert [(problem.row, problem.value) for problem in caught.value.problems] == [(2, 5), (3, 1)]
    system.publish_many("Users", {"id": [5, 6], "name": ["a", "b"]})  # what was refused left no trace
    assert [row["id"] for row in system.rows("Users")] == [1, 5, 6]


def test_at_most_ten_rows_are_named(system: smile.System) -> None:
    with pytest.raises(smile.PublishError, match="and more") as caught:
        system.publish_many("Users", {"id": ["x"] * 50, "name": [str(n) for n in range(50)]})
    assert [problem.row for problem in caught.value.problems] == list(range(10))


def test_all_columns_are_looked_at(system: smile.System) -> None:
    columns: dict[str, object] = {name: [value] * 20 for name, value in GOOD.items()}
    wrong = {"i": [1] * 3 + [101] * 17, "t": ["ok", "toolong"] * 10}
    with pytest.raises(smile.PublishError, match="and more") as caught:
        system.publish_many("All", {**columns, **wrong})
    found = [(problem.row, problem.column) for problem in caught.value.problems]
    assert (
        found
        == [(row, column) for row in range(10) for column in "it" if (row >= 3 if column == "i" else row % 2)][:10]
    )
    assert system.rows("All") == []


def test_late_events_are_refused(system: smile.System) -> None:
    def at(seconds: int) -> datetime:
        return NOON + timedelta(seconds=seconds)

    system.publish_many("Times", {"k": [1, 2], "at": [at(20), at(10)]})
    error = refused(system, "Times", {"k": 3, "at": at(9)})
    assert (error.column, error.value) == ("at", at(9))
    assert "too late" in error.rule
    with pytest.raises(smile.PublishError) as caught:
        system.publish_many("Times", {"k": [1, 2, 3], "at": [at(15), at(40), at(29)]})
    assert [problem.row for problem in caught.value.problems] == [2]
    assert "end of the stream" in refused(system, "Times", {"k": 1, "at": datetime(2031, 1, 1, tzinfo=UTC)}).rule
    system.publish("Times", {"k": 3, "at": at(10)})
    assert len(system.rows("Times")) == 3


def test_ticks_rise_and_are_returned(system: smile.System) -> None:
    first = system.publish("Ticked", {"a": 1})
    more = system.publish_many("Ticked", {"a": [2, 3]})
    assert first < more[0] < more[1]
    assert [row["no"] for row in system.rows("Ticked")] == [first, *more]
    assert system.publish_many("Ticked", []) == ()


@pytest.mark.parametrize(
    ("column", "values", "shown"),
    [
        ("i", np.array([1, 2], np.int8), [1, 2]),
        ("i", np.array([1, 2], np.uint64), [1, 2]),
        ("i", (1, 2), [1, 2]),
        ("i", iter([1, 2]), [1, 2]),
        ("d", np.array([1, 2]), [Decimal("1.00"), Decimal("2.00")]),
        ("d", ["1.25", 2], [Decimal("1.25"), Decimal("2.00")]),
        ("f", np.array([1, -0.0]), [1.0, 0.0]),
        ("f", np.array([1, 2]), [1.0, 2.0]),
        ("f", np.array([2**53, 2**60], np.uint64), [2.0**53, 2.0**60]),
        ("f", np.array([0.5, 2], np.longdouble), [0.5, 2.0]),
        ("b", np.array([True, False]), [True, False]),
        ("t", np.array(["a", "b"]), ["a", "b"]),
        ("at", np.array(["2026-05-01T12", "2026-05-01T12"], "datetime64[h]"), [NOON, NOON]),
        ("at", np.array(["2026-05-01T12:00", "2026-05-01T12:00"], "datetime64[ns]"), [NOON, NOON]),
        ("long", np.array([1, 2], "timedelta64[s]"), [timedelta(seconds=1), timedelta(seconds=2)]),
        ("n", [None, 3], [None, 3]),
        ("n", np.ma.array([7, 3], mask=[True, False]), [None, 3]),
        ("n", np.ma.array([7, 3], mask=[True, False], dtype=object), [None, 3]),
        ("n", np.ma.array([7, 3]), [7, 3]),
        ("n", [np.ma.masked, 3], [None, 3]),
        ("t", np.ma.array(["a", "b"], mask=[False, False]), ["a", "b"]),
    ],
)
def test_columns_of_lists_and_arrays(system: smile.System, column: str, values: object, shown: list[object]) -> None:
    columns: dict[str, object] = {name: [value] * 2 for name, value in GOOD.items()}
    system.publish_many("All", {**columns, column: values})
    found = [row[column] for row in system.rows("All")]
    assert found == shown
    assert [type(one) for one in found] == [type(one) for one in shown]


@pytest.mark.parametrize(
    ("column", "values", "rows"),
    [
        ("i", np.array([1, 101]), [1]),
        ("i", np.array([2**63, 1], np.uint64), [0]),
        ("i", np.array([1.0, 2.0]), [0, 1]),
        ("i", np.ma.array([1, 2], mask=[False, True]), [1]),
        ("i", [1, np.ma.masked], [1]),
        ("n", np.ma.array([1, 2], mask=[False, True], dtype=float), [0]),
        ("f", np.ma.array([1.0, 2.0], mask=[False, True]), [1]),
        ("at", np.ma.array(np.array([5, 6], "datetime64[s]"), mask=[True, False]), [0]),
        ("d", np.array([2**61, 1]), [0]),
        ("d", np.array([0.5, 0.25]), [0, 1]),
        ("f", np.array([1.0, np.inf]), [1]),
        ("f", np.array([2**53 + 1, 2**53 + 2]), [0]),
        ("f", np.array([1, 2**64 - 1], np.uint64), [1]),
        ("f", np.array([-(2**63), -(2**53) - 1]), [1]),
        ("f", np.array([1, 2], np.longdouble) / 3, [0, 1]),
        ("f", np.array([1, 10], np.longdouble) ** 400, [1]),
        ("b", np.array([1, 0]), [0, 1]),
        ("at", np.array(["NaT", "2026-01-01"], "datetime64[s]"), [0]),
        ("t", ["ok", "toolong"], [1]),
        ("e", ["x", "q"], [1]),
    ],
)
def test_arrays_with_wrong_values(system: smile.System, column: str, values: object, rows: list[int]) -> None:
    columns: dict[str, object] = {name: [value] * 2 for name, value in GOOD.items()}
    with pytest.raises(smile.PublishError) as caught:
        system.publish_many("All", {**columns, column: values})
    assert [problem.row for problem in caught.value.problems] == rows
    assert caught.value.column == column
    assert system.rows("All") == []


def test_a_closed_system_takes_nothing() -> None:
    system = smile.run(smile.compile(PROGRAM))
    system.close()
    system.close()
    with pytest.raises(smile.Closed):
        system.publish("Ticked", {"a": 1})


@pytest.mark.parametrize("declared", ["int", "int[-5..100]", "int[0..]", "int[..7] null", "int default 3", "float"])
def test_whole_numbers_are_checked_the_short_way_as_the_long_one(declared: str) -> None:
    program = smile.compile(f"stream S (a {declared});")
    stream = StreamInput(program.checked.program.streams["S"], program.streams["S"])
    (cell,) = stream.cells
    for value in (-(2**63) - 1, -(2**63), -6, -5, -1, 0, 3, 7, 8, 100, 101, 2**63 - 1, 2**63, True):
        try:
            expected: Any = ([cell.encode(value)],)
        except Refused as refused:
            with pytest.raises(smile.PublishError, match=re.escape(str(refused))):
                stream.encode_row({"a": value})
        else:
            found = stream.encode_row({"a": value})
            assert (found, [type(one[0]) for one in found]) == (expected, [type(one[0]) for one in expected])
