"""CURVE on real sockets: who gets in, under which name, and that those who do not leave only a count and a few lines.

Both pairs of sockets of a broker are tried: ROUTER with DEALER, and XPUB with SUB.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq

from runtime.security.allow_list import AllowList, WatchedAllowList, add_entry, entry_for
from runtime.security.endpoints import (
    check_binding,
    check_connecting,
    is_local,
    join_address,
    secure_client,
    secure_server,
    split_address,
)
from runtime.security.errors import BadKey, NotSecured
from runtime.security.keys import Keys, PublicKey, new_keys
from runtime.security.zap import ANSWERS_PER_TURN, Authenticator, sender_name
from tests.measures import PATIENCE_S, least_kept_bytes

QUIET_S = 0.4  # how long a refused peer is watched: an admitted one is served in a few milliseconds

Context = zmq.Context[zmq.Socket[bytes]]


class Door:
    """A broker's ROUTER and XPUB with the authenticator in one poll loop, and nothing behind them."""

    def __init__(self, allowed: Path, keys: Keys, *, with_authenticator: bool = True) -> None:
        self.keys = keys
        self.context: Context = zmq.Context()
        self.watched = WatchedAllowList(allowed)
        self.authenticator = Authenticator(self.context, self.watched) if with_authenticator else None
        self.router = self.context.socket(zmq.ROUTER)
        self.publisher = self.context.socket(zmq.XPUB)
        self.poller = zmq.Poller()
        for socket in (self.router, self.publisher):
            secure_server(socket, keys)
            socket.linger = 0
            socket.bind("tcp://127.0.0.1:*")
            self.poller.register(socket, zmq.POLLIN)
        if self.authenticator is not None:
            self.poller.register(self.authenticator.socket, zmq.POLLIN)
        self.names: list[str] = []
        self.topics: list[bytes] = []

    def turn(self, milliseconds: int = 20) -> None:
        ready = dict(self.poller.poll(milliseconds))
        if self.authenticator is not None and self.authenticator.socket in ready:
            self.authenticator.serve()
        if self.router in ready:
            frames = self.router.recv_multipart(copy=False)
            self.names.append(sender_name(frames, self.watched.current))
            self.router.send_multipart([frames[0].bytes, b"welcome"])
        if self.publisher in ready:
            self.topics.append(self.publisher.recv())
            self.publisher.send_multipart([b"topic", b"news"])

    def address(self, socket: zmq.Socket[bytes]) -> str:
        address = socket.getsockopt(zmq.LAST_ENDPOINT)
        assert isinstance(address, bytes)
        return address.decode()

    def close(self) -> None:
        self.router.close()
        self.publisher.close()
        if self.authenticator is not None:
            self.authenticator.close()
        self.context.term()


@pytest.fixture
def listed() -> Keys:
    return new_keys("till")


@pytest.fixture
def allowed(tmp_path: Path, listed: Keys) -> Path:
    path = tmp_path / "allowed.toml"
    add_entry(path, entry_for("till-7", listed.public, publish=["Sales"]))
    return path


@pytest.fixture
def door(allowed: Path) -> Iterator[Door]:
    door = Door(allowed, new_keys("b1"))
    yield door
    door.close()


