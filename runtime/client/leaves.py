"""The leaves of a client: which attachment feeds which, and the handle by which callers reach one.

All leaves of one component share one attachment. Everything here happens in the connection's thread, except what the
handle's methods hand over to it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from runtime.broker.host import Host
from runtime.broker.hosted import Told, guests_edge
from runtime.broker.tuning import LEAF
from runtime.broker.uplink import Uplink
from runtime.client.errors import ConnectionClosed
from runtime.plan import Component, Plan
from runtime.protocol.checkpoint import Checkpoint
from runtime.protocol.leaf import Leaf
from runtime.protocol.messages import Curiosity, EventCuriosity, Message

if TYPE_CHECKING:
    from runtime.client.connection import Connection

NEVER_US = 1 << 62

T = TypeVar("T")


class LeafHandle:
    """One leaf in a connection. `failure`: why no broker feeds it (any more); None while one does, or may soon."""

    def __init__(self, connection: Connection, name: str, edge: str, component: str, uplink: Uplink) -> None:
        self.failure: str | None = None
        self.failure_code = ""
        self.name = name
        self.edge = edge
        self.component = component
        self.uplink = uplink
        self.is_closed = False
        self._connection = connection

    @property
    def leaf(self) -> Leaf:
        """To be looked at in the connection's thread only."""
        made = self._connection.leaves.host.hosted[self.name].component
        assert isinstance(made, Leaf)
        return made

    def run(self, function: Callable[[Leaf], T], timeout: float | None = None) -> T:
        """Call this in the connection's thread, between two messages."""
        return self._connection.call(lambda: function(self.leaf), timeout)

    @property
    def is_connected(self) -> bool:
        """Does the broker answer, and has it confirmed that it tells us everything?"""
        return self.uplink.is_connected and self.uplink.is_confirmed(guests_edge(self.component))

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            with suppress(ConnectionClosed):  # with everything in it
                self._connection.post(lambda: self._connection.leaves.close(self))


class Leaves:
    """Implements the host's link, upwards only."""

    def __init__(self) -> None:
        self.host: Host
        self._by_edge: dict[str, LeafHandle] = {}  # the leaf's own edge
        self._by_wire: dict[tuple[int, str], list[LeafHandle]] = {}  # uplink and edge on the wire
        self._number = 0

    def open(
        self,
        connection: Connection,
        uplink: Uplink,
        plan: Plan,
        leaf: Component,
        told: Callable[[Told], None],
        *,
        watch: bool,
        digest: str,
        kept: Checkpoint | None,
    ) -> LeafHandle:
        """Start it. It asks as soon as its attachment is confirmed."""
        self._number += 1
        (read,) = leaf.in_edges
        name = f"{leaf.name} {self._number}"
        edge = replace(read, name=f"{read.name} {self._number}")
        renamed = replace(leaf, name=name, in_edges=(edge,), tuning=LEAF)
        whole = Plan((*(one for one in plan.components if one.name != leaf.name), renamed))
        handle = LeafHandle(connection, name, edge.name, read.sender, uplink)
        wire = guests_edge(read.sender)
        self._by_edge[edge.name] = handle
        sharing = self._by_wire.setdefault((id(uplink), wire), [])
        sharing.append(handle)
        kept = None if kept is None else replace(kept, component=name)
        self.host.start(whole, [name], tell=told, kept=kept)
        if watch:
            self.host.watch(name)
        if len(sharing) == 1:
            uplink.attach(wire, read.sender, "guest", digest)
        elif uplink.is_confirmed(wire):
            self.host.nudge(name, edge.name)
        return handle

    def close(self, handle: LeafHandle) -> None:
        if self._by_edge.pop(handle.edge, None) is None:
            return
        wire = guests_edge(handle.component)
        sharing = self._by_wire[id(handle.uplink), wire]
        sharing.remove(handle)
        self.host.stop(handle.name)
        if not sharing:
            del self._by_wire[id(handle.uplink), wire]
            handle.uplink.detach(wire)

    def work(self, now_us: int) -> int:
        """What has arrived, and what is due; microseconds until something is due again."""
        if not self._by_edge:
            return NEVER_US
        self.host.fire(now_us)
        self.host.work()
        return self.host.next_due_us(now_us)

    # The host's link

    def send(self, component: str, edge: str, message: Message, to: bytes | None) -> None:
        """Questions only: brokers do not listen to what else a guest could say."""
        handle = self._by_edge.get(edge)
        if handle is not None and isinstance(message, Curiosity | EventCuriosity):
            handle.uplink.send_message(guests_edge(handle.component), message)

    # From uplinks

    def arrived(self, uplink: Uplink, edge: str, message: Message) -> None:
        for handle in self._by_wire.get((id(uplink), edge), ()):
            self.host.arrived(handle.name, handle.edge, message, None)

    def confirmed(self, uplink: Uplink, edge: str) -> None:
        for handle in self._by_wire.get((id(uplink), edge), ()):
            handle.failure = None
            self.host.nudge(handle.name, handle.edge)

    def refused(self, uplink: Uplink, edge: str, code: str, reason: str) -> None:
        for handle in self._by_wire.get((id(uplink), edge), ()):
            handle.failure, handle.failure_code = reason, code
