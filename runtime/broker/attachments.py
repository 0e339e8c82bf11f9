"""Who listens on which edge: peers, their attachments, and the topics that were handed out.

The broker keeps one `Attachments`. A peer attaches (and gets a topic), subscribes to it (and is confirmed), may ask
and leaves, in order or not. Topics are random: whoever has not been given one has no way to subscribe to it.
"""

from __future__ import annotations

import secrets
from collections import Counter
from dataclasses import dataclass, field

from runtime.broker.endpoints import TOPIC_BYTES

PRIVATE_BYTES = 8
PEERS_MAX = 16_384
"""Connections that have said hello and were heard of lately; further ones are refused."""

ATTACHMENTS_PER_PEER_MAX = 1_024
PEER_SILENT_US = 30_000_000
"""A peer that says nothing for so long is forgotten, with its attachments; it may come back and attach again."""

REQUESTS_MAX = 2_000.0
REQUESTS_PER_S = 200.0
"""Requests (not publishes, not messages) that a peer may make at once, and how fast it may make more; then they are
refused as busy. Attaching everywhere after a restart fits in."""


@dataclass(slots=True)
class Attachment:
    peer: bytes
    edge: str
    component: str
    kind: str  # "plan", "guest" or "second"
    topic: bytes  # shared part and private part
    subscriptions: int = 0
    """How often its topic is subscribed to. Twice for a while if a receiver has lost a connection and made another: the
    end of the first may be noticed later."""

    @property
    def is_subscribed(self) -> bool:
        return self.subscriptions > 0


@dataclass(slots=True)
class Peer:
    """`user` is the name that the connection proved, empty without keys; `name` is what it says about itself."""

    identity: bytes
    user: str
    name: str
    kind: str
    incarnation: int
    heard_us: int
    attachments: dict[str, Attachment] = field(default_factory=dict)
    messages_in: int = 0
    bytes_in: int = 0
    requests_left: float = REQUESTS_MAX
    counted_us: int = 0

    def may_request(self, now_us: int) -> bool:
        """Counts one request."""
        gained = (now_us - self.counted_us) / 1e6 * REQUESTS_PER_S
        self.requests_left = min(REQUESTS_MAX, self.requests_left + gained)
        self.counted_us = now_us
        if self.requests_left < 1:
            return False
        self.requests_left -= 1
        return True


class Attachments:
    def __init__(self) -> None:
        self.peers: dict[bytes, Peer] = {}
        self._topics: dict[str, bytes] = {}  # edge -> shared part
        self._by_topic: dict[bytes, Attachment] = {}
        self._attached: Counter[str] = Counter()  # edge -> attachments
        self._listeners: Counter[str] = Counter()  # edge -> those that are subscribed

    # Peers

    def meet(self, identity: bytes, user: str, name: str, kind: str, incarnation: int, now_us: int) -> Peer | None:
        """Somebody says hello, for the first time or again; None if there are too many."""
        known = self.peers.get(identity)
        if known is not None and (known.incarnation != incarnation or known.user != user):
            self.forget(identity)
            known = None
        if known is None:
            if len(self.peers) >= PEERS_MAX:
                return None
            known = Peer(identity, user, name, kind, incarnation, now_us)
            self.peers[identity] = known
        known.heard_us = now_us
        return known

    def forget(self, identity: bytes) -> list[Attachment]:
        """The peer has left; its attachments, which are no more."""
        peer = self.peers.pop(identity, None)
        return [] if peer is None else [self._drop(attachment) for attachment in list(peer.attachments.values())]

    def silent_since(self, limit_us: int) -> list[bytes]:
        return [identity for identity, peer in self.peers.items() if peer.heard_us < limit_us]

    # Attachments

    def attach(self, peer: Peer, edge: str, component: str, kind: str) -> Attachment | None:
        """None if the peer has too many. Attaching again keeps the topic."""
        known = peer.attachments.get(edge)
        if known is not None:
            return known
        if len(peer.attachments) >= ATTACHMENTS_PER_PEER_MAX:
            return None
        shared = self._topics.setdefault(edge, secrets.token_bytes(TOPIC_BYTES))
        made = Attachment(peer.identity, edge, component, kind, shared + secrets.token_bytes(PRIVATE_BYTES))
        peer.attachments[edge] = made
        self._by_topic[made.topic] = made
        self._attached[edge] += 1
        return made

    def detach(self, peer: Peer, edge: str) -> Attachment | None:
        attachment = peer.attachments.get(edge)
        return None if attachment is None else self._drop(attachment)

    def _drop(self, attachment: Attachment) -> Attachment:
        self._listeners[attachment.edge] -= attachment.subscriptions
        attachment.subscriptions = 0
        del self._by_topic[attachment.topic]
        self._attached[attachment.edge] -= 1
        peer = self.peers.get(attachment.peer)
        if peer is not None:
            peer.attachments.pop(attachment.edge, None)
        return attachment

    def renew_topics(self) -> None:
        """Nobody keeps listening to what it may no longer read: all topics are new, everybody has to attach again."""
        for peer in self.peers.values():
            peer.attachments.clear()
        self._topics.clear()
        self._by_topic.clear()
        self._attached.clear()
        self._listeners.clear()

    # Subscriptions

    def of_topic(self, topic: bytes) -> Attachment | None:
        """The attachment that this topic was made for."""
        return self._by_topic.get(topic)

    def subscribed(self, topic: bytes) -> Attachment | None:
        attachment = self._by_topic.get(topic)
        if attachment is not None:
            attachment.subscriptions += 1
            self._listeners[attachment.edge] += 1
        return attachment

    def unsubscribed(self, topic: bytes) -> None:
        attachment = self._by_topic.get(topic)
        if attachment is not None and attachment.subscriptions:
            attachment.subscriptions -= 1
            self._listeners[attachment.edge] -= 1

    def topic_to_tell(self, edge: str) -> bytes | None:
        """None if nobody listens: then nothing need be encoded."""
        return self._topics[edge] if self._listeners[edge] else None

    def attached(self, edge: str) -> int:
        return self._attached[edge]
