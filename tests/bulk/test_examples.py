"""Goal: every view of every example is the same in the engine, in Spark and in DuckDB, for the same events.

Each example publishes its own events, into a log. What the engine showed in the end is compared with what Spark and
DuckDB compute from that log. Nexmark has no script, and its windows do not run yet: its other views get
events from here.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

import smile
from mpl.typed import TypedProgram
from runtime.bulk.evaluate import evaluate_bulk
from runtime.log.reader import LogReader
from smile.bulk.recompute import plan_of
from tests.bulk.differential import Case, differences, frame_of, source_schema
from tests.bulk.duck import duck_rows
from tests.reference.data import SECOND, START
from tests.reference.relations import Row
from tests.smile.test_against_reference import as_dict, in_order

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*/run.py"))
WINDOWS = ("counts", "q5", "q8", "q11")
PEOPLE, AUCTIONS = 10, 12


@dataclass
class History:
    """What happened in one example: its program, its events with their ticks, and the rows shown in the end."""

    program: smile.Program
    rows: dict[str, list[Row]]
    shown: dict[str, list[dict[str, object]]]

    @property
    def typed(self) -> TypedProgram:
        return self.program.checked.program


def logged_rows(program: TypedProgram, folder: Path) -> dict[str, list[Row]]:
    """The log has the tick first, a schema has it last."""
    found: dict[str, list[Row]] = {}
    with LogReader(folder) as reader:
        for name, stream in reader.streams().items():
            events = [
                tuple(row)
                for batch in reader.batches(stream, 0, stream.last_tick)
                for row in zip(*batch.columns[1:], batch.max_ticks, strict=True)
            ]
            assert len(program.streams[name].schema.columns) == len(stream.columns) + 1
            found[name] = events
    return found


def script_history(script: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    plain = smile.run
    seen: list[History] = []

    @contextmanager
    def recorded(program: smile.Program) -> Iterator[Any]:
        with plain(program, data=folder) as system:
            yield system
            system.settle()
            shown = {view: system.rows(view) for view in program.plan.views}
        seen.append(History(program, logged_rows(program.checked.program, folder), shown))

    monkeypatch.setattr(smile, "run", recorded)
    runpy.run_path(str(script), run_name="__main__")
    (history,) = seen
    return history


def nexmark_text() -> str:
    text = (EXAMPLES / "nexmark" / "nexmark.mpl").read_text(encoding="utf-8")
    for view in WINDOWS:
        text, count = re.subn(rf"view {view} =.*?;\n", "", text, flags=re.DOTALL)
        assert count == 1
    return text.replace("subscribe hot to q5 emit changes at hub;", "")


def nexmark_events(rng: Random) -> Iterator[tuple[str, Row]]:
    """People, their auctions, and bids on these, in the order of their times."""
    now = START
    for number in range(PEOPLE):
        state = rng.choice(("OR", "ID", "CA", "NY"))
        yield "Person", (number, f"name {number}", "a@b", "1234", "Boise", state, now + number, "")
    for number in range(AUCTIONS):
        now += SECOND
        expires = now + rng.randint(1, 9) * SECOND
        category = rng.randint(10, 14) if number else 10
        yield (
            "Auction",
            (123 * number, "item", "text", 1, 2, now, expires, rng.randrange(PEOPLE), category, "x"),
        )
        for _ in range(rng.randint(3, 12)):
            auction, price = 123 * rng.randint(0, number), rng.choice((5, 9_999, 10_000, 2_000_000))
            channel = rng.choice(("Apple", "Google", "Baidu"))
            url = f"https://shop/{rng.choice('ab')}/c/d.htm?query=1&channel_id={price}"
            yield "Bid", (auction, rng.randrange(PEOPLE), price, channel, url, now + rng.randint(0, SECOND), "ccx")


def nexmark_history() -> History:
    program = smile.compile(nexmark_text())
    typed = program.checked.program
    rows: dict[str, list[Row]] = {name: [] for name in typed.streams}
    rows["side"] = [(123 * number % 10_000, f"side {number}") for number in range(0, AUCTIONS, 2)]
    side = [{"key": key, "value": value} for key, value in rows["side"]]
    with smile.run(program, tables={"side": side}) as system:
        for stream, row in nexmark_events(Random(7)):
            names = [column.name for column in typed.streams[stream].schema.columns[:-1]]
            rows[stream].append((*row, system.publish(stream, dict(zip(names, row, strict=True)))))
        system.settle()
        shown = {view: system.rows(view) for view in program.plan.views}
    return History(program, rows, shown)


def assert_alike(spark: SparkSession, history: History) -> None:
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    cases = []
    for view, shown in history.shown.items():
        schema = history.typed.views[view].schema
        rows = duck_rows(history.typed, view, history.rows, connection)
        assert [as_dict(schema, row) for row in in_order(schema, rows)] == shown, f"{view}: the engine and DuckDB"
        bulk = plan_of(history.program, view)
        frames = {
            name: frame_of(spark, source_schema(history.typed, name), history.rows[name]) for name in bulk.sources
        }
        frame = evaluate_bulk(bulk.load(), bulk.constants, frames)
        cases.append(Case(view, "", bulk, frame, schema, rows))
    wrong = differences(spark, cases)
    assert not wrong, f"{wrong[0].name}: {wrong[0].what}"
    assert any(history.shown.values())


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.parent.name for script in SCRIPTS])
def test_an_example_is_the_same_everywhere(
    spark: SparkSession, script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = script_history(script, tmp_path / "data", monkeypatch)
    assert all(history.rows.values())
    assert_alike(spark, history)


def test_nexmark_is_the_same_everywhere(spark: SparkSession) -> None:
    history = nexmark_history()
    assert len(history.shown) == 15
    assert all(history.shown.values())
    assert_alike(spark, history)
