"""Scalar expressions as the passes see them: which columns they need, how they move, whether they can fail.

Everything about their meaning is in `mpl`; an expression is rebuilt only through `mpl`'s own `substitute`, so that
types, ranges and nullability stay consistent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from mpl.expressions.build import constant
from mpl.expressions.inlining import substitute
from mpl.expressions.walk import children
from mpl.functions import BY_NAME
from mpl.relations.conditions import conjunction, conjuncts
from mpl.source import Span
from mpl.typed import Apply, CaseOf, Column, ColumnRef, Const, Expr, PythonCall, Schema
from mpl.types import BoolType, FloatType, TextType

__all__ = [
    "certain_part",
    "column_ref",
    "columns_in",
    "conjunction",
    "conjuncts",
    "is_trivial",
    "may_fail",
    "moved",
    "parts_of",
    "replaced",
    "simplified",
    "truth",
]


def parts_of(expr: Expr) -> Iterator[Expr]:
    """The expression and everything in it."""
    waiting: list[Expr] = [expr]
    while waiting:
        part = waiting.pop()
        yield part
        waiting.extend(reversed(children(part)))


def columns_in(expr: Expr | None) -> frozenset[int]:
    if expr is None:
        return frozenset()
    return frozenset(part.index for part in parts_of(expr) if isinstance(part, ColumnRef))


def column_ref(position: int, column: Column, span: Span) -> ColumnRef:
    return ColumnRef(position, column.name, type=column.type, nullable=column.nullable, bounds=column.bounds, span=span)


def moved(expr: Expr, where: Mapping[int, int], columns: Sequence[Column]) -> Expr:
    """The expression over other columns: what was at i is now at `where[i]` of `columns`."""
    return _substituted(expr, {old: column_ref(where[old], columns[where[old]], expr.span) for old in columns_in(expr)})


def replaced(expr: Expr, values: Mapping[int, Expr], schema: Schema) -> Expr:
    """The expression with the columns in `values` computed in place; the others are those of `schema`."""
    return _substituted(
        expr,
        {
            position: values[position]
            if position in values
            else column_ref(position, schema.columns[position], expr.span)
            for position in columns_in(expr)
        },
    )


def _substituted(expr: Expr, values: Mapping[int, Expr]) -> Expr:
    filler = constant(None, expr.type, expr.span)
    arguments = tuple(values.get(position, filler) for position in range(max(values, default=-1) + 1))
    return substitute(expr, arguments)


def is_trivial(expr: Expr) -> bool:
    """Costs nothing to compute a second time."""
    return isinstance(expr, Const | ColumnRef)


# --- failing ----------------------------------------------------------------------------------------------------------

_TOTAL_FUNCTIONS = frozenset(
    (
        *("equal", "unequal", "less", "less_equal", "greater", "greater_equal", "in_list", "is_null", "like"),
        *("and", "or", "not", "coalesce", "nullif", "least", "greatest", "sign"),
        *("length", "lower", "upper", "trim", "starts_with", "ends_with", "contains", "concat", "replace", "hash"),
        *("year", "month", "day", "hour", "minute", "second"),
    )
)
"""Functions with a value for all arguments. Everything else counts as able to fail unless ranges prove otherwise."""

_CHECKED_BY_RANGE = frozenset(("add", "subtract", "multiply", "divide", "negate", "abs"))
"""Both ends of the result's range are known only if no result leaves the type (and no divisor can be 0)."""


def may_fail(expr: Expr) -> bool:
    """Could some row make the evaluation raise? Never False when it could."""
    return any(_may_fail_itself(part) for part in parts_of(expr))


def certain_part(predicate: Expr) -> Expr | None:
    """What rejects rows before anything can fail: the predicate, or those parts that come first; None if none does.

    `and` goes on after a null, so a part that may be null does not keep later ones from failing.
    """
    if not may_fail(predicate):
        return predicate
    first = takewhile(lambda part: not may_fail(part) and not part.nullable, conjuncts(predicate))
    return conjunction(tuple(first))


