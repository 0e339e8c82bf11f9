"""The routes of the gateway, and how errors look to those who call them.

Everything is done by the public client (`smile.aio`), over the one connection of `smile/gateway/site.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from smile.errors import (
    Closed,
    ConnectFailed,
    NotAllowed,
    PublishError,
    PublishUncertain,
    SmileError,
    TimedOut,
    TooManyRows,
    UnknownName,
    ViewFailed,
)
from smile.gateway.bounds import (
    BODY_BYTES_MAX,
    BODY_SECONDS_MAX,
    CLIENTS_MAX,
    FILTERED_ROWS_MAX,
    SNAPSHOT_ROWS_MAX,
    WAITING_MAX,
)
from smile.gateway.description import describe, filtered, streams_below
from smile.gateway.feed import Busy, Event, Feed
from smile.gateway.json_values import BadBody, to_text
from smile.gateway.metrics import metrics_text
from smile.gateway.publishing import KeyReused
from smile.gateway.rights import HttpUsers, NoToken
from smile.gateway.site import Site

PAGE = Path(__file__).parent / "page"
PAGE_FILES = {"page.html": "text/html", "page.js": "text/javascript", "page.css": "text/css"}

STATUS_OF = (
    (NoToken, 401),
    (NotAllowed, 403),
    (UnknownName, 404),
    (PublishError, 422),
    (BadBody, 422),
    (TooManyRows, 413),
    (KeyReused, 409),
    (ViewFailed, 500),
    (Busy, 503),
    (ConnectFailed, 503),
    (TimedOut, 503),
    (Closed, 503),
    (PublishUncertain, 504),
    (SmileError, 400),
)
"""The first that fits an error."""


log = logging.getLogger("smile.gateway")


class Refused(SmileError):
    """Refused with this status, before anything was done."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


# Requests


async def page(request: Request) -> Response:
    name = request.path_params.get("file", "page.html")
    if name not in PAGE_FILES:
        raise Refused(404, f"there is no {name} here")
    content = (PAGE / name).read_text(encoding="utf-8")
    headers = {"Content-Security-Policy": "default-src 'self'", "X-Content-Type-Options": "nosniff"}
    return Response(content, media_type=PAGE_FILES[name], headers=headers)


async def health(request: Request) -> Response:
    """Without a token: says only whether the gateway's own broker answers. What others do is in the metrics."""
    site: Site = request.app.state.site
    system = await site.system()
    await system.own_status()
    return _json({"status": "ok", "brokers": len(system.sync.deployment.brokers)})


async def metrics(request: Request) -> Response:
    site: Site = request.app.state.site
    site.user(request)
    link = await site.link()
    text = metrics_text(await link.system.status(), link.feeds.readers)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


async def views(request: Request) -> Response:
    site: Site = request.app.state.site
    user = site.user(request)
    return _json(describe((await site.system()).sync, user))


async def view(request: Request) -> Response:
    site: Site = request.app.state.site
    user = site.user(request)
    system = await site.system()
    name = request.path_params["name"]
    user.check_read(name, streams_below(system.program, name))
    given = [(key, value) for key, value in request.query_params.multi_items() if key != "token"]
    conditions = dict(given)
    if len(conditions) < len(given):
        raise Refused(400, "a column is given twice, and a row has one value in it: ask once for each")
    rows_max = FILTERED_ROWS_MAX if conditions else SNAPSHOT_ROWS_MAX
    try:
        found = await system.rows_up_to(name, rows_max)
        rows = filtered(found, system.program.relation(name), conditions)
        if len(rows) > SNAPSHOT_ROWS_MAX:
            raise TooManyRows(f"more than {SNAPSHOT_ROWS_MAX} rows of `{name}` have these values")
    except TooManyRows as error:
        remedy = "" if conditions else "filter it (`?column=value`), or "
        told = f"{error}: {remedy}read /views/{name}/changes, which begins with a snapshot in pieces"
        raise TooManyRows(told) from None
    return _json({"view": name, "rows": rows})


async def changes(request: Request) -> Response:
    site: Site = request.app.state.site
    feed = await _feed(site, request)
    last = request.headers.get("last-event-id") or request.query_params.get("resume")
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_as_sse(feed, last), media_type="text/event-stream", headers=headers)


async def _feed(site: Site, connection: HTTPConnection) -> Feed:
    user = site.user(connection)
    link = await site.link()
    system, feeds = link.system, link.feeds
    name = connection.path_params["name"]
    declared = system.program.subscriptions.get(name)
    relation = name if declared is None else declared.view
    user.check_read(relation, streams_below(system.program, relation))
    if feeds.readers >= CLIENTS_MAX:
        raise Busy(f"{CLIENTS_MAX} readers are connected already")
    feed = await feeds.get(name, connection.query_params.get("emit"))
    site.user(connection).check_read(relation, streams_below(system.program, relation))  # it may have lost it meanwhile
    return feed


