"""Closings: for which values of which columns a relation is complete, and when that is known.

A closing says: fix the values of `columns`; there comes a moment after which no row with these values appears, vanishes
or changes any more. They start at streams (event time, `unique`, `closes`, `until`) and are carried through operators;
from them follow when rows are final and when state may be dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

CLOSINGS_MAX = 12
"""Combining both sides of many joins multiplies closings; beyond this many the rest is left out, which only weakens."""


@dataclass(frozen=True)
class Closing:
    """`words` completes "final once ..."; empty for what is settled from the start (a table).

    `on_sight`: nothing tells of the moment but the row itself, so rows that never come are never known not to come.
    `at_sight`: seeing the row is all it takes, so that for a row that is shown it is no news.
    `clock`: for one column that event time passes in order, so that smaller values close first: what passes it.
    """

    columns: frozenset[int]
    words: str
    on_sight: bool = False
    clock: str | None = None
    at_sight: bool = False

    @property
    def is_time(self) -> bool:
        return self.clock is not None


def passing(clock: str, column: int, name: str) -> Closing:
    """The closing of a time column: `clock` passes its values in order."""
    return Closing(frozenset((column,)), f"{clock} has passed `{name}`", clock=clock)


def moved(closings: Iterable[Closing], where: Mapping[int, int]) -> tuple[Closing, ...]:
    """Closings after columns moved as in `where`; those that lost a column are gone."""
    return tuple(
        replace(closing, columns=frozenset(where[column] for column in closing.columns))
        for closing in closings
        if all(column in where for column in closing.columns)
    )


def within(closings: Iterable[Closing], columns: Iterable[int]) -> tuple[Closing, ...]:
    """Closings that the values at `columns` decide; those that do not wait to see a row come first."""
    known = frozenset(columns)
    return tuple(sorted((c for c in closings if c.columns <= known), key=lambda c: c.on_sight))


def tidy(closings: Iterable[Closing]) -> tuple[Closing, ...]:
    """Without repetitions and without those that a stronger one with fewer columns makes superfluous."""
    kept: list[Closing] = []
    for closing in sorted(dict.fromkeys(closings), key=lambda c: (len(c.columns), c.on_sight, sorted(c.columns))):
        implied = any(
            other.columns <= closing.columns
            and other.on_sight <= closing.on_sight
            and (other.is_time or not closing.is_time or other.columns < closing.columns)
            for other in kept
        )
        if not implied:
            kept.append(closing)
    return tuple(kept[:CLOSINGS_MAX])


def both_words(*closings: Closing) -> str:
    news = [closing for closing in closings if not closing.at_sight] or closings
    return " and ".join(dict.fromkeys(closing.words for closing in news if closing.words))
