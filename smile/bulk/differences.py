"""Rows that differ: two bags of rows compared, with floats that may differ in their last digits.

Rows are tuples of the columns that users see. Where the view's key is among them, rows of one key are told as one
difference; where part of it is hidden, equal rows may occur several times, and are counted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mpl.typed import Schema
from mpl.types import FloatType

FLOAT_TOLERANCE = 1e-9
FLOAT_ABSOLUTE = 1e-12

Values = tuple[Any, ...]
Pair = tuple[Values | None, Values | None]
"""A live row and the true one; None where there is none."""


@dataclass(frozen=True)
class Shape:
    """`key`: where the key is in a row, None if users do not see all of it. `floats`: which columns are inexact."""

    names: tuple[str, ...]
    key: tuple[int, ...] | None
    floats: frozenset[int]

    @staticmethod
    def of(schema: Schema) -> Shape:
        visible = [at for at, column in enumerate(schema.columns) if not column.hidden]
        place = {at: number for number, at in enumerate(visible)}
        key = tuple(place[at] for at in schema.key) if all(at in place for at in schema.key) else None
        floats = frozenset(place[at] for at in visible if isinstance(schema.columns[at].type, FloatType))
        return Shape(tuple(schema.columns[at].name for at in visible), key, floats)

    def key_of(self, row: Values) -> Values:
        """What tells rows apart: all of it, if the key is hidden."""
        return row if self.key is None else tuple(row[at] for at in self.key)

    def by_key(self, rows: Iterable[Values]) -> dict[Values, Values]:
        """Empty if the key is hidden: then no row can be said to be the same as another one of another moment."""
        return {} if self.key is None else {self.key_of(row): row for row in rows}

    def is_same(self, one: Values, other: Values) -> bool:
        return all(
            a == b or (at in self.floats and is_close(a, b)) for at, (a, b) in enumerate(zip(one, other, strict=True))
        )

    def differing(self, live: Iterable[Values], truth: Iterable[Values]) -> list[Pair]:
        """What is in one bag only, in the order of the keys."""
        shown, right = Counter(live), Counter(truth)
        extra, missing = list((shown - right).elements()), list((right - shown).elements())
        if self.floats:
            extra, missing = self._without_close(extra, missing)
        return sorted(self._paired(extra, missing), key=lambda pair: repr(self.key_of(pair[0] or pair[1] or ())))

    def only_live(self, live: Iterable[Values], truth: Iterable[Values]) -> list[Pair]:
        """Live rows that are not true, each with the true row of its key."""
        return [pair for pair in self.differing(live, truth) if pair[0] is not None]

    def _without_close(self, extra: list[Values], missing: list[Values]) -> tuple[list[Values], list[Values]]:
        waiting: dict[Values, list[Values]] = {}
        for row in missing:
            waiting.setdefault(self._exact(row), []).append(row)
        left: list[Values] = []
        for row in extra:
            near = waiting.get(self._exact(row), [])
            found = next((at for at, other in enumerate(near) if self.is_same(row, other)), None)
            if found is None:
                left.append(row)
            else:
                near.pop(found)
        return left, [row for rows in waiting.values() for row in rows]

    def _exact(self, row: Values) -> Values:
        return tuple(value for at, value in enumerate(row) if at not in self.floats)

    def _paired(self, extra: Sequence[Values], missing: Sequence[Values]) -> Iterator[Pair]:
        right: dict[Values, list[Values]] = {}
        for row in missing:
            right.setdefault(self.key_of(row), []).append(row)
        for row in extra:
            found = right.get(self.key_of(row))
            yield row, found.pop(0) if found else None
        for rows in right.values():
            yield from ((None, row) for row in rows)


def is_close(one: object, other: object) -> bool:
    """Only floats are; whole numbers are equal or not."""
    if not isinstance(one, float) or not isinstance(other, float):
        return False
    return math.isclose(one, other, rel_tol=FLOAT_TOLERANCE, abs_tol=FLOAT_ABSOLUTE)
