"""What all requests share: the connection to the brokers, and who may do what.

The connection is made with the first request that needs it, so the gateway may start before anything is deployed.
Nobody waits for a broker in order to use it: whether there is a new deployment is found out beside the requests, from
the gateway's own broker alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from os import PathLike

from starlette.requests import HTTPConnection

from smile import aio
from smile.errors import NotAllowed, SmileError
from smile.gateway.feed import Feeds
from smile.gateway.publishing import Posting
from smile.gateway.rights import HttpUser, HttpUsers

CONNECT_SECONDS = 5.0
"""For everything that a request waits for."""

LOOK_SECONDS = 2.0
"""So often it is checked whether there is a new deployment."""

TOKENS_SECONDS = 1.0
"""So often the file of tokens is looked at."""

log = logging.getLogger("smile.gateway")


@dataclass(frozen=True)
class Link:
    """One connection, and what is read over it."""

    system: aio.RemoteSystem
    feeds: Feeds

    async def close(self) -> None:
        await self.feeds.close()
        await self.system.close()


async def _every(seconds: float, look: Callable[[], Awaitable[None]]) -> None:
    """Whatever goes wrong once must not end it: a token that was taken back would stay good."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await look()
        except Exception:
            log.exception("what is looked at now and then could not be finished")


class Site:
    """Everything happens in one event loop."""

    def __init__(self, address: str, keys: str | PathLike[str] | None, users: HttpUsers) -> None:
        self.users = users
        self.posting = Posting()
        self._address = address
        self._keys = keys
        self._link: Link | None = None
        self._connecting: asyncio.Task[Link] | None = None
        self._watching = [
            asyncio.create_task(_every(LOOK_SECONDS, self._watch)),
            asyncio.create_task(_every(TOKENS_SECONDS, self._watch_tokens)),
        ]

    async def link(self) -> Link:
        """Raises ConnectFailed while the broker has nothing deployed. All who come meanwhile wait for one attempt."""
        if self._link is not None:
            return self._link
        if self._connecting is None or self._connecting.done():
            self._connecting = asyncio.create_task(self._connect())
        return await asyncio.shield(self._connecting)

    async def system(self) -> aio.RemoteSystem:
        return (await self.link()).system

    async def _connect(self) -> Link:
        made = aio.connect(self._address, keys=self._keys, name="http gateway", timeout=CONNECT_SECONDS)
        await made.__aenter__()
        self._link = Link(made, Feeds(made))
        return self._link

    async def _watch(self) -> None:
        """After a new deployment the next request connects again; readers come back and get a snapshot."""
        link = self._link
        if link is None:
            return
        try:
            said = await link.system.own_status()
        except SmileError:  # it does not answer: nothing is known to have changed
            if not link.system.sync.connection.is_closed:
                return
            said = {}
        if said.get("deployment") != link.system.sync.deployment.digest:
            log.info("the deployment has changed" if said else "the connection has broken")
            self._link = None
            await link.close()

    async def _watch_tokens(self) -> None:
        """When rights have changed, those who read come back, and are asked again who they are."""
        if self.users.reload_if_changed() and self._link is not None:
            await self._link.feeds.end()

    async def close(self) -> None:
        for task in self._watching:
            task.cancel()
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    def user(self, connection: HTTPConnection) -> HttpUser:
        """Who asks. A page of another site must not speak for the user whose browser runs it."""
        origin = connection.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != connection.headers.get("host"):
            raise NotAllowed(f"a page of {origin} may not use this gateway")
        return self.users.user(connection.headers.get("authorization"), connection.query_params.get("token"))
