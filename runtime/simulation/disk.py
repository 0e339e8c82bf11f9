"""The simulated disk of one node: writes that become durable later, or never.

`stores.py` writes log records, reservations and checkpoints here. A write waits until the next sync; a crash
decides what becomes of those that waited: lost, torn (half a record, which its checksum betrays, so lost too) or
kept although nobody was told. A disk may be full (the write fails at once), and a sync may fail (none of the
waiting writes counts). What a write means is the store's affair; bit rot, which needs to know what a checkpoint is,
happens there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from runtime.simulation.clock import VirtualClock

SYNC_US = 1_500


@dataclass
class Write:
    """One record on its way to the disk."""

    apply: Callable[[], None]  # makes it durable
    done: Callable[[bool], None]  # tells the writer: durable, or failed


class Disk:
    """What has been written and waits for a sync; the host owns what is durable."""

    def __init__(self, clock: VirtualClock, counts: Counter[str]) -> None:
        self._clock = clock
        self._counts = counts
        self._waiting: list[Write] = []
        self._syncing = False
        self._incarnation = 0
        self.full = False
        self.failing_syncs = 0
        self.slow_us = 0

    def write(self, apply: Callable[[], None], done: Callable[[bool], None]) -> None:
        """Write one record and sync; `done` is called when it is durable or has failed, never after a crash."""
        if self.full:
            self._counts["disk full"] += 1
            incarnation = self._incarnation
            self._clock.after(1, lambda: done(False) if incarnation == self._incarnation else None)
            return
        self._waiting.append(Write(apply, done))
        if not self._syncing:
            self._start_sync()

    def _start_sync(self) -> None:
        self._syncing = True
        batch, incarnation = len(self._waiting), self._incarnation
        self._clock.after(SYNC_US + self.slow_us, lambda: self._finish_sync(batch, incarnation))

    def _finish_sync(self, batch: int, incarnation: int) -> None:
        if incarnation != self._incarnation:
            return
        writes, self._waiting = self._waiting[:batch], self._waiting[batch:]
        self._syncing = False
        worked = self.failing_syncs == 0
        if not worked:
            self.failing_syncs -= 1
            self._counts["failed sync"] += 1
        for write in writes:
            if worked:
                write.apply()
        for write in writes:
            write.done(worked)
        if self._waiting and not self._syncing and incarnation == self._incarnation:
            self._start_sync()

    def crash(self, outcome: str) -> None:
        """Lose what waited, or keep a part of it: `lost`, `torn` (the first half is kept, one record torn), `kept`."""
        self._incarnation += 1
        self._syncing = False
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        kept = {"lost": 0, "torn": len(waiting) // 2, "kept": len(waiting)}[outcome]
        for write in waiting[:kept]:
            write.apply()
        if kept < len(waiting):
            self._counts["torn write" if outcome == "torn" else "lost unsynced writes"] += 1
        else:
            self._counts["unsynced writes kept"] += 1
