"""Values chosen among others: `case` and `coalesce`. Called by `expressions.py` with the facts of the parts."""

from __future__ import annotations

from itertools import pairwise

from mpl.knowledge.fact import (
    Fact,
    bounds_of,
    combined_nulls,
    condition_fact,
    is_condition,
    movers_of,
    quoted,
    source_text,
    versioned_fact,
)
from mpl.knowledge.kind import Cause, Kind, Nulls, directed, final
from mpl.knowledge.motion import Motion, combine
from mpl.knowledge.path import Path
from mpl.typed import Apply, CaseOf, Const, Expr


def case_fact(expr: CaseOf, conditions: tuple[Fact, ...], values: tuple[Fact, ...]) -> Fact:
    """`values` holds one fact per branch and then that of `otherwise`.

    While conditions only become true, the choice only moves to earlier branches; while they only become false, to later
    ones. The value then moves one way if the branches' ranges are in order.
    """
    parts = (*conditions, *values)
    cause = Cause(
        expr.span,
        f"`{source_text(expr)}` may change its mind while {quoted(movers_of(parts))} changes",
        "order the branches so that the value only rises or only falls",
    )
    paths = {condition.when_true for condition in conditions}
    exprs = [value for _, value in expr.branches] + [expr.otherwise]
    if paths <= {Path.FIXED}:
        return _settled_choice(expr, values, movers_of(parts), cause)
    kept = list(values)
    appears_late = False
    if paths <= {Path.FIXED, Path.RISING}:
        last = exprs[-1]
        if isinstance(last, Const) and last.value is None:
            # Null until some condition holds: from then on there is a value.
            exprs, kept, appears_late = exprs[:-1], kept[:-1], True
        exprs, kept = exprs[::-1], kept[::-1]
    elif not paths <= {Path.FIXED, Path.FALLING}:
        return versioned_fact(parts, cause, is_condition=is_condition(expr))
    motion = _ordered_motion(exprs, kept)
    nulls = combined_nulls(kept)
    if motion is Motion.MIXED or nulls is not Nulls.NEVER or is_condition(expr):
        return versioned_fact(parts, cause, is_condition=is_condition(expr))
    movers = movers_of(parts)
    reason = f"follows {quoted(movers)}"
    return Fact(directed(motion, reason, Nulls.UNTIL_KNOWN if appears_late else Nulls.NEVER), movers)


def _settled_choice(expr: CaseOf, values: tuple[Fact, ...], movers: tuple[str, ...], cause: Cause) -> Fact:
    """Each row takes one branch for ever: the value moves as the branches do."""
    if is_condition(expr):
        truths = {value.when_true for value in values} - {Path.FIXED}
        falses = {value.when_false for value in values} - {Path.FIXED}
        if len(truths) <= 1 and len(falses) <= 1:
            when_true, when_false = (next(iter(paths), Path.FIXED) for paths in (truths, falses))
            return condition_fact(when_true, when_false, values, lambda: cause)
        return versioned_fact(values, cause, is_condition=True)
    motion = combine(value.motion for value in values)
    kinds = {value.column.kind for value in values}
    if motion is Motion.MIXED or not kinds <= {Kind.FINAL, Kind.UP, Kind.DOWN}:
        return versioned_fact(values, cause)
    reason = f"moves with {quoted(movers)}" if movers else "chosen for good when the row is known"
    return Fact(directed(motion, reason, combined_nulls(values)), movers)


def _ordered_motion(exprs: list[Expr], facts: list[Fact]) -> Motion:
    """The motion of a value that starts as the first of `exprs` and only ever moves on to later ones."""
    motion = combine(fact.motion for fact in facts)
    for earlier, later in pairwise(exprs):
        motion = combine((motion, _step(earlier, later)))
    return motion


def _step(earlier: Expr, later: Expr) -> Motion:
    """How the value moves when it changes from one expression to another, by their ranges."""
    first, second = bounds_of(earlier), bounds_of(later)
    if first.low is not None and first.low == first.high == second.low == second.high:
        return Motion.FIXED
    if first.high is not None and second.low is not None and first.high <= second.low:
        return Motion.RISES
    if first.low is not None and second.high is not None and first.low >= second.high:
        return Motion.FALLS
    return Motion.MIXED


def coalesce_fact(expr: Apply, facts: tuple[Fact, ...]) -> Fact:
    """The first value that is not null. Values that appear late take over from those after them."""
    cause = Cause(
        expr.span,
        f"`{source_text(expr)}` is replaced when {quoted(movers_of(facts))} becomes known",
        "give a default that the value can only rise from, such as its lowest possible value",
    )
    used: list[int] = []
    for position, fact in enumerate(facts):
        used.append(position)
        if fact.column.nulls is Nulls.NEVER:
            break
    parts = tuple(facts[position] for position in used)
    exprs = [expr.arguments[position] for position in used]
    if len(used) == 1:
        return parts[0]
    kinds = {part.column.kind for part in parts}
    mixed = any(part.column.nulls is Nulls.MIXED for part in parts)
    if mixed or is_condition(expr) or not kinds <= {Kind.FINAL, Kind.UP, Kind.DOWN}:
        if all(part.is_stable for part in parts):
            return Fact(final("computed from what is known with the row", parts[-1].column.nulls))
        return versioned_fact(parts, cause, is_condition=is_condition(expr))
    motion = combine(part.motion for part in parts)
    if any(part.appears_late for part in parts):
        # A late value takes over from any later one, so each step towards the front must go the same way.
        motion = combine((motion, _ordered_motion(exprs[::-1], list(parts[::-1]))))
    if motion is Motion.MIXED:
        return versioned_fact(parts, cause)
    last = parts[-1].column.nulls
    nulls = Nulls.NEVER if last is Nulls.NEVER else combined_nulls(parts)
    movers = movers_of(parts)
    reason = f"moves with {quoted(movers)}" if movers else "computed from what is known with the row"
    return Fact(directed(motion, reason, nulls), movers)
