"""Goal: what a gateway looks at now and then is looked at for ever, and who has lost a right is served nothing more."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

import smile
from smile.gateway import app, site
from smile.gateway.feed import Feed, Feeds
from smile.gateway.rights import HttpUsers


def test_one_failure_does_not_end_looking() -> None:
    async def tried() -> int:
        count, enough = 0, asyncio.Event()

        async def look() -> None:
            nonlocal count
            count += 1
            if count == 3:
                enough.set()
            raise ValueError("once, or often")

        looking = asyncio.create_task(site._every(0.001, look))
        await asyncio.wait_for(enough.wait(), 30)
        looking.cancel()
        return count

    assert asyncio.run(tried()) >= 3


def test_a_feed_that_cannot_be_closed_keeps_no_other_open() -> None:
    class Closing:
        def __init__(self, error: Exception | None = None) -> None:
            self.error, self.is_closed = error, False

        async def close(self) -> None:
            self.is_closed = True
            if self.error is not None:
                raise self.error

    async def ended() -> list[bool]:
        feeds = Feeds(SimpleNamespace())  # type: ignore[arg-type]
        made = [Closing(smile.TimedOut("no answer")), Closing()]
        feeds._feeds = {(str(number), None): one for number, one in enumerate(made)}  # type: ignore[misc]
        await feeds.close()
        return [one.is_closed for one in made]

    assert asyncio.run(ended()) == [True, True]


def test_a_right_that_is_lost_while_a_feed_is_made_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first look at it is right, the second, when the feed is there, is not."""
    looks: list[str] = []

    def check_read(relation: str, _streams: Any) -> None:
        looks.append(relation)
        if len(looks) == 2:
            raise smile.NotAllowed("taken back")

    async def get(_name: str, _emit: str | None) -> Feed:
        return None  # type: ignore[return-value]

    async def link() -> Any:
        program = SimpleNamespace(subscriptions={})
        return SimpleNamespace(system=SimpleNamespace(program=program), feeds=SimpleNamespace(readers=0, get=get))

    monkeypatch.setattr(app, "streams_below", lambda *_: ())
    served: Any = SimpleNamespace(user=lambda _: SimpleNamespace(check_read=check_read), link=link)
    asked: Any = SimpleNamespace(path_params={"name": "V"}, query_params={})
    with pytest.raises(smile.NotAllowed, match="taken back"):
        asyncio.run(app._feed(served, asked))
    assert looks == ["V", "V"]


def test_a_gateway_whose_connection_broke_connects_again() -> None:
    closed: list[str] = []

    class Broken:
        sync = SimpleNamespace(connection=SimpleNamespace(is_closed=False), deployment=SimpleNamespace(digest="d"))

        async def own_status(self) -> dict[str, object]:
            raise smile.Closed("the connection is closed")

        async def close(self) -> None:
            closed.append("system")

    async def looked() -> list[bool]:
        found = site.Site("tcp://127.0.0.1:9", None, HttpUsers(None))
        system = Broken()
        found._link = site.Link(system, Feeds(system))  # type: ignore[arg-type]
        await found._watch()
        is_kept = [found._link is not None]
        system.sync.connection.is_closed = True
        await found._watch()
        is_kept.append(found._link is not None)
        await found.close()
        return is_kept

    assert asyncio.run(looked()) == [True, False]
    assert closed == ["system"]
