"""Total orders over rows, for top-k and for latest / first: by columns, each up or down, nulls last either way.

Python cannot negate a text, so values in descending order are wrapped; numbers are negated, which is cheaper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import total_ordering
from typing import Any

from runtime.operators.row_operator import Row
from runtime.plan import Column, Relation, ValueType
from runtime.values import Value

SortKey = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """One column of an ordering."""

    column: int
    descending: bool = False


@total_ordering
@dataclass(frozen=True, slots=True, eq=True)
class _Reversed:
    text: str

    def __lt__(self, other: _Reversed) -> bool:
        return self.text > other.text


def sort_key_text(order: Sequence[Order], relation: Relation) -> str:
    """The same tuple in a generated loop, from the columns c0, c1, ... of a visible row."""
    parts = [_part_text(part, relation.columns[part.column]) for part in order]
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def _part_text(part: Order, column: Column) -> str:
    name = f"c{part.column}"
    value = name if not part.descending else f"down({name})" if column.type is ValueType.TEXT else f"-{name}"
    return f"((1, 0) if {name} is None else (0, {value}))" if column.nullable else f"(0, {value})"


def reversed_text(text: str) -> _Reversed:
    """`down` in generated loops."""
    return _Reversed(text)


def sort_key(order: Sequence[Order]) -> Callable[[Row], SortKey]:
    """A function from a row to a tuple that sorts as the ordering says, best first."""
    columns = [(part.column, part.descending) for part in order]
    return lambda row: tuple([_part(row[column], descending) for column, descending in columns])


def _part(value: Value, descending: bool) -> tuple[int, Any]:
    if value is None:
        return (1, 0)
    if not descending:
        return (0, value)
    return (0, _Reversed(value) if isinstance(value, str) else -value)
