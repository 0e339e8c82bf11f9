"""An uplink whose descriptors are polled hears everything: what breaks too, and more than it reads in a turn."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator

import pytest
import zmq

from runtime.broker import uplink as uplink_file
from runtime.broker.timers import Clock
from runtime.broker.uplink import Uplink
from runtime.protocol.messages import Message
from runtime.wire.control import ControlRecord, Welcome, encode_control
from tests.measures import eventually

PATIENCE_S = 10.0


class Silent:
    """A listener that does nothing."""

    def arrived(self, uplink: Uplink, edge: str, message: Message, size: int) -> None: ...

    def confirmed(self, uplink: Uplink, edge: str) -> None: ...

    def attach_refused(self, uplink: Uplink, edge: str, code: str, reason: str) -> None: ...

    def replied(self, uplink: Uplink, record: ControlRecord) -> None: ...

    def welcomed(self, uplink: Uplink, is_new: bool) -> None: ...


class Broker:
    """A router that can go and come back, an uplink to it, and a thread's way of reading that."""

    def __init__(self) -> None:
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.router = self.context.socket(zmq.ROUTER)
        self.router.bind("tcp://127.0.0.1:0")
        self.address = self.router.getsockopt_string(zmq.LAST_ENDPOINT)
        self.uplink = Uplink(
            self.context,
            self.address,
            name="",
            kind="client",
            incarnation=1,
            keys=None,
            steady_us=Clock.system().steady_us,
            listener=Silent(),
        )
        self._shows = select.poll()
        for descriptor in self.uplink.descriptors:
            self._shows.register(descriptor, select.POLLIN)

    def read_until(self, is_so: Callable[[], bool]) -> None:
        """Reads only what the descriptors show, or what the uplink says that they do not."""
        end = time.monotonic() + PATIENCE_S
        ready: list[int] = []
        while not is_so():
            assert time.monotonic() < end
            self.uplink.read(ready)
            ready = [found for found, _ in self._shows.poll(0 if self.uplink.has_input() else 100)]

    def welcome(self) -> None:
        end = time.monotonic() + PATIENCE_S
        while not self.router.poll(50):  # it greets again until the connection is there
            assert time.monotonic() < end
            self.uplink.tick()
        peer, *_ = self.router.recv_multipart()
        answer = Welcome(1, "b", 7, "tcp://127.0.0.1:9", "")
        self.router.send_multipart([peer, *encode_control(answer)])
        self.read_until(lambda: self.uplink.is_connected)

    def leave(self) -> None:
        self.router.close(0)

    def dealer_events(self) -> int:
        return int(self.uplink.dealer.getsockopt(zmq.EVENTS))


@pytest.fixture
def broker() -> Iterator[Broker]:
    made = Broker()
    yield made
    made.uplink.close()
    made.context.destroy(0)


def test_a_broken_connection_is_heard_of_at_once(broker: Broker) -> None:
    broker.welcome()
    broker.uplink.is_due = False
    broker.leave()
    began = time.monotonic()
    broker.read_until(lambda: not broker.uplink.is_connected)
    assert time.monotonic() - began < 2.0, "long before greetings stay without an answer"
    assert broker.uplink.is_due


def test_what_is_heard_makes_something_due_until_somebody_has_seen_to_it(broker: Broker) -> None:
    broker.read_until(lambda: broker.uplink.is_due)
    broker.uplink.is_due = False
    broker.welcome()
    assert broker.uplink.is_due
    broker.uplink.tick()
    assert broker.uplink.is_due


def test_more_than_a_turn_reads_is_not_left_lying(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uplink_file, "MESSAGES_PER_TURN", 1)
    eventually(lambda: broker.dealer_events() & zmq.POLLOUT, "a connection, of which the monitor tells")
    broker.leave()
    eventually(lambda: not broker.dealer_events() & zmq.POLLOUT, "its end, of which it tells, too")
    broker.uplink.read(())
    assert broker.uplink.has_input()
    broker.read_until(lambda: not broker.uplink.has_input())
    with pytest.raises(zmq.Again):
        broker.uplink.monitor.recv_multipart(zmq.DONTWAIT)
