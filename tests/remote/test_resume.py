"""Goal: a subscription goes on from its token, through restarts of client and brokers: nothing missed or repeated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import smile
from smile.local import LocalBrokers
from smile.remote import source
from tests.remote.conftest import Numbered, kill_and_wait


@pytest.fixture
def other(brokers: LocalBrokers, number: int) -> Iterator[Numbered]:
    """Another client, of the same copy of the program as `connected`."""
    with smile.connect(brokers.address) as system:
        yield Numbered(system, number)


def sell(system: Any, item: int, qty: int) -> None:
    system.publish("Sales", {"item": item, "qty": qty})


def brief(changes: list[smile.Change]) -> list[tuple[object, ...]]:
    return [(change.kind, *change.row.values()) for change in changes]


def settled(system: Any, changes: smile.Subscription) -> list[tuple[object, ...]]:
    system.settle()
    return brief(changes.ready())


@pytest.mark.parametrize("emit", ["changes", "bounds"])
def test_only_what_changed_since_is_told(connected: Any, other: Any, emit: str) -> None:
    for item in range(4):
        sell(connected, item, 1)
    with connected.subscribe("Small", emit=emit) as changes:
        connected.settle()
        assert {change.kind for change in changes.ready()} <= {"snapshot", "changed"}
        token = changes.token()
    sell(connected, 1, 1)
    sell(connected, 2, 50)
    sell(connected, 9, 3)
    with other.subscribe("Small", emit=emit, resume=token) as again:
        found = {change.key: (change.kind, change.row) for change in wait_until(other, again, 3)}
        assert found == {
            (1,): ("changed", {"item": 1, "total": 2}),
            (2,): ("gone", {"item": 2, "total": 51}),
            (9,): ("changed", {"item": 9, "total": 3}),
        }
        sell(connected, 9, 1)
        assert [change.row["total"] for change in wait_until(other, again, 1)][-1] == 4


def wait_until(system: Any, changes: smile.Subscription, keys: int) -> list[smile.Change]:
    """Until so many rows were told of."""
    found: list[smile.Change] = []
    while len({change.key for change in found}) < keys:
        batch = changes.wait(20.0)
        assert batch is not None
        found.extend(batch.changes())
    system.settle()
    return [*found, *changes.ready()]


def test_what_was_not_read_is_told_after_the_resumption(connected: Any, other: Any) -> None:
    for item in range(4):
        sell(connected, item, 1)
    changes = connected.subscribe("Small")
    iterator = iter(changes)
    first = next(iterator)
    sell(connected, first.key[0], 20)  # gone, after its snapshot was read
    sell(connected, 8, 2)
    connected.settle()
    token = changes.token()
    with other.subscribe("Small", resume=token) as again:
        kinds = {change.key[0]: change.kind for change in wait_until(other, again, 5)}
    rest = {item for item in range(4) if item != first.key[0]}
    assert kinds == {first.key[0]: "gone", 8: "changed", **dict.fromkeys(rest, "changed")}
    seen = [first, *changes.ready()]
    told = [(change.kind, change.key[0]) for change in seen]
    assert {("snapshot", item) for item in range(4)} == set(told[:4]), "the rest of the batch comes first"
    assert told[4:] == [("gone", first.key[0]), ("changed", 8)]


def test_a_snapshot_that_nobody_read_stays_one(connected: Any, other: Any) -> None:
    sell(connected, 1, 1)
    token = connected.subscribe("Sold").token()
    with other.subscribe("Sold", resume=token) as again:
        assert settled(other, again) == [("snapshot", 1, 1)]
    nothing = connected.subscribe("Sold")
    nothing.ready()
    with other.subscribe("Sold", resume=nothing.token()) as again:
        assert settled(other, again) == []


def test_streams_go_on_too(connected: Any, other: Any) -> None:
    connected.publish_many("Sales", {"item": [1, 2], "qty": [60, 70]})
    with connected.subscribe("Big") as changes:
        assert settled(connected, changes) == [("snapshot", 1, 60), ("snapshot", 2, 70)]
        token = changes.token()
    sell(connected, 3, 80)
    sell(connected, 4, 1)
    with other.subscribe("Big", resume=token) as again:
        assert settled(other, again) == [("changed", 3, 80)]


def test_events_that_were_told_do_not_pile_up(connected: Any, other: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leaf without rows takes over; the subscriber notices nothing, and its token stays small."""
    monkeypatch.setattr(source, "EVENTS_KEPT_MAX", 10)
    with connected.subscribe("Sales") as changes, connected.subscribe("Big", emit="final") as big:
        told: list[tuple[object, ...]] = []
        sizes = []
        for number in range(4):
            connected.publish_many("Sales", {"item": [number] * 30, "qty": list(range(30, 60))})
            told += settled(connected, changes)
            sizes += [view.source.run(lambda leaf: len(leaf.operator.rows)) for view in connected.system._private]
        assert told == [("changed", number, qty) for number in range(4) for qty in range(30, 60)]
        assert len(big.ready()) == 4 * 9
        assert max(sizes) <= 10
        token = changes.token()
        assert len(token) < 2_000
    sell(connected, 9, 9)
    with other.subscribe("Sales", resume=token) as again, other.subscribe("Sales") as late:
        assert settled(other, again) == [("changed", 9, 9)]
        assert len(late.ready()) == 121
    assert len(connected.rows("Sales")) == 121


