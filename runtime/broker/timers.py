"""Timers by name, and the two clocks that a host goes by.

The host owns one `Timers`. A timer that is armed again before it fires keeps its one place in the heap and moves there
when its old time comes, so that arming at every message costs nothing and the heap is no larger than the names.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush


@dataclass(frozen=True, slots=True)
class Clock:
    """`wall_us` gives ticks their size and may jump; `steady_us` never does and says when timers are due."""

    wall_us: Callable[[], int]
    steady_us: Callable[[], int]

    @staticmethod
    def system() -> Clock:
        return Clock(lambda: time.time_ns() // 1_000, lambda: time.monotonic_ns() // 1_000)


TimerName = tuple[str, str]
"""Component and name of the timer there."""


class Timers:
    def __init__(self) -> None:
        self._due_us: dict[TimerName, int] = {}
        self._heap: list[tuple[int, TimerName]] = []
        self._queued: dict[TimerName, int] = {}  # the time under which a timer is in the heap

    def arm(self, component: str, name: str, due_us: int) -> None:
        """Replaces an earlier arming of the same timer."""
        at = (component, name)
        self._due_us[at] = due_us
        queued = self._queued.get(at)
        if queued is None or due_us < queued:
            self._queued[at] = due_us
            heappush(self._heap, (due_us, at))

    def forget(self, component: str) -> None:
        """Those of one component: it starts again or has left."""
        for at in [at for at in self._due_us if at[0] == component]:
            del self._due_us[at]

    def rename(self, component: str, to: str) -> None:
        """The timers of one component are those of another from now on."""
        for (_, name), due_us in [one for one in self._due_us.items() if one[0][0] == component]:
            self.arm(to, name, due_us)
        self.forget(component)

    def next_due_us(self) -> int | None:
        """Not later than the next timer that is due."""
        return self._heap[0][0] if self._heap else None

    def due(self, now_us: int) -> Iterator[TimerName]:
        """Timers whose time has come. One that is armed meanwhile for a time already past comes in the next call."""
        found: list[TimerName] = []
        while self._heap and self._heap[0][0] <= now_us:
            queued_us, at = heappop(self._heap)
            if self._queued.get(at) != queued_us:
                continue  # it has been armed for an earlier time since
            del self._queued[at]
            due_us = self._due_us.get(at)
            if due_us is None:
                continue
            if due_us > now_us:
                self._queued[at] = due_us
                heappush(self._heap, (due_us, at))
            else:
                del self._due_us[at]
                found.append(at)
        yield from found

    def __len__(self) -> int:
        return len(self._due_us)
