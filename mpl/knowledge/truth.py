"""Conditions: comparisons, `and`, `or`, `not`, `in`, `is null`, and how their truth may move.

`total > 100` over a rising total is temporarily false, then permanently true; `qty - total > 0` is true until the total
has reached qty and false from then on. Called by `expressions.py` with the facts of the arguments.
"""

from __future__ import annotations

from mpl.knowledge.fact import Fact, bounds_of, condition_fact, movers_of, quoted, source_text
from mpl.knowledge.kind import Cause, Nulls
from mpl.knowledge.motion import Motion, combine
from mpl.knowledge.path import Path, both, either
from mpl.typed import Apply, Const, Expr
from mpl.types import BoolType

TRUTH_FUNCTIONS = frozenset(
    ("and", "or", "not", "equal", "unequal", "less", "less_equal", "greater", "greater_equal", "in_list", "is_null")
)

_RISES_WITH_LEFT = ("greater", "greater_equal")


def truth_fact(expr: Apply, facts: tuple[Fact, ...]) -> Fact:
    """The fact of one of `TRUTH_FUNCTIONS`."""
    when_true, when_false = _paths(expr, facts)
    never_null = Nulls.NEVER if expr.function == "is_null" else None
    return condition_fact(when_true, when_false, facts, lambda: _cause(expr, facts), never_null)


def _cause(expr: Apply, facts: tuple[Fact, ...]) -> Cause:
    movers = quoted(movers_of(facts))
    return Cause(
        expr.span,
        f"`{source_text(expr)}` may become true and false again while {movers} changes",
        "compare a column that only rises or only falls with one that is fixed",
    )


def _paths(expr: Apply, facts: tuple[Fact, ...]) -> tuple[Path, Path]:
    match expr.function:
        case "and":
            return both(fact.when_true for fact in facts), either(fact.when_false for fact in facts)
        case "or":
            return either(fact.when_true for fact in facts), both(fact.when_false for fact in facts)
        case "not":
            return facts[0].when_false, facts[0].when_true
        case "is_null":
            return _null_paths(facts[0].column.nulls)
        case _:
            paths = _comparison_paths(expr, facts)
    if any(fact.column.nulls is Nulls.MIXED for fact in facts):
        return Path.VERSIONED, Path.VERSIONED
    if any(fact.appears_late for fact in facts):
        return paths[0].after_unknown, paths[1].after_unknown
    return paths


def _null_paths(nulls: Nulls) -> tuple[Path, Path]:
    match nulls:
        case Nulls.NEVER | Nulls.FIXED:
            return Path.FIXED, Path.FIXED
        case Nulls.UNTIL_KNOWN:
            return Path.FALLING, Path.RISING
        case Nulls.MIXED:
            return Path.VERSIONED, Path.VERSIONED


def _comparison_paths(expr: Apply, facts: tuple[Fact, ...]) -> tuple[Path, Path]:
    """Paths between values that are not null."""
    if expr.function in ("equal", "unequal", "in_list"):
        if all(fact.motion is Motion.FIXED for fact in facts):
            return Path.FIXED, Path.FIXED
        if len(facts) > 2:
            return Path.VERSIONED, Path.VERSIONED
        same, different = _equality_paths(expr.arguments, facts)
        return (different, same) if expr.function == "unequal" else (same, different)
    left, right = facts
    gap = combine((left.motion, right.motion.flipped))
    rising = gap if expr.function in _RISES_WITH_LEFT else gap.flipped
    return {
        Motion.FIXED: (Path.FIXED, Path.FIXED),
        Motion.RISES: (Path.RISING, Path.FALLING),
        Motion.FALLS: (Path.FALLING, Path.RISING),
        Motion.MIXED: (Path.VERSIONED, Path.VERSIONED),
    }[rising]


def _equality_paths(arguments: tuple[Expr, ...], facts: tuple[Fact, ...]) -> tuple[Path, Path]:
    """A value that moves one way meets another at most once, and then leaves it for good."""
    gap = combine((facts[0].motion, facts[1].motion.flipped))
    if not gap.has_direction:
        return Path.VERSIONED, Path.VERSIONED
    for moving, other in ((0, 1), (1, 0)):
        motion, target = facts[moving].motion, arguments[other]
        if facts[other].motion is not Motion.FIXED or arguments[moving].type != target.type:
            continue
        if _is_end(arguments[moving], motion, target):
            return Path.RISING, Path.FALLING
        if _is_end(arguments[moving], motion.flipped, target):
            return Path.FALLING, Path.RISING
    return Path.PULSE, Path.VERSIONED


def _is_end(moving: Expr, motion: Motion, target: Expr) -> bool:
    """Is `target` the last value that one moving in this direction can reach?"""
    if isinstance(moving.type, BoolType):
        return isinstance(target, Const) and target.value is (motion is Motion.RISES)
    bounds, goal = bounds_of(moving), bounds_of(target)
    if motion is Motion.RISES:
        return bounds.high is not None and goal.low is not None and goal.low >= bounds.high
    return bounds.low is not None and goal.high is not None and goal.high <= bounds.low
