"""The sockets of a broker: ROUTER for requests and answers, XPUB for knowledge; and the options all sockets share.

Sending never blocks: what does not fit is dropped and counted, and the protocol repairs it. Who may say what is
decided elsewhere (`requests.py`); which bytes, in `runtime/wire`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import zmq

from runtime.broker.log_access import Times
from runtime.broker.multipart import has_input, send_now
from runtime.security.endpoints import secure_server
from runtime.security.keys import Keys
from runtime.wire.limits import FRAME_BYTES_MAX

ANSWERS_HWM = 2_000
"""Messages that may wait for one peer of the ROUTER. The largest answer (16,000,000 rows, 65,536 in each part) has 245
parts; if a queue could not hold all of them, the same tail would be dropped each time."""

KNOWLEDGE_HWM = 128
"""Messages that may wait for one subscriber of the XPUB: a stalled one holds no more than these, misses what follows,
and asks when it is back. Small messages hardly get here: the kernel's buffers hold thousands of them."""

INPUT_HWM = 2_000
"""Messages of one peer that may wait to be read: beyond that the peer's own queue fills up."""

HEARTBEAT_MS = 1_000
HEARTBEAT_TIMEOUT_MS = 5_000
"""ZeroMQ's own heartbeat: a peer that has stopped loses its connection after this, and we the memory of its queue. It
connects again by itself when it goes on."""

RECONNECT_MS = 50
RECONNECT_MS_MAX = 500

BACKLOG = 1_024
"""Connections that may wait to be accepted: after a restart all subscribers come at once."""

LINGER_MS = 500
"""Answers under way get this long when a broker stops in order."""

TOPIC_BYTES = 16
"""The part of a topic that all subscribers of an edge share; what follows it belongs to one of them."""

_NOW: Final = int(zmq.DONTWAIT)

Socket = zmq.Socket[bytes]
Context = zmq.Context[Socket]


def common_options(socket: Socket, endpoint: str, *, send_hwm: int, receive_hwm: int) -> None:
    socket.setsockopt(zmq.IPV6, "[" in endpoint)  # only where it is asked for: it changes how addresses are shown
    socket.setsockopt(zmq.SNDHWM, send_hwm)
    socket.setsockopt(zmq.RCVHWM, receive_hwm)
    socket.setsockopt(zmq.MAXMSGSIZE, FRAME_BYTES_MAX)
    socket.setsockopt(zmq.HEARTBEAT_IVL, HEARTBEAT_MS)
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, HEARTBEAT_TIMEOUT_MS)
    socket.setsockopt(zmq.HEARTBEAT_TTL, HEARTBEAT_TIMEOUT_MS)
    socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT_MS)
    socket.setsockopt(zmq.RECONNECT_IVL_MAX, RECONNECT_MS_MAX)
    socket.setsockopt(zmq.LINGER, 0)


class Endpoints:
    """Bound as long as the process serves. `address` and `data_address` are what was bound, ports included."""

    def __init__(self, context: Context, address: str, data_address: str, keys: Keys | None) -> None:
        self.context = context
        self.drops_unroutable = 0
        self.drops_full = 0
        self.tells = Times()
        self.router = context.socket(zmq.ROUTER)
        self.publisher = context.socket(zmq.XPUB)
        try:
            common_options(self.router, address, send_hwm=ANSWERS_HWM, receive_hwm=INPUT_HWM)
            common_options(self.publisher, data_address, send_hwm=KNOWLEDGE_HWM, receive_hwm=INPUT_HWM)
            self.router.setsockopt(zmq.ROUTER_HANDOVER, 1)  # a peer that comes back takes its name with it
            self.router.setsockopt(zmq.ROUTER_MANDATORY, 1)  # so that drops can be counted
            self.router.setsockopt(zmq.LINGER, LINGER_MS)
            self.publisher.setsockopt(zmq.XPUB_MANUAL, 1)
            for socket in (self.router, self.publisher):
                socket.setsockopt(zmq.BACKLOG, BACKLOG)
                if keys is not None:
                    secure_server(socket, keys)
            self.router.bind(address)
            self.publisher.bind(data_address)
        except BaseException:
            self.close()
            raise
        self.address = self.router.getsockopt_string(zmq.LAST_ENDPOINT)
        self.data_address = self.publisher.getsockopt_string(zmq.LAST_ENDPOINT)

    def answer(self, peer: bytes, frames: Sequence[bytes]) -> bool:
        """To one peer; False if it is gone or its queue is full."""
        try:
            send_now(self.router, (peer, *frames))
        except zmq.Again:
            self.drops_full += 1
        except zmq.ZMQError as error:
            if error.errno != zmq.EHOSTUNREACH:
                raise
            self.drops_unroutable += 1
        else:
            return True
        return False

    def tell(self, topic: bytes, frames: Sequence[bytes]) -> None:
        """To everybody who has subscribed to this topic; those whose queue is full miss it. The topic is the beginning
        of the first frame: with 2,000 subscribers, a frame of its own would take a fifth of the time."""
        began = time.perf_counter_ns()
        send_now(self.publisher, (topic + frames[0], *frames[1:]))
        self.tells.note((time.perf_counter_ns() - began) // 1_000)

    def next_request(self) -> tuple[bytes, list[zmq.Frame]] | None:
        """Peer and frames from the ROUTER, which takes from all peers in turn; None if there is nothing."""
        receive = self.router.recv
        try:
            peer = receive(_NOW)
        except zmq.Again:
            return None
        frame = receive(_NOW, False)
        frames = [frame]
        while frame.more:
            frame = receive(_NOW, False)
            frames.append(frame)
        return peer, frames

    def has_request(self) -> bool:
        """Is there another one?"""
        return has_input(self.router)

    def next_subscription(self) -> tuple[bytes, bool] | None:
        """A topic that somebody wants (True) or no longer wants (False), or None. Grant it before the next is read."""
        while True:
            try:
                message = self.publisher.recv(zmq.DONTWAIT)
            except zmq.Again:
                return None
            if len(message) > TOPIC_BYTES + 1 and message[0] in (0, 1):
                return message[1:], message[0] == 1

    def grant(self, topic: bytes, *, is_new: bool) -> None:
        """Whoever asked last asked for its own topic and gets the part of it that all share."""
        self.publisher.setsockopt(zmq.SUBSCRIBE if is_new else zmq.UNSUBSCRIBE, topic[:TOPIC_BYTES])

    def close(self) -> None:
        self.router.close()
        self.publisher.close(0)
