"""Kinds: in which monotonic domain the analysis proves a column, or the value of an expression, to be.

`ColumnKnowledge` is what the compiler reads to choose a representation and a merge, and what `explain` puts in words.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from mpl.knowledge.motion import Motion
from mpl.source import Span


class Kind(Enum):
    """From strong to weak. Every kind but `VERSIONED` is a refinement: what was shown stays true."""

    FINAL = "final"
    UP = "up"
    DOWN = "down"
    INTERVAL = "interval"
    PN = "pn"
    DOM = "dom"
    VERSIONED = "versioned"


class Nulls(Enum):
    """Whether a value may be null, and whether that can change."""

    NEVER = "never"
    FIXED = "fixed"
    UNTIL_KNOWN = "until known"
    """Null means "not known yet"; once there is a value, there always is."""
    MIXED = "mixed"


@dataclass(frozen=True)
class Part:
    """One half of a pair p - n: does it still rise, is it certainly not negative, and what is it in the program?"""

    rises: bool
    non_negative: bool
    text: str = ""


@dataclass(frozen=True)
class Cause:
    """Where a value stopped being a refinement, why, and what would avoid it."""

    span: Span = field(compare=False, repr=False)
    why: str
    help: str | None = None
    is_average: bool = False


@dataclass(frozen=True)
class ColumnKnowledge:
    """`motion` is that of the shown value; `domain` names the domain (see `mpl/domains/`) the value is kept in.

    `parts` are those of a pair (kind `PN`); `cause` says why a value is versioned. `open_ended`: nothing limits how far
    one more event may move it, so that even as of a horizon it has no bounds.
    """

    kind: Kind
    motion: Motion
    nulls: Nulls
    domain: str
    reason: str
    parts: tuple[Part, Part] | None = None
    cause: Cause | None = None
    open_ended: bool = False

    @property
    def is_stable(self) -> bool:
        """Known with the row and never different: what may identify rows, group them or join them."""
        return self.kind is Kind.FINAL and self.nulls in (Nulls.NEVER, Nulls.FIXED)

    @property
    def is_refined(self) -> bool:
        return self.kind is not Kind.VERSIONED

    def because(self, reason: str) -> ColumnKnowledge:
        return replace(self, reason=reason)


def final(reason: str, nulls: Nulls = Nulls.NEVER) -> ColumnKnowledge:
    return ColumnKnowledge(Kind.FINAL, Motion.FIXED, nulls, "event value", reason)


def part_of_key(*sources: ColumnKnowledge) -> ColumnKnowledge:
    """A key column: the value is what tells the row apart, so it cannot change, and null is a value like others."""
    never = all(source.nulls is Nulls.NEVER for source in sources)
    return final("part of the key", Nulls.NEVER if never else Nulls.FIXED)


def rising(reason: str, nulls: Nulls = Nulls.NEVER, domain: str = "rising number") -> ColumnKnowledge:
    return ColumnKnowledge(Kind.UP, Motion.RISES, nulls, domain, reason)


def falling(reason: str, nulls: Nulls = Nulls.NEVER) -> ColumnKnowledge:
    return ColumnKnowledge(Kind.DOWN, Motion.FALLS, nulls, "falling number", reason)


def directed(motion: Motion, reason: str, nulls: Nulls = Nulls.NEVER) -> ColumnKnowledge:
    """The plain kind of a value that moves one way or not at all."""
    match motion:
        case Motion.FIXED:
            return final(reason, nulls)
        case Motion.RISES:
            return rising(reason, nulls)
        case Motion.FALLS:
            return falling(reason, nulls)
        case Motion.MIXED:
            raise AssertionError("a value that goes both ways has no plain kind")


def pair(positive: Part, negative: Part, reason: str, nulls: Nulls = Nulls.NEVER) -> ColumnKnowledge:
    motion = Motion.MIXED
    if not negative.rises:
        motion = Motion.RISES
    elif not positive.rises:
        motion = Motion.FALLS
    return ColumnKnowledge(Kind.PN, motion, nulls, "up-down number", reason, (positive, negative))


def dominated(which: str, reason: str, nulls: Nulls = Nulls.NEVER) -> ColumnKnowledge:
    return ColumnKnowledge(Kind.DOM, Motion.MIXED, nulls, which, reason)


def versioned(cause: Cause, nulls: Nulls = Nulls.MIXED, domain: str = "versioned") -> ColumnKnowledge:
    return ColumnKnowledge(Kind.VERSIONED, Motion.MIXED, nulls, domain, cause.why, cause=cause)
