"""A fault-injecting proxy between TCP endpoints, for links as bad as the protocol must bear.

Each `Route` listens on a port of its own and passes connections on to one target. On ZMTP streams whole messages are
dropped, repeated, delayed and reordered; on any stream connections are cut, stalled (a black hole that keeps the
connection) and throttled. Chance comes from a seed: the n-th message of the n-th connection of a route meets the same
fate in every run. Runs in a thread of its own with its own event loop; the methods of `Proxy` may be called from any
thread.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.chaos.zmtp import NotZmtp, Splitter, Unit

READ_BYTES = 256 * 1024
HELD_BYTES_MAX = 16 * 1024 * 1024
"""Delayed bytes in one direction of one connection; beyond it nothing more is read from the sender."""
RECORD_MAX = 100_000

T = TypeVar("T")


@dataclass(frozen=True)
class Faults:
    """Chances for each message; delays in seconds. `late` holds up what follows as well, `reorder` does not."""

    drop: float = 0.0
    duplicate: float = 0.0
    late: float = 0.0
    reorder: float = 0.0
    delay_max_s: float = 0.2
    bytes_per_s: float | None = None


NONE = Faults()


@dataclass(frozen=True)
class Happened:
    at: float
    route: str
    what: str


def _fate(faults: Faults, drawn: float) -> str | None:
    """What happens to a message for which a number between 0 and 1 was drawn."""
    chances = (faults.drop, faults.duplicate, faults.late, faults.reorder)
    for what, chance in zip(("dropped", "duplicated", "late", "reordered"), chances, strict=True):
        if drawn < chance:
            return what
        drawn -= chance
    return None


class _Direction:
    """One way of one connection: reads units, decides, and releases them when their time has come."""

    def __init__(
        self, route: Route, faults_name: str, seed: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ):
        self._route = route
        self._faults_name = faults_name
        self._chance = random.Random(seed)
        self._reader = reader
        self._writer = writer
        self._held: list[tuple[float, int, bytes]] = []
        self._held_bytes = 0
        self._number = 0
        self._last_release = 0.0
        self._changed = asyncio.Event()
        self._is_over = False

    async def run(self) -> None:
        releasing = asyncio.create_task(self._release())
        try:
            await self._read()
        finally:
            self._is_over = True
            self._changed.set()
            await releasing

    async def _read(self) -> None:
        splitter = Splitter()
        while data := await self._reader.read(READ_BYTES):
            await self._route.flowing.wait()
            for unit in splitter.feed(data):
                self._decide(unit)
            self._changed.set()
            while self._held_bytes > HELD_BYTES_MAX:
                await asyncio.sleep(0.01)

    def _decide(self, unit: Unit) -> None:
        release, copies = time.monotonic(), 1
        if unit.is_message:
            faults: Faults = getattr(self._route, self._faults_name)
            # Both are drawn for every message, whatever the faults are just now, so that a run can be repeated.
            what = _fate(faults, self._chance.random())
            delay = self._chance.random() * faults.delay_max_s
            if what is not None:
                self._route.count(what)
            if what == "reordered":
                self._hold(unit.data, release + delay)  # alone: what follows may overtake it
                return
            release += delay if what == "late" else 0.0
            copies = {"dropped": 0, "duplicated": 2}.get(what or "", 1)
        self._last_release = release = max(self._last_release, release)
        for _ in range(copies):
            self._hold(unit.data, release)

    def _hold(self, data: bytes, release: float) -> None:
        self._number += 1
        self._held.append((release, self._number, data))
        self._held.sort()
        self._held_bytes += len(data)

    async def _release(self) -> None:
        while not self._is_over or self._held:
            self._changed.clear()
            await self._route.flowing.wait()
            now = time.monotonic()
            while self._held and self._held[0][0] <= now:
                _, _, data = self._held.pop(0)
                self._held_bytes -= len(data)
                self._writer.write(data)
                rate = getattr(self._route, self._faults_name).bytes_per_s
                if rate is not None:
                    await asyncio.sleep(len(data) / rate)
            try:
                await self._writer.drain()
                wait = None if not self._held else max(0.0, self._held[0][0] - time.monotonic())
                if not self._held and self._is_over:
                    break
                await asyncio.wait_for(self._changed.wait(), wait)
            except TimeoutError:
                continue
            except OSError:
                return


def _prepare(writer: asyncio.StreamWriter) -> None:
    """A connection that is aborted is reset at once, as by a machine that has gone, with what it still held lost."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class Route:
    """One listening port and the target behind it. Faults may be changed while connections are open."""

    def __init__(self, name: str, target: tuple[str, int], seed: int, record: deque[Happened]) -> None:
        self.name = name
        self.port = 0
        self.to_server = NONE
        self.to_client = NONE
        self.is_refusing = False
        self.counts: Counter[str] = Counter()
        self.flowing = asyncio.Event()
        self.flowing.set()
        self._target = target
        self._seed = seed
        self._record = record
        self._connections = 0
        self._open: dict[int, tuple[asyncio.StreamWriter, ...]] = {}
        self._server: asyncio.Server | None = None

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def count(self, what: str) -> None:
        self.counts[what] += 1

    def note(self, what: str) -> None:
        self.count(what.split(" ")[0])
        self._record.append(Happened(time.monotonic(), self.name, what))

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _prepare(writer)
        number = self._connections
        self._connections += 1
        if self.is_refusing:
            writer.transport.abort()
            return
        try:
            server_reader, server_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        _prepare(server_writer)
        self._open[number] = (writer, server_writer)
        seed = f"{self._seed} {self.name} {number}"
        ways = [
            asyncio.create_task(_Direction(self, "to_server", f"{seed} up", reader, server_writer).run()),
            asyncio.create_task(_Direction(self, "to_client", f"{seed} down", server_reader, writer).run()),
        ]
        try:
            # Either way ending ends both: what a half-open connection would do is not among our faults.
            ended, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ended:
                if isinstance(way.exception(), NotZmtp):
                    self.note(f"broken {way.exception()}")
        finally:
            self._open.pop(number, None)
            for each in (writer, server_writer):
                each.transport.abort()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def cut(self, share: float, chance: random.Random) -> int:
        """Resets each open connection with this chance."""
        chosen = [number for number in sorted(self._open) if chance.random() < share]
        for number in chosen:
            for writer in self._open[number]:
                writer.transport.abort()
        self.note(f"cut {len(chosen)} of {len(self._open)}")
        return len(chosen)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for writers in list(self._open.values()):
            for writer in writers:
                writer.transport.abort()


