"""What lies between a stream and its views forgets events that everybody has: memory follows the views, not history.

A view that starts later still gets everything, from the log; events of a view of events are kept, because they are its
rows.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import smile
from runtime.embedded.outcomes import Failure
from runtime.embedded.tuning import EMBEDDED
from runtime.protocol.event_component import EventComponent
from smile.system import System

PROGRAM = """
stream Sales (qty int[0..100], at time);
view Early = from Sales |> extend slot := truncate(at, 1 min) |> aggregate total := sum(qty) group by slot;
view Later = from Sales |> extend slot := truncate(at, 1 min) |> where qty > 4
  |> aggregate number := count() group by slot;
view Large = from Sales |> extend slot := truncate(at, 1 min) |> where qty > 90;
view Counted = from Large |> extend late := truncate(at, 1 h) |> aggregate number := count() group by late;
"""
ROWS = 3_000
START = datetime(2026, 1, 31, 12, tzinfo=UTC)


def held(system: System) -> dict[str, int]:
    """How many events each component between streams and views has in memory."""
    running = system._engine.running.items()
    return {name: len(component.held) for name, component in running if isinstance(component, EventComponent)}


def sales() -> list[dict[str, Any]]:
    return [{"qty": number % 100, "at": START + timedelta(seconds=number % 300)} for number in range(ROWS)]


def by_slot(rows: list[dict[str, Any]]) -> dict[object, list[int]]:
    found: dict[object, list[int]] = {}
    for row in rows:
        found.setdefault(row["at"].replace(second=0), []).append(row["qty"])
    return found


@pytest.mark.parametrize("is_durable", [False, True])
def test_events_that_everybody_has_are_forgotten(tmp_path: Path, is_durable: bool) -> None:
    with smile.run(smile.compile(PROGRAM), data=tmp_path if is_durable else None) as system:
        system.rows("Early")
        system.publish_many("Sales", sales())
        system.settle()
        between = held(system)
        assert between
        assert set(between.values()) == {0}
        later = {row["slot"]: row["number"] for row in system.rows("Later")}
        assert later == {slot: sum(qty > 4 for qty in found) for slot, found in by_slot(sales()).items()}
        early = {row["slot"]: row["total"] for row in system.rows("Early")}
        assert early == {slot: sum(found) for slot, found in by_slot(sales()).items()}


def test_a_later_view_gets_more_than_one_answer_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is between no longer holds them, and has to ask the log as often as it takes."""
    monkeypatch.setattr("runtime.embedded.engine.EMBEDDED", replace(EMBEDDED, answer_rows_max=ROWS // 7))
    with smile.run(smile.compile(PROGRAM)) as system:
        system.rows("Early")
        system.publish_many("Sales", sales())
        system.settle()
        later = {row["slot"]: row["number"] for row in system.rows("Later")}
        assert later == {slot: sum(qty > 4 for qty in found) for slot, found in by_slot(sales()).items()}


def test_a_view_that_has_failed_keeps_nothing_from_being_forgotten() -> None:
    with smile.run(smile.compile(PROGRAM)) as system:
        system.rows("Early")
        system.rows("Later")
        system._engine.failures["Later"] = Failure("Later", "overflow", "for a test")
        system.publish_many("Sales", sales())
        system.settle()
        assert set(held(system).values()) == {0}


def test_events_of_a_view_stay() -> None:
    with smile.run(smile.compile(PROGRAM)) as system:
        assert not system.rows("Large")
        assert not system.rows("Counted")  # it has them all, and says so
        system.publish_many("Sales", sales())
        system.settle()
        assert len(system.rows("Large")) == sum(row["qty"] > 90 for row in sales())


def test_nobody_settles_and_they_are_forgotten_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.embedded.engine.CLEAN_EVERY_ROWS", ROWS)
    with smile.run(smile.compile(PROGRAM)) as system:
        system.rows("Early")
        for _ in range(4):
            system.publish_many("Sales", sales())
        assert max(held(system).values()) < ROWS
