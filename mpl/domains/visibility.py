"""Whether a row is shown, and whether that can still change."""

from __future__ import annotations

from enum import Enum

from mpl.domains.domain import Contradiction


class Status(Enum):
    """Temporarily invisible is also what is said of a row about which nothing is known."""

    TEMPORARILY_INVISIBLE = "temporarily invisible"
    TEMPORARILY_VISIBLE = "temporarily visible"
    PERMANENTLY_VISIBLE = "permanently visible"
    PERMANENTLY_INVISIBLE = "permanently invisible"


_RANK = {
    Status.TEMPORARILY_INVISIBLE: 0,
    Status.TEMPORARILY_VISIBLE: 1,
    Status.PERMANENTLY_VISIBLE: 2,
    Status.PERMANENTLY_INVISIBLE: 2,
}


class Visibility:
    """Temporarily invisible, then temporarily visible, then one of the two permanent ones; steps may be left out.

    A row that goes from temporarily visible back to temporarily invisible is outside this domain: it is versioned.
    """

    name = "visibility"
    bottom = Status.TEMPORARILY_INVISIBLE

    def leq(self, a: Status, b: Status) -> bool:
        return a is b or _RANK[a] < _RANK[b]

    def merge(self, a: Status, b: Status) -> Status:
        if self.leq(a, b):
            return b
        if self.leq(b, a):
            return a
        raise Contradiction(self.name, a, b, "what is permanent does not change")

    def is_final(self, value: Status) -> bool:
        return _RANK[value] == 2