class Proxy:
    """Any number of routes in one thread. Close it; what it did is in `record` and in the routes' `counts`."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.record: deque[Happened] = deque(maxlen=RECORD_MAX)
        self.routes: dict[str, Route] = {}
        self._chance = random.Random(f"{seed} cuts")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()

    def _call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    def add(self, name: str, host: str, port: int) -> int:
        """The port to connect to instead of `port`."""

        async def start() -> Route:
            route = Route(name, (host, port), self.seed, self.record)
            await route.listen()
            return route

        self.routes[name] = self._call(start())
        return self.routes[name].port

    def set_faults(self, name: str, *, to_server: Faults = NONE, to_client: Faults = NONE) -> None:
        route = self.routes[name]
        route.to_server, route.to_client = to_server, to_client

    def cut(self, name: str, share: float = 1.0) -> int:
        return self._call(self.routes[name].cut(share, self._chance))

    def stall(self, name: str) -> None:
        """From now nothing passes, in either direction, and no connection notices."""
        self._switch(name, flowing=False)

    def resume(self, name: str) -> None:
        self._switch(name, flowing=True)

    def _switch(self, name: str, *, flowing: bool) -> None:
        async def switch() -> None:
            route = self.routes[name]
            route.note("resumed" if flowing else "stalled")
            if flowing:
                route.flowing.set()
            else:
                route.flowing.clear()

        self._call(switch())

    def refuse(self, name: str, refusing: bool) -> None:
        """New connections are reset while this holds; cut the open ones as well for a partition."""
        self.routes[name].is_refusing = refusing

    def close(self) -> None:
        async def stop() -> None:
            for route in self.routes.values():
                await route.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        self._call(stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