def knock(
    door: Door,
    keys: Keys | None,
    server: PublicKey | None,
    seconds: float = QUIET_S,
    until: Callable[[], bool] = lambda: True,
) -> tuple[bool, bool]:
    """Is a DEALER answered, and does a SUB hear anything? They have a context of their own, as another process has, and
    are watched for some seconds, and on `until` something is so."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as dealer, context.socket(zmq.SUB) as subscriber:
        for socket, listener in ((dealer, door.router), (subscriber, door.publisher)):
            socket.linger = 0
            if keys is not None and server is not None:
                secure_client(socket, keys, server)
            socket.connect(door.address(listener))
        subscriber.subscribe(b"topic")
        dealer.send(b"hello")
        began = time.monotonic()
        while (taken := time.monotonic() - began) < seconds or (not until() and taken < PATIENCE_S):
            door.turn()
            answers = bool(dealer.poll(0)), bool(subscriber.poll(0))
            if all(answers):
                break
        return answers


def test_a_listed_key_gets_in_under_its_name(door: Door, listed: Keys) -> None:
    assert knock(door, listed, door.keys.public, PATIENCE_S) == (True, True)
    assert door.names == ["till-7"]
    assert door.topics == [b"\x01topic"]
    assert door.authenticator is not None
    assert door.authenticator.admitted == 2
    assert not door.authenticator.refusals.counts


def test_a_key_that_is_not_listed_is_kept_out_and_logged(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    stranger = new_keys("till")  # the name in a key file is nobody's proof
    assert door.authenticator is not None
    refusals = door.authenticator.refusals.counts
    with caplog.at_level(logging.WARNING, logger="smile.security"):
        assert knock(door, stranger, door.keys.public, until=lambda: refusals["unknown-key"] >= 2) == (False, False)
    assert door.names == []
    assert door.topics == []
    assert refusals["unknown-key"] >= 2
    assert any(stranger.public.curve.hex() in record.message for record in caplog.records)
    assert any("127.0.0.1" in record.message for record in caplog.records)


def test_no_key_is_kept_out(door: Door) -> None:
    assert knock(door, None, None) == (False, False)
    assert (door.names, door.topics) == ([], [])


def test_a_secret_of_another_does_not_go_with_a_listed_key(door: Door, listed: Keys) -> None:
    other = new_keys("x")
    forged = Keys("till", listed.public, other.curve_secret, other.signing_secret)
    assert knock(door, forged, door.keys.public) == (False, False)
    assert (door.names, door.topics) == ([], [])


def test_a_client_does_not_talk_to_a_server_with_another_key(door: Door, listed: Keys) -> None:
    assert knock(door, listed, new_keys("b1").public) == (False, False)
    assert (door.names, door.topics) == ([], [])


def test_nobody_gets_in_where_nobody_answers(allowed: Path, listed: Keys) -> None:
    door = Door(allowed, new_keys("b1"), with_authenticator=False)
    try:
        assert knock(door, listed, door.keys.public) == (False, False)
        assert (door.names, door.topics) == ([], [])
    finally:
        door.close()


def test_a_key_listed_later_gets_in_later(door: Door, allowed: Path) -> None:
    newcomer = new_keys("new")
    assert knock(door, newcomer, door.keys.public) == (False, False)
    add_entry(allowed, entry_for("new", newcomer.public))
    assert door.watched.reload_if_changed() == {"new"}
    assert knock(door, newcomer, door.keys.public, PATIENCE_S) == (True, True)
    assert door.names == ["new"]


def test_a_key_that_was_replaced_is_nobodys_on_its_old_connection(door: Door, allowed: Path, listed: Keys) -> None:
    """It may have been stolen: that is why keys are replaced."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
        dealer.linger = 0
        secure_client(dealer, listed, door.keys.public)
        dealer.connect(door.address(door.router))
        for names in (["till-7"], ["till-7", ""]):
            dealer.send(b"hello")
            end = time.monotonic() + PATIENCE_S
            while len(door.names) < len(names) and time.monotonic() < end:
                door.turn()
            assert door.names == names
            add_entry(allowed, entry_for("till-7", new_keys("till").public, publish=["Sales"]))
            assert door.watched.reload_if_changed() == {"till-7"}


def test_a_connection_that_was_too_early_gets_in_by_itself(door: Door, allowed: Path) -> None:
    newcomer = new_keys("new")
    with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
        dealer.linger = 0
        secure_client(dealer, newcomer, door.keys.public)
        dealer.connect(door.address(door.router))
        dealer.send(b"hello")
        end = time.monotonic() + QUIET_S
        while time.monotonic() < end:
            door.turn()
        assert door.names == []
        add_entry(allowed, entry_for("new", newcomer.public))
        assert door.watched.reload_if_changed() == {"new"}
        end = time.monotonic() + PATIENCE_S
        while not dealer.poll(0) and time.monotonic() < end:
            door.turn()
        assert door.names == ["new"]


def test_a_broker_is_a_client_of_another(door: Door, allowed: Path, listed: Keys) -> None:
    """One process with secured sockets of both sides, as brokers have."""
    other = Door(allowed, listed)
    dealer = other.context.socket(zmq.DEALER)
    try:
        dealer.linger = 0
        secure_client(dealer, listed, door.keys.public)
        dealer.connect(door.address(door.router))
        dealer.send(b"hello")
        end = time.monotonic() + PATIENCE_S
        while not dealer.poll(0) and time.monotonic() < end:
            door.turn()
            other.turn(0)
        assert dealer.recv(zmq.DONTWAIT) == b"welcome"
        assert door.names == ["till-7"]
    finally:
        dealer.close()
        other.close()


def test_names_do_not_come_from_open_connections() -> None:
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router, context.socket(zmq.DEALER) as dealer:
        port = router.bind_to_random_port("tcp://127.0.0.1")
        dealer.connect(f"tcp://127.0.0.1:{port}")
        dealer.send(b"hello")
        assert router.poll(int(PATIENCE_S * 1000))
        assert sender_name(router.recv_multipart(copy=False), AllowList()) == ""


