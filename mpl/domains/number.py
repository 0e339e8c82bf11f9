"""Numbers that move one way: a lower bound that rises (count, sum of non-negatives, max), or its mirror image."""

from __future__ import annotations

Number = int | float | None
"""None: nothing is known yet."""


class RisingNumber:
    """A lower bound of the truth. `highest` is the largest possible value, where there is one: reaching it is final."""

    name = "rising number"
    bottom: Number = None

    def __init__(self, highest: int | float | None = None) -> None:
        self.highest = highest

    def leq(self, a: Number, b: Number) -> bool:
        return a is None or (b is not None and a <= b)

    def merge(self, a: Number, b: Number) -> Number:
        return b if self.leq(a, b) else a

    def is_final(self, value: Number) -> bool:
        return value is not None and value == self.highest


class FallingNumber:
    """An upper bound of the truth. `lowest` is the smallest possible value, where there is one."""

    name = "falling number"
    bottom: Number = None

    def __init__(self, lowest: int | float | None = None) -> None:
        self.lowest = lowest

    def leq(self, a: Number, b: Number) -> bool:
        return a is None or (b is not None and a >= b)

    def merge(self, a: Number, b: Number) -> Number:
        return b if self.leq(a, b) else a

    def is_final(self, value: Number) -> bool:
        return value is not None and value == self.lowest
