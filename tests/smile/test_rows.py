"""Goal: `rows` shows what a view has now, as the user's values; a view costs nothing before somebody asks for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import smile
from runtime.embedded.tuning import EMBEDDED

PROGRAM = """
stream Bids (item int, price decimal(10,2)[0..], by text, at time, open duration null);
view Sums = from Bids
  |> aggregate total := sum(price), mean := avg(price), n := count(), top := max(price) group by item;
view Cheap = from Bids |> where price < 10.00 |> project item, price;
view Everything = from Bids |> aggregate n := count(), total := sum(price);
view Waits = from Bids |> aggregate longest := max(open), last := max(at) group by by;
view Deltas = from Sums |> extend missing := 100.00 - total;
"""


def bid(item: int, price: str, by: str = "ann") -> dict[str, object]:
    return {"item": item, "price": price, "by": by, "at": "2026-01-02 03:04:05", "open": None}


def test_values_columns_and_order() -> None:
    with smile.run(smile.compile(PROGRAM)) as system:
        system.publish_many("Bids", [bid(2, "10.00"), bid(1, "3.00"), bid(1, "4.01"), bid(-5, "1.00")])
        assert system.rows("Sums") == [
            {"item": -5, "total": Decimal("1.00"), "mean": Decimal("1"), "n": 1, "top": Decimal("1.00")},
            {"item": 1, "total": Decimal("7.01"), "mean": Decimal("3.505"), "n": 2, "top": Decimal("4.01")},
            {"item": 2, "total": Decimal("10.00"), "mean": Decimal("10"), "n": 1, "top": Decimal("10.00")},
        ]
        assert [row["missing"] for row in system.rows("Deltas")] == [Decimal("99"), Decimal("92.99"), Decimal("90")]
        assert system.rows("Cheap") == [  # events, in the order of their ticks, which have no name and stay hidden
            {"item": 1, "price": Decimal("3.00")},
            {"item": 1, "price": Decimal("4.01")},
            {"item": -5, "price": Decimal("1.00")},
        ]
        assert system.rows("Waits") == [
            {"by": "ann", "longest": None, "last": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)}
        ]
        system.publish("Bids", {**bid(1, "1"), "open": timedelta(minutes=3)})
        assert system.rows("Waits")[0]["longest"] == timedelta(minutes=3)
        assert len(system.rows("Bids")) == 5


def test_views_of_nothing() -> None:
    with smile.run(smile.compile(PROGRAM)) as system:
        assert system.rows("Sums") == []
        assert system.rows("Everything") == [{"n": 0, "total": Decimal("0.00")}]
        assert system.rows("Bids") == []
        with pytest.raises(smile.UnknownName, match="did you mean `Sums`"):
            system.rows("Sum")


def test_a_view_costs_nothing_until_asked_and_then_catches_up() -> None:
    with smile.run(smile.compile(PROGRAM)) as system:
        system.publish_many("Bids", [bid(n % 7, "1.00") for n in range(1000)])
        system.settle()
        assert set(system._engine.running) == {"Bids"}
        assert system.rows("Everything") == [{"n": 1000, "total": Decimal("1000.00")}]
        assert "Sums" not in system._engine.running
        system.publish("Bids", bid(1, "2.00"))
        assert system.rows("Everything") == [{"n": 1001, "total": Decimal("1002.00")}]
        assert [row["n"] for row in system.rows("Sums")] == [143, 144, 143, 143, 143, 143, 142]


def test_catching_up_reads_the_log_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log answers with at most so many rows; whoever lacks the rest asks again."""
    monkeypatch.setattr("runtime.embedded.engine.EMBEDDED", replace(EMBEDDED, answer_rows_max=10))
    with smile.run(smile.compile(PROGRAM)) as system:
        for number in range(5):
            system.publish_many("Bids", [bid(n % 3, "1.00") for n in range(1, 25 + number)])
        count = sum(24 + number for number in range(5))
        assert system.rows("Everything") == [{"n": count, "total": Decimal(count)}]
        assert sum(Decimal(str(row["total"])) for row in system.rows("Deltas")) == count
        assert len(system.rows("Cheap")) == count


