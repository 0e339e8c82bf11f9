"""Aggregates: the kind of one `sum`, `count`, `max`, ... over a group, from the kinds of what goes into it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mpl.knowledge.expressions import infer
from mpl.knowledge.fact import Fact, bounds_of, first_cause, quoted, source_text
from mpl.knowledge.kind import (
    Cause,
    ColumnKnowledge,
    Kind,
    Nulls,
    Part,
    dominated,
    falling,
    final,
    pair,
    rising,
    versioned,
)
from mpl.knowledge.knowledge import Knowledge
from mpl.knowledge.motion import Motion
from mpl.knowledge.path import Path, both
from mpl.typed import AggregateItem, Column, Expr


@dataclass(frozen=True)
class _Input:
    """What one aggregate sees: the item, its argument, and how rows come into (and leave) what it aggregates."""

    item: AggregateItem
    argument: Fact | None
    rows: Path
    nulls: Nulls

    @property
    def text(self) -> str:
        item = self.item
        inside = ("distinct " if item.distinct else "") + (source_text(item.argument) if item.argument else "")
        return f"{item.function}({inside})"

    def worse(self, why: str, help: str | None) -> ColumnKnowledge:
        earlier = first_cause((self.argument,)) if self.argument else None
        return versioned(earlier or Cause(self.item.span, why, help))


def aggregate_column(item: AggregateItem, column: Column, source: Knowledge, rows: Path) -> ColumnKnowledge:
    """`rows` is how rows of the group move: that of the input, or better where groups vanish as a whole."""
    argument = infer(item.argument, source.columns) if item.argument is not None else None
    path = rows
    if item.where is not None:
        path = both((rows, infer(item.where, source.columns).when_true))
    settled = path is Path.FIXED and (argument is None or argument.is_stable)
    nulls = Nulls.NEVER
    if column.nullable:
        nulls = Nulls.FIXED if settled else Nulls.UNTIL_KNOWN
    given = _Input(item, argument, path, nulls)
    if settled:
        return final("computed from rows that never change", nulls)
    if not path.stays:
        return _over_vanishing_rows(given, source)
    if argument is not None and argument.column.nulls is Nulls.MIXED:
        return given.worse(f"`{given.text}` of a value that may become null again", None)
    result = _KINDS[item.function](given)
    return replace(result, open_ended=_is_open_ended(item, argument))


def _is_open_ended(item: AggregateItem, argument: Fact | None) -> bool:
    """Is there no limit to what a single row can change?"""
    if argument is None or item.argument is None or item.function in ("count", "any", "all"):
        return False
    bounds = bounds_of(item.argument)
    if item.function == "max":
        return bounds.high is None
    if item.function == "min":
        return bounds.low is None
    return bounds.high is None or bounds.low is None


def _over_vanishing_rows(given: _Input, source: Knowledge) -> ColumnKnowledge:
    """Rows that were counted may leave again."""
    item, argument = given.item, given.argument
    final_argument = argument is None or argument.is_stable
    if given.rows is Path.FALLING and final_argument and not item.distinct:
        bounds = bounds_of(item.argument) if item.argument is not None else None
        if item.function == "count" or (item.function == "sum" and bounds is not None and bounds.non_negative):
            return falling(f"`{given.text}` over rows that only ever vanish", given.nulls)
    if source.visibility.cause is not None:
        return versioned(source.visibility.cause)
    return given.worse(
        f"`{given.text}` counts rows that may vanish again",
        "aggregate before the operator that makes rows vanish, or subscribe with `emit final`",
    )


def _count(given: _Input) -> ColumnKnowledge:
    if given.item.distinct and given.argument is not None and given.argument.motion is not Motion.FIXED:
        return given.worse(
            f"`{given.text}` counts values that still change ({quoted(given.argument.movers)})",
            "count the distinct values of a column that is fixed",
        )
    if given.item.distinct:
        return rising("counts values as they are first seen", given.nulls, "grow-only set")
    return rising("counts rows, which only arrive", given.nulls)


def _sum(given: _Input) -> ColumnKnowledge:
    argument, expr = given.argument, given.item.argument
    assert argument is not None
    assert expr is not None
    if given.item.distinct:
        return _sum_distinct(given, argument, expr)
    bounds = bounds_of(expr)
    if bounds.non_negative and argument.motion in (Motion.FIXED, Motion.RISES):
        return rising("adds numbers that are never negative", given.nulls)
    if bounds.non_positive and argument.motion in (Motion.FIXED, Motion.FALLS):
        return falling("adds numbers that are never positive", given.nulls)
    if argument.motion is Motion.FIXED:
        part = Part(rises=True, non_negative=True)
        return pair(part, part, "what was added and what was taken away, each rising", given.nulls)
    parts = argument.column.parts
    if parts is not None and all(part.non_negative for part in parts):
        part = Part(rises=True, non_negative=True)
        return pair(part, part, "the sums of both halves of a pair, each rising", given.nulls)
    return given.worse(
        f"`{given.text}` adds values that may rise and fall ({quoted(argument.movers)})",
        "declare a range that keeps the values from being negative, such as `int[0..]`",
    )


def _sum_distinct(given: _Input, argument: Fact, expr: Expr) -> ColumnKnowledge:
    if argument.motion is not Motion.FIXED:
        return given.worse(f"`{given.text}` adds values that still change ({quoted(argument.movers)})", None)
    if bounds_of(expr).non_negative:
        return rising("adds each value once, none of them negative", given.nulls, "grow-only set")
    if bounds_of(expr).non_positive:
        return replace(falling("adds each value once, none positive", given.nulls), domain="grow-only set")
    part = Part(rises=True, non_negative=True)
    return pair(part, part, "adds each value once, in two rising halves", given.nulls)


def _extreme(given: _Input) -> ColumnKnowledge:
    argument = given.argument
    assert argument is not None
    wanted = Motion.RISES if given.item.function == "max" else Motion.FALLS
    if argument.motion in (Motion.FIXED, wanted):
        if wanted is Motion.RISES:
            return rising("the largest so far, a lower bound of the truth", given.nulls)
        return falling("the smallest so far, an upper bound of the truth", given.nulls)
    return given.worse(
        f"`{given.text}` of values that may {'fall' if wanted is Motion.RISES else 'rise'} ({quoted(argument.movers)})",
        f"take the `{given.item.function}` of a column that is fixed or "
        f"{'rises' if wanted is Motion.RISES else 'falls'}",
    )


def _average(given: _Input) -> ColumnKnowledge:
    """Kept as a sum and a count, which are refined; the quotient that is shown moves both ways."""
    total = _sum(replace(given, item=replace(given.item, function="sum")))
    if total.kind is Kind.VERSIONED:
        return total
    cause = Cause(given.item.span, "an average moves both ways with every value", is_average=True)
    return ColumnKnowledge(
        Kind.VERSIONED,
        Motion.MIXED,
        given.nulls,
        "average",
        "an average moves both ways; its sum and its count are refined",
        cause=cause,
    )


def _ordered(given: _Input) -> ColumnKnowledge:
    argument = given.argument
    assert argument is not None
    if not argument.is_stable:
        return given.worse(
            f"`{given.text}` of a value that still changes ({quoted(argument.movers)})",
            f"take the `{given.item.function}` of a column that is fixed",
        )
    if given.item.function == "last":
        return dominated("latest", "replaced by whatever comes later", given.nulls)
    return dominated("first", "replaced by whatever turns out to be earlier", given.nulls)


def _condition(given: _Input) -> ColumnKnowledge:
    """`any` becomes true and stays, `all` becomes false and stays, if no single answer turns round."""
    argument = given.argument
    assert argument is not None
    is_any = given.item.function == "any"
    path = argument.when_true if is_any else argument.when_false
    if path.stays:
        return (
            rising("true from the first hit on", given.nulls)
            if is_any
            else falling("false from the first miss on", given.nulls)
        )
    return given.worse(
        f"`{given.text}` of a condition that may turn round ({quoted(argument.movers)})",
        "use a condition over fixed columns",
    )


_KINDS = {
    "count": _count,
    "sum": _sum,
    "min": _extreme,
    "max": _extreme,
    "avg": _average,
    "first": _ordered,
    "last": _ordered,
    "any": _condition,
    "all": _condition,
}
