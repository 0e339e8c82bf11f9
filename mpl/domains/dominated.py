"""A value that gives way to one with a better order key: `latest`, `first`, the right side of an as-of join.

The order key must be total over the values that can meet. With a key that is only partially ordered (a vector of ticks,
say) the winner among three incomparable values depends on who meets whom first, and merge is no longer associative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mpl.domains.domain import Contradiction


@dataclass(frozen=True)
class Ranked:
    """A value and what decides whether it stays: (order column, tick). The tick makes the order total."""

    order: tuple[int, int]
    value: object


class Dominated:
    """The value with the largest (`latest`) or smallest (`first`) order key so far; None before the first."""

    bottom: Ranked | None = None

    def __init__(self, which: Literal["latest", "first"]) -> None:
        self.name: str = which
        self._sign = 1 if which == "latest" else -1

    def leq(self, a: Ranked | None, b: Ranked | None) -> bool:
        if a is None or a == b:
            return True
        return b is not None and self._strength(a) < self._strength(b)

    def merge(self, a: Ranked | None, b: Ranked | None) -> Ranked | None:
        if self.leq(a, b):
            return b
        if self.leq(b, a):
            return a
        raise Contradiction(self.name, a, b, "one tick carries one value")

    def is_final(self, value: Ranked | None) -> bool:
        # Only a horizon can tell that nothing better will come, and the value alone does not know it.
        return False

    def _strength(self, ranked: Ranked) -> tuple[int, int]:
        order, tick = ranked.order
        return self._sign * order, self._sign * tick
