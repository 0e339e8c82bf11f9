"""What is known about one tick of a stream: nothing, that it is silent, or the event."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mpl.domains.domain import Contradiction


class Knowing(Enum):
    """The two invisible values of a tick."""

    UNKNOWN = "unknown"
    SILENCE = "silence"


@dataclass(frozen=True)
class Event:
    """The columns of the event at this tick."""

    row: tuple[object, ...]


Tick = Knowing | Event


class EventValue:
    """Everything but unknown is final, so a merge never chooses: it accepts agreement and refuses the rest."""

    name = "event value"
    bottom: Tick = Knowing.UNKNOWN

    def leq(self, a: Tick, b: Tick) -> bool:
        return a is Knowing.UNKNOWN or a == b

    def merge(self, a: Tick, b: Tick) -> Tick:
        if self.leq(a, b):
            return b
        if self.leq(b, a):
            return a
        raise Contradiction(self.name, a, b, "a tick is decided once")

    def is_final(self, value: Tick) -> bool:
        return value is not Knowing.UNKNOWN
