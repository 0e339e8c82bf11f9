"""Paths: how a truth value, or the visibility of a row, may move while more becomes known.

A path is a set of histories of true and false. With F* T* for "false for a while, then true for ever":

    FIXED      decided as soon as anything is known        F*  or  T*
    RISING     F* T*      appears and stays                temporarily false -> permanently true
    FALLING    T* F*      vanishes for good                temporarily true -> permanently false
    PULSE      F* T* F*   appears, then vanishes for good  temporarily false -> temporarily true -> permanently false
    VERSIONED  anything   no step is a refinement

The first four are chains in the visibility domain. T* F* T* is not: temporarily visible would have to lie below
temporarily invisible there and above it elsewhere. So it counts as versioned.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Path(Enum):
    FIXED = "fixed"
    RISING = "rising"
    FALLING = "falling"
    PULSE = "pulse"
    VERSIONED = "versioned"

    @property
    def stays(self) -> bool:
        """Does true stay true?"""
        return self in (Path.FIXED, Path.RISING)

    @property
    def after_unknown(self) -> Path:
        """This path when nothing is known at first, which counts as false."""
        return {Path.FIXED: Path.RISING, Path.FALLING: Path.PULSE}.get(self, self)


def weakest(paths: Iterable[Path]) -> Path:
    """A path that allows all histories of all the given ones: for a relation with rows of several sorts."""
    found = set(paths) - {Path.FIXED}
    if not found:
        return Path.FIXED
    if Path.VERSIONED in found:
        return Path.VERSIONED
    return found.pop() if len(found) == 1 else Path.PULSE


def both(paths: Iterable[Path]) -> Path:
    """The path of "all of these are true"."""
    found = set(paths) - {Path.FIXED}
    if not found:
        return Path.FIXED
    if Path.VERSIONED in found:
        return Path.VERSIONED
    # F* T* and T* F* overlap in one stretch of true at the most, and stretches intersect to stretches.
    return found.pop() if len(found) == 1 else Path.PULSE


def either(paths: Iterable[Path]) -> Path:
    """The path of "at least one of these is true"."""
    found = set(paths) - {Path.FIXED}
    if not found:
        return Path.FIXED
    if len(found) == 1 and found <= {Path.RISING, Path.FALLING}:
        return found.pop()
    # Two pulses may leave a hole between them, and so may a rise after a fall.
    return Path.VERSIONED


def exists(path: Path, *, at_most_one: bool) -> Path:
    """The path of "some row of a relation is there", where its rows move along `path`.

    `at_most_one`: it is always the same row that could be there, so its path is the answer.
    """
    if at_most_one or path is not Path.PULSE:
        return path
    return Path.VERSIONED
