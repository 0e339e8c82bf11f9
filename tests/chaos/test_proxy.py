"""The proxy injects the faults it says it does and no others; otherwise the tests on top of it would show nothing."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from tests.chaos.proxy import Faults, Proxy
from tests.chaos.zmtp import NotZmtp, Splitter
from tests.measures import PATIENCE_S

PATIENCE_MS = int(1000 * PATIENCE_S)
QUIET_MS = 50
COUNT = 1000


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with closing(Proxy(seed=7)) as proxy:
        yield proxy


def ends(proxy: Proxy, context: zmq.Context[zmq.Socket[bytes]]) -> tuple[zmq.Socket[bytes], zmq.Socket[bytes]]:
    """A DEALER behind the proxy and one in front of it."""
    server, client = context.socket(zmq.DEALER), context.socket(zmq.DEALER)
    for each in (server, client):
        each.linger, each.rcvhwm, each.sndhwm = 0, 0, 0
    port = proxy.add("link", "127.0.0.1", server.bind_to_random_port("tcp://127.0.0.1"))
    client.connect(f"tcp://127.0.0.1:{port}")
    return server, client


def received(proxy: Proxy, end: zmq.Socket[bytes], sent: int) -> list[int]:
    """Everything that the proxy has let through of `sent` messages. It has decided about all of them when so many have
    arrived as it says; a little later still nothing more has."""
    counts, got = proxy.routes["link"].counts, list[int]()
    while len(got) < sent - counts["dropped"] + counts["duplicated"] or end.poll(QUIET_MS):
        assert end.poll(PATIENCE_MS), f"{len(got)} of {sent}, {counts}"
        number, body = end.recv_multipart()
        assert body == number * 50
        got.append(int(number))
    return got


def send(end: zmq.Socket[bytes], count: int = COUNT) -> None:
    for number in range(count):
        text = str(number).encode()
        end.send_multipart([text, text * 50])


def send_until_heard(client: zmq.Socket[bytes], server: zmq.Socket[bytes]) -> None:
    """What was sent before the client noticed that its connection is gone is lost with it."""
    end = time.monotonic() + PATIENCE_S
    while not server.poll(100):
        assert time.monotonic() < end
        send(client, 1)


def through(proxy: Proxy, faults: Faults) -> list[int]:
    with zmq.Context() as context:
        server, client = ends(proxy, context)
        with server, client:
            proxy.set_faults("link", to_server=faults)
            send(client)
            return received(proxy, server, COUNT)


def test_without_faults_everything_passes_in_order(proxy: Proxy) -> None:
    assert through(proxy, Faults()) == list(range(COUNT))
    assert not proxy.routes["link"].counts


def test_dropped_messages_are_missing_and_nothing_else(proxy: Proxy) -> None:
    got = through(proxy, Faults(drop=0.1))
    assert got == sorted(set(got))
    assert COUNT - len(got) == proxy.routes["link"].counts["dropped"]
    assert COUNT * 0.05 < COUNT - len(got) < COUNT * 0.2


def test_duplicates_follow_their_originals(proxy: Proxy) -> None:
    got = through(proxy, Faults(duplicate=0.1))
    assert sorted(set(got)) == list(range(COUNT))
    assert got == sorted(got)
    assert len(got) - COUNT == proxy.routes["link"].counts["duplicated"] > 0


def test_reordered_messages_arrive_later(proxy: Proxy) -> None:
    got = through(proxy, Faults(reorder=0.1, delay_max_s=0.1))
    assert sorted(got) == list(range(COUNT))
    moved = sum(1 for before, after in itertools.pairwise(got) if after < before)
    assert 0 < moved <= proxy.routes["link"].counts["reordered"]


def test_late_messages_hold_up_what_follows(proxy: Proxy) -> None:
    start = time.monotonic()
    got = through(proxy, Faults(late=0.02, delay_max_s=0.5))
    assert got == list(range(COUNT))
    assert time.monotonic() - start > 0.3
    assert proxy.routes["link"].counts["late"] > 0


def test_the_same_seed_makes_the_same_choices() -> None:
    runs = []
    for seed in (7, 7, 8):
        with closing(Proxy(seed)) as proxy:
            runs.append(through(proxy, Faults(drop=0.05, duplicate=0.05)))
    assert runs[0] == runs[1] != runs[2]


def test_the_other_direction_has_faults_of_its_own(proxy: Proxy) -> None:
    with zmq.Context() as context:
        server, client = ends(proxy, context)
        with server, client:
            proxy.set_faults("link", to_client=Faults(drop=0.5))
            send(client, 100)
            assert received(proxy, server, 100) == list(range(100))
            send(server, 100)
            assert 20 < len(received(proxy, client, 100)) < 80


def test_subscriptions_are_commands_and_survive(proxy: Proxy) -> None:
    with zmq.Context() as context, context.socket(zmq.XPUB) as publisher, context.socket(zmq.SUB) as subscriber:
        port = proxy.add("data", "127.0.0.1", publisher.bind_to_random_port("tcp://127.0.0.1"))
        proxy.set_faults("data", to_server=Faults(drop=1.0), to_client=Faults(drop=0.5))
        subscriber.subscribe(b"a")
        subscriber.connect(f"tcp://127.0.0.1:{port}")
        assert publisher.poll(PATIENCE_MS)
        assert publisher.recv() == b"\x01a"
        for _ in range(100):
            publisher.send(b"a")
        counts, got = proxy.routes["data"].counts, 0
        while got < 100 - counts["dropped"]:
            assert subscriber.poll(PATIENCE_MS)
            got += len(subscriber.recv())
        assert 20 < got < 80


def test_a_cut_connection_comes_back(proxy: Proxy) -> None:
    with zmq.Context() as context:
        server, client = ends(proxy, context)
        with server, client:
            send(client, 10)
            assert received(proxy, server, 10) == list(range(10))
            assert proxy.cut("link") == 1
            send_until_heard(client, server)
            assert [each.what for each in proxy.record] == ["cut 1 of 1"]


def test_nobody_gets_through_while_it_refuses(proxy: Proxy) -> None:
    with zmq.Context() as context:
        server, client = ends(proxy, context)
        with server, client:
            send(client, 1)
            assert received(proxy, server, 1) == [0]
            proxy.refuse("link", True)
            proxy.cut("link")
            send(client, 1)
            assert not server.poll(500)
            proxy.refuse("link", False)
            send_until_heard(client, server)


def test_a_stalled_link_loses_nothing_once_it_flows_again(proxy: Proxy) -> None:
    with zmq.Context() as context:
        server, client = ends(proxy, context)
        with server, client:
            send(client, 1)
            assert received(proxy, server, 1) == [0]
            proxy.stall("link")
            send(client, 50)
            assert not server.poll(400)
            proxy.resume("link")
            assert received(proxy, server, 50) == list(range(50))


def test_a_throttled_link_is_slow(proxy: Proxy) -> None:
    with zmq.Context() as context:
        server, client = ends(proxy, context)
        with server, client:
            proxy.set_faults("link", to_server=Faults(bytes_per_s=40_000))
            start = time.monotonic()
            send(client, 200)  # about 20 kB
            assert received(proxy, server, 200) == list(range(200))
            assert time.monotonic() - start > 0.5


def test_encrypted_streams_pass_in_one_piece(proxy: Proxy) -> None:
    with zmq.Context() as context, context.socket(zmq.DEALER) as server, context.socket(zmq.DEALER) as client:
        server.curve_server = True
        public, server.curve_secretkey = zmq.curve_keypair()
        client.curve_serverkey = public
        client.curve_publickey, client.curve_secretkey = zmq.curve_keypair()
        port = proxy.add("link", "127.0.0.1", server.bind_to_random_port("tcp://127.0.0.1"))
        proxy.set_faults("link", to_server=Faults(drop=0.5, duplicate=0.5))
        client.connect(f"tcp://127.0.0.1:{port}")
        send(client, 200)
        assert received(proxy, server, 200) == list(range(200))


def test_nothing_behind_it_is_a_reset_not_a_wait(proxy: Proxy) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = proxy.add("link", "127.0.0.1", free.getsockname()[1])
        where = ("127.0.0.1", port)
        with pytest.raises(ConnectionResetError), socket.create_connection(where, timeout=PATIENCE_S) as client:
            assert client.recv(1) != b"", "closed politely"


def test_what_is_not_zmtp_is_cut_and_noted(proxy: Proxy) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = proxy.add("link", "127.0.0.1", listener.getsockname()[1])
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
            client.sendall(b"GET / HTTP/1.1\r\n" * 10)
            with pytest.raises(ConnectionResetError):
                client.recv(1)
    assert proxy.routes["link"].counts["broken"] == 1


GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)


def frame(data: bytes, *, more: bool = False, command: bool = False) -> bytes:
    flags = more * 1 + command * 4
    if len(data) > 255:
        return bytes([flags | 2]) + len(data).to_bytes(8, "big") + data
    return bytes([flags, len(data)]) + data


MESSAGES = st.lists(st.lists(st.binary(max_size=400), min_size=1, max_size=4), max_size=8)


@given(MESSAGES, st.integers(1, 50))
def test_a_stream_is_split_the_same_however_it_arrives(messages: list[list[bytes]], portion: int) -> None:
    ready = frame(b"\x05READY", command=True)
    whole = [
        b"".join(frame(part, more=number < len(parts)) for number, part in enumerate(parts, 1)) for parts in messages
    ]
    stream = GREETING + ready + b"".join(whole)
    splitter = Splitter()
    units = [unit for at in range(0, len(stream), portion) for unit in splitter.feed(stream[at : at + portion])]
    assert b"".join(unit.data for unit in units) == stream
    assert b"".join(unit.data for unit in units if not unit.is_message) == GREETING + ready
    assert [unit.data for unit in units if unit.is_message] == whole


def test_a_message_beyond_the_bound_is_refused_before_it_is_read() -> None:
    splitter = Splitter()
    with pytest.raises(NotZmtp):
        splitter.feed(GREETING + b"\x02" + (1 << 40).to_bytes(8, "big"))
