"""Which publishes a stream has logged: (producer, sequence) -> ticks, for the newest few of each producer.

A repeat within the window gets its first ticks back (E3). A repeat from before the window is refused, not guessed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence


class _Producer:
    __slots__ = ("highest_forgotten", "publishes")

    def __init__(self) -> None:
        self.publishes: OrderedDict[int, Sequence[int]] = OrderedDict()
        self.highest_forgotten = -1


class Producers:
    def __init__(self, window: int, producers_max: int) -> None:
        self._window = window
        self._producers_max = producers_max
        self._producers: dict[str, _Producer] = {}

    def ticks_of(self, producer: str, sequence: int) -> Sequence[int] | None:
        known = self._producers.get(producer)
        return None if known is None else known.publishes.get(sequence)

    def reason_to_refuse(self, producer: str, sequence: int) -> str:
        """Empty if a publish that is not in the window may be logged as new."""
        known = self._producers.get(producer)
        if known is None:
            return "too many producers" if len(self._producers) >= self._producers_max else ""
        if sequence <= known.highest_forgotten:
            return "a sequence number from before the window of remembered publishes"
        return ""

    def remember(self, producer: str, sequence: int, ticks: Sequence[int]) -> None:
        known = self._producers.get(producer)
        if known is None:
            known = self._producers[producer] = _Producer()
        known.publishes[sequence] = ticks
        if len(known.publishes) > self._window:
            forgotten, _ = known.publishes.popitem(last=False)
            known.highest_forgotten = max(known.highest_forgotten, forgotten)
        elif len(known.publishes) == self._window:
            # After a restart only the window is known. If it is full, something older may have been in it.
            known.highest_forgotten = max(known.highest_forgotten, min(known.publishes) - 1)
