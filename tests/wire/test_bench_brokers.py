"""Goal: every measurement of brokers runs, at a size that says nothing about speed, and its own check passes.

That the checks can fail is tested too: a benchmark that measures a wrong answer must not report it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench import brokers
from bench.brokers import QUICK, WrongView
from bench.tickets_events import generate


@pytest.mark.slow
def test_every_change_arrives() -> None:
    found = brokers.throughput(QUICK, "columns")
    assert found["every_change"]
    assert 0.5 < found["changes_per_event"] <= 1
    assert found["bytes_out_per_event"] > 8
    assert found["commits"] > 0


@pytest.mark.slow
def test_latency_beside_the_echo() -> None:
    found = brokers.latency(QUICK)
    for who in ("SMILE", "echo"):
        assert 0 < found[who]["p50_ms"] <= found[who]["p99_ms"]
    assert found["rate"] > 0


@pytest.mark.slow
def test_many_subscribers_are_told_the_same() -> None:
    found = brokers.fan_out(QUICK)
    assert found["subscribers"] == QUICK.subscribers
    assert found["messages_to_each"] >= QUICK.updates / 2
    assert found["tell_longest_us"] >= found["tell_mean_us"] > 0


@pytest.mark.slow
def test_restart_reads_the_same_view() -> None:
    found = brokers.restart(QUICK)
    assert found["events"] == QUICK.events
    assert found["serving_s"] > 0


def test_wrong_views_are_noticed() -> None:
    events = generate(500, 20)
    left = np.maximum(events._left(500), 0)
    brokers.check(events, 500, left)
    with pytest.raises(WrongView):
        brokers.check(events, 499, left)
    with pytest.raises(WrongView, match="1 of"):
        brokers.check(events, 500, np.where(np.arange(20) == np.flatnonzero(left)[0], 0, left))


def test_goals_name_what_is_missed() -> None:
    found = {
        "columns": {"events_per_s": 3e6, "every_change": False},
        "rows": {"events_per_s": 1.5e6, "every_change": True},
        "latency": {"SMILE": {"p50_ms": 0.6, "p99_ms": 5.0}, "echo": {"p99_ms": 2.0}},
        "fan": {"tell_mean_us": 1_500},
        "restart": {"serving_s": 4.0},
    }
    assert [met for _, _, _, met in brokers.goals(found)] == [False, True, True, False, True, False]


def test_bytes_of_an_event() -> None:
    assert brokers.bytes_in(1_000) < 17 < brokers.bytes_in(1) < 64


def test_bare_echo(tmp_path: Path) -> None:
    taken = brokers.echo_round(QUICK, tmp_path)
    assert len(taken) == brokers.RATE * QUICK.seconds
    assert taken.min() > 0
