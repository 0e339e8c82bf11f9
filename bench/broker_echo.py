"""The least that a durable broker could do, to compare with: ZeroMQ in, an SQLite commit, ZeroMQ out.

Three processes as in `bench/brokers.py`, which starts them: one hands in small messages when they are due, one commits
whatever waits to a database in WAL mode with full synchronisation and passes it on, one receives. No protocol, no
schema, no view. The roles are run by `bench/broker_workers.py`.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

import numpy as np
import zmq

from bench.broker_talk import say, sleep_until, wait_for_line

PAYLOAD = bytes(48)
"""With its number as long as an event on our wire."""

ROUND_MAX = 512
COUNT_BYTES = 8
LAST = b"\xff" * COUNT_BYTES


def serve(folder: Path) -> None:
    """Commit and pass on; ends after the last message."""
    context: zmq.Context[Any] = zmq.Context()
    router, publisher = context.socket(zmq.ROUTER), context.socket(zmq.PUB)
    for socket in (router, publisher):
        socket.bind("tcp://127.0.0.1:0")
    database = sqlite3.connect(folder / "echo.sqlite", isolation_level=None)
    database.execute("pragma journal_mode = wal")
    database.execute("pragma synchronous = full")
    database.execute("create table log (number integer primary key, data blob)")
    say(ins=router.getsockopt_string(zmq.LAST_ENDPOINT), outs=publisher.getsockopt_string(zmq.LAST_ENDPOINT))
    is_going = True
    while is_going:
        router.poll()
        taken: list[list[bytes]] = []
        while len(taken) < ROUND_MAX:
            try:
                taken.append(router.recv_multipart(zmq.DONTWAIT))
            except zmq.Again:
                break
        database.execute("begin immediate")
        database.executemany("insert into log (data) values (?)", [(data,) for _, data in taken])
        database.execute("commit")
        for peer, data in taken:
            publisher.send(data)
            router.send_multipart([peer, data[:COUNT_BYTES]])
            is_going = is_going and data[:COUNT_BYTES] != LAST
    database.close()
    context.destroy(linger=500)


def hand_in(address: str, rate: int, seconds: float, result: Path) -> None:
    """One message when it is due; the time at which each was handed in is the result."""
    context: zmq.Context[Any] = zmq.Context()
    dealer = context.socket(zmq.DEALER)
    dealer.connect(address)
    say(ready=True)
    wait_for_line()
    count = int(rate * seconds)
    handed = np.zeros(count)
    begin = time.monotonic() + 0.1
    for number in range(count):
        sleep_until(begin + number / rate)
        handed[number] = time.monotonic()
        dealer.send(number.to_bytes(COUNT_BYTES, "little") + PAYLOAD)
        while dealer.poll(0):
            dealer.recv()
    np.save(result, handed)
    dealer.send(LAST + PAYLOAD)
    say(done=True)
    context.destroy(linger=2_000)


def receive(address: str, count: int, result: Path) -> None:
    """The time at which each message arrived is the result."""
    context: zmq.Context[Any] = zmq.Context()
    subscriber = context.socket(zmq.SUB)
    subscriber.connect(address)
    subscriber.subscribe(b"")
    time.sleep(0.5)  # PUB tells nobody who has subscribed: this one must not be late
    say(ready=True)
    arrived = np.full(count, np.nan)
    while (data := subscriber.recv())[:COUNT_BYTES] != LAST:
        arrived[int.from_bytes(data[:COUNT_BYTES], "little")] = time.monotonic()
    np.save(result, arrived)
    say(done=True)
    context.destroy(linger=0)
