"""The receiving end of a connection to one broker: says hello, attaches, subscribes, and keeps all that up.

Brokers have one for each broker they receive from, clients one for each broker they talk to. It survives restarts of
the other side: a new incarnation is noticed, everything is attached again, and whoever listens is told. The caller
polls the sockets and calls `tick`; nothing here blocks or waits.
"""

from __future__ import annotations

import secrets
import sys
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import zmq

from runtime.broker.endpoints import ANSWERS_HWM, INPUT_HWM, TOPIC_BYTES, Context, Socket, common_options
from runtime.broker.multipart import has_input, receive_now, send_now
from runtime.protocol.messages import Message
from runtime.security.endpoints import secure_client, split_address
from runtime.security.keys import Keys
from runtime.wire.control import (
    Acknowledged,
    Attach,
    Attached,
    Confirmed,
    ControlRecord,
    Detach,
    Hello,
    Refused,
    Unattached,
    Welcome,
    encode_control,
)
from runtime.wire.errors import WireError
from runtime.wire.frames import decode_frames
from runtime.wire.messages import encode_message

HELLO_US = 100_000
"""How often a broker is greeted that has not answered."""

KEEP_ALIVE_US = {"broker": 1_000_000, "client": 3_000_000}
"""How often one that has answered is greeted: a broker has many clients. A broken connection is noticed at once."""

LOST_AFTER = 3
"""A broker that has not answered so many greetings counts as lost; it is greeted until it answers."""

ATTACH_AGAIN_US = 500_000
"""An attachment that was not answered, or not confirmed, is asked for again."""

REFUSED_AGAIN_US = 2_000_000
"""... and one that was refused: the other broker may not have the new deployment yet."""

KNOWLEDGE_RECEIVE_HWM = 10_000
"""Messages that may wait in a receiver that reads them; they are small when they are many."""

MESSAGES_PER_TURN = 200
TURN_US = 10_000
"""A turn reads until one of these is reached; the rest waits in the socket."""


def _event_of(frames: list[bytes]) -> int:
    """What a monitor says has happened: the first frame begins with it, two bytes in the machine's order."""
    return int.from_bytes(frames[0][:2], sys.byteorder)


class Stage(Enum):
    WANTED = "wanted"
    ATTACHED = "attached"
    CONFIRMED = "confirmed"


class Listener(Protocol):
    """Who owns the uplink. All calls come from inside `tick`, `read_control` and `read_data`."""

    def arrived(self, uplink: Uplink, edge: str, message: Message, size: int) -> None: ...

    def confirmed(self, uplink: Uplink, edge: str) -> None:
        """From now on nothing is missed on this edge: ask what was missed before."""

    def attach_refused(self, uplink: Uplink, edge: str, code: str, reason: str) -> None: ...

    def replied(self, uplink: Uplink, record: ControlRecord) -> None:
        """Whatever else the broker says."""

    def welcomed(self, uplink: Uplink, is_new: bool) -> None:
        """The broker answers; `is_new`: another incarnation than before."""


@dataclass(slots=True)
class WantedEdge:
    component: str
    kind: str
    digest: str
    stage: Stage = Stage.WANTED
    topic: bytes = b""
    request: int = 0
    due_us: int = 0
    refusal: str = ""  # why, as long as nothing else was answered since
    refused_us: int = 0  # since when


