"""Faults on request: messages that get lost, come twice or come late, and a broker that stands still.

Only brokers that were started to allow it have one; demonstrations and tests ask for them. Everything here is what a
bad network or a busy machine does by itself.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from typing import Any

DELAYED_MAX = 10_000
"""Messages that may be held back; further ones are sent at once."""

PAUSE_S_MAX = 600.0
DELAY_MS_MAX = 60_000


class UnknownFault(ValueError):
    """What was asked for is no fault we know, or its numbers make no sense."""


class Faults:
    """`pass_on` decides what happens to one message that is about to be sent."""

    def __init__(self, seed: int | None = None) -> None:
        self.drop = 0.0
        self.duplicate = 0.0
        self.delay = 0.0
        self.delay_ms = 0
        self.pause_s = 0.0
        self.dropped = 0
        self._random = random.Random(seed)
        self._late: list[tuple[float, int, Callable[[], object]]] = []
        self._number = 0

    @property
    def is_active(self) -> bool:
        return bool(self.drop or self.duplicate or self.delay or self._late)

    def ask(self, kind: str, arguments: Mapping[str, Any]) -> None:
        """drop, duplicate (fraction); delay (fraction, ms); pause (seconds); none: all is well again."""
        match kind:
            case "drop" | "duplicate":
                setattr(self, kind, _number(arguments, "fraction", 0.0, 1.0))
            case "delay":
                self.delay = _number(arguments, "fraction", 0.0, 1.0)
                self.delay_ms = int(_number(arguments, "ms", 0, DELAY_MS_MAX))
            case "pause":
                self.pause_s = _number(arguments, "seconds", 0.0, PAUSE_S_MAX)
            case "none":
                self.drop = self.duplicate = self.delay = 0.0
            case _:
                raise UnknownFault(f"{kind!r} is none of drop, duplicate, delay, pause, none")

    def pass_on(self, send: Callable[[], object]) -> None:
        if self._random.random() < self.drop:
            self.dropped += 1
            return
        if self._random.random() < self.duplicate:
            send()
        if self._random.random() < self.delay and len(self._late) < DELAYED_MAX:
            self._number += 1
            heappush(self._late, (time.monotonic() + self.delay_ms / 1_000, self._number, send))
        else:
            send()

    def send_late(self) -> float | None:
        """Send what has been held back long enough; seconds until the next, None if nothing waits."""
        now = time.monotonic()
        while self._late and self._late[0][0] <= now:
            heappop(self._late)[2]()
        return self._late[0][0] - now if self._late else None

    def stand_still(self) -> None:
        """Between two rounds of the loop."""
        seconds, self.pause_s = self.pause_s, 0.0
        if seconds:
            time.sleep(seconds)


def _number(arguments: Mapping[str, Any], name: str, low: float, high: float) -> float:
    value = arguments.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
        raise UnknownFault(f"{name} is a number from {low} to {high}, not {value!r}")
    return float(value)
