"""When an in-edge may ask: at most one question outstanding, repeated with growing, jittered delay (S3).

In-edges own one each. It knows no message and no clock: it says whether a question may leave now and how long to wait.
"""

from __future__ import annotations

from zlib import crc32


def jittered(delay_us: int, *parts: object) -> int:
    """Between 3/4 and 5/4 of the delay, always the same for the same parts: spread without a random source."""
    spread = crc32("|".join(map(str, parts)).encode()) % 512
    return delay_us * (768 + spread) // 1024


class Asker:
    """`waiting` from a question until its answer or until its timer fires."""

    __slots__ = ("_delay_us", "_delay_us_max", "_names", "attempt", "waiting")

    def __init__(self, names: tuple[str, str], delay_us: int, delay_us_max: int) -> None:
        self._names = names
        self._delay_us = delay_us
        self._delay_us_max = delay_us_max
        self.attempt = 0
        self.waiting = False

    def may_ask(self) -> bool:
        return not self.waiting

    def asked(self) -> int:
        """A question leaves; the delay after which it counts as lost."""
        self.waiting = True
        delay_us = min(self._delay_us << min(self.attempt, 20), self._delay_us_max)
        self.attempt += 1
        return jittered(delay_us, *self._names, self.attempt)

    def answered(self) -> None:
        """Nothing is missing any more, as far as we know."""
        self.waiting = False
        self.attempt = 0

    def helped(self) -> None:
        """Something came, not all: wait on, but do not slow down."""
        self.attempt = 0

    def expired(self) -> None:
        self.waiting = False