class Uplink:
    """`welcome` is the broker's last answer, None while it is lost."""

    def __init__(
        self,
        context: Context,
        address: str,
        *,
        name: str,
        kind: str,
        incarnation: int,
        keys: Keys | None,
        steady_us: Callable[[], int],
        listener: Listener,
    ) -> None:
        self.address = address
        self.welcome: Welcome | None = None
        self.counters: Counter[str] = Counter()
        self.edges: dict[str, WantedEdge] = {}
        self._name, self._kind, self._incarnation = name, kind, incarnation
        self._keep_alive_us = KEEP_ALIVE_US[kind]
        self._steady_us = steady_us
        self._listener = listener
        self._keys = keys
        self._endpoint, self._server = split_address(address)
        self._data_endpoint = ""
        self._known_incarnation: int | None = None
        self._heard_us = 0
        self._hello_due_us = 0
        self._request = 0
        self.is_due = False
        """Has something been heard since this was last set to False, after which something may be due?"""
        # At first unknown: a descriptor shows nothing before its socket was asked once.
        self._is_control_unread = self._is_data_unread = self._is_monitor_unread = True
        self.dealer: Socket = context.socket(zmq.DEALER)
        self.subscriber: Socket = context.socket(zmq.XSUB)
        common_options(self.dealer, self._endpoint, send_hwm=ANSWERS_HWM, receive_hwm=INPUT_HWM)
        common_options(self.subscriber, self._endpoint, send_hwm=INPUT_HWM, receive_hwm=KNOWLEDGE_RECEIVE_HWM)
        self.dealer.setsockopt(zmq.ROUTING_ID, b"\1" + secrets.token_bytes(16))
        self.dealer.setsockopt(zmq.IMMEDIATE, 1)  # nothing is kept for a broker that is not there: it may be another
        if keys is not None and self._server is not None:
            secure_client(self.dealer, keys, self._server)
            secure_client(self.subscriber, keys, self._server)
        self.monitor: Socket = self.dealer.get_monitor_socket(zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED)
        self.dealer.connect(self._endpoint)
        self.descriptors = tuple(int(one.getsockopt(zmq.FD)) for one in self.sockets)
        """Of the sockets, for `read`."""

    @property
    def sockets(self) -> tuple[Socket, Socket, Socket]:
        """Poll these for input; `read_control`, `read_data` and `read_monitor` read them."""
        return self.dealer, self.subscriber, self.monitor

    @property
    def is_connected(self) -> bool:
        return self.welcome is not None

    def next_request(self) -> int:
        self._request += 1
        return self._request

    # Edges

    def attach(self, edge: str, component: str, kind: str, digest: str) -> None:
        """Keep this attachment up from now on."""
        self.edges[edge] = WantedEdge(component, kind, digest)
        self.tick()

    def detach(self, edge: str) -> None:
        gone = self.edges.pop(edge, None)
        if gone is None:
            return
        if gone.topic:
            self._subscribe(gone.topic, is_new=False)
        self.send_record(Detach(edge))

    def is_confirmed(self, edge: str) -> bool:
        found = self.edges.get(edge)
        return found is not None and found.stage is Stage.CONFIRMED

    def refusals(self) -> list[tuple[str, str, int]]:
        """Edges that the broker refuses: why, and for how many microseconds so far."""
        now_us = self._steady_us()
        return [(edge, one.refusal, now_us - one.refused_us) for edge, one in self.edges.items() if one.refusal]

    # Sending

    def send_record(self, record: ControlRecord) -> bool:
        return self._send(encode_control(record)) is not None

    def send_record_if_welcome(self, record: ControlRecord) -> bool:
        """Not to a broker that may be another one by now."""
        return self.welcome is not None and self.send_record(record)

    def send_message(self, edge: str, message: Message) -> int | None:
        """Bytes sent, None if there is nobody to send to: then the protocol says it again later."""
        if not self.is_confirmed(edge):
            return None
        return self._send(encode_message(edge, message))

    def _send(self, frames: list[bytes]) -> int | None:
        try:
            send_now(self.dealer, frames)
        except zmq.Again:
            self.counters["dropped"] += 1
            return None
        finally:
            self._is_control_unread = True
        return len(frames[0]) if len(frames) == 1 else sum(map(len, frames))

    # Time

    def tick(self) -> int:
        """What is due; microseconds until something is due again."""
        now_us = self._steady_us()
        if self.welcome is not None and now_us - self._heard_us > LOST_AFTER * self._keep_alive_us:
            self._lost()
        if now_us >= self._hello_due_us:
            self.send_record(Hello(self.next_request(), self._name, self._kind, self._incarnation))
            self._hello_due_us = now_us + (HELLO_US if self.welcome is None else self._keep_alive_us)
        due_us = self._hello_due_us
        if self.welcome is not None:
            for edge, wanted in self.edges.items():
                if wanted.stage is Stage.CONFIRMED:
                    continue
                if now_us >= wanted.due_us:
                    wanted.request = self.next_request()
                    wanted.due_us = now_us + ATTACH_AGAIN_US
                    self.send_record(Attach(wanted.request, edge, wanted.component, wanted.kind, wanted.digest))
                due_us = min(due_us, wanted.due_us)
        return max(0, due_us - now_us)

    def _lost(self) -> None:
        self.welcome = None
        self.counters["lost"] += 1
        self._hello_due_us = self._steady_us()

    # Reading

    def read(self, ready: Collection[int]) -> None:
        """For whoever polls descriptors, of which `ready` show input: reads all sockets that have some."""
        dealer, subscriber, monitor = self.descriptors
        if self._is_monitor_unread or monitor in ready:
            self.read_monitor()
        if self._is_data_unread or subscriber in ready:
            self.read_data()  # before answers, which would overtake the changes that they sum up
        if self._is_control_unread or dealer in ready:
            self.read_control()

    def has_input(self) -> bool:
        """Is there anything to read that no descriptor shows? To be asked before they are polled: what they show is
        gone once a socket was used, even to send."""
        if self._is_control_unread:
            self._is_control_unread = has_input(self.dealer)
        if self._is_data_unread:
            self._is_data_unread = has_input(self.subscriber)
        if self._is_monitor_unread:
            self._is_monitor_unread = has_input(self.monitor)
        return self._is_control_unread or self._is_data_unread or self._is_monitor_unread

    def read_monitor(self) -> None:
        self.is_due = True
        self._is_monitor_unread = True
        for _ in range(MESSAGES_PER_TURN):
            try:
                event = _event_of(self.monitor.recv_multipart(zmq.DONTWAIT))
            except zmq.Again:
                self._is_monitor_unread = False
                return
            if event == zmq.EVENT_DISCONNECTED:
                self._lost()
            else:
                self._hello_due_us = self._steady_us()
                self.tick()

    def read_control(self) -> None:
        self._is_control_unread = True
        for number in range(MESSAGES_PER_TURN):
            frames = receive_now(self.dealer)
            if frames is None:
                break
            self._decode([frame.buffer for frame in frames])
            if not number and not has_input(self.dealer):  # most often there is one, and asking is cheaper than Again
                break
        else:
            return
        self._is_control_unread = False

    def read_data(self) -> None:
        self._is_data_unread = True
        limit_us = self._steady_us() + TURN_US
        for number in range(MESSAGES_PER_TURN):
            if number and self._steady_us() > limit_us:
                return
            frames = receive_now(self.subscriber)
            if frames is None:
                break
            if len(frames[0]) <= TOPIC_BYTES:
                self.counters["refused.topic"] += 1
                continue
            self._decode([frames[0].buffer[TOPIC_BYTES:], *(frame.buffer for frame in frames[1:])])
            if not number and not has_input(self.subscriber):
                break
        else:
            return
        self._is_data_unread = False

    def _decode(self, frames: list[memoryview]) -> None:
        try:
            found = decode_frames(frames)
        except WireError as error:
            self.counters[f"refused.{error.code}"] += 1
            return
        if isinstance(found, tuple):
            edge, message = found
            if edge not in self.edges:
                self.counters["not_attached"] += 1  # under way when we left
                return
            self._listener.arrived(self, edge, message, sum(frame.nbytes for frame in frames))
            return
        self._record(found)

    def _record(self, record: ControlRecord) -> None:
        if type(record) is Acknowledged:  # nearly all are, and nothing becomes due by one
            self._listener.replied(self, record)
            return
        self.is_due = True
        match record:
            case Welcome():
                self._welcomed(record)
            case Attached(request, edge, topic, _):
                wanted = self.edges.get(edge)
                if wanted is not None and wanted.request == request:
                    self._attached(wanted, topic)
            case Confirmed(edge, topic):
                wanted = self.edges.get(edge)
                if wanted is not None and wanted.topic == topic:
                    wanted.stage = Stage.CONFIRMED
                    self._listener.confirmed(self, edge)
            case Unattached(edge):
                self._unattached(edge)
            case Refused(request, code, reason):
                for edge, wanted in self.edges.items():
                    if wanted.request == request:
                        now_us = self._steady_us()
                        wanted.due_us = now_us + REFUSED_AGAIN_US
                        wanted.refused_us = wanted.refused_us if wanted.refusal else now_us
                        wanted.refusal = f"{code}: {reason}"
                        self._listener.attach_refused(self, edge, code, reason)
                        return
                self._listener.replied(self, record)
            case _:
                self._listener.replied(self, record)

    def _welcomed(self, welcome: Welcome) -> None:
        is_new = welcome.incarnation != self._known_incarnation
        was_lost = self.welcome is None
        self.welcome = welcome
        self._heard_us = self._steady_us()
        if is_new:
            self._known_incarnation = welcome.incarnation
            self._connect_data(welcome.data_address)
            for edge in self.edges:
                self._unattached(edge)
        if is_new or was_lost:
            self._hello_due_us = self._heard_us + self._keep_alive_us
            self._listener.welcomed(self, is_new)
            self.tick()

    def _connect_data(self, address: str) -> None:
        endpoint, _ = split_address(address)
        if endpoint == self._data_endpoint:
            return
        if self._data_endpoint:
            self.subscriber.disconnect(self._data_endpoint)
        self._data_endpoint = endpoint
        self.subscriber.connect(endpoint)
        self._is_data_unread = True

    def _attached(self, wanted: WantedEdge, topic: bytes) -> None:
        wanted.refusal = ""
        if wanted.topic != topic:
            if wanted.topic:
                self._subscribe(wanted.topic, is_new=False)
            wanted.topic = topic
            self._subscribe(topic, is_new=True)
        if wanted.stage is Stage.WANTED:
            wanted.stage = Stage.ATTACHED

    def _unattached(self, edge: str) -> None:
        wanted = self.edges.get(edge)
        if wanted is not None:
            wanted.stage, wanted.due_us = Stage.WANTED, 0

    def _subscribe(self, topic: bytes, *, is_new: bool) -> None:
        try:
            self.subscriber.send(bytes([is_new]) + topic, zmq.DONTWAIT)
        except zmq.Again:
            self.counters["dropped"] += 1
        finally:
            self._is_data_unread = True

    def close(self) -> None:
        self.dealer.disable_monitor()
        self.monitor.close(0)
        self.dealer.close(0)
        self.subscriber.close(0)