def _may_fail_itself(expr: Expr) -> bool:
    match expr:
        case Const() | ColumnRef() | CaseOf():
            return False
        case PythonCall():
            return True
        case Apply(function="cast"):
            return not _is_total_cast(expr)
        case Apply():
            if expr.function == "modulo":
                divisor = expr.arguments[1].bounds
                return not ((divisor.low or 0) > 0 or (divisor.high or 0) < 0)
            if expr.function in _CHECKED_BY_RANGE:
                return expr.bounds.low is None or expr.bounds.high is None
            return expr.function not in _TOTAL_FUNCTIONS


def _is_total_cast(expr: Apply) -> bool:
    source = expr.arguments[0].type
    if isinstance(source, BoolType) or source == expr.type:
        return True
    if isinstance(expr.type, TextType) and expr.type.length_max is None:
        return True
    if isinstance(expr.type, FloatType) and not isinstance(source, TextType):
        return True
    return expr.bounds.low is not None and expr.bounds.high is not None


# --- simplifying ------------------------------------------------------------------------------------------------------


def truth(expr: Expr) -> bool | None:
    """True or False for a condition that is the same for every row (null counts as false), None for others."""
    return expr.value is True if isinstance(expr, Const) else None


def simplified(expr: Expr) -> Expr:
    """The same value with less to compute. What may fail is kept, so that no error disappears here or appears.

    As deep as the expression, whose depth the checker limits.
    """
    match expr:
        case Const() | ColumnRef():
            return expr
        case PythonCall():
            return replace(expr, arguments=tuple(simplified(part) for part in expr.arguments))
        case CaseOf():
            return _simplified_case(expr)
        case Apply():
            return _simplified_apply(expr)


def _simplified_apply(expr: Apply) -> Expr:
    arguments = tuple(simplified(part) for part in expr.arguments)
    if expr.function in ("and", "or"):
        return _simplified_logic(expr, arguments)
    if expr.function == "coalesce":
        return _simplified_coalesce(expr, arguments)
    if arguments == expr.arguments and not all(isinstance(part, Const) for part in arguments):
        return expr
    # `substitute` derives ranges again and folds what has become constant.
    filler = tuple(column_ref(i, Column("", part.type, True), part.span) for i, part in enumerate(arguments))
    return substitute(replace(expr, arguments=filler), arguments)


def _simplified_logic(expr: Apply, arguments: Iterable[Expr]) -> Expr:
    """Operands that decide nothing go; one that decides everything cuts off what follows it."""
    deciding = expr.function == "or"
    kept: list[Expr] = []
    for part in _flattened(expr.function, arguments):
        if isinstance(part, Const) and part.value is (not deciding):
            continue
        kept.append(part)
        if isinstance(part, Const) and part.value is deciding:
            break
    if kept and isinstance(kept[-1], Const) and kept[-1].value is deciding:
        kept = [part for part in kept[:-1] if may_fail(part)] + kept[-1:]
    if not kept:
        return constant(not deciding, BoolType(), expr.span)
    if len(kept) == 1:
        return kept[0]
    nullable = any(part.nullable for part in kept)
    return replace(expr, arguments=tuple(kept), nullable=nullable)


def _flattened(function: str, arguments: Iterable[Expr]) -> Iterator[Expr]:
    for part in arguments:
        if isinstance(part, Apply) and part.function == function:
            yield from part.arguments
        else:
            yield part


def _simplified_coalesce(expr: Apply, arguments: tuple[Expr, ...]) -> Expr:
    """Nulls are skipped anyway; nothing after a value that is never null is looked at."""
    kept: list[Expr] = []
    for part in arguments:
        if isinstance(part, Const) and part.value is None:
            continue
        kept.append(part)
        if not part.nullable:
            break
    if len(kept) == 1 and kept[0].type == expr.type:
        return kept[0]
    return replace(expr, arguments=tuple(kept)) if kept else constant(None, expr.type, expr.span)


def _simplified_case(expr: CaseOf) -> Expr:
    branches: list[tuple[Expr, Expr]] = []
    otherwise = simplified(expr.otherwise)
    for condition, value in expr.branches:
        condition = simplified(condition)
        decided = truth(condition)
        if decided is True:
            otherwise = simplified(value)
            break
        if decided is None:
            branches.append((condition, simplified(value)))
    if not branches and otherwise.type == expr.type:
        return otherwise
    return replace(expr, branches=tuple(branches), otherwise=otherwise)


assert set(BY_NAME) >= _TOTAL_FUNCTIONS | _CHECKED_BY_RANGE, "a function was renamed"
