"""Ticks as people write them: the number itself, or a moment.

A moment without a zone is UTC, as times in MPL are; `Z` says so, and `+02:00` means another zone. It stands for the
last tick of its microsecond, so that everything up to and including the moment counts.
"""

from __future__ import annotations

import re
import time

from smile.cli.files import fail

_ZONED = re.compile(r"(.*\d:\d\d.*?)\s*([+-])([01]\d|2[0-3]):?([0-5]\d)", re.ASCII)
_HOUR_US, _MINUTE_US = 3_600_000_000, 60_000_000


def tick_of(text: str | None) -> int | None:
    """The last tick up to the moment; None for None. Leaves with exit code 2 if it is neither tick nor time."""
    from mpl.failures import EvaluationError
    from mpl.functions.time_text import time_of_literal
    from runtime.protocol.coverage import TICK_MAX
    from smile.bulk.as_of import TICKS_PER_US

    if text is None:
        return None
    if text.isascii() and text.isdigit():
        tick = int(text)
        if tick > TICK_MAX:
            fail(f"{text} is beyond the last tick there can be, {TICK_MAX}")
        return tick
    offset_us = 0
    zoned = _ZONED.fullmatch(text.strip())
    if zoned is not None:
        offset_us = int(zoned[3]) * _HOUR_US + int(zoned[4]) * _MINUTE_US
        offset_us = -offset_us if zoned[2] == "-" else offset_us
    try:
        moment_us = time_of_literal(zoned[1] if zoned is not None else text.strip()) - offset_us
    except EvaluationError as error:
        fail(f"{error}; or give a tick, a whole number. Without a zone such as +02:00 a time is UTC")
    if moment_us < 0:
        fail(f"{text} lies before 1970, where ticks begin")
    return moment_us * TICKS_PER_US + TICKS_PER_US - 1


def require_past(tick: int) -> None:
    """Leaves with exit code 2 for a tick of the future: nobody knows yet what will happen until then."""
    from smile.bulk.as_of import TICKS_PER_US, said

    now = time.time_ns() // 1_000 * TICKS_PER_US
    if tick > now:
        fail(f"{said(tick)} lies in the future; it is {said(now)} now. Ask for a moment that has passed")
