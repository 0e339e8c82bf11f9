"""Goal: nobody waits for ever because something ended at the wrong moment: a system, a connection, a callback."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest

import smile
from smile.local import LocalBrokers
from smile.remote.open_view import OpenView
from tests.measures import PATIENCE_S, eventually
from tests.remote.conftest import Numbered


def test_a_subscription_made_while_the_system_is_closed_ends(
    brokers: LocalBrokers, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = Numbered(smile.connect(brokers.address), number)
    is_under_way, go, is_made = threading.Event(), threading.Event(), threading.Event()
    wait_for, close_watch = OpenView.wait_for, system.system._watch.close
    told: list[object] = []

    def wait_for_go(self: OpenView, *arguments: Any, **named: Any) -> None:
        is_under_way.set()
        assert go.wait(PATIENCE_S)
        wait_for(self, *arguments, **named)

    def close_later() -> None:
        """All subscriptions are closed by now, and the connection is not yet."""
        go.set()
        assert is_made.wait(PATIENCE_S)
        close_watch()

    def subscribe() -> None:
        changes = system.subscribe("Sold")
        is_made.set()
        told.extend(changes)

    monkeypatch.setattr(OpenView, "wait_for", wait_for_go)
    monkeypatch.setattr(system.system._watch, "close", close_later)
    reader = threading.Thread(target=subscribe, daemon=True)
    reader.start()
    assert is_under_way.wait(PATIENCE_S)
    system.system.close()
    reader.join(PATIENCE_S)
    assert not reader.is_alive()
    assert told == []


def test_readers_are_told_that_the_connection_has_broken(brokers: LocalBrokers, number: int) -> None:
    with smile.connect(brokers.address) as system, system.subscribe(f"Sold{number}", timeout=PATIENCE_S) as changes:

        def break_down(*_: Any, **__: Any) -> int:
            raise ValueError("a mistake of ours")

        system.connection._loop._turn = break_down
        with pytest.raises(smile.SmileError, match="has broken"):
            list(changes)


def test_a_callback_that_wants_to_end_its_thread_ends_nobody_elses(connected: Any) -> None:
    tries: list[smile.Change] = []
    seen: list[smile.Change] = []

    def leave(change: smile.Change) -> None:
        tries.append(change)
        raise SystemExit

    with connected.subscribe("Sold", leave), connected.subscribe("Sold", seen.append):
        for item in range(3):
            connected.publish("Sales", {"item": item, "qty": 1})
        eventually(lambda: len(seen) == len(tries) == 3, "all changes")


WAITING: dict[str, Callable[[smile.RemoteSystem, str], object]] = {
    "rows": lambda system, view: system.rows(view),
    "subscribe": lambda system, view: system.subscribe(view),
    "settle": lambda system, _: system.settle(),
    "status": lambda system, _: system.status(),
    "own_status": lambda system, _: system.own_status(),
}


def test_a_futures_callback_cannot_wait_for_the_thread_it_runs_in(brokers: LocalBrokers, number: int) -> None:
    system = smile.connect(brokers.address)  # closed only at a good end: otherwise that would wait for ever, too
    for name, call in WAITING.items():
        said: Future[str] = Future()

        def done(_: Future[Any], call: Any = call, said: Future[str] = said) -> None:
            try:
                assert system.connection.is_here
                said.set_result(f"no error: {call(system, f'Sold{number}')}")
            except Exception as error:  # noqa: BLE001  that is the question
                said.set_result(str(error))

        holds = threading.Event()  # the answer must not come before the callback is there
        system.connection.post(partial(holds.wait, PATIENCE_S))
        system.publish_nowait(f"Sales{number}", {"item": 1, "qty": 1}).add_done_callback(done)
        holds.set()
        assert "cannot wait" in said.result(PATIENCE_S), name
    assert system.publish(f"Sales{number}", {"item": 1, "qty": 1}) > 0
    system.close()


def test_a_futures_callback_may_close_a_subscription_while_a_view_is_opened(
    brokers: LocalBrokers, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with smile.connect(brokers.address) as system:
        changes = system.subscribe(f"Sold{number}")
        open_leaf = system.connection.open_leaf
        is_opening, is_closing, is_closed = threading.Event(), threading.Event(), threading.Event()

        def open_slowly(*arguments: Any, **named: Any) -> Any:
            is_opening.set()
            assert is_closing.wait(PATIENCE_S)
            return open_leaf(*arguments, **named)

        def done(_: Future[Any]) -> None:
            is_closing.set()
            changes.close()
            is_closed.set()

        monkeypatch.setattr(system.connection, "open_leaf", open_slowly)
        reader = threading.Thread(target=lambda: system.rows(f"Small{number}"), daemon=True)
        reader.start()
        assert is_opening.wait(PATIENCE_S)
        system.publish_nowait(f"Sales{number}", {"item": 1, "qty": 1}).add_done_callback(done)
        assert is_closed.wait(system._timeout / 2), "before anybody loses patience"
        reader.join(PATIENCE_S)
        assert not reader.is_alive()
