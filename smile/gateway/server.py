"""The gateway as a server: uvicorn in a thread of its own, with its own connection to the broker.

A broker starts one with `--http HOST:PORT`. `start_gateway` may be called in any other process, too, by those who want
the broker's time for the broker.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from os import PathLike
from pathlib import Path
from time import monotonic, sleep

import uvicorn

from smile.errors import SmileError
from smile.gateway.app import make_app
from smile.gateway.bounds import CLIENTS_MAX
from smile.gateway.rights import HttpUsers

START_SECONDS_MAX = 30.0
STOP_SECONDS_MAX = 5.0
WEBSOCKET_BYTES_MAX = 65_536
"""Of a message from a reader, which has nothing to say."""


class GatewayFailed(SmileError):
    """The gateway cannot be started: why, and what to do."""


class Gateway:
    """A running gateway."""

    def __init__(self, server: uvicorn.Server, listener: socket.socket) -> None:
        self.host, self.port = listener.getsockname()[:2]
        self._server = server
        self._listener = listener
        self._thread = threading.Thread(target=self._work, name="smile-gateway", daemon=True)
        self._thread.start()
        end = monotonic() + START_SECONDS_MAX
        while not server.started:
            if not self._thread.is_alive() or monotonic() > end:
                raise GatewayFailed("the HTTP gateway does not start: its log says why")
            sleep(0.005)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def _work(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._listener]))

    def close(self) -> None:
        """Readers are told by the end of their connection; they can go on elsewhere, or later."""
        self._server.should_exit = True
        self._thread.join(STOP_SECONDS_MAX)
        self._listener.close()


def start_gateway(
    address: str,
    host: str,
    port: int,
    *,
    keys: str | PathLike[str] | None = None,
    tokens: str | PathLike[str] | None = None,
) -> Gateway:
    """Serve HTTP at host:port (0: any free port) for the deployment of the broker at `address`.

    Without a file of tokens only loopback hosts are allowed, and no keys. Raises GatewayFailed, BadTokens.
    """
    users = HttpUsers(None if tokens is None else Path(tokens))
    is_local = is_loopback(host)
    if not is_local and not users.needs_token:
        raise GatewayFailed(
            f"{host} can be reached from other machines, and HTTP here has no names: give a file of tokens "
            "(`--http-tokens FILE`, see docs/http.md), or listen on 127.0.0.1"
        )
    if keys is not None and not users.needs_token:
        raise GatewayFailed(
            "this gateway has keys, and without tokens everybody on this machine would have their rights: give a file "
            "of tokens (`--http-tokens FILE`, or `http_tokens` in smile.toml; see docs/http.md)"
        )
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=1_024)
    except OSError as error:
        raise GatewayFailed(f"cannot listen on {host}:{port}: {error.strerror}; choose another port") from error
    app = make_app(address, keys=keys, users=users, is_local=is_local)
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="critical",  # it reports refused WebSockets as errors; what is broken is logged by the application
        access_log=False,
        lifespan="on",
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=2,
        limit_concurrency=2 * CLIENTS_MAX,
        ws_max_size=WEBSOCKET_BYTES_MAX,
        ws="websockets-sansio",
    )
    return Gateway(uvicorn.Server(config), listener)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
