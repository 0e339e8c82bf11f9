"""Goal: a round takes all requests that wait, none twice, and does not ask an empty socket for one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, cast

import pytest
import zmq

from runtime.broker import broker as brokers
from runtime.broker.broker import Broker
from runtime.broker.endpoints import Endpoints
from runtime.security.policy import Policy


class Taken:
    """In place of `Requests`."""

    def __init__(self) -> None:
        self.rows_in = 0
        self.frames: list[tuple[bytes, list[bytes], int]] = []

    def take(self, identity: bytes, user: str, frames: list[Any], size: int, now_us: int) -> None:
        assert (user, now_us) == ("", 7)
        self.frames.append((identity, [bytes(frame) for frame in frames], size))


@pytest.fixture
def endpoints() -> Iterator[Endpoints]:
    context = zmq.Context()
    made = Endpoints(context, "tcp://127.0.0.1:*", "tcp://127.0.0.1:*", None)
    yield made
    made.close()
    context.destroy(linger=0)


@pytest.fixture
def peer(endpoints: Endpoints) -> Iterator[zmq.Socket[bytes]]:
    socket = endpoints.context.socket(zmq.DEALER)
    socket.setsockopt(zmq.IDENTITY, b"peer")
    socket.connect(endpoints.address)
    yield socket
    socket.close(0)


def reader(endpoints: Endpoints) -> tuple[Broker, Taken]:
    """A broker as far as it reads."""
    made, taken = cast(Any, object.__new__(Broker)), Taken()
    made._endpoints, made._policy, made.requests = endpoints, Policy(None), taken
    return made, taken


def wait_for(endpoints: Endpoints) -> None:
    until = time.monotonic() + 10
    while not endpoints.has_request():
        assert time.monotonic() < until
    time.sleep(0.1)  # for those behind it


def test_everything_that_waits_is_read_in_one_round(endpoints: Endpoints, peer: zmq.Socket[bytes]) -> None:
    broker, taken = reader(endpoints)
    body = bytes(range(256)) * 1_000
    sent = [[b"header %d" % n] if n % 2 else [b"header %d" % n, body] for n in range(20)]
    for frames in sent:
        peer.send_multipart(frames)
    wait_for(endpoints)
    found = []
    ask = endpoints.next_request

    def noted() -> Any:
        found.append(ask())
        return found[-1]

    endpoints.next_request = noted  # type: ignore[method-assign]
    broker._read_requests(7)
    assert taken.frames == [(b"peer", frames, sum(map(len, frames))) for frames in sent]
    assert None not in found, "an empty socket answers with an exception"
    assert not endpoints.has_request()
    broker._read_requests(7)
    assert len(taken.frames) == 20


def test_a_round_has_its_bounds(endpoints: Endpoints, peer: zmq.Socket[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    broker, taken = reader(endpoints)
    for n in range(10):
        peer.send(b"header %d" % n)
    wait_for(endpoints)
    monkeypatch.setattr(brokers, "REQUESTS_PER_ROUND", 3)
    broker._read_requests(7)
    assert len(taken.frames) == 3
    monkeypatch.setattr(brokers, "ROUND_BYTES_MAX", 10)
    broker._read_requests(7)
    assert len(taken.frames) == 5
    monkeypatch.setattr(brokers, "ROUND_ROWS_MAX", 0)
    broker._read_requests(7)
    assert len(taken.frames) == 6
