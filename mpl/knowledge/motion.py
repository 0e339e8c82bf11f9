"""How one shown value may move while more becomes known, and how such movements combine.

The smallest vocabulary of the analysis: `kind.py` says in which domain a value is kept, this file only which way the
number (or text, time, truth value: anything ordered) goes that a user sees.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Motion(Enum):
    """FIXED never moves once known; MIXED may go either way."""

    FIXED = "fixed"
    RISES = "rises"
    FALLS = "falls"
    MIXED = "mixed"

    @property
    def flipped(self) -> Motion:
        """The motion of a value that falls when this one rises."""
        return {Motion.RISES: Motion.FALLS, Motion.FALLS: Motion.RISES}.get(self, self)

    @property
    def has_direction(self) -> bool:
        return self is not Motion.MIXED


def combine(motions: Iterable[Motion]) -> Motion:
    """The motion of a value that rises with each of several others."""
    result = Motion.FIXED
    for motion in motions:
        if result is Motion.FIXED:
            result = motion
        elif motion not in (Motion.FIXED, result):
            return Motion.MIXED
    return result
