"""What every monotonic domain offers, and the error for values that cannot both be true."""

from __future__ import annotations

from typing import Protocol, TypeVar

V = TypeVar("V")


class Contradiction(Exception):
    """Two values that no single truth refines: somebody has said something false, or merged what must not be merged.

    A merge that raises this has found a mistake of ours or of a publisher; there is no value to go on with.
    """

    def __init__(self, domain: str, one: object, other: object, reason: str) -> None:
        self.domain = domain
        self.one = one
        self.other = other
        super().__init__(f"{domain}: {one!r} and {other!r} contradict each other: {reason}")


class Domain(Protocol[V]):
    """The states a value may move through, only upwards: up means more is known, not larger.

    `bottom` is what is known before anything arrived. `merge` is the least upper bound; where two values have none it
    raises `Contradiction`. A final value has nothing strictly above it.
    """

    name: str
    bottom: V

    def leq(self, a: V, b: V) -> bool:
        """Does `b` refine `a`?"""
        ...

    def merge(self, a: V, b: V) -> V:
        """What is known when both are."""
        ...

    def is_final(self, value: V) -> bool:
        """Can no refinement follow?"""
        ...
