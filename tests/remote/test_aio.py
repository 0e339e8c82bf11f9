"""Goal: a deployment from asyncio: the loop is never blocked, readers wake up, and subscriptions can be continued."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

import smile
from smile import aio
from smile.local import LocalBrokers
from tests.measures import PATIENCE_S, eventually
from tests.remote.conftest import SMALL


def test_publish_read_and_resume(brokers: LocalBrokers, number: int) -> None:
    sales, sold = f"Sales{number}", f"Sold{number}"

    async def work() -> None:
        async with aio.connect(brokers.address) as system:
            ticks = await asyncio.gather(*(system.publish(sales, {"item": 1, "qty": 1}) for _ in range(50)))
            assert list(ticks) == sorted(ticks), "calls keep their order"
            assert list(await system.publish_many(sales, {"item": [2], "qty": [3]})) > ticks
            assert await system.rows(sold) == [{"item": 1, "total": 50}, {"item": 2, "total": 3}]
            with pytest.raises(smile.PublishError):
                await system.publish(sales, {"item": 1, "qty": 101})
            async with await system.subscribe(sold) as changes:
                seen = [change.row["total"] for change in [await anext(aiter(changes)) for _ in range(1)]]
                token = await changes.token()
            assert seen == [50]
            waiting = await system.subscribe(sold, resume=token)
            found = asyncio.create_task(total_of_two(waiting))
            await system.publish(sales, {"item": 2, "qty": 1})
            assert await asyncio.wait_for(found, PATIENCE_S) == 4
            assert set(await system.status()) == set(brokers.names)
            await system.settle()
        with pytest.raises(smile.Closed):
            await system.rows(sold)

    asyncio.run(work())


async def total_of_two(changes: aio.AsyncSubscription) -> object:
    """Of item 2, once it is more than it was."""
    async for change in changes:
        if change.key == (2,) and change.row["total"] != 3:
            return change.row["total"]
    return None


def test_the_loop_is_not_blocked_while_brokers_are(brokers: LocalBrokers, number: int) -> None:
    async def work() -> None:
        async with aio.connect(brokers.address) as system:
            await system.publish(f"Sales{number}", {"item": 1, "qty": 1})
            for name in brokers.names:
                brokers.pause(name)
            try:
                pending = asyncio.create_task(system.publish(f"Sales{number}", {"item": 1, "qty": 1}))
                turns = 0
                for _ in range(20):
                    await asyncio.sleep(0.005)
                    turns += 1
                assert (turns, pending.done()) == (20, False)
            finally:
                for name in brokers.names:
                    brokers.resume(name)
            await asyncio.wait_for(pending, PATIENCE_S)
            assert await system.rows(f"Sold{number}") == [{"item": 1, "total": 2}]

    asyncio.run(work())


def test_what_is_made_for_somebody_who_was_cancelled_is_closed(brokers: LocalBrokers, number: int) -> None:
    """A timeout around connecting or subscribing must leave nothing behind that nobody can close."""
    begun, go = threading.Event(), threading.Event()

    def slowly(make: Callable[[], Any]) -> Any:
        begun.set()
        assert go.wait(PATIENCE_S)
        return make()

    async def cancelled(coroutine: Coroutine[Any, Any, object]) -> None:
        begun.clear()
        go.clear()
        task = asyncio.create_task(coroutine)
        assert await asyncio.to_thread(begun.wait, PATIENCE_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go.set()

    async def work() -> None:
        made: list[smile.RemoteSystem] = []

        def connect() -> smile.RemoteSystem:
            made.append(smile.connect(brokers.address))
            return made[-1]

        await cancelled(aio.RemoteSystem(partial(slowly, connect), in_thread=True).__aenter__())
        await asyncio.to_thread(eventually, lambda: made and made[0].is_closed, "the end of the connection")
        async with aio.connect(brokers.address) as system:
            subscribe, subscriptions = system.sync.subscribe, []

            def subscribe_slowly(*arguments: Any, **named: Any) -> Any:
                subscriptions.append(slowly(partial(subscribe, *arguments, **named)))
                return subscriptions[-1]

            system.sync.subscribe = subscribe_slowly  # type: ignore[method-assign]
            await cancelled(system.subscribe(f"Sold{number}"))
            is_over = lambda: subscriptions and subscriptions[0].closed  # noqa: E731
            await asyncio.to_thread(eventually, is_over, "the end of the subscription")

    asyncio.run(work())


def test_a_loop_that_has_just_ended_harms_nobody_who_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    with smile.run(smile.compile(SMALL.format(n=""))) as system:

        async def subscribe() -> aio.AsyncSubscription:
            return aio.AsyncSubscription(system.subscribe("Sold"), None)

        changes = asyncio.run(subscribe())
        with monkeypatch.context() as patch:
            patch.setattr(changes._loop, "is_closed", lambda: False)  # it was not, a moment ago
            system.publish("Sales", {"item": 1, "qty": 1})
        assert [change.kind for change in changes.ready()] == ["changed"]


def test_what_comes_just_before_the_end_is_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with smile.run(smile.compile(SMALL.format(n=""))) as system:
        subscription = system.subscribe("Sold")
        subscription.ready()
        wait = subscription.wait

        def then_the_end(timeout: float | None = None) -> smile.ChangeBatch | None:
            found = wait(timeout)
            if not subscription.closed:
                system.publish("Sales", {"item": 1, "qty": 1})
                subscription.close()
            return found

        monkeypatch.setattr(subscription, "wait", then_the_end)

        async def work() -> list[int]:
            return [len(batch) async for batch in aio.AsyncSubscription(subscription, None).batches()]

        assert asyncio.run(work()) == [1]