async def _as_sse(feed: Feed, last: str | None) -> AsyncIterator[str]:
    yield "retry: 2000\n\n"
    async for event in feed.events(last):
        yield _sse(event)


def _sse(event: Event) -> str:
    """The data are JSON without line breaks."""
    if event.name == "quiet":
        return ": quiet\n\n"
    identity = "" if event.id is None else f"id: {event.id}\n"
    return f"event: {event.name}\n{identity}data: {event.data}\n\n"


async def changes_by_websocket(socket: WebSocket) -> None:
    site: Site = socket.app.state.site
    try:
        feed = await _feed(site, socket)
    except (SmileError, BadBody) as error:
        await socket.send_denial_response(answer_to(error))
        return
    await socket.accept()
    telling = asyncio.create_task(_tell(socket, feed, socket.query_params.get("resume")))
    try:
        while telling.done() is False:
            receiving = asyncio.create_task(socket.receive())
            await asyncio.wait({receiving, telling}, return_when=asyncio.FIRST_COMPLETED)
            if receiving.done() and receiving.result()["type"] == "websocket.disconnect":
                return
            receiving.cancel()
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)


async def _tell(socket: WebSocket, feed: Feed, last: str | None) -> None:
    """The same events as JSON texts; `id` continues after this one. Pings of the protocol itself replace `quiet`."""
    try:
        async for event in feed.events(last):
            if event.name == "quiet":
                continue
            identity = "null" if event.id is None else f'"{event.id}"'
            await socket.send_text(f'{{"id":{identity},{event.data[1:]}')
        await socket.close(code=1011)
    except WebSocketDisconnect:
        pass


async def publish(request: Request) -> Response:
    site: Site = request.app.state.site
    user = site.user(request)
    name = request.path_params["name"]
    user.check_publish(name)
    body = await _body(request)
    key = request.headers.get("idempotency-key")
    return _json(await site.posting.post(await site.system(), user.name, name, body, key))


async def _body(request: Request) -> bytes:
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS_MAX):
            async for part in request.stream():
                size += len(part)
                if size > BODY_BYTES_MAX:
                    raise Refused(413, f"a body has at most {BODY_BYTES_MAX} bytes: send several")
                parts.append(part)
    except TimeoutError:
        raise Refused(408, f"the body did not arrive within {BODY_SECONDS_MAX:g} s") from None
    return b"".join(parts)


# Answers


def _json(data: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    text = to_text(data).encode("utf-8", "backslashreplace")  # half a character, in what was refused: as JSON has it
    return Response(text, status, headers, media_type="application/json")


def _shown(value: object) -> object:
    """A value that was refused: JSON has no infinite numbers."""
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def status_of(error: Exception) -> int:
    if isinstance(error, Refused):
        return error.status
    return next(status for kind, status in STATUS_OF if isinstance(error, kind))


async def refused(_: Request, error: Exception) -> Response:
    return answer_to(error)


async def broken(request: Request, error: Exception) -> Response:
    """Our own mistake: the log has it, the caller learns no more than that."""
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _json({"error": "the gateway failed; its log says why"}, 500)


def answer_to(error: Exception) -> Response:
    status = status_of(error)
    told: dict[str, Any] = {"error": str(error)}
    headers: dict[str, str] = {}
    if isinstance(error, PublishError):
        told["problems"] = [
            {"row": one.row, "column": one.column, "value": _shown(one.value), "rule": one.rule}
            for one in error.problems
        ]
    if isinstance(error, PublishUncertain):
        told["uncertain"] = True
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status == 503:
        headers["Retry-After"] = "1"
    return _json(told, status, headers)


def make_app(address: str, *, keys: str | PathLike[str] | None, users: HttpUsers, is_local: bool) -> Starlette:
    """`is_local`: only names of this machine are accepted as host, so that no other name can be made to point here."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        waiting = ThreadPoolExecutor(WAITING_MAX, "smile-gateway")
        asyncio.get_running_loop().set_default_executor(waiting)
        app.state.site = Site(address, keys, users)
        try:
            yield
        finally:
            await app.state.site.close()

    hosts = ["localhost", "127.0.0.1", "[::1]", "*.localhost"] if is_local else ["*"]
    handlers: dict[Any, Callable[[Request, Exception], Awaitable[Response]]] = {
        SmileError: refused,
        BadBody: refused,
        Exception: broken,
    }
    return Starlette(
        routes=[
            Route("/", page),
            Route("/page/{file}", page),
            Route("/healthz", health),
            Route("/metrics", metrics),
            Route("/views", views),
            Route("/views/{name}", view),
            Route("/views/{name}/changes", changes),
            WebSocketRoute("/views/{name}/ws", changes_by_websocket),
            Route("/streams/{name}", publish, methods=["POST"]),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=hosts)],
        exception_handlers=handlers,
        lifespan=lifespan,
    )