def test_many_small_publishes_and_tombstones_that_go() -> None:
    """Rows that vanished are forgotten after a while: memory does not grow with what was once there."""
    text = """
    stream Moves (k int, to_ int);
    view Now = from Moves |> latest per k |> where to_ > 0;
    """
    with smile.run(smile.compile(text)) as system:
        assert system.rows("Now") == []
        for number in range(300):
            system.publish_many("Moves", {"k": [number], "to_": [1]})
            system.publish_many("Moves", {"k": [number], "to_": [0]})
        system.publish("Moves", {"k": 7, "to_": 9})
        system.settle()
        assert system.rows("Now") == [{"k": 7, "to_": 9}]
        component = system._engine.running[system.program.plan.views["Now"].component]
        assert len(component.operator.rows) < 10  # type: ignore[union-attr]


def test_tables_are_read_from_their_file(tmp_path: Path) -> None:
    (tmp_path / "countries.csv").write_text("code,name,eu,people\nde,Germany,true,84\nch,Schweiz,false,\n")
    program = tmp_path / "p.mpl"
    program.write_text(
        """
        stream Calls (code text, minutes int);
        table Country (code text, name text, eu bool, people int null) key code from "countries.csv";
        view Named = from Calls |> join Country using code |> aggregate total := sum(minutes) group by name, eu;
        """
    )
    compiled = smile.compile(program)
    with smile.run(compiled) as system:
        system.publish_many("Calls", [{"code": "de", "minutes": 2}, {"code": "fr", "minutes": 9}])
        system.publish("Calls", {"code": "de", "minutes": 3})
        assert system.rows("Named") == [{"name": "Germany", "eu": True, "total": 5}]
        assert [row["people"] for row in system.rows("Country")] == [None, 84]
    given = {"Country": {"code": ["fr"], "name": ["France"], "eu": [True], "people": [68]}}
    with smile.run(compiled, tables=given) as system:
        system.publish("Calls", {"code": "fr", "minutes": 9})
        assert system.rows("Named") == [{"name": "France", "eu": True, "total": 9}]
    (tmp_path / "countries.csv").write_text("code,name,eu,people\nde,Germany,maybe,84\n")
    with pytest.raises(smile.PublishError, match="row 0: column `eu`: 'maybe' cannot be read as bool"):
        smile.run(compiled)
    with pytest.raises(smile.PublishError, match="is there twice: it is the `key` of the table"):
        smile.run(compiled, tables={"Country": [{"code": "x", "name": "", "eu": True}] * 2})
    (tmp_path / "countries.csv").unlink()
    with pytest.raises(smile.SmileError, match=r"cannot read .*countries\.csv"):
        smile.run(compiled)


def table_of(folder: Path, text: bytes) -> list[dict[str, object]]:
    (folder / "t.csv").write_bytes(text)
    (folder / "p.mpl").write_text('table T (k int, v text) key k from "t.csv";')
    with smile.run(smile.compile(folder / "p.mpl")) as system:
        return system.rows("T")


@pytest.mark.parametrize("text", [b"\xef\xbb\xbfk,v\n1,x\n", b"v, k\r\nx,1\r\n", b"\nk,v\n\n1,x\n"])
def test_tables_as_other_programs_write_them(tmp_path: Path, text: bytes) -> None:
    assert table_of(tmp_path, text) == [{"k": 1, "v": "x"}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"k,v,k\n1,x,2\n", "the first line: `k` is there twice"),
        (b"k;v\n1;x\n", "the first line: `k;v` is none of its columns: it has k, v"),
        (b"k,v\n1,x\n2\n", "row 1: it has 1 cells, the first line names 2 columns"),
        (b'k,v\n1,"x\n2,y\n', "unexpected end of data"),
    ],
)
def test_a_table_is_not_guessed_at(tmp_path: Path, text: bytes, said: str) -> None:
    with pytest.raises(smile.SmileError, match=said):
        table_of(tmp_path, text)


def test_columns_of_numpy_keep_up_with_rows() -> None:
    rng = np.random.default_rng(1)
    items, prices = rng.integers(0, 50, 2_000), rng.integers(0, 90, 2_000)
    with smile.run(smile.compile(PROGRAM)) as one, smile.run(smile.compile(PROGRAM)) as other:
        assert one.rows("Sums") == other.rows("Sums") == []
        columns = {"item": items, "price": prices, "by": ["ann"] * 2_000, "at": np.full(2_000, 5)}
        one.publish_many("Bids", columns)
        for item, price in zip(items, prices, strict=True):
            other.publish("Bids", {"item": item, "price": int(price), "by": "ann", "at": 5})
        assert one.rows("Sums") == other.rows("Sums")
