"""Goal: the same system from asyncio: waiting readers wake up, nothing blocks the loop."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import smile
from smile import aio
from tests.measures import PATIENCE_S

PROGRAM = """
stream Sales (item int, qty int[0..1000]);
view Sold = from Sales |> aggregate total := sum(qty) group by item;
subscribe calm to Sold every 50 ms;
"""


@pytest.mark.parametrize("durable", [False, True])
def test_publish_and_read(tmp_path: Path, durable: bool) -> None:
    async def work() -> None:
        async with aio.run(smile.compile(PROGRAM), data=tmp_path if durable else None) as system:
            tick = await system.publish("Sales", {"item": 1, "qty": 2})
            assert (await system.publish_many("Sales", {"item": [1], "qty": [3]}))[0] > tick
            await system.settle()
            assert await system.rows("Sold") == [{"item": 1, "total": 5}]
            with pytest.raises(smile.PublishError):
                await system.publish("Sales", {"item": 1, "qty": -2})
        with pytest.raises(smile.Closed):
            await system.rows("Sold")

    asyncio.run(work())


def test_whoever_stops_in_the_middle_gets_the_rest_next() -> None:
    async def work() -> list[object]:
        found: list[object] = []
        async with aio.run(smile.compile(PROGRAM)) as system:
            await system.publish_many("Sales", {"item": [1, 2, 3], "qty": [1, 1, 1]})
            await system.settle()
            async with await system.subscribe("Sold", timeout=PATIENCE_S) as changes:
                while len(found) < 3:
                    async for change in changes:
                        found.append(change.row["item"])
                        break
        return found

    assert asyncio.run(work()) == [1, 2, 3]


def test_a_reader_waits_for_a_publisher() -> None:
    async def work() -> list[object]:
        found: list[object] = []
        async with aio.run(smile.compile(PROGRAM)) as system:

            async def read() -> None:
                async with await system.subscribe("Sold") as changes:
                    async for change in changes:
                        found.append(change.row["total"])
                        if len(found) == 3:
                            return

            reader = asyncio.create_task(read())
            for _ in range(3):
                await asyncio.sleep(0.01)
                await system.publish("Sales", {"item": 1, "qty": 2})
            await asyncio.wait_for(reader, PATIENCE_S)
        return found

    assert asyncio.run(work()) == [2, 4, 6]


def test_a_publisher_in_another_thread_wakes_the_loop() -> None:
    async def work() -> None:
        async with aio.run(smile.compile(PROGRAM)) as system:
            changes = await system.subscribe("Sold")
            assert (await changes.wait()) is not None  # the snapshot
            publish = asyncio.to_thread(system.sync.publish, "Sales", {"item": 1, "qty": 2})
            batch, _ = await asyncio.wait_for(asyncio.gather(changes.wait(), publish), PATIENCE_S)
            assert batch is not None
            assert list(batch.column("total")) == [2]

    asyncio.run(work())


def test_timeouts_and_ends() -> None:
    async def work() -> None:
        async with aio.run(smile.compile(PROGRAM)) as system:
            await system.publish("Sales", {"item": 1, "qty": 2})
            changes = await system.subscribe("Sold", timeout=0.02)
            assert [change.row["total"] async for change in changes] == [2]
            calm = await system.subscribe("calm")
            assert [len(batch) for batch in [await calm.wait()] if batch] == [1]
            await system.publish("Sales", {"item": 1, "qty": 2})
            await system.publish("Sales", {"item": 1, "qty": 2})
            batch = await asyncio.wait_for(calm.wait(), PATIENCE_S)  # due by itself, though nothing more is published
            assert batch is not None
            assert list(batch.column("total")) == [6]
            waiting = asyncio.create_task(calm.wait())
            await asyncio.sleep(0)
            await system.close()
            assert await asyncio.wait_for(waiting, PATIENCE_S) is None

    asyncio.run(work())
