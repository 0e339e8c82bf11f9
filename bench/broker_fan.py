"""Many subscribers of one view in one process: bare sockets that attach as clients do and count what they are told.

Two thousand clients with a thread and a copy of the view each would measure the clients. These keep one copy for all
and compare what the others get byte by byte: the first of them decodes, and every other one must be sent the same.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

import zmq

from bench.broker_talk import say
from runtime.broker.endpoints import TOPIC_BYTES
from runtime.protocol.messages import Knowledge
from runtime.wire.control import Attach, Attached, Confirmed, Hello, Refused, Welcome, encode_control
from runtime.wire.frames import decode_frames
from runtime.wire.messages import decode_message

HELLO_S = 4.0
SOCKETS_PER_SUBSCRIBER = 2


@dataclass
class Subscriber:
    dealer: Any
    data: Any
    is_connected: bool = False
    is_confirmed: bool = False
    topic: bytes = b""
    messages: int = 0
    digest: Any = field(default_factory=hashlib.sha256)


class Fan:
    def __init__(self, address: str, component: str, digest: str, count: int) -> None:
        self._component, self._digest = component, digest
        self._context: zmq.Context[Any] = zmq.Context()
        self._context.set(zmq.MAX_SOCKETS, SOCKETS_PER_SUBSCRIBER * count + 64)
        self.subscribers = [self._made(address) for _ in range(count)]
        self.by_socket = {one.data: one for one in self.subscribers}

    def _made(self, address: str) -> Subscriber:
        dealer, data = self._context.socket(zmq.DEALER), self._context.socket(zmq.XSUB)
        dealer.setsockopt(zmq.IDENTITY, secrets.token_bytes(8))
        dealer.connect(address)
        return Subscriber(dealer, data)

    def greet(self) -> None:
        """Also what keeps the attachments alive."""
        hello = encode_control(Hello(1, "fan", "client", 1))
        for one in self.subscribers:
            one.dealer.send_multipart(hello)
            while one.is_confirmed and one.dealer.poll(0):
                one.dealer.recv_multipart()

    def attach_all(self, patience_s: float) -> None:
        """As uplinks do: greet, attach, subscribe; again and again until it is confirmed."""
        end = time.monotonic() + patience_s
        self.greet()
        hello_at = time.monotonic() + HELLO_S
        waiting = {one.dealer: one for one in self.subscribers}
        poller = zmq.Poller()
        for dealer in waiting:
            poller.register(dealer, zmq.POLLIN)
        while waiting and time.monotonic() < end:
            for dealer, _ in poller.poll(100):
                self._heard(waiting[dealer], dealer.recv_multipart())
                if waiting[dealer].is_confirmed:
                    del waiting[dealer]
                    poller.unregister(dealer)
            if time.monotonic() > hello_at:  # which the attached ones need too: they would be forgotten
                self.greet()
                hello_at = time.monotonic() + HELLO_S
        if waiting:
            raise SystemExit(f"{len(waiting)} subscribers are not attached after {patience_s} s")

    def _heard(self, one: Subscriber, frames: list[bytes]) -> None:
        match decode_frames(frames):
            case Welcome(data_address=address):
                if not one.is_connected:
                    one.data.connect(address)
                    one.is_connected = True
                edge = f"guests:{self._component}"
                one.dealer.send_multipart(encode_control(Attach(2, edge, self._component, "guest", self._digest)))
            case Attached(topic=topic):
                if topic != one.topic:
                    one.data.send(b"\1" + topic)
                    one.topic = topic
            case Confirmed():
                one.is_confirmed = True
            case Refused(reason=reason):
                raise SystemExit(f"a subscriber is refused: {reason}")
            case _:
                pass

    def close(self) -> None:
        self._context.destroy(linger=0)


def fan(address: str, component: str, digest: str, difference: list[int], count: int, mark: int) -> None:
    """Attach `count` subscribers, follow until all of them have been told the row with key `mark`, compare.

    `difference`: the two columns of which what is left is the difference.
    """
    many = Fan(address, component, digest, count)
    many.attach_all(120.0)
    say(ready=count)
    first = many.subscribers[0]
    left: dict[Any, Any] = {}
    poller = zmq.Poller()
    for socket in many.by_socket:
        poller.register(socket, zmq.POLLIN)
    hello_at, last_at, end = time.monotonic() + HELLO_S, 0, time.monotonic() + 300.0
    while not last_at or any(one.messages < last_at for one in many.subscribers):
        if time.monotonic() > end:
            raise SystemExit("the last row did not come to all subscribers")
        for socket, _ in poller.poll(200):
            one = many.by_socket[socket]
            first_frame, *frames = socket.recv_multipart()
            frames = [first_frame[TOPIC_BYTES:], *frames]
            _, message = decode_message(frames)
            if not (isinstance(message, Knowledge) and len(message.rows)):
                continue
            if last_at and one.messages >= last_at:
                continue
            one.messages += 1
            for frame in frames:
                one.digest.update(frame)
            if one is first:
                columns, (plus, minus) = message.rows.columns, difference
                rows: Any = zip(columns[0], columns[plus], columns[minus], message.rows.visible, strict=True)
                left.update({item: offered - sold if seen else 0 for item, offered, sold, seen in rows})
                if mark in left:
                    last_at = one.messages
        if time.monotonic() > hello_at:
            many.greet()
            hello_at = time.monotonic() + HELLO_S
    same = sum(one.digest.digest() == first.digest.digest() for one in many.subscribers)
    say(finished=time.monotonic(), messages=last_at, same=same, left={str(item): n for item, n in left.items()})
    many.close()
