"""A number known to lie between two bounds that close in on it: what `emit bounds` delivers."""

from __future__ import annotations

from mpl.domains.domain import Contradiction

Range = tuple[float, float]
"""(low, high), inclusive; infinities mean open."""


class Interval:
    """Merge is the intersection; an empty one means that somebody's bounds were false."""

    name = "interval"
    bottom: Range = (float("-inf"), float("inf"))

    def leq(self, a: Range, b: Range) -> bool:
        return a[0] <= b[0] and b[1] <= a[1]

    def merge(self, a: Range, b: Range) -> Range:
        low, high = max(a[0], b[0]), min(a[1], b[1])
        if low > high:
            raise Contradiction(self.name, a, b, "no number is in both")
        return low, high

    def is_final(self, value: Range) -> bool:
        return value[0] == value[1]
