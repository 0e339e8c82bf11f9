"""Goal: a subscriber gets a snapshot, then every change; slow readers get the latest state; callbacks harm nobody."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from random import Random
from time import monotonic, sleep

import numpy as np
import pytest

import smile
from tests.measures import PATIENCE_S

PROGRAM = """
stream Sales (item int, qty int[0..100]);
stream Other (item int, qty int[0..100]);
view Sold = from Sales |> aggregate total := sum(qty) group by item;
view Small = from Sold |> where total < 10;
view Pairs = from Sold |> join (from Other |> aggregate other := sum(qty) group by item) as O using item;
view Big = from Sales |> where qty > 50;
subscribe limits to Sold emit bounds;
subscribe cuts to Pairs emit as of horizon;
subscribe calm to Sold every 100 ms;
subscribe late to Sold snapshot off;
"""


@pytest.fixture
def system() -> Iterator[smile.System]:
    with smile.run(smile.compile(PROGRAM)) as running:
        yield running


def sell(system: smile.System, item: int, qty: int) -> int:
    return system.publish("Sales", {"item": item, "qty": qty})


def brief(changes: list[smile.Change]) -> list[tuple[object, ...]]:
    return [(change.kind, *change.row.values()) for change in changes]


def test_snapshot_then_changes(system: smile.System) -> None:
    sell(system, 1, 4)
    with system.subscribe("Small") as changes:
        assert brief(changes.ready()) == [("snapshot", 1, 4)]
        sell(system, 1, 5)
        sell(system, 2, 1)
        sell(system, 1, 1)
        assert brief(changes.ready()) == [("changed", 1, 9), ("changed", 2, 1), ("gone", 1, 10)]
        assert changes.ready() == []
    sell(system, 3, 1)
    assert changes.ready() == []


def test_an_iteration_waits_and_ends(system: smile.System) -> None:
    changes = system.subscribe("Sold", timeout=0.05)
    sell(system, 1, 4)
    began = monotonic()
    assert brief(list(changes)) == [("changed", 1, 4)]
    assert monotonic() - began >= 0.05
    assert changes.wait(0.0) is None
    waiting = system.subscribe("Sold")
    found: list[smile.Change] = []
    thread = threading.Thread(target=lambda: found.extend(waiting))
    thread.start()
    sell(system, 1, 1)
    sell(system, 2, 1)
    while len(found) < 3:
        assert thread.is_alive()
    system.close()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert brief(found) == [("snapshot", 1, 4), ("changed", 1, 5), ("changed", 2, 1)]


def test_all_readers_are_woken_and_none_is_kept(system: smile.System) -> None:
    with system.subscribe("Sold", timeout=PATIENCE_S) as changes:
        changes.ready()
        told: list[object] = []
        readers = [threading.Thread(target=lambda: told.extend(changes.batches())) for _ in range(3)]
        for reader in readers:
            reader.start()
        for number in range(50):
            sell(system, number, 1)
        end = monotonic() + PATIENCE_S
        while (len(told) < 50 or len(changes._waiters) < 3) and monotonic() < end:
            sleep(0.001)
        assert (len(told), len(changes._waiters)) == (50, 3)
        assert changes.wait(0.001) is None
        assert len(changes._waiters) == 3, "one that gave up is forgotten"
        changes.close()
        for reader in readers:
            reader.join(PATIENCE_S)
            assert not reader.is_alive()
        assert changes._waiters == []


def test_batches_are_columns(system: smile.System) -> None:
    with system.subscribe("Sold") as changes:
        system.publish_many("Sales", {"item": [1, 2], "qty": [4, 2]})
        snapshot, batch = changes.ready_batches()
        assert (snapshot.kind, len(snapshot)) == ("snapshot", 0)
        assert (batch.kind, len(batch)) == ("changes", 2)
        assert batch.columns() == {"item": [1, 2], "total": [4, 2]}
        assert batch.column("total") == [4, 2]
        assert (batch.keys(), batch.visible, list(batch.final)) == ([(1,), (2,)], [True, True], [False, False])
        assert isinstance(batch.array("total"), np.ndarray)
        assert (batch.array("total").tolist(), batch.visible_array().tolist()) == ([4, 2], [True, True])
        with pytest.raises(smile.UnknownName, match="has no column `sum`; it has item, total"):
            batch.column("sum")


@pytest.mark.parametrize("emit", ["changes", "bounds", "final", "as of horizon"])
def test_final_is_true_or_false(system: smile.System, emit: str) -> None:
    with system.subscribe("Big", emit=emit) as changes:
        sell(system, 1, 99)
        (batch,) = changes.ready_batches()[1:]
        assert [repr(final) for final in batch.final] == ["True"]


def test_events_are_final_at_once(system: smile.System) -> None:
    with system.subscribe("Big", emit="final") as changes, system.subscribe("Sold", emit="final") as never:
        tick = sell(system, 1, 99)
        sell(system, 1, 9)
        (change,) = changes.ready()
        assert (change.kind, change.row, change.final, change.key) == ("changed", {"item": 1, "qty": 99}, True, (tick,))
        assert never.ready() == []
    with system.subscribe("Big", emit="final") as again:
        assert brief(again.ready()) == [("snapshot", 1, 99)]


def test_declared_subscriptions_have_their_own_mode(system: smile.System) -> None:
    with system.subscribe("limits") as changes:
        tick = sell(system, 1, 7)
        last = changes.ready()[-1]
        assert last.bounds == {"item": (1, 1), "total": (7, 7)}
        assert last.as_of >= tick
    with pytest.raises(smile.SmileError, match="emit bounds"):
        system.subscribe("limits", emit="changes")
    with pytest.raises(smile.SmileError, match="emit is one of"):
        system.subscribe("Sold", emit="everything")
    with pytest.raises(smile.UnknownName):
        system.subscribe("Nothing")
    with system.subscribe("late") as changes:
        sell(system, 1, 1)
        assert brief(changes.ready()) == [("changed", 1, 8)]


def test_cuts_are_told_when_every_stream_has_been_heard(system: smile.System) -> None:
    """Only one of the two streams is published to; the other is known to be silent meanwhile."""
    with system.subscribe("cuts") as changes:
        sell(system, 1, 7)
        system.publish("Other", {"item": 1, "qty": 2})
        assert brief(changes.ready()) == [("changed", 1, 7, 2)]
        tick = sell(system, 1, 1)
        (change,) = changes.ready()
        assert change.row["total"] == 8
        assert change.as_of >= tick


@pytest.mark.parametrize("emit", ["changes", "as of horizon"])
def test_subscribers_share_what_feeds_them_and_leave_one_by_one(system: smile.System, emit: str) -> None:
    one = system.subscribe("Sold", emit=emit)
    sell(system, 1, 1)
    two = system.subscribe("Sold", emit=emit)
    sell(system, 1, 1)
    assert brief(one.ready()) == [("changed", 1, 1), ("changed", 1, 2)]
    assert brief(two.ready()) == [("snapshot", 1, 1), ("changed", 1, 2)]
    assert len(system._hubs) == 1
    one.close()
    assert len(system._hubs) == 1
    sell(system, 1, 1)
    assert brief(two.ready()) == [("changed", 1, 3)]
    two.close()
    assert not system._hubs
    assert set(system._engine.running) == {"Sales", "Sold"}
    three = system.subscribe("Sold", emit=emit)
    sell(system, 1, 1)
    assert brief(three.ready()) == [("snapshot", 1, 3), ("changed", 1, 4)]


def test_of_a_row_that_never_was_visible_nothing_is_said(system: smile.System) -> None:
    with system.subscribe("Small") as changes:
        sell(system, 1, 50)
        sell(system, 1, 1)
        sell(system, 2, 9)
        assert brief(changes.ready()) == [("changed", 2, 9)]


def test_a_change_of_a_key_column_is_a_change_of_the_row() -> None:
    """`total` is part of the declared key, but a row is known by its item alone, and stays the same row."""
    text = "stream S (item int, qty int); view V key item, total = from S |> aggregate total := sum(qty) group by item;"
    with smile.run(smile.compile(text + "view W key total = from V |> aggregate total := sum(total);")) as system:
        one, other = system.subscribe("V"), system.subscribe("W")
        for _ in range(3):
            system.publish("S", {"item": 1, "qty": 2})
        assert list(replayed(one.ready()).values()) == system.rows("V") == [{"item": 1, "total": 6}]
        assert list(replayed(other.ready()).values()) == system.rows("W") == [{"total": 6}]


def test_streams_can_be_subscribed_to(system: smile.System) -> None:
    unique = smile.compile("stream Users (name text, id int) unique id;")
    with smile.run(unique) as users, users.subscribe("Users") as changes:
        users.publish("Users", {"id": 7, "name": "ann"})
        assert [change.key for change in changes.ready()] == [(7,)]
    with system.subscribe("Sales") as changes, system.subscribe("Big") as big:
        system.publish_many("Sales", {"item": [1, 2], "qty": [3, 60]})
        assert [(change.kind, change.row, change.final) for change in changes.ready()] == [
            ("changed", {"item": 1, "qty": 3}, True),
            ("changed", {"item": 2, "qty": 60}, True),
        ]
        assert brief(big.ready()) == [("changed", 2, 60)]


def test_a_slow_reader_gets_the_latest_state() -> None:
    with smile.run(smile.compile(PROGRAM)) as system:
        slow, told = system.subscribe("Small", queue_rows=20), system.subscribe("Small")
        rng = Random(1)
        for _ in range(500):
            sell(system, rng.randrange(8), rng.randrange(2))
        assert slow.squeezed > 0
        late = slow.ready()
        assert len(late) <= 20 + 8
        assert replayed(late) == replayed(told.ready()) == {(row["item"],): row for row in system.rows("Small")}
        assert late[0].kind == "snapshot", "a snapshot that was never read stays one"


def replayed(changes: list[smile.Change]) -> dict[tuple[object, ...], dict[str, object]]:
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    for change in changes:
        if change.kind == "gone":
            rows.pop(change.key, None)
        else:
            rows[change.key] = change.row
    return rows


def test_every_gathers_changes(system: smile.System) -> None:
    with system.subscribe("calm", timeout=PATIENCE_S) as changes:
        began = monotonic()
        assert changes.wait() is not None  # the snapshot
        for _ in range(5):
            sell(system, 1, 1)
        batch = changes.wait()
        assert batch is not None
        assert list(batch.column("total")) == [5]
        assert monotonic() - began > 0.05


def test_callbacks(system: smile.System) -> None:
    found: list[smile.Change] = []
    sell(system, 1, 1)
    subscription = system.subscribe("Sold", found.append)
    sell(system, 1, 2)
    assert brief(found) == [("snapshot", 1, 1), ("changed", 1, 3)]
    subscription.close()
    sell(system, 1, 2)
    assert len(found) == 2


def test_a_callback_that_raises_harms_nobody(system: smile.System, caplog: pytest.LogCaptureFixture) -> None:
    found: list[smile.Change] = []

    def broken(change: smile.Change) -> None:
        raise ValueError(f"no {change.row['item']}")

    bad, _good = system.subscribe("Sold", broken), system.subscribe("Sold", found.append)
    sell(system, 1, 2)
    sell(system, 2, 2)
    assert brief(found) == [("changed", 1, 2), ("changed", 2, 2)]
    assert [str(error) for error in bad.errors] == ["no 1", "no 2"]
    assert "a callback of subscription Sold failed" in caplog.text


def test_callbacks_may_publish_and_read(system: smile.System) -> None:
    """What a callback publishes is worked off before the outermost publish returns."""
    seen: list[int] = []

    def more(change: smile.Change) -> None:
        total = change.row["total"]
        assert isinstance(total, int)
        seen.append(total)
        if total < 5:
            sell(system, 1, 1)
            assert system.rows("Sold")

    system.subscribe("Sold", more)
    sell(system, 1, 1)
    assert seen == [1, 2, 3, 4, 5]
    assert system.rows("Sold") == [{"item": 1, "total": 5}]
    errors = system.subscribe("Small", lambda _: system.settle())
    sell(system, 3, 1)
    assert "cannot be called from a callback" in str(errors.errors[0])


def test_a_callback_may_close_its_subscription_and_the_system(system: smile.System) -> None:
    seen: list[object] = []

    def once(change: smile.Change) -> None:
        seen.append(change.row["item"])
        subscription.close()

    subscription = system.subscribe("Sold", once)
    system.publish_many("Sales", {"item": [1, 2], "qty": [1, 1]})
    sell(system, 3, 1)
    assert seen == [1]
    system.subscribe("Sold", lambda _: system.close())
    with pytest.raises(smile.Closed):
        sell(system, 4, 1)


def test_publishing_while_iterating(system: smile.System) -> None:
    totals = []
    sell(system, 1, 1)
    for change in system.subscribe("Sold", timeout=0.0):
        totals.append(change.row["total"])
        if len(totals) < 4:
            sell(system, 1, 1)
    assert totals == [1, 2, 3, 4]


def test_many_threads_publish_at_once(system: smile.System) -> None:
    found: list[smile.Change] = []
    system.subscribe("Sold", found.append)
    changes = system.subscribe("Pairs")

    def work(number: int) -> None:
        for _ in range(50):
            sell(system, number % 2, 1)
            system.publish("Other", {"item": number % 2, "qty": 1})

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert system.rows("Sold") == [{"item": 0, "total": 100}, {"item": 1, "total": 100}]
    assert len(found) == 200
    assert replayed(changes.ready()) == {(row["item"],): row for row in system.rows("Pairs")}


def test_a_squeezed_queue_tells_rows_in_the_order_of_their_last_change(system: smile.System) -> None:
    slow = system.subscribe("Sold", queue_rows=3)
    for item in (1, 2, 3, 1):
        sell(system, item, 1)
    assert slow.squeezed == 1
    assert brief(slow.ready()) == [("snapshot", 2, 1), ("snapshot", 3, 1), ("snapshot", 1, 2)]


@pytest.mark.parametrize(("view", "end"), [("Sold", "changed"), ("Small", "gone"), ("Pairs", None)])
def test_coalesced_changes_tell_each_row_once(system: smile.System, view: str, end: str | None) -> None:
    """Next to a subscriber that is told every change, and whether or not the operator knows what was in between."""
    system.publish("Other", {"item": 7, "qty": 5})
    with system.subscribe(view, coalesce=True) as some, system.subscribe(view) as every:
        system.publish_many("Sales", {"item": [7, 9, 7, 7], "qty": [1, 0, 2, 3]})
        told = brief(some.ready())
        assert ("changed", 7, 6) in [change[:3] for change in told]
        assert len(told) == len({change[1] for change in told})
        assert [change[2] for change in brief(every.ready()) if change[1] == 7][-1] == 6
        system.publish_many("Sales", {"item": [7, 7], "qty": [2, 50]})
        assert [change[:3] for change in brief(some.ready())] == [(end or "changed", 7, 58)]


def test_coalesced_batches_lead_to_the_same_view() -> None:
    random = Random(5)
    with smile.run(smile.compile(PROGRAM)) as system:
        some = system.subscribe("Small", coalesce=True)
        kept: dict[object, object] = {}
        for _ in range(60):
            count = random.randrange(1, 12)
            system.publish_many(
                "Sales",
                {
                    "item": np.array([random.randrange(9) for _ in range(count)]),
                    "qty": np.array([random.randrange(3) for _ in range(count)]),
                },
            )
            for batch in some.ready_batches():
                keys = batch.keys()
                assert len(set(keys)) == len(keys)
                for key, total, seen in zip(keys, batch.column("total"), batch.visible, strict=True):
                    if seen:
                        kept[key[0]] = total
                    else:
                        kept.pop(key[0], None)
            assert kept == {row["item"]: row["total"] for row in system.rows("Small")}
