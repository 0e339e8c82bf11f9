"""A publish is sent by its caller; what goes wrong there is told where answers are told, and harms nothing else."""

from __future__ import annotations

import signal
import threading
import time
from concurrent.futures import Future
from typing import Any

import pytest

import smile
from runtime.broker import uplink
from runtime.broker.multipart import has_input
from runtime.client import lanes
from runtime.wire import control
from runtime.wire.errors import WireTooLarge
from smile.local import LocalBrokers
from smile.remote import publisher
from tests.measures import PATIENCE_S, eventually

ROW = {"item": 1, "qty": 1}
STREAM = "Sales1"


@pytest.fixture
def system(brokers: LocalBrokers) -> Any:
    with smile.connect(brokers.address) as made:
        yield made


@pytest.mark.parametrize("error", [WireTooLarge("a body"), ValueError("a mistake of ours")])
def test_what_cannot_be_sent_is_answered_by_the_thread_that_answers(
    system: Any, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    system.publish(STREAM, ROW)
    told: list[bool] = []
    done = publisher.Lane._done

    def noted(*arguments: Any) -> None:
        told.append(system._connection.is_here)
        done(*arguments)

    def refuse(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(lanes.Lane, "_put", refuse)
        patch.setattr(publisher.Lane, "_done", noted)
        future = system.publish_nowait(STREAM, ROW)
        assert str(error) in str(future.exception(PATIENCE_S))
    assert told == [True], "once, and there"
    assert system._connection._under_way == 0
    assert system.publish(STREAM, ROW) > 0


def test_a_message_that_is_too_large_for_a_broker_not_greeted_yet_ends_alone(
    brokers: LocalBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written when there is a broker to send it to, by the thread on which all else depends."""
    is_welcome = threading.Event()
    too_large: list[object] = []

    def send(self: uplink.Uplink, record: control.ControlRecord) -> bool:
        if not is_welcome.is_set():
            return False
        if not too_large and isinstance(record, control.Publish) and record.previous is None:  # the first
            too_large.append(record)
            raise WireTooLarge("a body")
        return self.send_record(record)

    monkeypatch.setattr(uplink.Uplink, "send_record_if_welcome", send)
    with smile.connect(brokers.address) as system:
        futures = [system.publish_nowait(STREAM, ROW) for _ in range(2)]
        is_welcome.set()
        with pytest.raises(smile.SmileError, match="a body"):
            futures[0].result(PATIENCE_S)
        assert futures[1].result(PATIENCE_S) > 0
        assert system._connection._under_way == 0


def test_a_callback_that_closes_the_system_does_not_wait_for_itself(
    system: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs in the thread that reads, whoever's call found out that something cannot be sent."""
    system.publish(STREAM, ROW)

    def refuse(*_: object) -> None:
        raise WireTooLarge("a body")

    monkeypatch.setattr(lanes.Lane, "_put", refuse)
    ended = threading.Event()

    def publish() -> None:
        future = system.publish_nowait(STREAM, ROW)
        future.add_done_callback(lambda _: system.close())
        ended.set()

    threading.Thread(target=publish, daemon=True).start()
    assert ended.wait(PATIENCE_S)
    closer = threading.Thread(target=system.close, daemon=True)
    closer.start()
    closer.join(PATIENCE_S)
    assert not closer.is_alive()


def test_numbers_that_no_broker_takes_are_refused_at_once(system: Any) -> None:
    for number in (-1, 2**63, True, "7"):
        with pytest.raises(smile.SmileError, match="a number from 0 to"):
            system.publish(STREAM, ROW, once=("till", number))
    assert system.publish(STREAM, ROW, once=("till", 2**63 - 1)) > 0


def test_ctrl_c_in_the_middle_of_sending_leaves_the_connection_to_others(
    system: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    system.publish(STREAM, ROW)
    main = threading.get_ident()

    def interrupted(socket: Any) -> bool:
        if threading.get_ident() == main:
            signal.raise_signal(signal.SIGINT)
        return has_input(socket)

    def publish() -> None:
        """Until the sockets were free, so that it was this thread that sent."""
        for _ in range(1_000):
            system.publish_nowait(STREAM, ROW)
            time.sleep(0.001)

    with monkeypatch.context() as patch:
        patch.setattr(uplink, "has_input", interrupted)
        with pytest.raises(KeyboardInterrupt):
            publish()
    assert system.publish(STREAM, ROW) > 0
    closer = threading.Thread(target=system.close, daemon=True)
    closer.start()
    closer.join(PATIENCE_S)
    assert not closer.is_alive()


def test_a_handler_of_signals_may_publish(system: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of another publish of the same thread."""
    system.publish(STREAM, ROW)
    made: list[Future[int]] = []
    before = signal.signal(signal.SIGUSR1, lambda *_: made.append(system.publish_nowait(STREAM, ROW)))
    real = lanes.Lane._put

    def put(*arguments: Any) -> None:
        if not made:
            signal.raise_signal(signal.SIGUSR1)
        real(*arguments)

    try:
        monkeypatch.setattr(lanes.Lane, "_put", put)
        first = system.publish_nowait(STREAM, ROW)
        eventually(lambda: made)
        assert {first.result(PATIENCE_S), made[0].result(PATIENCE_S)} == {first.result(), made[0].result()}
        assert first.result() != made[0].result()
    finally:
        signal.signal(signal.SIGUSR1, before)
