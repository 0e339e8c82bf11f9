"""State bounds: how much an operator has to keep, and what keeps it from growing for ever."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod

from mpl.knowledge.closing import Closing, within
from mpl.typed import Column, Schema
from mpl.types import BoolType, EnumType, IntType

FINITE_ROWS_MAX = 10_000_000
"""A product of column ranges beyond this is no bound that anybody could rely on."""


class Growth(Enum):
    NONE = "no state"
    BOUNDED = "bounded"
    UNBOUNDED = "grows"


@dataclass(frozen=True)
class StateBound:
    """What one operator keeps. `words` is a sentence part: "at most 5 rows, one per `category`".

    `rows_max` is known where only the ranges of columns decide. `growing` is the part of `words` that has no bound, and
    `grows_with` names the columns whose distinct values make it grow; empty means that every event does.
    """

    growth: Growth
    words: str
    rows_max: int | None = None
    grows_with: tuple[str, ...] = ()
    growing: str = ""


COPY_WORDS = "the rows of its input"

NO_STATE = StateBound(Growth.NONE, "none beyond which ticks it has seen")


def domain_size(column: Column) -> int | None:
    """How many values a column can have, where its type or range says so."""
    null = 1 if column.nullable else 0
    match column.type:
        case BoolType():
            return 2 + null
        case EnumType():
            return len(column.type.values) + null
        case IntType() if isinstance(column.bounds.low, int) and isinstance(column.bounds.high, int):
            return max(0, column.bounds.high - column.bounds.low + 1) + null
        case _:
            return None


def bound_per_value(
    schema: Schema,
    positions: Iterable[int],
    closings: Sequence[Closing],
    retained: str | None,
    *,
    each: str = "one row",
    on_sight: bool = False,
) -> StateBound:
    """The bound of a state with `each` per combination of values at `positions`.

    `on_sight`: the state begins with a row, so closings that wait to see one end it too.
    """
    kept = tuple(dict.fromkeys(positions))
    visible = tuple(schema.columns[position].name for position in kept if not schema.columns[position].hidden)
    per = listed(visible) or "event"
    if not kept:
        return StateBound(Growth.BOUNDED, each, rows_max=1)
    sizes = [domain_size(schema.columns[position]) for position in kept]
    known = [size for size in sizes if size is not None]
    if len(known) == len(sizes) and prod(known) <= FINITE_ROWS_MAX:
        rows_max = prod(known)
        return StateBound(Growth.BOUNDED, f"{each} per {per}, at most {rows_max:,} of them", rows_max)
    for closing in within(closings, kept):
        if on_sight or not closing.on_sight:
            return StateBound(Growth.BOUNDED, f"{each} per {per}, dropped once {closing.words}")
    if retained is not None:
        return StateBound(Growth.BOUNDED, f"{each} per {per}, within {retained}")
    if len(visible) < len(kept):
        return StateBound(Growth.UNBOUNDED, f"{each} per event")
    return StateBound(Growth.UNBOUNDED, f"{each} per distinct {per}", grows_with=visible)


def listed(names: Sequence[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    if len(quoted) <= 1:
        return "".join(quoted)
    return ", ".join(quoted[:-1]) + " and " + quoted[-1]


def together(bounds: Sequence[StateBound]) -> StateBound:
    """The bound of an operator that keeps several things."""
    needed = [bound for bound in bounds if bound.growth is not Growth.NONE]
    if not needed:
        return NO_STATE
    words = "; ".join(dict.fromkeys(bound.words for bound in needed))
    growing = [bound for bound in needed if bound.growth is Growth.UNBOUNDED]
    if growing:
        names = tuple(dict.fromkeys(name for bound in growing for name in bound.grows_with))
        parts = "; ".join(dict.fromkeys(bound.growing or bound.words for bound in growing))
        return StateBound(Growth.UNBOUNDED, words, grows_with=names, growing=parts)
    rows_max = None
    if all(bound.rows_max is not None for bound in needed):
        rows_max = sum(bound.rows_max or 0 for bound in needed)
    return StateBound(Growth.BOUNDED, words, rows_max)