def test_100_000_events_leave_next_to_nothing_behind(connected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "EVENTS_KEPT_MAX", 1_000)
    held: list[int] = []
    told = source.LeafSource._told

    def noting(self: source.LeafSource, *arguments: Any) -> None:
        told(self, *arguments)
        held.append(len(self._leaf().operator.rows))

    monkeypatch.setattr(source.LeafSource, "_told", noting)
    with connected.subscribe("Sales") as changes:
        seen = 0
        for first in range(0, 100_000, 5_000):
            connected.publish_many("Sales", {"item": [first % 7] * 5_000, "qty": [1] * 5_000})
            connected.settle()
            seen += sum(1 for _ in changes.ready())
        assert seen == 100_000
        assert len(changes.token()) < 2_000
    assert max(held) <= 1_000 + 5_000, "what was there, and what came with one publish"


def test_final_rows_are_told_once(connected: Any, other: Any) -> None:
    sell(connected, 1, 60)
    with connected.subscribe("Big", emit="final") as changes:
        assert settled(connected, changes) == [("snapshot", 1, 60)]
        token = changes.token()
    sell(connected, 2, 70)
    with other.subscribe("Big", emit="final", resume=token) as again:
        assert settled(other, again) == [("changed", 2, 70)]


def test_cuts_go_on(connected_large: Any, brokers: LocalBrokers, large_number: int) -> None:
    sell(connected_large, 1, 1)
    connected_large.publish("Other", {"item": 1, "qty": 2})
    with connected_large.subscribe("cuts") as changes:
        first = wait_until(connected_large, changes, 1)
        assert first[-1].row == {"item": 1, "total": 1, "other": 2}
        for _ in range(5):  # some of this may be told, some held back
            sell(connected_large, 1, 1)
        token = changes.token()
    with smile.connect(brokers.address) as system:
        again = Numbered(system, large_number).subscribe("cuts", resume=token, timeout=20.0)
        for change in again:
            if change.row["total"] == 6:
                break
        assert change.row == {"item": 1, "total": 6, "other": 2}


def test_wrong_tokens_are_refused(connected: Any) -> None:
    sell(connected, 1, 1)
    token = connected.subscribe("Sold").token()
    with pytest.raises(smile.TokenRefused, match="is for `Sold"):
        connected.subscribe("Small", resume=token)
    with pytest.raises(smile.TokenRefused, match="emit changes"):
        connected.subscribe("Sold", emit="final", resume=token)
    for damaged in (b"", b"nonsense", token[:-1], token[: len(token) // 2], token[:-9] + b"x" + token[-8:]):
        with pytest.raises(smile.TokenRefused):
            connected.subscribe("Sold", resume=damaged)
    closed = connected.subscribe("Sold")
    closed.close()
    with pytest.raises(smile.Closed):
        closed.token()


def test_a_subscription_and_its_token_outlive_brokers(connected: Any, other: Any, brokers: LocalBrokers) -> None:
    """Both brokers are killed; the live subscription catches up by itself, the resumed one from its token."""
    for item in range(3):
        sell(connected, item, 1)
    live = connected.subscribe("Small")
    assert sorted(settled(connected, live)) == [("snapshot", item, 1) for item in range(3)]
    token = live.token()
    for name in brokers.names:
        brokers.pause(name)
    future = connected.publish_nowait("Sales", {"item": 1, "qty": 2})  # while nobody answers
    kill_and_wait(brokers, *brokers.names)
    assert isinstance(connected.system.outcome(future), int)
    sell(connected, 2, 30)
    expected = [("changed", (1,)), ("gone", (2,))]  # a row that has gone may have any later value
    connected.settle()
    assert [(change.kind, change.key) for change in live.ready()] == expected
    with other.subscribe("Small", resume=token) as again:
        assert sorted((change.kind, change.key) for change in wait_until(other, again, 2)) == expected
    assert connected.rows("Small") == other.rows("Small") == [{"item": 0, "total": 1}, {"item": 1, "total": 3}]
