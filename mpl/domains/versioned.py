"""A value that is true as of a coverage and says nothing about others: the weakest kind, always available."""

from __future__ import annotations

from dataclasses import dataclass

from mpl.domains.domain import Contradiction


@dataclass(frozen=True)
class Version:
    """`coverage` holds the ticks from which the value was computed."""

    coverage: frozenset[int]
    value: object


class Versioned:
    """A larger coverage replaces a smaller one. Values of incomparable coverages must not meet.

    That is why state edges wait until the sender's coverage contains the receiver's: there is nothing to merge here.
    """

    name = "versioned"
    bottom: Version | None = None

    def leq(self, a: Version | None, b: Version | None) -> bool:
        if a is None or a == b:
            return True
        return b is not None and a.coverage < b.coverage

    def merge(self, a: Version | None, b: Version | None) -> Version | None:
        if self.leq(a, b):
            return b
        if self.leq(b, a):
            return a
        raise Contradiction(self.name, a, b, "neither coverage contains the other")

    def is_final(self, value: Version | None) -> bool:
        # A tick may always be added; that none will be is known to the relation, not to the value.
        return False
