"""Goal: a feed tells snapshot and changes once; who lags or comes back gets what it missed, or the latest state."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import smile
from smile import aio
from smile.gateway import feed as feeds
from smile.gateway.feed import Event, Feed
from tests.measures import PATIENCE_S

PROGRAM = smile.compile(
    """
stream Sales (item int, qty int);
view Sold = from Sales |> aggregate total := sum(qty) group by item;
view Small = from Sold |> where total < 10;
view Ratio = from Sales |> extend r := 100 / qty;
"""
)
Test = Callable[[aio.System, Feed], Awaitable[None]]


def run(test: Test, view: str = "Small") -> None:
    async def work() -> None:
        async with aio.run(PROGRAM) as system:
            await system.publish("Sales", {"item": 1, "qty": 1})
            feed = Feed(await system.subscribe(view))
            await test(system, feed)
            await feed.close()

    asyncio.run(work())


class Reader:
    """Follows the events as a client would."""

    def __init__(self, feed: Feed, last_id: str | None = None) -> None:
        self._events = feed.events(last_id)
        self.last_id: str | None = None
        self.rows: dict[str, int] = {}
        self.kinds: list[str] = []

    async def next(self) -> dict[str, Any]:
        event: Event = await asyncio.wait_for(anext(self._events), PATIENCE_S)
        told: dict[str, Any] = json.loads(event.data)
        self.last_id = event.id or self.last_id
        self.kinds.append(event.name)
        if told.get("first"):
            self.rows.clear()
        for change in told.get("changes", ()):
            key = json.dumps(change["key"])
            if change["kind"] == "gone":
                self.rows.pop(key, None)
            else:
                self.rows[key] = change["row"].get("total")
        return told

    async def leave(self) -> None:
        await self._events.aclose()  # type: ignore[attr-defined]


async def sell(system: aio.System, item: int, qty: int = 1) -> None:
    await system.publish("Sales", {"item": item, "qty": qty})
    for _ in range(3):
        await asyncio.sleep(0)


def test_snapshot_then_changes_for_everybody() -> None:
    async def test(system: aio.System, feed: Feed) -> None:
        one = Reader(feed)
        await one.next()
        await sell(system, 2)
        two = Reader(feed)
        await two.next()
        await one.next()
        assert one.rows == two.rows == {"[1]": 1, "[2]": 1}
        await sell(system, 1, 9)
        told = await one.next()
        assert told["changes"][0]["kind"] == "gone"
        await two.next()
        assert one.rows == two.rows == {"[2]": 1}
        assert (one.kinds, two.kinds) == (["snapshot", "changes", "changes"], ["snapshot", "changes"])
        assert feed.readers == 2
        await one.leave()
        assert feed.readers == 1
        await two.leave()

    run(test)


def test_who_comes_back_gets_what_it_missed() -> None:
    async def test(system: aio.System, feed: Feed) -> None:
        reader = Reader(feed)
        await reader.next()
        await sell(system, 2)
        await reader.next()
        await reader.leave()
        await sell(system, 1)
        await sell(system, 3)
        again = Reader(feed, reader.last_id)
        told = [await again.next(), await again.next()]
        assert again.kinds == ["changes", "changes"]
        assert [one["changes"][0]["row"] for one in told] == [{"item": 1, "total": 2}, {"item": 3, "total": 1}]
        for wrong in ("", "nonsense", f"{reader.last_id}0", "x-1", f"{str(reader.last_id).partition('-')[0]}-"):
            other = Reader(feed, wrong)
            await other.next()
            assert other.kinds == ["snapshot"]
            assert other.rows == {"[1]": 2, "[2]": 1, "[3]": 1}
            await other.leave()
        await again.leave()

    run(test)


def test_who_lags_gets_the_latest_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "RING_ROWS_MAX", 4)

    async def test(system: aio.System, feed: Feed) -> None:
        slow, fast = Reader(feed), Reader(feed)
        await slow.next()
        await fast.next()
        for number in range(30):
            await sell(system, number % 7, 2)
            await fast.next()
        assert feed._ring_rows <= 4
        await slow.next()
        assert slow.kinds == ["snapshot", "snapshot"]
        assert slow.rows == fast.rows == {f"[{row['item']}]": row["total"] for row in await system.rows("Small")}
        await sell(system, 2, -2)
        assert (await slow.next()) == (await fast.next())
        await slow.leave()
        await fast.leave()

    run(test)


def test_large_snapshots_come_in_pieces_and_only_the_last_can_be_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "EVENT_ROWS_MAX", 3)

    async def test(system: aio.System, feed: Feed) -> None:
        await system.publish_many("Sales", {"item": list(range(8)), "qty": [1] * 8})
        reader = Reader(feed)
        await reader.next()
        told = [await reader.next() for _ in range(3)]
        assert [(one["kind"], one["more"], len(one["changes"])) for one in told] == [
            ("changes", True, 3),
            ("changes", True, 3),
            ("changes", False, 2),
        ]
        late = Reader(feed)
        pieces: list[dict[str, Any]] = []
        while not pieces or pieces[-1]["more"]:
            assert late.last_id is None
            pieces.append(await late.next())
        assert [one["first"] for one in pieces] == [True, False, False]
        assert late.rows == reader.rows
        assert late.last_id == reader.last_id
        await reader.leave()
        await late.leave()

    run(test)


def test_a_view_that_stops_says_so_and_the_feed_ends() -> None:
    async def test(system: aio.System, feed: Feed) -> None:
        reader = Reader(feed)
        await reader.next()
        await sell(system, 1, 0)
        told = await reader.next()
        assert told["kind"] == "failed"
        assert "division-by-zero" in told["reason"]
        with pytest.raises(StopAsyncIteration):
            await reader.next()

    run(test, "Ratio")


def test_a_mistake_of_ours_ends_the_feed_and_readers_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> str:
        raise ValueError("a mistake of ours")

    async def test(system: aio.System, feed: Feed) -> None:
        reader = Reader(feed)
        await reader.next()
        monkeypatch.setattr(feeds, "change_to_text", fail)
        await sell(system, 1)
        assert (await reader.next())["kind"] == "failed"

    run(test)


def test_a_feed_that_has_failed_is_not_fed_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one takes its place, so nobody would close it later."""
    monkeypatch.setattr(feeds, "FEED_ROWS_MAX", 1)

    async def test(system: aio.System, feed: Feed) -> None:
        reader = Reader(feed)
        await reader.next()
        await sell(system, 2)
        assert "more than 1 rows" in (await reader.next())["reason"]
        assert feed._subscription.sync.closed

    run(test)


def test_a_quiet_feed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "HEARTBEAT_SECONDS", 0.01)

    async def test(system: aio.System, feed: Feed) -> None:
        events = feed.events(None)
        assert [(await anext(events)).name for _ in range(2)] == ["snapshot", "quiet"]
        await sell(system, 2)
        names = []
        while "changes" not in names:
            names.append((await anext(events)).name)
        await events.aclose()  # type: ignore[attr-defined]

    run(test)
