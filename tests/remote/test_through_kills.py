"""Goal: what is acknowledged is there, once and in order, whatever happens to brokers; slow readers stay true."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import smile
from smile.local import LocalBrokers
from tests.measures import PATIENCE_S, eventually
from tests.remote.conftest import Numbered, kill_and_wait


def test_publishers_go_on_while_brokers_are_killed(connected: Any, brokers: LocalBrokers) -> None:
    """Single rows, gathered ones and columns, through three kills of the brokers; every tick is in the log once."""
    acknowledged: list[tuple[int, int]] = []  # tick, qty
    ended = threading.Event()

    def singles() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            acknowledged.append((connected.publish("Sales", {"item": 1, "qty": number % 100}), number % 100))

    def columns() -> None:
        futures = []
        while not ended.is_set():
            futures.append(connected.publish_many_nowait("Sales", {"item": [2] * 10, "qty": list(range(10))}))
            time.sleep(0.01)
        for future in futures:
            acknowledged.extend(zip(connected.system.outcome(future), range(10), strict=True))

    threads = [threading.Thread(target=work) for work in (singles, columns)]
    for thread in threads:
        thread.start()
    for round_ in range(3):
        time.sleep(0.2)
        kill_and_wait(brokers, brokers.names[round_ % 2])
    time.sleep(0.2)
    ended.set()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    rows = connected.rows("Sales")
    assert len(rows) == len(acknowledged) == len({tick for tick, _ in acknowledged}) > 0
    in_order = [qty for _, qty in sorted(acknowledged)]
    assert [row["qty"] for row in rows] == in_order
    assert sum(row["total"] for row in connected.rows("Sold")) == sum(in_order)


def test_a_name_is_logged_once_through_a_restart(connected: Any, brokers: LocalBrokers, number: int) -> None:
    first = connected.publish("Sales", {"item": 1, "qty": 5}, once=("till", 1))
    many = connected.publish_many("Sales", {"item": [1, 1], "qty": [1, 1]}, once=("till", 2))
    kill_and_wait(brokers, *brokers.names)
    with smile.connect(brokers.address) as system:
        other = Numbered(system, number)
        assert other.publish("Sales", {"item": 1, "qty": 5}, once=("till", 1)) == first
        assert list(other.publish_many("Sales", {"item": [1, 1], "qty": [1, 1]}, once=("till", 2))) == list(many)
        assert other.rows("Sold") == [{"item": 1, "total": 7}]


def test_a_reader_that_does_not_read_gets_the_latest_state(connected: Any) -> None:
    slow = connected.subscribe("Sold", queue_rows=50)
    shown: dict[tuple[object, ...], Any] = {}
    for number in range(40):
        connected.publish_many("Sales", {"item": [n % 10 for n in range(100)], "qty": [1] * 100})
        if number == 20:
            shown = {change.key: change.row["total"] for change in slow.ready()}
    truth = {(row["item"],): row["total"] for row in connected.rows("Sold")}
    assert slow.squeezed > 0
    late = {change.key: change.row["total"] for change in slow.ready()}
    assert all(shown[key] <= late[key] for key in late)
    assert {**shown, **late} == truth == {(item,): 400 for item in range(10)}


def test_nobody_there() -> None:
    began = time.monotonic()
    with pytest.raises(smile.ConnectFailed) as caught:
        smile.connect("tcp://127.0.0.1:9", timeout=0.3)
    assert time.monotonic() - began < 30  # far above what was said, below what is usual
    assert caught.value.remedy
    assert "no answer" in caught.value.reason
    with pytest.raises(smile.ConnectFailed, match="key"):
        smile.connect("tcp://192.0.2.1:7070", timeout=0.3)


@pytest.mark.parametrize("address", ["127.0.0.1:7070", "tcp://127.0.0.1:port", "http://127.0.0.1:7070", "ipc://"])
def test_what_is_no_address_is_said_at_once(address: str) -> None:
    """It used to be waited for, without end."""
    with pytest.raises(smile.ConnectFailed) as caught:
        smile.connect(address, timeout=PATIENCE_S)
    assert "tcp://HOST:PORT" in caught.value.remedy


def test_waiting_is_bounded(brokers: LocalBrokers, number: int) -> None:
    """A paused broker is as good as none: calls end in time, and what was published counts once it is back."""
    with smile.connect(brokers.address, timeout=PATIENCE_S) as system:
        numbered = Numbered(system, number)
        numbered.publish("Sales", {"item": 1, "qty": 1})
        assert numbered.rows("Sold") == [{"item": 1, "total": 1}]
        for name in brokers.names:
            brokers.pause(name)
        try:
            system._timeout = 1.0
            with pytest.raises(smile.PublishUncertain, match="may be logged or not"):
                numbered.publish("Sales", {"item": 1, "qty": 1})
        finally:
            for name in brokers.names:
                brokers.resume(name)
        system._timeout = PATIENCE_S
        sent_again = [{"item": 1, "total": 2}]
        eventually(lambda: numbered.rows("Sold") == sent_again, "what is sent again until it is acknowledged")
