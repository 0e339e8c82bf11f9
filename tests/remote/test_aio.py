"""Goal: a deployment from asyncio: the loop is never blocked, readers wake up, and subscriptions can be continued."""

from __future__ import annotations

import asyncio

import pytest

import smile
from smile import aio
from smile.local import LocalBrokers
from tests.measures import PATIENCE_S


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
