"""Goal: any body is either rows or refused by name, and values come out as JSON that means the same."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import smile
from smile.gateway.json_values import BadBody, change_to_text, rows_in, to_text, with_kind
from smile.streams import StreamInput

PROGRAM = smile.compile("stream S (item int, price decimal(8,2), f float, t text, at time, took duration);")
STREAM = StreamInput(PROGRAM.checked.program.streams["S"], PROGRAM.streams["S"])


@given(st.binary(max_size=60) | st.text(alphabet='{}[]":,.0123456789eE-+ \nitemfnull', max_size=60).map(str.encode))
def test_any_bytes(body: bytes) -> None:
    try:
        rows = rows_in(body, STREAM)
    except BadBody:
        return
    assert all(isinstance(row, dict) for row in rows)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.sampled_from(["item", "price", "f", "t", "at", "took", "x"]), JSON), max_size=3))
def test_any_rows_are_published_or_refused(rows: list[dict[str, object]]) -> None:
    found = rows_in(json.dumps(rows).encode(), STREAM)
    assert len(found) == len(rows)
    try:
        columns, number = STREAM.encode_many(found)
    except smile.PublishError:
        return
    assert number == len(rows)
    assert len(columns) == (6 if rows else 0)


def test_numbers_stay_exact_where_they_must() -> None:
    (row,) = rows_in(b'{"item": 1, "price": 0.1, "f": 0.1}', STREAM)
    assert row == {"item": 1, "price": Decimal("0.1"), "f": 0.1}
    assert isinstance(row["f"], float)


def test_values_come_out_as_json() -> None:
    row: dict[str, object] = {
        "price": Decimal("1E+2"),
        "at": datetime(2026, 5, 1, 12, 30, tzinfo=UTC),
        "took": timedelta(milliseconds=1),
        "t": "ä\u2028",
    }
    assert json.loads(to_text(row)) == {"price": "100", "at": "2026-05-01T12:30:00Z", "took": 1000, "t": "ä\u2028"}
    change = smile.Change("changed", (1,), row, True, 2**62, {"price": (None, Decimal("1.50"))})
    told = json.loads(with_kind("changed", change_to_text(change)))
    assert (told["kind"], told["as_of"], told["bounds"]) == ("changed", str(2**62), {"price": [None, "1.50"]})
    assert "\n" not in change_to_text(smile.Change("changed", ("a\nb",), {"t": "a\nb"}, False, 1))
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_text(float("nan"))


def test_only_line_breaks_part_lines() -> None:
    """Some writers of JSON leave other breaks in texts as they are, which JSON allows."""
    texts = ["a\u2028b", "c\u0085d", "e\u2029f"]
    lines = [json.dumps({"name": text}, ensure_ascii=False) for text in texts]
    for end in ("\n", "\r\n", "\r"):
        assert [row["name"] for row in rows_in(end.join(lines).encode(), STREAM)] == texts
