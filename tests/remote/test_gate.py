"""Goal: a broker refuses what the embedded system refuses, and its reason becomes the same error at the publisher."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

import smile
from runtime.columns import numbers
from smile.gate import StreamGate, publish_error
from smile.streams import Columns, StreamInput

PROGRAM = smile.compile(
    """
stream All (i int[-5..100], d decimal(8,2)[0..], f float, t text(5), e enum('x', 'y'), n int null);
stream Limits (a int[0..100], b int[-5..100], c float[0..], d decimal(8,2)[0..]);
stream Users (id int, name text) unique id unique name;
stream Times (k int, at time) event time at late 10 s until time '2030-01-01 00:00:00';
"""
)
GOOD: dict[str, Any] = {"i": 1, "d": 250, "f": 1.5, "t": "abc", "e": "x", "n": None}


def stream_input(name: str) -> StreamInput:
    return StreamInput(PROGRAM.checked.program.streams[name], PROGRAM.streams[name])


def columns_of(stream: StreamInput, rows: list[dict[str, Any]]) -> Columns:
    """Canonical values as they come over the wire, whatever they are."""
    return tuple([row[cell.name] for row in rows] for cell in stream.cells)


def refused(name: str, rows: list[dict[str, Any]], gate: StreamGate | None = None) -> smile.PublishError | None:
    stream = stream_input(name)
    columns = columns_of(stream, rows)
    reason = (gate or StreamGate(stream)).reason_to_refuse(columns)
    return None if reason is None else publish_error(stream, reason, columns, single=len(rows) == 1)


@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("i", 101, "above 100"),
        ("i", -6, "below -5"),
        ("i", None, "not declared `null`"),
        ("d", -1, "below 0"),
        ("d", 10**8, r"does not fit decimal\(8,2\)"),
        ("f", float("inf"), "not a finite number"),
        ("f", float("nan"), "not a finite number"),
        ("t", "abcdef", "6 characters"),
        ("e", "z", "not one of x, y"),
        ("n", 2**63, "does not fit int"),
    ],
)
def test_values_that_no_honest_publisher_sends(column: str, value: object, rule: str) -> None:
    assert refused("All", [GOOD, GOOD]) is None
    error = refused("All", [GOOD, {**GOOD, column: value}, GOOD])
    assert error is not None
    with pytest.raises(smile.PublishError, match=rule):
        raise error
    (problem,) = error.problems
    assert (problem.column, problem.row) == (column, 1)
    single = refused("All", [{**GOOD, column: value}])
    assert single is not None
    assert single.problems[0].row is None


@pytest.mark.parametrize("bad", [[101, 7], [-6, 7]])
def test_arrays_are_judged_by_their_extremes_and_by_row_if_need_be(bad: list[int]) -> None:
    stream = stream_input("All")
    gate = StreamGate(stream)
    base = columns_of(stream, [GOOD, GOOD])
    at = [cell.name for cell in stream.cells].index("i")

    def with_numbers(values: list[int]) -> Columns:
        return (*base[:at], numbers(np.array(values)), *base[at + 1 :])

    assert gate.reason_to_refuse(with_numbers([-5, 100])) is None
    reason = gate.reason_to_refuse(with_numbers(bad))
    assert reason is not None
    error = publish_error(stream, reason, with_numbers(bad), single=False)
    assert [(one.row, one.value) for one in error.problems] == [(0, bad[0])]


def test_nan_in_an_array_is_found() -> None:
    stream = stream_input("All")
    base = columns_of(stream, [GOOD, GOOD])
    at = [cell.name for cell in stream.cells].index("f")
    columns = (*base[:at], numbers(np.array([1.0, np.nan])), *base[at + 1 :])
    reason = StreamGate(stream).reason_to_refuse(columns)
    assert reason is not None
    assert "finite" in reason


def test_unique_counts_only_what_is_logged() -> None:
    gate = StreamGate(stream_input("Users"))
    assert (gate.remembers, gate.needs_all) == (True, True)
    ann = {"id": 1, "name": "ann"}
    assert refused("Users", [ann], gate) is None
    assert refused("Users", [ann], gate) is None, "nothing was noted"
    gate.note(columns_of(stream_input("Users"), [ann]))
    error = refused("Users", [{"id": 2, "name": "bob"}, {"id": 3, "name": "ann"}], gate)
    assert error is not None
    assert [(one.row, one.column, one.value) for one in error.problems] == [(1, "name", "ann")]
    gate.forget()
    assert refused("Users", [ann], gate) is None


def test_late_events_are_refused_by_the_newest_that_is_logged() -> None:
    noon = int(datetime(2026, 5, 1, 12, tzinfo=UTC).timestamp()) * 1_000_000
    gate = StreamGate(stream_input("Times"))
    assert (gate.remembers, gate.needs_all) == (True, False)
    gate.note(columns_of(stream_input("Times"), [{"k": 1, "at": noon}]))
    assert refused("Times", [{"k": 1, "at": noon - 10_000_000}], gate) is None
    error = refused("Times", [{"k": 1, "at": noon - 10_000_001}], gate)
    assert error is not None
    assert "too late" in error.rule
    assert error.value == datetime(2026, 5, 1, 11, 59, 49, 999_999, tzinfo=UTC)


def test_a_reason_that_no_gate_wrote_is_shown_as_it_is() -> None:
    stream = stream_input("Users")
    for reason in ("nonsense", '{"problems": [["id", "x", 9]], "more": false}', '{"problems": 7}', "[]"):
        assert reason in str(publish_error(stream, reason, ([1], ["a"]), single=True))


@pytest.mark.parametrize(
    ("at", "good", "bad"),
    [
        (0, [0, 100], [-1, 101, -(2**63), 2**63 - 1]),
        (1, [-5, 100], [-6, 101, -(2**63), 2**63 - 1]),
        (2, [0, 7, 2**63 - 1], [-1, -(2**63)]),
        (3, [0, 10**8 - 1], [-1, 10**8, -(2**63)]),
    ],
)
def test_limits_are_the_same_for_one_value_for_lists_and_for_arrays(at: int, good: list[int], bad: list[int]) -> None:
    gate = StreamGate(stream_input("Limits"))
    for value in (*good, *bad):
        for values in ([value], [0, value], numbers(np.array([value])), numbers(np.array([0, value, 0]))):
            columns: list[Any] = [[0] * len(values) for _ in range(4)]
            columns[at] = values
            assert (gate.reason_to_refuse(tuple(columns)) is None) == (value in good), (value, values)
