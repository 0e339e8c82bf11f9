"""Expressions: the kind of a value that is computed from columns of known kinds.

Interval arithmetic of directions: a function that rises with an argument passes the argument's motion on, one that
falls with it turns the motion round; the function library says which (`mpl/functions/`). Differences are kept as pairs.
Never claims more than is true: what cannot be proved is versioned. Works bottom-up without recursion, because chains
such as `a + b + c + ...` are deep trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from mpl.functions import BY_NAME, directions
from mpl.functions.spec import Direction
from mpl.functions.spec import Nulls as NullRule
from mpl.knowledge.choices import case_fact, coalesce_fact
from mpl.knowledge.fact import (
    Fact,
    bounds_of,
    column_fact,
    combined_nulls,
    constant_fact,
    first_cause,
    is_condition,
    movers_of,
    quoted,
    source_text,
    versioned_fact,
)
from mpl.knowledge.kind import (
    Cause,
    ColumnKnowledge,
    Kind,
    Nulls,
    Part,
    directed,
    dominated,
    pair,
)
from mpl.knowledge.motion import Motion, combine
from mpl.knowledge.truth import TRUTH_FUNCTIONS, truth_fact
from mpl.typed import Apply, CaseOf, ColumnRef, Const, Expr, PythonCall

_LINEAR = frozenset(("add", "subtract", "negate", "multiply", "cast"))


def infer(expr: Expr, columns: Sequence[ColumnKnowledge]) -> Fact:
    """What is known about `expr`, evaluated over a row whose columns are as in `columns`."""
    waiting: list[tuple[Expr, bool]] = [(expr, False)]
    done: list[Fact] = []
    while waiting:
        current, parts_done = waiting.pop()
        parts = _parts_of(current)
        if parts and not parts_done:
            waiting.append((current, True))
            waiting.extend((part, False) for part in reversed(parts))
            continue
        facts = tuple(done[len(done) - len(parts) :])
        del done[len(done) - len(parts) :]
        fact = _fact_of(current, facts, columns)
        if any(part.column.open_ended for part in facts) and not is_condition(current):
            fact = replace(fact, column=replace(fact.column, open_ended=not fact.is_stable))
        done.append(fact)
    return done[0]


def rising_column(expr: Expr) -> int | None:
    """The one column that `expr` rises with, if it depends on nothing else: `ts`, `ts + 4 s`, `date(ts)`."""
    while not isinstance(expr, ColumnRef):
        if not isinstance(expr, Apply):
            return None
        moving = [
            (argument, way)
            for argument, way in zip(expr.arguments, directions(expr), strict=True)
            if not isinstance(argument, Const)
        ]
        if len(moving) != 1 or moving[0][1] != "up":
            return None
        expr = moving[0][0]
    return expr.index


def _parts_of(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Const() | ColumnRef():
            return ()
        case Apply() | PythonCall():
            return expr.arguments
        case CaseOf():
            conditions = tuple(condition for condition, _ in expr.branches)
            return (*conditions, *(value for _, value in expr.branches), expr.otherwise)
        case _:
            assert_never(expr)


def _fact_of(expr: Expr, facts: tuple[Fact, ...], columns: Sequence[ColumnKnowledge]) -> Fact:
    match expr:
        case Const():
            return constant_fact(expr)
        case ColumnRef():
            return column_fact(columns[expr.index], expr.name, is_condition=is_condition(expr))
        case CaseOf():
            border = len(expr.branches)
            return case_fact(expr, facts[:border], facts[border:])
        case PythonCall():
            return _python_fact(expr, facts)
        case Apply():
            return _apply_fact(expr, facts)
        case _:
            assert_never(expr)


def _apply_fact(expr: Apply, facts: tuple[Fact, ...]) -> Fact:
    if expr.function in TRUTH_FUNCTIONS:
        return truth_fact(expr, facts)
    if expr.function == "coalesce":
        return coalesce_fact(expr, facts)
    if all(fact.is_stable for fact in facts):
        return _computed(expr, Motion.FIXED, facts)
    rule = BY_NAME[expr.function].nulls
    if rule is NullRule.SKIP:
        return _extreme_fact(expr, facts)
    if rule is NullRule.OWN:
        return versioned_fact(facts, _no_direction(expr, facts), is_condition=is_condition(expr))
    ways = directions(expr)
    if expr.function in _LINEAR:
        as_pair = _pair_fact(expr, facts, ways)
        if as_pair is not None:
            return as_pair
    return _monotone_fact(expr, expr.arguments, facts, ways)


def _python_fact(expr: PythonCall, facts: tuple[Fact, ...]) -> Fact:
    if all(fact.is_stable for fact in facts):
        return _computed(expr, Motion.FIXED, facts)
    if not expr.monotone or any(fact.column.nulls is not Nulls.NEVER for fact in facts):
        # What a Python function makes of null is its own business.
        cause = Cause(
            expr.span,
            f"`{expr.function}` is applied to {quoted(movers_of(facts))}, which still changes",
            "declare the function `monotone up` or `monotone down` in each parameter, if it is",
        )
        return versioned_fact(facts, cause, is_condition=is_condition(expr))
    return _monotone_fact(expr, expr.arguments, facts, expr.monotone)


def _no_direction(expr: Expr, facts: tuple[Fact, ...]) -> Cause:
    return Cause(
        expr.span,
        f"`{source_text(expr)}` may move either way while {quoted(movers_of(facts))} changes",
        "use a function that only rises or only falls with its argument, or apply it to a fixed column",
    )


def _computed(expr: Expr, motion: Motion, facts: tuple[Fact, ...]) -> Fact:
    movers = movers_of(facts)
    words = {
        Motion.FIXED: "computed from what is known with the row",
        Motion.RISES: f"rises as {quoted(movers)} changes",
        Motion.FALLS: f"falls as {quoted(movers)} changes",
    }
    nulls = combined_nulls(facts)
    if nulls is Nulls.NEVER and expr.nullable:
        nulls = Nulls.FIXED if motion is Motion.FIXED else Nulls.MIXED
    column = directed(motion, words[motion], nulls)
    if not is_condition(expr):
        return Fact(column, movers, is_constant=all(fact.is_constant for fact in facts))
    return replace(column_fact(column, "", is_condition=True), movers=movers)


def _monotone_fact(expr: Expr, arguments: tuple[Expr, ...], facts: tuple[Fact, ...], ways: Sequence[Direction]) -> Fact:
    """A function that rises or falls with each argument, whatever the others are."""
    motions = [_through(fact.motion, way) for fact, way in zip(facts, ways, strict=True)]
    motion = combine(motions)
    if motion.has_direction:
        return _computed(expr, motion, facts)
    if _is_dominated(facts):
        which = next(fact.column for fact in facts if fact.column.kind is Kind.DOM)
        reason = f"follows {quoted(movers_of(facts))}"
        return Fact(dominated(which.domain, reason, combined_nulls(facts)), movers_of(facts))
    if not is_condition(expr) and _closes_in(arguments, facts, ways):
        reason = f"between bounds that close in as {quoted(movers_of(facts))} change"
        column = ColumnKnowledge(Kind.INTERVAL, Motion.MIXED, combined_nulls(facts), "interval", reason)
        return Fact(column, movers_of(facts))
    return versioned_fact(facts, _no_direction(expr, facts), is_condition=is_condition(expr))


def _through(motion: Motion, way: Direction) -> Motion:
    if motion is Motion.FIXED:
        return motion
    if way is None:
        return Motion.MIXED
    return motion if way == "up" else motion.flipped


def _is_dominated(facts: tuple[Fact, ...]) -> bool:
    """Only one column moves, and it is replaced as a whole: then so is anything computed from it.

    Two such columns may come from different rows of different relations, and then no single order key decides.
    """
    moving = [fact for fact in facts if not fact.is_stable]
    return all(fact.column.kind is Kind.DOM for fact in moving) and len(movers_of(moving)) == 1


def _closes_in(arguments: tuple[Expr, ...], facts: tuple[Fact, ...], ways: Sequence[Direction]) -> bool:
    """Do all arguments move one way towards a known end, so that the value has a rising floor and a falling ceiling?"""
    for argument, fact, way in zip(arguments, facts, ways, strict=True):
        bounds = bounds_of(argument)
        match fact.motion:
            case Motion.FIXED:
                continue
            case Motion.RISES:
                end = bounds.high
            case Motion.FALLS:
                end = bounds.low
            case Motion.MIXED:
                return False
        if way is None or end is None or fact.column.nulls is not Nulls.NEVER:
            return False
    return True


def _extreme_fact(expr: Apply, facts: tuple[Fact, ...]) -> Fact:
    """`greatest` and `least` skip nulls, so an argument that appears late can only push the value one way."""
    arriving = Motion.RISES if expr.function == "greatest" else Motion.FALLS
    motion = combine(fact.motion for fact in facts)
    if any(fact.appears_late for fact in facts):
        motion = combine((motion, arriving))
    late = all(fact.column.nulls is not Nulls.NEVER for fact in facts)
    if not motion.has_direction or any(fact.column.nulls is Nulls.MIXED for fact in facts):
        return versioned_fact(facts, _no_direction(expr, facts), is_condition=is_condition(expr))
    movers = movers_of(facts)
    nulls = combined_nulls(facts) if late else Nulls.NEVER
    return Fact(directed(motion, f"moves with {quoted(movers)}", nulls), movers)


# --- pairs ----------------------------------------------------------------------------------------------------------


def _pair_fact(expr: Apply, facts: tuple[Fact, ...], ways: Sequence[Direction]) -> Fact | None:
    """A sum or difference as a pair p - n of two rising numbers; None where a plain direction says it as well."""
    if any(fact.column.kind not in (Kind.FINAL, Kind.UP, Kind.DOWN, Kind.PN) for fact in facts):
        return None
    is_pair = any(fact.column.kind is Kind.PN for fact in facts)
    motion = combine(_through(fact.motion, way) for fact, way in zip(facts, ways, strict=True))
    is_difference = (
        expr.function == "subtract"
        and facts[1].column.kind is Kind.UP
        and facts[0].column.kind in (Kind.FINAL, Kind.UP)
        and not facts[0].is_constant
    )
    if expr.function in ("multiply", "cast"):
        return _scaled_pair(expr, facts, ways) if is_pair else None
    if not is_pair and not is_difference and motion.has_direction:
        return None
    positive: list[Part] = []
    negative: list[Part] = []
    for argument, fact, way in zip(expr.arguments, facts, ways, strict=True):
        plus, minus = _parts(argument, fact)
        turned = way == "down"
        positive.append(minus if turned else plus)
        negative.append(plus if turned else minus)
    column = pair(_sum(positive), _sum(negative), _pair_reason(expr, facts), combined_nulls(facts))
    return Fact(column, movers_of(facts))


def _scaled_pair(expr: Apply, facts: tuple[Fact, ...], ways: Sequence[Direction]) -> Fact | None:
    """A pair times a fixed factor whose sign is known, or a pair as another number type."""
    at = next(position for position, fact in enumerate(facts) if fact.column.kind is Kind.PN)
    others_fixed = all(fact.is_stable for position, fact in enumerate(facts) if position != at)
    # Casting rounds p - n as a whole: the parts, cast one by one, would not give the same difference.
    if expr.function == "cast" or not others_fixed or ways[at] is None:
        return None
    plus, minus = _parts(expr.arguments[at], facts[at])
    if ways[at] == "down":
        plus, minus = minus, plus
    return Fact(pair(plus, minus, _pair_reason(expr, facts), combined_nulls(facts)), movers_of(facts))


def _parts(argument: Expr, fact: Fact) -> tuple[Part, Part]:
    bounds = bounds_of(argument)
    nothing = Part(rises=False, non_negative=True)
    match fact.column.kind:
        case Kind.PN:
            assert fact.column.parts is not None
            return fact.column.parts
        case Kind.DOWN:
            # A falling x is 0 - (-x), and -x rises.
            return nothing, Part(rises=True, non_negative=bounds.non_positive)
        case kind:
            return Part(kind is Kind.UP, bounds.non_negative, source_text(argument)), nothing


def _sum(parts: list[Part]) -> Part:
    texts = [part.text for part in parts if part.text]
    return Part(
        any(part.rises for part in parts),
        all(part.non_negative for part in parts),
        texts[0] if len(texts) == 1 else "",
    )


def _pair_reason(expr: Expr, facts: tuple[Fact, ...]) -> str:
    assert first_cause(facts) is None
    return f"`{source_text(expr)}`, kept as two rising numbers p - n"
