"""Goal: a system behind a connection does what the one in this process does, once everything has settled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import smile
from smile.local import LocalBrokers
from tests.measures import PATIENCE_S, eventually
from tests.remote.conftest import SMALL, Numbered


def sell(system: Any, item: int, qty: int) -> int:
    tick: int = system.publish("Sales", {"item": item, "qty": qty})
    return tick


def told(system: Any, changes: smile.Subscription) -> list[tuple[object, ...]]:
    return [(change.kind, *change.row.values()) for change in news(system, changes)]


def news(system: Any, changes: smile.Subscription) -> list[smile.Change]:
    system.settle()
    return changes.ready()


def replayed(changes: list[smile.Change]) -> dict[tuple[object, ...], dict[str, object]]:
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    for change in changes:
        if change.kind == "gone":
            rows.pop(change.key, None)
        else:
            rows[change.key] = change.row
    return rows


def test_snapshot_then_every_change(system: Any) -> None:
    sell(system, 1, 4)
    with system.subscribe("Small") as changes:
        assert told(system, changes) == [("snapshot", 1, 4)]
        sell(system, 1, 5)
        sell(system, 2, 1)
        sell(system, 1, 1)
        assert told(system, changes) == [("changed", 1, 9), ("changed", 2, 1), ("gone", 1, 10)]
        assert told(system, changes) == []
    sell(system, 3, 1)
    assert told(system, changes) == []


@pytest.mark.parametrize("rest", ["iterated", "ready", "batches"])
def test_whoever_stops_in_the_middle_gets_the_rest_next(system: Any, rest: str) -> None:
    """`for change in changes: break`, and on with it later: nothing is skipped, nothing told twice."""
    system.publish_many("Sales", {"item": [1, 2, 3, 4, 5], "qty": [1, 1, 1, 1, 1]})
    system.settle()
    with system.subscribe("Sold", timeout=PATIENCE_S) as changes:
        seen = [next(iter(changes)), next(iter(changes))]
        sell(system, 6, 1)
        system.settle()
        if rest == "iterated":
            for change in changes:
                seen.append(change)
                if len(seen) == 6:
                    break
        elif rest == "ready":
            seen += changes.ready()
        else:
            while len(seen) < 6:
                seen += changes.wait().changes()
        assert [(change.kind, change.row["item"]) for change in seen] == [
            *(("snapshot", item) for item in range(1, 6)),
            ("changed", 6),
        ]
        assert changes.ready() == []


def test_a_loop_whose_rest_was_read_elsewhere_goes_on_with_what_is_new(system: Any) -> None:
    system.publish_many("Sales", {"item": [1, 2, 3], "qty": [1, 1, 1]})
    system.settle()
    with system.subscribe("Sold", timeout=PATIENCE_S) as changes:
        loop = iter(changes)
        seen = [next(loop), *changes.ready()]
        sell(system, 4, 1)
        seen.append(next(loop))
        assert [change.row["item"] for change in seen] == [1, 2, 3, 4]


def test_two_threads_that_read_one_subscription_share_its_changes(system: Any) -> None:
    seen: list[object] = []
    with system.subscribe("Sold", timeout=PATIENCE_S) as changes:

        def read() -> None:
            for change in changes:
                seen.append(change.row["item"])  # noqa: PERF401  two threads

        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        for first in range(0, 1_000, 100):
            system.publish_many("Sales", {"item": list(range(first, first + 100)), "qty": [1] * 100})
        eventually(lambda: len(seen) >= 1_000, "all changes")
    for reader in readers:
        reader.join(PATIENCE_S)
    assert sorted(seen) == list(range(1_000))  # type: ignore[type-var]


def test_rows_have_what_was_published(system: Any) -> None:
    for number in range(20):
        tick = sell(system, number % 3, 1)
        assert sum(row["total"] for row in system.rows("Sold")) == number + 1
    assert system.arrow("Sold").to_pydict() == {"item": [0, 1, 2], "total": [7, 7, 6]}
    assert system.pandas("Sold")["total"].tolist() == [7, 7, 6]
    assert len(system.rows("Sales")) == 20
    assert isinstance(tick, int)


def test_columns_of_any_kind(connected: Any) -> None:
    kinds: list[object] = [
        [{"item": 1, "qty": 2}, {"item": 2, "qty": 3}],
        {"item": [1, 2], "qty": [2, 3]},
        {"item": np.array([1, 2]), "qty": np.array([2, 3])},
        pa.table({"item": [1, 2], "qty": [2, 3]}),
        pd.DataFrame({"item": [1, 2], "qty": [2, 3]}),
        pl.DataFrame({"item": [1, 2], "qty": [2, 3]}),
    ]
    for number, rows in enumerate(kinds, 1):
        ticks = connected.publish_many("Sales", rows)
        assert (len(ticks), list(ticks)) == (2, sorted(ticks))
        assert connected.rows("Sold") == [{"item": 1, "total": 2 * number}, {"item": 2, "total": 3 * number}]
    assert list(connected.publish_many("Sales", [])) == []


def test_what_breaks_a_rule_is_refused_with_row_column_value_and_rule(system: Any) -> None:
    with pytest.raises(smile.PublishError) as caught:
        system.publish_many("Sales", {"item": [1, 2, 3], "qty": [1, 500, 1]})
    (problem,) = caught.value.problems
    assert (problem.row, problem.column, problem.value) == (1, "qty", 500)
    with pytest.raises(smile.PublishError, match="whole number"):
        system.publish("Sales", {"item": "x", "qty": 1})
    with pytest.raises(smile.UnknownName):
        system.publish("Nothing", {})
    assert system.rows("Sales") == []


def test_unique_is_judged_over_all_publishes(large: Any) -> None:
    large.publish("Users", {"id": 1, "name": "ann"})
    with pytest.raises(smile.PublishError) as caught:
        large.publish("Users", {"id": 1, "name": "bob"})
    assert (caught.value.column, caught.value.value, caught.value.problems[0].row) == ("id", 1, None)
    with pytest.raises(smile.PublishError, match="'ann'") as caught:
        large.publish_many("Users", [{"id": 2, "name": "bob"}, {"id": 3, "name": "ann"}])
    assert (caught.value.column, caught.value.problems[0].row) == ("name", 1)
    assert [row["id"] for row in large.rows("Users")] == [1]


def test_emit_final_and_streams(system: Any) -> None:
    final, never = system.subscribe("Big", emit="final"), system.subscribe("Sold", emit="final")
    with system.subscribe("Sales") as sales:
        tick = sell(system, 1, 99)
        sell(system, 1, 9)
        found = news(system, final)
        assert [(change.row, change.final, change.key) for change in found] == [({"item": 1, "qty": 99}, True, (tick,))]
        assert news(system, never) == []
        assert told(system, sales) == [("changed", 1, 99), ("changed", 1, 9)]
    with system.subscribe("Big", emit="final") as again:
        assert told(system, again) == [("snapshot", 1, 99)]


def test_bounds_and_cuts(large: Any) -> None:
    with large.subscribe("limits") as limits, large.subscribe("cuts") as cuts:
        tick = sell(large, 1, 7)
        last = news(large, limits)[-1]
        assert last.bounds is not None
        assert last.bounds["item"] == (1, 1)
        assert 7 in last.bounds["total"]
        large.publish("Other", {"item": 1, "qty": 2})
        until = wait_for(cuts, 1)
        assert [change.row for change in until] == [{"item": 1, "total": 7, "other": 2}]
        assert until[-1].as_of >= tick


def wait_for(changes: smile.Subscription, number: int) -> list[smile.Change]:
    found: list[smile.Change] = []
    while len(found) < number:
        batch = changes.wait(PATIENCE_S)
        assert batch is not None
        found.extend(batch.changes())
    return found


def test_declared_subscriptions_have_their_own_mode(large: Any) -> None:
    sell(large, 1, 7)
    with pytest.raises(smile.SmileError, match="emit bounds"):
        large.subscribe("limits", emit="changes")
    with pytest.raises(smile.SmileError, match="emit is one of"):
        large.subscribe("Sold", emit="everything")
    with pytest.raises(smile.UnknownName):
        large.subscribe("Nothing")
    with large.subscribe("late") as late, large.subscribe("calm", timeout=PATIENCE_S) as calm:
        assert calm.wait() is not None  # the snapshot
        for _ in range(5):
            sell(large, 1, 1)
        assert told(large, late)[-1] == ("changed", 1, 12)
        assert [kind for kind, *_ in told(large, late)] == []
        batch = calm.wait()
        assert batch is not None
        assert batch.column("total")[-1] == 12


def test_a_slow_reader_gets_the_latest_state(system: Any) -> None:
    slow, quick = system.subscribe("Small", queue_rows=20), system.subscribe("Small")
    rng = Random(1)
    for _ in range(30):
        system.publish_many("Sales", [{"item": rng.randrange(8), "qty": rng.randrange(2)} for _ in range(10)])
    truth = {(row["item"],): row for row in system.rows("Small")}
    late = news(system, slow)
    assert slow.squeezed > 0
    assert len(late) <= 20 + 8
    assert replayed(late) == replayed(quick.ready()) == truth


def test_callbacks_may_publish_and_harm_nobody(system: Any) -> None:
    seen: list[object] = []
    done = threading.Event()

    def more(change: smile.Change) -> None:
        seen.append(change.row["total"])
        if seen == [1, 2, 3, 4, 5]:
            done.set()
        elif len(seen) < 5:
            sell(system, 1, 1)
            assert system.rows("Sold")

    def broken(change: smile.Change) -> None:
        raise ValueError(f"no {change.row['item']}")

    bad = system.subscribe("Sold", broken)
    system.subscribe("Sold", more)
    sell(system, 1, 1)
    assert done.wait(PATIENCE_S)
    system.settle()
    assert seen == [1, 2, 3, 4, 5]
    assert str(bad.errors[0]) == "no 1"
    inside = system.subscribe("Small", lambda _: system.settle())
    sell(system, 3, 1)
    system.settle()
    assert "cannot be called from a callback" in str(inside.errors[0])


def test_a_row_that_cannot_be_computed_stops_its_views_only(large: Any) -> None:
    changes = large.subscribe("Ratio")
    sell(large, 1, 50)
    large.settle()
    sell(large, 2, 0)
    sell(large, 3, 10)
    with pytest.raises(smile.ViewFailed) as caught:
        large.rows("Ratio")
    assert caught.value.code == "division-by-zero"
    assert "item=2, qty=0" in caught.value.reason
    assert len(large.rows("Sold")) == 3
    told = changes.ready()
    assert (told[0].kind, told[0].row["r"]) == ("changed", 2), "first what was true"
    assert not [change for change in told if change.row["item"] == 2]
    with pytest.raises(smile.ViewFailed, match="division-by-zero"):
        changes.wait(PATIENCE_S)
    with large.subscribe("Ratio") as late:
        assert {change.kind for change in late.ready()} == {"snapshot"}
        with pytest.raises(smile.ViewFailed):
            late.ready()


def test_subscribers_come_and_go_while_others_are_told(connected: Any) -> None:
    """Nobody misses a change because somebody else leaves."""
    stays = connected.subscribe("Sold")
    for _ in range(40):
        passing = [connected.subscribe("Sold") for _ in range(3)]
        futures = [connected.publish_nowait("Sales", {"item": 1, "qty": 1}) for _ in range(5)]
        for one in passing:
            one.close()
        for future in futures:
            connected.system.outcome(future)
    totals = [change.row["total"] for change in news(connected, stays)]
    assert totals == list(range(1, 201))


def test_many_threads_publish_at_once(large: Any) -> None:
    changes = large.subscribe("Pairs")

    def work(number: int) -> None:
        for _ in range(25):
            sell(large, number % 2, 1)
            large.publish("Other", {"item": number % 2, "qty": 1})

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert large.rows("Sold") == [{"item": 0, "total": 50}, {"item": 1, "total": 50}]
    assert replayed(news(large, changes)) == {(row["item"],): row for row in large.rows("Pairs")}


@pytest.mark.parametrize("kind", ["embedded", "remote"])
def test_closing_ends_everything(kind: str, request: pytest.FixtureRequest) -> None:
    if kind == "embedded":
        system: Any = smile.run(smile.compile(SMALL.format(n="")))
    else:
        brokers, number = request.getfixturevalue("brokers"), request.getfixturevalue("number")
        system = Numbered(smile.connect(brokers.address), number)
    changes = system.subscribe("Sold")
    found: list[smile.Change] = []
    reader = threading.Thread(target=lambda: found.extend(changes))
    reader.start()
    sell(system, 1, 1)
    system.settle()
    system.close()
    reader.join(PATIENCE_S)
    assert not reader.is_alive()
    assert [change.row["total"] for change in found] == [1]
    with pytest.raises(smile.Closed):
        sell(system, 1, 1)
    with pytest.raises(smile.Closed):
        system.rows("Sold")
    with pytest.raises(smile.Closed):
        system.subscribe("Sold")


def test_closing_while_others_wait(brokers: LocalBrokers, number: int) -> None:
    """Whatever was under way ends soon, with an error that says so."""
    system = Numbered(smile.connect(brokers.address), number)
    system.publish("Sales", {"item": 1, "qty": 1})
    errors: list[Exception] = []
    began = threading.Event()

    def work(call: Callable[[], object]) -> None:
        try:
            while True:
                call()
                began.set()
        except smile.SmileError as error:
            errors.append(error)

    calls: list[Callable[[], object]] = [
        lambda: system.rows("Sold"),
        lambda: system.publish("Sales", {"item": 1, "qty": 1}),
        lambda: system.subscribe("Small").token(),
        system.settle,
        system.status,
    ]
    threads = [threading.Thread(target=work, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    assert began.wait(PATIENCE_S)
    system.close()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert len(errors) == len(calls)
    assert {type(error) for error in errors} <= {smile.Closed, smile.PublishUncertain}
