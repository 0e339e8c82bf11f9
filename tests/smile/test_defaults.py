"""Goal: an event published without a column that has a default has the default, however it was published; and so do
events from before the column was there. A default never changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import smile
from compiler.bundle import bundle_files
from mpl.literals import literal_text
from runtime.log.reader import LogReader
from runtime.log.schema import default_of
from smile.streams import StreamInput

PROGRAM = """
stream S (
    k int,
    i int[0..9] default 7,
    d decimal(5,2)[-1.50..] default -0.50,
    f float default 2.5e0,
    b bool default true,
    t text(9) default 'it''s',
    e enum('x', 'y') default 'y',
    at time default time '2026-05-01 12:00:00.5',
    long duration default -90 s,
    n int null
);
view V = from S |> project k, i, d, f, b, t, e, at, long, n;
"""
DEFAULTS = {
    "i": 7,
    "d": Decimal("-0.50"),
    "f": 2.5,
    "b": True,
    "t": "it's",
    "e": "y",
    "at": datetime(2026, 5, 1, 12, 0, 0, 500_000, tzinfo=UTC),
    "long": timedelta(seconds=-90),
    "n": None,
}
GIVEN = {
    "i": 1,
    "d": Decimal("1.00"),
    "f": 1.0,
    "b": False,
    "t": "",
    "e": "x",
    "at": datetime(2020, 1, 1, tzinfo=UTC),
    "long": timedelta(),
    "n": 3,
}
MANY = 100
"""More than what is worth an array."""


def rows_of(data: object, program: str = PROGRAM) -> list[dict[str, object]]:
    with smile.run(smile.compile(program)) as system:
        system.publish_many("S", data)
        return system.rows("V")


def test_a_row_without_them() -> None:
    with smile.run(smile.compile(PROGRAM)) as system:
        system.publish("S", {"k": 1})
        system.publish("S", {"k": 2, **GIVEN})
        assert system.rows("V") == [{"k": 1, **DEFAULTS}, {"k": 2, **GIVEN}]


@pytest.mark.parametrize(
    "data",
    [
        [{"k": k} for k in range(MANY)],
        {"k": list(range(MANY))},
        {"k": np.arange(MANY)},
        pa.table({"k": list(range(MANY))}),
        pd.DataFrame({"k": list(range(MANY))}),
    ],
    ids=["rows", "lists", "arrays", "arrow", "pandas"],
)
def test_many_rows_without_them(data: object) -> None:
    assert rows_of(data) == [{"k": k, **DEFAULTS} for k in range(MANY)]


def test_whole_numbers_in_arrays_with_one_column_missing() -> None:
    """The shortest way takes arrays of whole numbers only, and all of them."""
    program = "stream S (k int, i int[0..9] default 7); view V = from S |> project k, i;"
    assert rows_of({"k": np.arange(MANY)}, program) == [{"k": k, "i": 7} for k in range(MANY)]


def test_rows_that_have_different_columns() -> None:
    rows: list[dict[str, Any]] = [{"k": 1}, {"k": 2, **GIVEN}, {"k": 3, "t": "here"}, {"k": 4, "n": 5}]
    assert rows_of(rows) == [{**DEFAULTS, **row} for row in rows]


def test_null_is_not_the_default() -> None:
    with smile.run(smile.compile(PROGRAM)) as system:
        for publish in (
            lambda: system.publish("S", {"k": 1, "i": None}),
            lambda: system.publish_many("S", [{"k": 1, "i": None}]),
        ):
            with pytest.raises(smile.PublishError, match="leave the column out, and it has its default"):
                publish()
        with pytest.raises(smile.PublishError, match="column `k` is missing"):
            system.publish("S", {"i": 1})


def test_what_the_log_remembers_is_the_default() -> None:
    program = smile.compile(PROGRAM)
    given = StreamInput(program.checked.program.streams["S"], program.streams["S"])
    assert {cell.name: default_of(str(cell)) for cell in given.cells} == {
        cell.name: cell.default for cell in given.cells
    }
    again = ", ".join(
        f"c{at} {cell.column.type} default {literal_text(cell.default, cell.column.type)}"
        for at, cell in enumerate(given.cells)
        if cell.default is not None
    )
    stream = smile.compile(f"stream S ({again});").checked.program.streams["S"]
    assert [value for _, value in stream.defaults] == [c.default for c in given.cells if c.default is not None]


BEFORE = "stream S (k int, q int[0..]); view Sums = from S |> aggregate total := sum(q) group by k;"
AFTER = BEFORE.replace("q int[0..]", "q int[0..], shop text default 'old', rate decimal(5,2) default 1.50") + (
    "view Shops = from S |> aggregate n := count(), worth := sum(q * rate) group by shop;"
)


def test_a_program_that_adds_defaults_to_a_stream_with_events(tmp_path: Path) -> None:
    with smile.run(smile.compile(BEFORE), data=tmp_path) as system:
        system.publish_many("S", [{"k": k % 2, "q": k} for k in range(4)])
    for again in range(2):
        with smile.run(smile.compile(AFTER), data=tmp_path) as system:
            system.publish("S", {"k": 0, "q": 10})
            system.publish("S", {"k": 1, "q": 10, "shop": "new", "rate": "0.10"})
            rows = {row["shop"]: (row["n"], row["worth"]) for row in system.rows("Shops")}
            more = again + 1
            assert rows == {"old": (4 + more, Decimal(6 + 10 * more) * Decimal("1.50")), "new": (more, Decimal(more))}
            assert [row["total"] for row in system.rows("Sums")] == [2 + 10 * more, 4 + 10 * more]
    with LogReader(tmp_path) as reader:
        stream = reader.streams()["S"]
        assert stream.columns[2:] == (("shop", "text default 'old'"), ("rate", "decimal(5,2) default 1.50"))
        assert next(reader.batches(stream, 0, stream.last_tick)).columns[3:] == (["old"] * 4, [150] * 4)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("default 'old'", "default 'other'", "column `shop` is text default 'old' in the log and .* would change"),
        ("default 1.50", "", r"column `rate` is decimal\(5,2\) default 1.50 in the log and .* would change"),
        ("default 1.50", "null", r"column `rate` is decimal\(5,2\) default 1.50 in the log and .* would change"),
        ("default 1.50", "default 1.50, more int", "column `more` .* is new, .*or give it a `default`"),
    ],
)
def test_a_default_that_changes_is_refused(tmp_path: Path, old: str, new: str, reason: str) -> None:
    with smile.run(smile.compile(AFTER), data=tmp_path) as system:
        system.publish("S", {"k": 0, "q": 10})
    with pytest.raises(smile.SmileError, match=reason):
        smile.run(smile.compile(AFTER.replace(old, new)), data=tmp_path)
    with smile.run(smile.compile(AFTER), data=tmp_path) as system:
        assert len(system.rows("S")) == 1


def test_a_bundle_with_another_default_is_another_bundle() -> None:
    found = []
    for text in (AFTER, AFTER.replace("'old'", "'other'")):
        program = smile.compile(text)
        found.append(bundle_files(program.graph, program.plan, "s.mpl", text)["manifest.json"])
    assert found[0] != found[1]
