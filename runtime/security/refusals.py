"""Refused attempts: counted by reason, logged at a bounded rate.

Whoever is refused chooses how often, so neither the log nor the memory may grow with it: at most LINES_PER_SECOND
lines, then one line that says how many more there were.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable

LINES_PER_SECOND = 20
TEXT_LENGTH_MAX = 200

log = logging.getLogger("smile.security")


class Refusals:
    """`counts` by code; the codes are ours, so there are few."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.counts: Counter[str] = Counter()
        self._clock = clock
        self._second = 0
        self._lines = 0

    def note(self, code: str, name: str, text: str) -> None:
        self.counts[code] += 1
        second = int(self._clock())
        if second != self._second:
            if self._lines > LINES_PER_SECOND:
                log.warning("refused %d more in that second", self._lines - LINES_PER_SECOND)
            self._second, self._lines = second, 0
        self._lines += 1
        if self._lines <= LINES_PER_SECOND:
            # What strangers wrote is shown as a literal: no line breaks, no control characters.
            log.warning("refused %s: %s %s", code, repr(name[:TEXT_LENGTH_MAX]), text[:TEXT_LENGTH_MAX])
