"""Goal: every benchmark of the tickets view runs, at a size that says nothing about speed, and its own check passes.

That the check can fail is tested too: a benchmark that measures a wrong answer must not report it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench import _report, growth, tickets
from bench.peers.outcome import Outcome
from bench.peers.run import VARIABLE, Peer, advice, interpreter_with, run_peer
from bench.tickets_events import generate


@pytest.fixture(autouse=True)
def plain_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is about speed, so nobody waits until kernels are compiled."""
    for module in (tickets, growth):
        monkeypatch.setattr(module, "wait_for_native", lambda _system: False)


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(_report, "RESULTS", tmp_path / "results")
    return tmp_path / "results"


def test_events_are_the_same_every_time_and_as_described() -> None:
    events = generate(20_000, 100)
    assert (events.items == generate(20_000, 100).items).all()
    assert 100 / 12 < events.sold_out(20_000) < 100 / 3
    assert events.every_change(20_000) == events.changes(20_000, 1) > 0.9 * 20_000
    assert events.changes(20_000, 1_000) < events.every_change(20_000)


@pytest.mark.parametrize("way", tickets.WAYS.values(), ids=tickets.WAYS)
def test_every_way_of_publishing_ends_with_the_right_view(way: tickets.Way) -> None:
    events = generate(300 if way.batch == 1 else 3_000, 40)
    outcome = tickets.throughput(events, way, 60.0)
    assert outcome.ok
    assert outcome.events == events.buys
    assert events.changes(events.buys, way.batch) <= outcome.changes <= events.every_change(events.buys)


def test_wrong_views_are_noticed() -> None:
    events = generate(500, 20)
    system, taker = tickets.open_view(events)
    with system:
        system.publish_many("BuyersWest", {"item_id": events.items, "qty": events.quantities})
        taker.take()
        rows = system.rows("Available")
    assert tickets.is_right(events, 500, taker, rows)
    assert not tickets.is_right(events, 499, taker, rows)
    assert not tickets.is_right(events, 500, taker, rows[1:])
    assert not tickets.is_right(replace(events, prices=events.prices + 1), 500, taker, rows)


def test_tickets_reports_and_writes_results(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--buys", "400", "--items", "30", "--latency-seconds", "0.05", "--no-peers"]
    tickets.main(sizes)
    told = json.loads((results / "tickets.json").read_text())
    assert [one["ok"] for one in told["results"]["throughput"]] == [True] * len(tickets.WAYS)
    assert "p99_ms" in capsys.readouterr().out


def test_growth_reports_and_writes_results(results: Path) -> None:
    growth.main(["--views", "1", "7", "--subscribers", "1", "3", "--buys", "2000", "--items", "30"])
    told = json.loads((results / "growth.json").read_text())["results"]
    assert [row["right"] for row in told["views"] + told["subscribers"]] == [True] * 4
    assert told["views"][0]["operators"] < told["views"][1]["operators"]


def test_a_peer_is_run_and_checked_by_the_same_events() -> None:
    outcome = run_peer(Peer("python_loop"), 5_000, 50, 10.0)
    assert isinstance(outcome, Outcome)
    assert outcome.ok
    assert outcome.changes == generate(5_000, 50).every_change(5_000)


def test_a_peer_that_is_not_installed_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert interpreter_with("no_such_package_anywhere") is None
    assert run_peer(Peer("bytewax_fused", "no_such_package_anywhere"), 10, 10, 1.0) == advice(
        "no_such_package_anywhere"
    )
