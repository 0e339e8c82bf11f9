"""The same system for asyncio.

    async with smile.aio.run(program) as system:
        await system.publish("Sellers", {...})
        async with await system.subscribe("Available") as changes:
            async for change in changes: ...

Work on a system in memory is done at once, in the event loop: it takes microseconds. With `data=DIR` every call that
may wait for the disk runs in a thread. Callbacks are called in the thread that did the work.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from os import PathLike
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from smile.program import Program
from smile.subscription import QUEUE_ROWS, Change, ChangeBatch, Subscription
from smile.system import System as SyncSystem

P = ParamSpec("P")
T = TypeVar("T")


def run(
    program: Program,
    *,
    data: str | PathLike[str] | None = None,
    tables: Mapping[str, object] | None = None,
) -> System:
    """As `smile.run`. The system is started by `async with`."""
    return System(program, data, tables)


class System:
    """As `smile.System`, with coroutines."""

    def __init__(self, program: Program, data: str | PathLike[str] | None, tables: Mapping[str, object] | None) -> None:
        self._program = program
        self._data = data
        self._tables = tables
        self._system: SyncSystem | None = None

    async def __aenter__(self) -> System:
        self._system = await self._do(SyncSystem, self._program, data=self._data, tables=self._tables)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _do(self, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        if self._data is None:
            return function(*arguments, **named)
        return await asyncio.to_thread(function, *arguments, **named)

    @property
    def sync(self) -> SyncSystem:
        """The system itself, for code that is not asynchronous."""
        if self._system is None:
            raise RuntimeError("the system is started by `async with`")
        return self._system

    async def publish(self, stream: str, row: Mapping[str, object]) -> int:
        return await self._do(self.sync.publish, stream, row)

    async def publish_many(self, stream: str, rows: object) -> tuple[int, ...]:
        return await self._do(self.sync.publish_many, stream, rows)

    async def settle(self) -> None:
        await self._do(self.sync.settle)

    async def rows(self, view: str) -> list[dict[str, object]]:
        return await self._do(self.sync.rows, view)

    async def arrow(self, view: str) -> Any:
        return await self._do(self.sync.arrow, view)

    async def pandas(self, view: str) -> Any:
        return await self._do(self.sync.pandas, view)

    async def subscribe(
        self,
        name: str,
        callback: Callable[[Change], object] | None = None,
        *,
        emit: str | None = None,
        timeout: float | None = None,
        queue_rows: int = QUEUE_ROWS,
    ) -> AsyncSubscription:
        made = await self._do(self.sync.subscribe, name, callback, emit=emit, timeout=None, queue_rows=queue_rows)
        return AsyncSubscription(made, timeout)

    async def close(self) -> None:
        if self._system is not None:
            await self._do(self._system.close)


class AsyncSubscription:
    """As `smile.Subscription`; belongs to the event loop in which it was made."""

    def __init__(self, subscription: Subscription, timeout: float | None) -> None:
        self.sync = subscription
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        subscription.listen(self._wake)

    def _wake(self) -> None:
        """Called in whichever thread publishes; a loop that has ended needs no waking."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._news.set)

    async def __aiter__(self) -> AsyncIterator[Change]:
        async for batch in self.batches():
            for change in batch.changes():
                yield change

    async def batches(self) -> AsyncIterator[ChangeBatch]:
        """The same, columnar."""
        while (batch := await self.wait()) is not None:
            yield batch

    async def wait(self, timeout: float | None = None) -> ChangeBatch | None:
        """The next batch; None when the subscription is closed or nothing came in time."""
        limit = self._timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(limit):
                while True:
                    self._news.clear()
                    batch = self.sync.wait(0)
                    if batch is not None or self.sync.closed:
                        return batch
                    await self._until_news()
        except TimeoutError:
            return None

    async def _until_news(self) -> None:
        """With `every`, what is queued becomes due by itself."""
        try:
            async with asyncio.timeout(self.sync.due_in()):
                await self._news.wait()
        except TimeoutError:
            pass

    def ready(self) -> list[Change]:
        return self.sync.ready()

    async def close(self) -> None:
        self.sync.close()

    async def __aenter__(self) -> AsyncSubscription:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
