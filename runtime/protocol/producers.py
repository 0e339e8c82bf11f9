"""Which publishes a stream has logged: (producer, sequence) -> ticks, for the newest few of each producer.

A repeat within the window gets its first ticks back (E3). A repeat from before the window is refused, not guessed.
Producers come and go (every connection is one), so that those that have published nothing for long make room for new
ones. What they repeat after that is new: nobody remembers that it was there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

FORGOTTEN_AT_ONCE = 16
"""Producers that were silent for long go with the next new ones, so many with each: none waits for all of them."""


class _Producer:
    __slots__ = ("highest_forgotten", "newest_tick", "publishes")

    def __init__(self) -> None:
        self.publishes: OrderedDict[int, Sequence[int]] = OrderedDict()
        self.highest_forgotten = -1
        self.newest_tick = -1


class Producers:
    """Ticks of a stream rise, so that the producers are in the order of their newest ticks: idle longest first."""

    def __init__(self, window: int, producers_max: int) -> None:
        self._window = window
        self._producers_max = producers_max
        self._producers: OrderedDict[str, _Producer] = OrderedDict()

    def __len__(self) -> int:
        return len(self._producers)

    def __contains__(self, producer: str) -> bool:
        return producer in self._producers

    def ticks_of(self, producer: str, sequence: int) -> Sequence[int] | None:
        known = self._producers.get(producer)
        return None if known is None else known.publishes.get(sequence)

    def reason_to_refuse(self, producer: str, sequence: int) -> str:
        """Empty if a publish of a known producer that is not in the window may be logged as new."""
        known = self._producers.get(producer)
        if known is not None and sequence <= known.highest_forgotten:
            return "a sequence number from before the window of remembered publishes"
        return ""

    def to_forget(self, idle_tick: int, silent_tick: int, is_busy: Callable[[str], bool]) -> tuple[str, ...] | None:
        """Who goes so that one more producer can be remembered: some of those whose newest tick is below `silent_tick`,
        and as many as there are too many of those below `idle_tick`, longest idle first. None: there is no room.
        `is_busy`: those whose publishes are on their way to the log stay."""
        excess = len(self._producers) - self._producers_max + 1
        gone: list[str] = []
        for name, known in self._producers.items():
            limit = idle_tick if len(gone) < excess else silent_tick
            if known.newest_tick >= limit or len(gone) >= max(excess, FORGOTTEN_AT_ONCE):
                break
            if not is_busy(name):
                gone.append(name)
        return tuple(gone) if len(gone) >= excess else None

    def forget(self, producers: Iterable[str]) -> None:
        for name in producers:
            del self._producers[name]

    def recover(self, publishes: Iterable[tuple[str, int, Sequence[int]]]) -> None:
        """What a log remembers, in any order of producers; of each producer oldest first."""
        for producer, sequence, ticks in publishes:
            self.remember(producer, sequence, ticks)
        self._producers = OrderedDict(sorted(self._producers.items(), key=lambda item: item[1].newest_tick))

    def remember(self, producer: str, sequence: int, ticks: Sequence[int]) -> None:
        known = self._producers.get(producer)
        if known is None:
            known = self._producers[producer] = _Producer()
        else:
            self._producers.move_to_end(producer)
        newest_tick = ticks[-1]
        if newest_tick > known.newest_tick:
            known.newest_tick = newest_tick
        known.publishes[sequence] = ticks
        count = len(known.publishes)
        if count > self._window:
            forgotten, _ = known.publishes.popitem(last=False)
            if forgotten > known.highest_forgotten:
                known.highest_forgotten = forgotten
        elif count == self._window:
            # After a restart only the window is known. If it is full, something older may have been in it.
            known.highest_forgotten = max(known.highest_forgotten, min(known.publishes) - 1)
