"""Sets that only gain members: count distinct, distinct, the keys that a semijoin has seen."""

from __future__ import annotations

from collections.abc import Hashable

Members = frozenset[Hashable]


class GrowOnlySet:
    """`universe` is every value there can be, where that is known: holding all of them is final."""

    name = "grow-only set"
    bottom: Members = frozenset()

    def __init__(self, universe: Members | None = None) -> None:
        self.universe = universe

    def leq(self, a: Members, b: Members) -> bool:
        return a <= b

    def merge(self, a: Members, b: Members) -> Members:
        return a | b

    def is_final(self, value: Members) -> bool:
        return value == self.universe
