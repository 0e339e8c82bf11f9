"""Aggregates: what they take, and the type, nullability and range of what they give.

    count()  count(x)      int, never null; `count(x)` counts values that are not null
    sum                    int -> int, decimal(p,s) -> decimal(18,s), float -> float, duration -> duration; 0 of nothing
    avg                    int -> decimal(18,6), decimal(p,s) -> decimal(18,max(6,s)), float -> float,
                           duration -> duration (rounded); null of nothing
    min  max               of anything with an order: numbers, text, time, duration; null of nothing
    first  last            of anything, by tick; null of nothing
    any  all               of bool; any of nothing is false, all of nothing is true

Every aggregate leaves out nulls. An exact sum or average beyond 64 bits or 18 digits is an overflow; sums and averages
of floats are declared approximate. `distinct` goes with count, sum and avg; for the others it would change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from mpl import nodes
from mpl.arithmetic import DIVISION_SCALE_MIN, bounds_within, is_ordered, scaled_ends, type_word
from mpl.codes import types as codes
from mpl.diagnostic import Diagnostics
from mpl.typed import Expr
from mpl.types import (
    DECIMAL_DIGITS_MAX,
    OPEN,
    BoolType,
    Bounds,
    DecimalType,
    DurationType,
    EnumType,
    ErrorType,
    FloatType,
    IntType,
    NullType,
    Type,
)


@dataclass(frozen=True)
class AggregateResult:
    """What the column of an aggregate is declared to hold."""

    type: Type
    nullable: bool
    bounds: Bounds = OPEN


def aggregate_type(
    call: nodes.AggregateCall, argument: Expr | None, *, grouped: bool, diagnostics: Diagnostics
) -> AggregateResult | None:
    """Type, nullability and bounds of an aggregate's column; None after a diagnostic (or a poisoned argument).

    `grouped`: there is a non-empty `group by`, so that every group has a row. `call.where` and a nullable argument
    can still leave nothing to aggregate; then min, max, avg, first and last are null.
    """
    if argument is not None and isinstance(argument.type, ErrorType):
        return None
    problem = _problem(call, argument)
    if problem is not None:
        message, remedy = problem
        span = call.span if argument is None else argument.span
        label = "nothing to aggregate" if argument is None else f"this is {argument.type}"
        diagnostics.report(codes.AGGREGATE_ARGUMENT, span, message, label, help=remedy)
        return None
    if call.function == "count":
        return AggregateResult(IntType(), nullable=False, bounds=Bounds(0, None))
    assert argument is not None
    if call.function in ("any", "all"):
        return AggregateResult(BoolType(), nullable=False)
    if call.function == "sum":
        result = _sum_type(argument.type)
        return AggregateResult(result, nullable=False, bounds=_sum_bounds(argument.bounds))
    nothing = not grouped or call.where is not None or argument.nullable
    if call.function == "avg":
        result = _average_type(argument.type)
        bounds = bounds_within(result, *scaled_ends(argument.bounds, argument.type, result))
        return AggregateResult(result, nothing, bounds)
    return AggregateResult(argument.type, nothing, argument.bounds)


def _problem(call: nodes.AggregateCall, argument: Expr | None) -> tuple[str, str | None] | None:
    """What is wrong with the argument, and what to do about it."""
    name = call.function
    if argument is None:
        if name == "count" and not call.distinct:
            return None
        return f"`{name}` needs a value", f"write `{name}({'distinct ' if call.distinct else ''}x)`"
    if call.distinct and name not in ("count", "sum", "avg"):
        return f"`distinct` changes nothing in `{name}`", "leave it out"
    found = argument.type
    if isinstance(found, NullType):
        return f"`{name}` of `null` has no meaning", None
    if name in ("sum", "avg") and not isinstance(found, IntType | DecimalType | FloatType | DurationType):
        remedy = "`count() where ...` counts the rows where it is true" if isinstance(found, BoolType) else None
        return f"`{name}` takes a number or a duration, not {found}", remedy
    if name in ("min", "max") and not is_ordered(found):
        remedy = f"`{'all' if name == 'min' else 'any'}` is what it would be" if isinstance(found, BoolType) else None
        if isinstance(found, EnumType):
            remedy = f"`{name}(cast({argument.span.quoted} as text))` goes by code point"
        return f"`{name}` takes a value with an order, and {type_word(found)} has none", remedy
    if name in ("any", "all") and not isinstance(found, BoolType):
        return f"`{name}` takes a condition, not {found}", f"compare it: `{name}({argument.span.quoted} = ...)`"
    return None


def _sum_type(type: Type) -> Type:
    return DecimalType(DECIMAL_DIGITS_MAX, type.scale) if isinstance(type, DecimalType) else type


def _average_type(type: Type) -> Type:
    match type:
        case IntType():
            return DecimalType(DECIMAL_DIGITS_MAX, DIVISION_SCALE_MIN)
        case DecimalType():
            return DecimalType(DECIMAL_DIGITS_MAX, max(DIVISION_SCALE_MIN, type.scale))
        case _:
            return type


def _sum_bounds(bounds: Bounds) -> Bounds:
    """A sum of any number of values keeps at most their sign."""
    return Bounds(0 if bounds.non_negative else None, 0 if bounds.non_positive else None)
