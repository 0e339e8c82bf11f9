"""The simulated shell around components: nodes, incarnations, and what happens to instructions.

The simulator (`simulator.py`) owns the world and decides what happens; this file does what a broker would do: feed
events to a component, carry out what it answers, hand messages to the network, write to the disk, keep timers. A
node may be down, paused or slow; whatever is meant for it then waits, within bounds, or is lost.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

from runtime.simulation.clock import VirtualClock
from runtime.simulation.disk import Disk

INBOX_MAX = 2_048


class Node:
    """One machine: it can be down, paused or slow, its clock can be wrong, and it has a disk."""

    def __init__(self, name: str, clock: VirtualClock, counts: Counter[str]) -> None:
        self.name = name
        self.disk = Disk(clock, counts)
        self.up = True
        self.incarnation = 0
        self.clock_offset_us = 0
        self.slow_us = 0
        self.pauses = 0
        self.inbox_peak = 0
        self._clock = clock
        self._counts = counts
        self._inbox: deque[Callable[[], None]] = deque()
        self._busy = False

    def now_us(self) -> int:
        """The time as this node sees it."""
        return max(0, self._clock.now_us + self.clock_offset_us)

    def crash(self, disk_outcome: str) -> None:
        """Lose everything in memory; the disk decides about writes under way."""
        self.up = False
        self.incarnation += 1
        self._inbox.clear()
        self._busy = False
        self.disk.crash(disk_outcome)

    def receive(self, action: Callable[[], None]) -> None:
        """Do something on this node as soon as it has time; messages beyond the bound are dropped."""
        if not self.up:
            self._counts["message to a dead node"] += 1
            return
        if not self.pauses and not self.slow_us and not self._inbox:
            action()
            return
        if len(self._inbox) >= INBOX_MAX:
            self._counts["queue overflow"] += 1
            return
        self._inbox.append(action)
        self.inbox_peak = max(self.inbox_peak, len(self._inbox))
        if not self._busy and not self.pauses:
            self._work_later()

    def internal(self, action: Callable[[], None]) -> None:
        """A timer or a disk completion of this incarnation: waits for a pause to end, is never dropped by a bound."""
        incarnation = self.incarnation

        def still() -> None:
            if self.up and incarnation == self.incarnation:
                action()

        if self.pauses:
            self._inbox.append(still)
        else:
            still()

    def pause(self) -> None:
        self.pauses += 1

    def resume(self) -> None:
        """Go on with what has gathered."""
        self.pauses -= 1
        if not self.pauses and self._inbox and not self._busy:
            self._work_later()

    def _work_later(self) -> None:
        self._busy = True
        incarnation = self.incarnation
        self._clock.after(self.slow_us, lambda: self._work(incarnation))

    def _work(self, incarnation: int) -> None:
        if incarnation != self.incarnation or not self.up:
            return
        self._busy = False
        if self.pauses or not self._inbox:
            return
        self._inbox.popleft()()
        if self._inbox and incarnation == self.incarnation:
            self._work_later()
