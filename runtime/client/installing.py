"""Brings the state of a component, computed elsewhere, into the broker that runs it: hold, send, wait (C6).

Whoever computes in bulk holds first, so that what happened meanwhile is still in the logs when the state arrives. The
broker gives up by itself when the connection ends before everything was sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from runtime.checkpoints import codec
from runtime.client.connection import Connection
from runtime.protocol.checkpoint import Checkpoint
from runtime.wire import control

PART_BYTES = 256 * 1024
"""Small enough that a broker takes one between two publishes."""

LOOK_AGAIN_S = 0.05


class InstallFailed(Exception):
    """Why the broker still serves what it had."""


class Installer:
    """For one component. `broker` has it."""

    def __init__(self, connection: Connection, component: str, digest: str) -> None:
        self.component = component
        self.broker: str = connection.deployment["placement"][component]
        self._connection = connection
        self._digest = digest

    def hold(self, timeout_s: float) -> None:
        """From when this returns, a state as of any later horizon can be installed, however long it takes to make."""
        self._ask(partial(_hold, self.component, self._digest))
        self._wait(lambda found: found["state"] == "held", timeout_s)

    def send(self, checkpoint: Checkpoint, progress: Callable[[int, int], None] = lambda _sent, _total: None) -> None:
        data = memoryview(codec.encode(checkpoint.to_wire()))
        for at in range(0, len(data), PART_BYTES):
            self._ask(partial(_part, self.component, at, len(data), data[at : at + PART_BYTES]))
            progress(min(at + PART_BYTES, len(data)), len(data))

    def wait(self, timeout_s: float, *, is_durable: bool = True) -> dict[str, Any]:
        """Until it serves; `is_durable`: and has been written to disk."""
        return self._wait(
            lambda found: found["state"] == "installed" and (found["is_durable"] or not is_durable), timeout_s
        )

    def release(self) -> None:
        """Never mind."""
        self._ask(lambda number: control.Release(number, self.component))

    def status(self) -> dict[str, Any]:
        answer = self._ask(control.Status)
        assert isinstance(answer, control.StatusReply)
        found: dict[str, Any] = answer.body.get("installs", {}).get(self.component, {"state": "none", "reason": ""})
        return found

    def _ask(self, make: Callable[[int], control.ControlRecord]) -> control.ControlRecord:
        return self._connection.ask(self.broker, make)

    def _wait(self, is_there: Callable[[dict[str, Any]], bool], timeout_s: float) -> dict[str, Any]:
        limit = time.monotonic() + timeout_s
        while not is_there(found := self.status()):
            if found["state"] in ("failed", "none"):
                reason = found["reason"] or "the broker has started again meanwhile"
                raise InstallFailed(f"`{self.component}` was not installed: {reason}")
            if time.monotonic() > limit:
                raise InstallFailed(f"`{self.component}` is still {found['state']} after {timeout_s:g} s")
            time.sleep(LOOK_AGAIN_S)
        return found


def _hold(component: str, digest: str, number: int) -> control.ControlRecord:
    return control.Hold(number, component, digest)


def _part(component: str, at: int, total: int, data: memoryview, number: int) -> control.ControlRecord:
    return control.Install(number, component, at, total, data)
