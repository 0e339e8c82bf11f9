"""Facts: what is known about the value of one expression, whichever relation it is evaluated in.

A fact is a column's knowledge plus, for conditions, the paths along which "it is true" and "it is false" may move.
Both are needed: null is neither, so `not` cannot turn one into the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from mpl.knowledge.kind import Cause, ColumnKnowledge, Kind, Nulls, final, versioned
from mpl.knowledge.motion import Motion
from mpl.knowledge.path import Path
from mpl.typed import Const, Expr
from mpl.types import BoolType, Bounds

NAMES_SHOWN_MAX = 3


@dataclass(frozen=True)
class Fact:
    """`movers` are the columns that the value depends on and that may still change, for use in sentences."""

    column: ColumnKnowledge
    movers: tuple[str, ...] = ()
    is_constant: bool = False
    when_true: Path = Path.FIXED
    when_false: Path = Path.FIXED

    @property
    def motion(self) -> Motion:
        return self.column.motion

    @property
    def is_stable(self) -> bool:
        return self.column.is_stable

    @property
    def appears_late(self) -> bool:
        return self.column.nulls is Nulls.UNTIL_KNOWN


def movers_of(facts: Iterable[Fact]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for fact in facts for name in fact.movers))


def quoted(names: Iterable[str]) -> str:
    """Names for a sentence: `a`, `b` and 2 more."""
    known = list(names)
    shown = ", ".join(f"`{name}`" for name in known[:NAMES_SHOWN_MAX])
    more = len(known) - NAMES_SHOWN_MAX
    return f"{shown} and {more} more" if more > 0 else shown


def source_text(expr: Expr, length_max: int = 48) -> str:
    """The expression as the user wrote it, on one line."""
    text = " ".join(expr.span.text.split())
    return text if len(text) <= length_max else text[: length_max - 3] + "..."


def bounds_of(expr: Expr) -> Bounds:
    """A range that the value stays in; a constant is its own."""
    if isinstance(expr, Const) and isinstance(expr.value, int | float) and not isinstance(expr.value, bool):
        return Bounds(expr.value, expr.value)
    return expr.bounds


def combined_nulls(facts: Iterable[Fact]) -> Nulls:
    """Nulls of a value that is null whenever one of its parts is."""
    found = {fact.column.nulls for fact in facts}
    for nulls in (Nulls.MIXED, Nulls.UNTIL_KNOWN, Nulls.FIXED):
        if nulls in found:
            return nulls
    return Nulls.NEVER


def constant_fact(expr: Const) -> Fact:
    nulls = Nulls.FIXED if expr.value is None else Nulls.NEVER
    return Fact(final("a constant", nulls), is_constant=True)


def column_fact(column: ColumnKnowledge, name: str, *, is_condition: bool) -> Fact:
    movers = () if column.is_stable else (name,)
    if not is_condition:
        return Fact(column, movers)
    when_true, when_false = _paths_of_kind(column)
    return Fact(column, movers, when_true=when_true, when_false=when_false)


def _paths_of_kind(column: ColumnKnowledge) -> tuple[Path, Path]:
    """False is below true, so a rising condition becomes true and stays so."""
    if column.nulls is Nulls.MIXED or column.motion is Motion.MIXED:
        return Path.VERSIONED, Path.VERSIONED
    paths = {
        Motion.FIXED: (Path.FIXED, Path.FIXED),
        Motion.RISES: (Path.RISING, Path.FALLING),
        Motion.FALLS: (Path.FALLING, Path.RISING),
    }[column.motion]
    if column.nulls is Nulls.UNTIL_KNOWN:
        return paths[0].after_unknown, paths[1].after_unknown
    return paths


def condition_fact(
    when_true: Path,
    when_false: Path,
    facts: tuple[Fact, ...],
    cause: Callable[[], Cause],
    nulls: Nulls | None = None,
) -> Fact:
    """The fact of a condition, whose kind as a column follows from its two paths; `cause` is asked if it has none."""
    nulls = combined_nulls(facts) if nulls is None else nulls
    movers = movers_of(facts)
    reason = f"follows {quoted(movers)}" if movers else "computed from what is known with the row"
    if when_true is Path.FIXED and when_false is Path.FIXED:
        column = final(reason, nulls)
    elif when_true is Path.RISING and when_false is Path.RISING:
        column = final(reason, Nulls.UNTIL_KNOWN)
    elif when_true is Path.RISING and when_false in (Path.FALLING, Path.PULSE):
        column = ColumnKnowledge(Kind.UP, Motion.RISES, nulls, "rising number", reason)
    elif when_false is Path.RISING and when_true in (Path.FALLING, Path.PULSE):
        column = ColumnKnowledge(Kind.DOWN, Motion.FALLS, nulls, "falling number", reason)
    else:
        column = versioned(first_cause(facts) or cause())
    return Fact(column, movers, when_true=when_true, when_false=when_false)


def first_cause(facts: Iterable[Fact]) -> Cause | None:
    """Where a part already stopped being a refinement: what follows from it is no news."""
    return next((fact.column.cause for fact in facts if fact.column.cause is not None), None)


def versioned_fact(facts: tuple[Fact, ...], cause: Cause, *, is_condition: bool = False) -> Fact:
    column = versioned(first_cause(facts) or cause)
    path = Path.VERSIONED if is_condition else Path.FIXED
    return Fact(column, movers_of(facts), when_true=path, when_false=path)


def is_condition(expr: Expr) -> bool:
    return isinstance(expr.type, BoolType)


def with_reason(fact: Fact, reason: str) -> Fact:
    return replace(fact, column=fact.column.because(reason))
