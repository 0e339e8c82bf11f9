"""Values made of several rising numbers: the up-down pair and the average.

What is shown (p - n, or sum / count) may move either way and must not be merged; the parts may.
"""

from __future__ import annotations

from mpl.domains.number import Number, RisingNumber

Parts = tuple[Number, ...]


class RisingParts:
    """A fixed number of rising numbers, compared and merged part by part."""

    def __init__(self, name: str, *parts: RisingNumber) -> None:
        self.name = name
        self.parts = parts
        self.bottom: Parts = (None,) * len(parts)

    def leq(self, a: Parts, b: Parts) -> bool:
        return all(part.leq(x, y) for part, x, y in zip(self.parts, a, b, strict=True))

    def merge(self, a: Parts, b: Parts) -> Parts:
        return tuple(part.merge(x, y) for part, x, y in zip(self.parts, a, b, strict=True))

    def is_final(self, value: Parts) -> bool:
        return all(part.is_final(x) for part, x in zip(self.parts, value, strict=True))


def up_down_number(highest: int | float | None = None) -> RisingParts:
    """(p, n), shown as p - n: signed sums, and differences such as `qty - total`. `highest` bounds both parts."""
    return RisingParts("up-down number", RisingNumber(highest), RisingNumber(highest))


def average() -> RisingParts:
    """(p, n, count), shown as (p - n) / count. The sum is a pair too: a sum of signed numbers alone does not rise."""
    return RisingParts("average", RisingNumber(), RisingNumber(), RisingNumber())
