"""Authentication of connections, inside the poll loop of a broker.

ZeroMQ asks, over a socket inside the process, about the key of each connection to a secured socket before anything of
it is delivered (RFC 27). The answer comes from the allow-list as it is now; ZeroMQ then attaches the key to every
message received from the connection. Whose key it is, the list says anew each time: a connection outlives the entry
that let it in. There is no thread: a loop that is busy lets newcomers wait, nobody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import zmq

from runtime.security.allow_list import AllowList, WatchedAllowList
from runtime.security.endpoints import ZAP_DOMAIN
from runtime.security.refusals import Refusals

ENDPOINT = "inproc://zeromq.zap.01"
QUEUE_MAX = 1000
"""Questions that wait; ZeroMQ keeps further newcomers in their handshake, which ends by itself."""
ANSWERS_PER_TURN = 100

_VERSION = b"1.0"
_FRAMES_MAX = 16


class Authenticator:
    """Open one before the first secured socket of the context is bound; close it after the last."""

    def __init__(
        self, context: zmq.Context[zmq.Socket[bytes]], watched: WatchedAllowList, refusals: Refusals | None = None
    ) -> None:
        self._watched = watched
        self.refusals = refusals or Refusals()
        self.admitted = 0
        self.socket = context.socket(zmq.ROUTER)
        self.socket.linger = 0
        self.socket.rcvhwm = QUEUE_MAX
        self.socket.sndhwm = QUEUE_MAX
        self.socket.bind(ENDPOINT)

    def serve(self) -> int:
        """Answers what waits, at most ANSWERS_PER_TURN; how many it were. Call it when `socket` is readable."""
        for answered in range(ANSWERS_PER_TURN):
            try:
                frames = self.socket.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return answered
            reply = self._answer(frames)
            if reply is not None:
                self.socket.send_multipart(reply, zmq.DONTWAIT)
        return ANSWERS_PER_TURN

    def _answer(self, frames: Sequence[bytes]) -> list[bytes] | None:
        if not 8 <= len(frames) <= _FRAMES_MAX or frames[1] != b"":
            return None  # not from ZeroMQ itself; only this process can get here
        asker, _, version, request, domain, address, _identity, mechanism, *credentials = frames
        head = [asker, b"", _VERSION, request]
        place = address.decode("latin-1")
        if version != _VERSION or domain != ZAP_DOMAIN:
            code = "handshake"
        elif mechanism != b"CURVE" or len(credentials) != 1:
            code = "no-key"
        else:
            code = "" if credentials[0] in self._watched.current.name_of_curve else "unknown-key"
        if code:
            key = credentials[0].hex() if code == "unknown-key" else ""
            self.refusals.note(code, place, f"key {key}" if key else f"by {mechanism[:20]!r}")
            # "Not now": after a plain "no" ZeroMQ would never try again, and the key may be listed a moment later.
            return [*head, b"300", code.encode(), b"", b""]
        self.admitted += 1
        return [*head, b"200", b"", credentials[0].hex().encode(), b""]

    def close(self) -> None:
        self.socket.close()


def sender_name(frames: Sequence[zmq.Frame], allowed: AllowList) -> str:
    """Who sent a message that was received with `copy=False`; empty if its connection has no key, or one that is not on
    the list any more."""
    frame: Any = frames[-1]
    try:
        key = frame.get("User-Id")
    except zmq.ZMQError:
        return ""
    return allowed.name_of_curve.get(bytes.fromhex(key), "") if isinstance(key, str) else ""
