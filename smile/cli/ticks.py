"""Ticks as people write them: the number itself, or a moment."""

from __future__ import annotations

from smile.cli.files import fail

TICKS_PER_US = 1024


def tick_of(text: str | None) -> int | None:
    """The last tick up to the moment; None for None. Leaves with exit code 2 if it is neither tick nor time."""
    from mpl.failures import EvaluationError
    from mpl.functions.time_text import time_of_literal

    if text is None:
        return None
    if text.isdigit():
        return int(text)
    try:
        return time_of_literal(text) * TICKS_PER_US + TICKS_PER_US - 1
    except EvaluationError as error:
        fail(f"{error}; or give a tick, a whole number")
