"""The k best rows of a growing set of final rows."""

from __future__ import annotations

from mpl.domains.domain import Contradiction

Entry = tuple[int, int]
"""(score, key): higher scores first, equal scores by ascending key. A key has one score for ever."""

Entries = tuple[Entry, ...]


class TopK:
    """At most k entries, best first. Merge keeps the k best of both; the key makes the order total.

    Without a total order two replicas could keep different rows of a tie, and neither would refine the other.
    """

    name = "top-k"
    bottom: Entries = ()

    def __init__(self, k: int) -> None:
        self.k = k

    def leq(self, a: Entries, b: Entries) -> bool:
        try:
            return self.merge(a, b) == b
        except Contradiction:
            return False

    def merge(self, a: Entries, b: Entries) -> Entries:
        scores: dict[int, int] = {}
        for score, key in (*a, *b):
            if scores.setdefault(key, score) != score:
                raise Contradiction(self.name, a, b, f"key {key} has two scores; only final rows can be merged")
        best = sorted(((score, key) for key, score in scores.items()), key=lambda entry: (-entry[0], entry[1]))
        return tuple(best[: self.k])

    def is_final(self, value: Entries) -> bool:
        # A better row may always come; that the group has closed is known to the relation, not to the value.
        return False
