"""Virtual time: a clock that moves only when the next event is taken from the queue.

The simulator puts deliveries, timers, disk completions, workload and faults here as callbacks. Events of
one instant keep the order in which they were put in, so a run depends on nothing but its decisions. Clock
jumps are not done here: a component's idea of the time is an offset kept by its broker, while this clock
only moves forward.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

Action = Callable[[], None]


class VirtualClock:
    """The present instant in microseconds and everything that is still to happen."""

    def __init__(self) -> None:
        self.now_us = 0
        self._queue: list[tuple[int, int, Action]] = []
        self._sequence = 0

    def at(self, instant_us: int, action: Action) -> None:
        """Do `action` at an instant; one that has passed means now."""
        self._sequence += 1
        heappush(self._queue, (max(instant_us, self.now_us), self._sequence, action))

    def after(self, delay_us: int, action: Action) -> None:
        """Do `action` after a delay."""
        self.at(self.now_us + delay_us, action)

    def step(self) -> bool:
        """Take the next event; False if nothing is left."""
        if not self._queue:
            return False
        instant_us, _, action = heappop(self._queue)
        self.now_us = instant_us
        action()
        return True

    def next_us(self) -> int | None:
        """The instant of the next event."""
        return self._queue[0][0] if self._queue else None

    def pending(self) -> int:
        """How many events wait."""
        return len(self._queue)
