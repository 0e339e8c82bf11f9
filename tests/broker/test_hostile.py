"""Peers that stall, send garbage or ask for too much, and links that lose: nobody else is harmed."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgpack
import pytest
import zmq

import smile
from runtime.broker.hosted import guests_edge
from runtime.wire.control import (
    Attach,
    Attached,
    Confirmed,
    Detach,
    Hello,
    Status,
    StatusReply,
    Welcome,
    decode_control,
    encode_control,
)
from runtime.wire.frames import decode_frames
from smile.deploy.deployment import Deployment
from smile.digests import component_digests
from tests.broker.processes import WAIT_S, Zygote, kill, running, wait_for
from tests.broker.test_processes import ONE, PROGRAM, THREE, totals

R = TypeVar("R")


@contextmanager
def raw(kind: int, address: str) -> Iterator[zmq.Socket[bytes]]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    made = context.socket(kind)
    made.linger = 0
    made.connect(address)
    try:
        yield made
    finally:
        context.destroy(0)


def test_garbage_on_both_sockets_is_refused_and_counted(zygote: Zygote, tmp_path: Path) -> None:
    chance = random.Random(7)
    with running(zygote, tmp_path, PROGRAM, ONE) as brokers, smile.connect(brokers.address) as system:
        system.publish("Buys", {"item": 1, "qty": 5})
        serving = json.loads((tmp_path / "a" / "serving.json").read_text())
        incarnation = brokers.status(system, "a")["incarnation"]
        good = encode_control(Hello(1, "x", "client", 1))[0]
        with raw(zmq.DEALER, brokers.address) as dealer:
            for number in range(300):
                body = chance.randbytes(chance.randrange(60))
                if number % 3 == 0:
                    body = bytes(b ^ (1 << chance.randrange(8) if chance.random() < 0.1 else 0) for b in good)
                dealer.send_multipart([body] * chance.randrange(1, 5))
            dealer.send_multipart([good])
            wanted = Welcome(1, "a", incarnation, serving["data_address"], brokers.deployment.digest)
            answer: object = None
            while answer != wanted:  # some of the damaged hellos were still hellos
                assert dealer.poll(60_000)
                answer = decode_control(dealer.recv_multipart())
        with raw(zmq.XSUB, serving["data_address"]) as subscriber:
            for body in (b"", b"\1", b"\0", b"\1" + bytes(16), b"\1" + bytes(24), b"\2abc", chance.randbytes(100)):
                subscriber.send(body)
            assert not subscriber.poll(300)  # a subscription to everything, or to a guess, gives nothing
        for port in (brokers.address, serving["data_address"]):
            with socket.create_connection(("127.0.0.1", int(port.rpartition(":")[2]))) as plain:
                plain.sendall(chance.randbytes(5_000))
        system.publish("Buys", {"item": 1, "qty": 6})
        assert totals(system) == {1: 11}
        wait_for(lambda: brokers.status(system, "a")["counters"].get("refused.topic"), "refused topics")
        assert brokers.status(system, "a")["counters"]["refused.wire-garbage"] > 50


def test_another_version_is_told_so(zygote: Zygote, tmp_path: Path) -> None:
    with running(zygote, tmp_path, PROGRAM, ONE) as brokers, raw(zmq.DEALER, brokers.address) as dealer:
        frame = bytearray(encode_control(Hello(1, "x", "client", 1))[0])
        frame[1] = 99  # the header's first field
        dealer.send(bytes(frame))
        assert dealer.poll(60_000)
        answer = decode_control(dealer.recv_multipart())
        assert getattr(answer, "code", "") == "wire-version"


def test_a_stalled_subscriber_costs_the_broker_no_memory_and_catches_up(zygote: Zygote, tmp_path: Path) -> None:
    out = tmp_path / "seen.json"
    program = "stream Notes (number int, note text);"
    with running(zygote, tmp_path, program, {"Notes": "a"}) as brokers, smile.connect(brokers.address) as system:
        pid = zygote.run("subscriber", address=brokers.address, view="Notes", out=str(out))
        rows = {"number": list(range(100)), "note": [f"{n:08}" * 250 for n in range(100)]}  # equal texts travel once
        for _ in range(20):  # everything has its final size now
            system.publish_many("Notes", rows)
        wait_for(out.exists, "the subscriber")
        os.kill(pid, signal.SIGSTOP)
        before = brokers.memory("a")
        for _ in range(400):  # 80 MB, and one of the subscribers takes nothing
            system.publish_many("Notes", rows)
        assert brokers.memory("a") - before < 50e6
        os.kill(pid, signal.SIGCONT)
        wait_for(lambda: json.loads(out.read_text())[0] == 42_000, "the subscriber to catch up")
        kill(pid)


@pytest.mark.parametrize("kind", ["drop", "duplicate", "delay"])
def test_links_that_lose_repeat_and_delay_change_nothing_but_the_time(
    zygote: Zygote, tmp_path: Path, kind: str
) -> None:
    with (
        running(zygote, tmp_path, PROGRAM, THREE, allow_faults=True) as brokers,
        smile.connect(brokers.address) as system,
    ):
        for name in brokers.addresses:
            system.connection.fault(name, kind, {"fraction": 0.3, "ms": 50})
        system.publish_many("Items", {"item": [1, 2], "name": ["one", "two"]})
        futures = [system.publish_nowait("Buys", {"item": 1 + i % 2, "qty": 1}) for i in range(200)]
        for future in futures:
            future.result(WAIT_S)
        for name in brokers.addresses:
            system.connection.fault(name, "none", {})
        assert totals(system) == {1: 100, 2: 100}
        assert [row["total"] for row in system.rows("Shown")] == [100, 100]


def test_a_name_too_long_to_be_answered_is_refused(zygote: Zygote, tmp_path: Path) -> None:
    """The answer to a publish repeats its producer: the broker ended when it could not be written."""
    with running(zygote, tmp_path, PROGRAM, ONE) as brokers, smile.connect(brokers.address) as system:
        with raw(zmq.DEALER, brokers.address) as dealer:
            fields = ["Buys", "界" * 3_000, 0, [1, [[4, [1]], [4, [5]]]], None]
            dealer.send(msgpack.packb([1, 44, *fields, b""]))
            dealer.send_multipart(encode_control(Hello(1, "x", "client", 1)))
            assert dealer.poll(60_000)
        assert brokers.status(system, "a")["counters"]["refused.wire-too-large"] == 1
        assert totals(system) == {}


def attached(dealer: zmq.Socket[bytes], deployment: Deployment) -> tuple[str, bytes]:
    """As a guest of `Sold`: where to listen, and for what."""
    digest = component_digests(deployment, smile.compile(PROGRAM))["Sold"]
    dealer.send_multipart(encode_control(Hello(1, "x", "client", 1)))
    welcome = answer_of(dealer, Welcome)
    dealer.send_multipart(encode_control(Attach(2, guests_edge("Sold"), "Sold", "guest", digest)))
    return welcome.data_address, answer_of(dealer, Attached).topic


def answer_of(dealer: zmq.Socket[bytes], kind: type[R]) -> R:
    while True:
        assert dealer.poll(60_000)
        found = decode_frames(dealer.recv_multipart())
        if isinstance(found, kind):
            return found


def test_a_connection_that_ends_late_takes_nothing_from_its_successor(zygote: Zygote, tmp_path: Path) -> None:
    """A receiver loses its connection and makes another before the broker notices that the first is gone: it used to
    be told nothing more, and had to ask for everything."""
    with (
        running(zygote, tmp_path, PROGRAM, ONE) as brokers,
        smile.connect(brokers.address) as system,
        raw(zmq.DEALER, brokers.address) as dealer,
    ):
        data_address, topic = attached(dealer, brokers.deployment)
        with raw(zmq.XSUB, data_address) as second:
            with raw(zmq.XSUB, data_address) as first:
                for subscriber in (first, second):
                    subscriber.send(b"\1" + topic)
                    answer_of(dealer, Confirmed)
            for number in range(20):
                system.publish("Buys", {"item": number, "qty": 1})
                assert second.poll(10_000), number
                while second.poll(0):
                    second.recv_multipart()


def test_whoever_leaves_hears_no_more_whatever_arrives_first(zygote: Zygote, tmp_path: Path) -> None:
    """It says so on both sockets, in any order; others go on listening."""
    with (
        running(zygote, tmp_path, PROGRAM, ONE) as brokers,
        smile.connect(brokers.address) as system,
        raw(zmq.DEALER, brokers.address) as dealer,
    ):
        system.subscribe("Sold", lambda _change: None)
        data_address, topic = attached(dealer, brokers.deployment)
        with raw(zmq.XSUB, data_address) as subscriber:
            subscriber.send(b"\1" + topic)
            answer_of(dealer, Confirmed)
            dealer.send_multipart(encode_control(Detach(guests_edge("Sold"))))
            dealer.send_multipart(encode_control(Status(3)))
            answer_of(dealer, StatusReply)
            subscriber.send(b"\0" + topic)

            def is_quiet() -> bool:
                while subscriber.poll(0):
                    subscriber.recv_multipart()
                return not subscriber.poll(1_500)  # an idle stream says so five times a second

            wait_for(is_quiet, "the end of what it hears", 20)


def test_faults_have_to_be_allowed(zygote: Zygote, tmp_path: Path) -> None:
    with running(zygote, tmp_path, PROGRAM, ONE) as brokers, smile.connect(brokers.address) as system:
        with pytest.raises(Exception, match="allow-faults"):
            system.connection.fault("a", "drop", {"fraction": 1.0})
        system.publish("Buys", {"item": 1, "qty": 5})
        assert totals(system) == {1: 5}
