"""Goal: a forked process is told that the connection is not its own, and does its parent's no harm."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from typing import Any

from tests.measures import PATIENCE_S


def in_fork(work: Callable[[], str]) -> str:
    """What it gives there."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writing, work().encode())
        finally:
            os._exit(0)
    os.close(writing)
    try:
        is_there, _, _ = select.select([reading], [], [], PATIENCE_S)
        return os.read(reading, 4_096).decode() if is_there else "nothing came of it"
    finally:
        os.close(reading)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_fork_has_to_connect_by_itself(connected: Any) -> None:
    row = {"item": 1, "qty": 1}
    connected.publish("Sales", row)
    changes = connected.subscribe("Sold")
    calls: list[Callable[[], object]] = [
        lambda: connected.publish("Sales", row),
        lambda: connected.rows("Sold"),
        lambda: connected.subscribe("Small"),
        connected.system.settle,
        changes.wait,
        changes.token,
    ]

    def said(call: Callable[[], object]) -> str:
        try:
            call()
        except Exception as error:  # noqa: BLE001  that is the question
            return str(error)
        return "nothing"

    def work() -> str:
        found = {said(call) for call in calls}
        changes.close()
        connected.system.close()
        return " and ".join(found)

    assert in_fork(work) == "this process is a fork of the one that connected: connect here, too"
    connected.publish("Sales", row)
    assert connected.rows("Sold") == [{"item": 1, "total": 2}]
    batch = changes.wait(PATIENCE_S)
    assert batch is not None
    assert batch.columns() == {"item": [1], "total": [1]}
    changes.close()
