"""The same systems for asyncio.

    async with smile.aio.run(program) as system:          # or smile.aio.connect(address)
        await system.publish("Sellers", {...})
        async with await system.subscribe("Available") as changes:
            async for change in changes: ...

Work on a system in memory is done at once, in the event loop: it takes microseconds. Every call that may wait for the
disk or for a broker runs in a thread. Callbacks are called in the thread that did the work, or in that of the
connection's callbacks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, Self, TypeVar

from smile.program import Program
from smile.subscription import QUEUE_ROWS, Change, ChangeBatch, Subscription
from smile.system import System as SyncSystem

if TYPE_CHECKING:
    from smile.remote.subscription import RemoteSubscription
    from smile.remote.system import RemoteSystem as SyncRemoteSystem

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="SyncSystem | SyncRemoteSystem")


def run(
    program: Program,
    *,
    data: str | PathLike[str] | None = None,
    tables: Mapping[str, object] | None = None,
) -> System:
    """As `smile.run`. The system is started by `async with`."""
    return System(partial(SyncSystem, program, data=data, tables=tables), in_thread=data is not None)


def connect(
    address: str, *, keys: str | PathLike[str] | None = None, name: str | None = None, timeout: float | None = None
) -> RemoteSystem:
    """As `smile.connect`. The connection is made by `async with`."""
    from smile.remote.connect import TIMEOUT
    from smile.remote.connect import connect as sync_connect

    limit = TIMEOUT if timeout is None else timeout
    return RemoteSystem(partial(sync_connect, address, keys=keys, name=name, timeout=limit), in_thread=True)


class _Closable(Protocol):
    def close(self) -> None: ...


M = TypeVar("M", bound=_Closable)


def _close_made(made: Future[M]) -> None:
    if made.exception() is None:
        made.result().close()


class _AsyncSystem(Generic[S]):
    """What both have: `start` makes the system; `in_thread` says that its calls may wait for something."""

    def __init__(self, start: Callable[[], S], *, in_thread: bool) -> None:
        self._start = start
        self._in_thread = in_thread
        self._system: S | None = None

    async def __aenter__(self) -> Self:
        self._system = await self._made(self._start)
        return self

    async def _made(self, make: Callable[[], M]) -> M:
        """As `_do`, for something to be closed: whoever is cancelled meanwhile never gets it, and could not."""
        if not self._in_thread:
            return make()
        made: Future[M] = Future()

        def work() -> None:
            try:
                made.set_result(make())
            except BaseException as error:  # noqa: BLE001  the caller's to see
                made.set_exception(error)

        try:
            await asyncio.to_thread(work)
        except asyncio.CancelledError:
            made.add_done_callback(_close_made)
            raise
        return made.result()

    async def _do(self, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        if not self._in_thread:
            return function(*arguments, **named)
        return await asyncio.to_thread(function, *arguments, **named)

    @property
    def sync(self) -> S:
        """The system itself, for code that is not asynchronous."""
        if self._system is None:
            raise RuntimeError("the system is started by `async with`")
        return self._system

    @property
    def program(self) -> Program:
        return self.sync.program

    async def publish(self, stream: str, row: Mapping[str, object]) -> int:
        return await self._do(self.sync.publish, stream, row)

    async def publish_many(self, stream: str, rows: object) -> Sequence[int]:
        return await self._do(self.sync.publish_many, stream, rows)

    async def settle(self) -> None:
        await self._do(self.sync.settle)

    async def rows(self, view: str) -> list[dict[str, object]]:
        return await self._do(self.sync.rows, view)

    async def arrow(self, view: str) -> Any:
        return await self._do(self.sync.arrow, view)

    async def pandas(self, view: str) -> Any:
        return await self._do(self.sync.pandas, view)

    async def close(self) -> None:
        if self._system is not None:
            await self._do(self._system.close)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class System(_AsyncSystem[SyncSystem]):
    """As `smile.System`, with coroutines."""

    async def subscribe(
        self,
        name: str,
        callback: Callable[[Change], object] | None = None,
        *,
        emit: str | None = None,
        timeout: float | None = None,
        queue_rows: int = QUEUE_ROWS,
        coalesce: bool = False,
    ) -> AsyncSubscription:
        subscribe = partial(self.sync.subscribe, emit=emit, timeout=None, queue_rows=queue_rows, coalesce=coalesce)
        made = await self._made(partial(subscribe, name, callback))
        return AsyncSubscription(made, timeout)


class RemoteSystem(_AsyncSystem["SyncRemoteSystem"]):
    """As what `smile.connect` gives, with coroutines. Publishing needs no thread while there is room to send."""

    async def publish(self, stream: str, row: Mapping[str, object], *, once: tuple[str, int] | None = None) -> int:
        tick: int = await self._published(stream, partial(self.sync.publish_nowait, stream, row, once=once))
        return tick

    async def publish_many(self, stream: str, rows: object, *, once: tuple[str, int] | None = None) -> Sequence[int]:
        ticks: Sequence[int] = await self._published(
            stream, partial(self.sync.publish_many_nowait, stream, rows, once=once)
        )
        return ticks

    async def _published(self, stream: str, send: Callable[[], Future[Any]]) -> Any:
        sent = send() if self.sync.has_room(stream) else await asyncio.to_thread(send)
        return await self.sync.outcome_async(sent)

    async def subscribe(
        self,
        name: str,
        callback: Callable[[Change], object] | None = None,
        *,
        emit: str | None = None,
        timeout: float | None = None,
        queue_rows: int = QUEUE_ROWS,
        coalesce: bool = False,
        resume: bytes | None = None,
    ) -> AsyncRemoteSubscription:
        subscribe = partial(self.sync.subscribe, queue_rows=queue_rows, coalesce=coalesce, resume=resume)
        made = await self._made(partial(subscribe, name, callback, emit=emit, timeout=None))
        return AsyncRemoteSubscription(made, timeout)

    async def status(self) -> dict[str, dict[str, Any]]:
        return await self._do(self.sync.status)

    async def rows_up_to(self, view: str, rows_max: int) -> list[dict[str, object]]:
        return await self._do(self.sync.rows_up_to, view, rows_max)

    async def own_status(self) -> dict[str, Any]:
        return await self._do(self.sync.own_status)


class AsyncSubscription:
    """As `smile.Subscription`; belongs to the event loop in which it was made."""

    def __init__(self, subscription: Subscription, timeout: float | None) -> None:
        self.sync = subscription
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        subscription.listen(self._wake)

    def _wake(self) -> None:
        """Called in whichever thread publishes, which must not suffer; a loop that has ended needs no waking."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._news.set)

    async def __aiter__(self) -> AsyncIterator[Change]:
        async for batch in self.batches():
            for change in self.sync.each(batch):
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
                    is_closed = self.sync.closed  # before: what came just before the end is still handed out
                    batch = self.sync.wait(0)
                    if batch is not None or is_closed:
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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AsyncRemoteSubscription(AsyncSubscription):
    """The same, and it can be continued later."""

    def __init__(self, subscription: RemoteSubscription, timeout: float | None) -> None:
        super().__init__(subscription, timeout)
        self._remote = subscription

    async def token(self) -> bytes:
        return await asyncio.to_thread(self._remote.token)