def test_strangers_cost_no_memory(allowed: Path) -> None:
    """Asked thousands of times about thousands of keys, as ZeroMQ asks, the authenticator keeps none of them."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as asker:
        authenticator = Authenticator(context, WatchedAllowList(allowed))
        asker.linger = 0
        asker.connect("inproc://zeromq.zap.01")
        logging.getLogger("smile.security").disabled = True

        numbers = itertools.count()

        def ask(count: int) -> None:
            for _ in range(count):
                key = next(numbers).to_bytes(32, "big")
                asker.send_multipart([b"", b"1.0", b"1", b"smile", b"10.1.2.3", b"", b"CURVE", key])
                assert authenticator.serve() == 1
                assert asker.recv_multipart()[3] == b"300"

        try:
            ask(1000)
            grown = least_kept_bytes(lambda: ask(1000), 10_000, "runtime/security")
        finally:
            logging.getLogger("smile.security").disabled = False
            authenticator.close()
        assert authenticator.refusals.counts["unknown-key"] == next(numbers) >= 2000
        assert grown < 10_000


def test_malformed_questions_are_dropped_and_a_turn_is_bounded(allowed: Path) -> None:
    with zmq.Context() as context, context.socket(zmq.DEALER) as asker:
        authenticator = Authenticator(context, WatchedAllowList(allowed))
        asker.connect("inproc://zeromq.zap.01")
        good = [b"", b"1.0", b"1", b"smile", b"10.1.2.3", b"", b"CURVE", bytes(32)]
        wrong = [[b""], [b"x"] * 8, [b""] + [b"y"] * 30]
        otherwise = [[b"", b"2.0", *good[2:]], [*good[:3], b"other", *good[4:]], [*good[:6], b"NULL"], [*good, b"more"]]
        for question in (*wrong, *otherwise):
            asker.send_multipart(question)
        assert authenticator.serve() == len(wrong) + len(otherwise)
        assert [asker.recv_multipart(zmq.DONTWAIT)[3] for _ in otherwise] == [b"300"] * len(otherwise)
        assert not asker.poll(0)
        for _ in range(ANSWERS_PER_TURN + 1):
            asker.send_multipart(good)
        assert (authenticator.serve(), authenticator.serve()) == (ANSWERS_PER_TURN, 1)
        authenticator.close()


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("tcp://127.0.0.1:7070", True),
        ("tcp://127.9.9.9:*", True),
        ("tcp://localhost:7070", True),
        ("tcp://[::1]:7070", True),
        ("127.0.0.1:8080", True),
        ("ipc:///tmp/x", True),
        ("tcp://*:7070", False),
        ("tcp://0.0.0.0:7070", False),
        ("tcp://[::]:7070", False),
        ("tcp://10.0.0.5:7070", False),
        ("tcp://eth0:7070", False),
        ("tcp://127.0.0.1.example.com:7070", False),
        ("tcp://localhost.example.com:7070", False),
        ("0.0.0.0:8080", False),
        ("pgm://127.0.0.1;239.0.0.1:7070", False),
    ],
)
def test_which_addresses_stay_on_this_machine(address: str, local: bool) -> None:
    assert is_local(address) == local


def test_a_broker_does_not_start_open_to_others() -> None:
    check_binding(["tcp://127.0.0.1:1", "ipc:///tmp/x"], has_keys=False, has_allow_list=False)
    check_binding(["tcp://0.0.0.0:1"], has_keys=True, has_allow_list=True)
    with pytest.raises(NotSecured, match="smile keys new"):
        check_binding(["tcp://127.0.0.1:1", "tcp://0.0.0.0:1"], has_keys=False, has_allow_list=False)
    with pytest.raises(NotSecured, match="without an allow-list"):
        check_binding(["tcp://127.0.0.1:1"], has_keys=True, has_allow_list=False)
    with pytest.raises(NotSecured, match="without keys"):
        check_binding(["tcp://127.0.0.1:1"], has_keys=False, has_allow_list=True)


def test_a_client_does_not_talk_to_another_machine_in_the_open() -> None:
    key = new_keys("b1").public
    assert check_connecting("tcp://127.0.0.1:1", has_keys=False) is None
    assert check_connecting(join_address("tcp://10.0.0.5:1", key), has_keys=True) == key
    with pytest.raises(NotSecured, match="keys="):
        check_connecting(join_address("tcp://10.0.0.5:1", key), has_keys=False)
    with pytest.raises(NotSecured, match=r"\?key=smile1-"):
        check_connecting("tcp://10.0.0.5:1", has_keys=True)


def test_an_address_carries_a_key() -> None:
    key = new_keys("b1").public
    address = join_address("tcp://10.0.0.5:7070", key)
    assert split_address(address) == ("tcp://10.0.0.5:7070", key)
    assert split_address("tcp://10.0.0.5:7070") == ("tcp://10.0.0.5:7070", None)
    assert join_address("tcp://10.0.0.5:7070", None) == "tcp://10.0.0.5:7070"
    with pytest.raises(BadKey):
        join_address(address, key)
    with pytest.raises(BadKey):
        split_address("tcp://10.0.0.5:7070?key=")
