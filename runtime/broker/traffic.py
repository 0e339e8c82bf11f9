"""What a broker's components send to other processes: the host's link, with counters by edge.

Answers go to whoever asked, by ROUTER; knowledge to all subscribers of the edge, by XPUB; questions and what else goes
up to the broker that has the sender, by its uplink. Messages without rows that follow each other in one round become
one.
"""

from __future__ import annotations

import logging
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from runtime.broker.attachments import Attachments
from runtime.broker.endpoints import Endpoints
from runtime.broker.faults import Faults
from runtime.protocol.messages import DOWNSTREAM, Events, Knowledge, Message, Snapshot
from runtime.protocol.parts import split_events, split_state
from runtime.wire.errors import WireTooLarge
from runtime.wire.limits import FRAME_BYTES_MAX
from runtime.wire.messages import encode_message

log = logging.getLogger("smile.host")

PARTS = 64
"""A state message that is too large is cut into so many, or more where its texts are longest."""


@dataclass(slots=True)
class EdgeCount:
    messages_out: int = 0
    bytes_out: int = 0
    messages_in: int = 0
    bytes_in: int = 0
    dropped: int = 0


SendUp = Callable[[str, Message], int | None]
"""To the broker that has the sender of this edge; the bytes, or None if it was dropped."""


class Traffic:
    """Implements `Link`. `flush` ends a round."""

    def __init__(self, endpoints: Endpoints, attachments: Attachments, send_up: SendUp, faults: Faults | None) -> None:
        self.edges: defaultdict[str, EdgeCount] = defaultdict(EdgeCount)
        self._endpoints = endpoints
        self._attachments = attachments
        self._send_up = send_up
        self._faults = faults
        self._unsendable: set[str] = set()  # edges for which this was logged
        self._held: dict[str, Knowledge | Events] = {}  # nothing but coverage, and perhaps soon superseded

    def count(self, edge: str) -> EdgeCount:
        return self.edges[edge]

    def send(self, component: str, edge: str, message: Message, to: bytes | None) -> None:
        if type(message) not in DOWNSTREAM:
            self._up(edge, message)
        elif to is not None:
            self._answer(edge, message, to)
        else:
            self._tell(edge, message)

    def _up(self, edge: str, message: Message) -> None:
        def go() -> None:
            count = self.count(edge)
            size = self._send_up(edge, message)
            if size is None:
                count.dropped += 1
            else:
                count.messages_out += 1
                count.bytes_out += size

        self._pass_on(go)

    def _answer(self, edge: str, message: Message, to: bytes) -> None:
        for frames in self._encoded(edge, message):
            self._pass_on(partial(self._send_answer, edge, frames, to))

    def _send_answer(self, edge: str, frames: list[bytes], to: bytes) -> None:
        count = self.edges[edge]
        if self._endpoints.answer(to, frames):
            count.messages_out += 1
            count.bytes_out += sum(map(len, frames))
        else:
            count.dropped += 1

    def _tell(self, edge: str, message: Message) -> None:
        topic = self._attachments.topic_to_tell(edge)
        held = self._held.pop(edge, None) if self._held else None
        if topic is None:
            return
        if held is not None:
            joined = _joined(held, message)
            if joined is None:
                self._put(edge, held, topic)
            else:
                message = joined
        if (type(message) is Knowledge or type(message) is Events) and not len(message.rows.max_ticks):
            self._held[edge] = message
        else:
            self._put(edge, message, topic)

    def flush(self) -> None:
        if not self._held:
            return
        held, self._held = self._held, {}
        for edge, message in held.items():
            topic = self._attachments.topic_to_tell(edge)
            if topic is not None:
                self._put(edge, message, topic)

    def _put(self, edge: str, message: Message, topic: bytes) -> None:
        for frames in self._encoded(edge, message):
            if self._faults is None:
                self._send_topic(edge, frames, topic)
            else:
                self._pass_on(partial(self._send_topic, edge, frames, topic))

    def _send_topic(self, edge: str, frames: list[bytes], topic: bytes) -> None:
        self._endpoints.tell(topic, frames)
        count = self.edges[edge]
        count.messages_out += 1
        for frame in frames:
            count.bytes_out += len(frame)

    def _encoded(self, edge: str, message: Message) -> list[list[bytes]]:
        """One message, or smaller ones where its texts make it larger than any peer would take."""
        try:
            return [encode_message(edge, message)]
        except WireTooLarge:
            pieces = _cut(message)
            if not pieces:
                self.count(edge).dropped += 1
                if edge not in self._unsendable:
                    self._unsendable.add(edge)
                    reason = "a row is larger than any message may be (%d bytes): whoever reads this view waits for it"
                    log.error(reason, FRAME_BYTES_MAX, extra={"edge": edge})
            return [frames for piece in pieces for frames in self._encoded(edge, piece)]

    def _pass_on(self, send: Callable[[], None]) -> None:
        if self._faults is not None and self._faults.is_active:
            self._faults.pass_on(send)
        else:
            send()


def _cut(message: Message) -> Sequence[Message]:
    """The same in smaller messages; nothing if that cannot be."""
    if isinstance(message, Events) and len(message.rows) > 1:
        return split_events(message.cover, message.rows, len(message.rows) // 2)
    if isinstance(message, Knowledge | Snapshot) and len(message.rows) > 1:
        columns = message.rows.columns
        texts = [at for at, column in enumerate(columns) if any(type(value) is str for value in column)]
        # Any number that no other answer at this step has: pieces of two answers must not be put together.
        return split_state(message, -(-len(message.rows) // PARTS), random.getrandbits(40), texts)
    return ()


def _joined(held: Knowledge | Events, message: Message) -> Message | None:
    """One message that says what both say, if the second continues the first."""
    if isinstance(held, Events) and isinstance(message, Events):
        cover = held.cover.copy()
        cover.update(message.cover)
        return Events(cover, message.rows)
    if isinstance(held, Knowledge) and isinstance(message, Knowledge):
        same = (held.epoch, held.filtered_for) == (message.epoch, message.filtered_for)
        if same and held.to_step == message.from_step and held.floor <= message.floor:
            return Knowledge(
                message.epoch,
                held.from_step,
                message.to_step,
                message.coverage,
                message.rows,
                message.filtered_for,
                message.floor,
            )
    return None
