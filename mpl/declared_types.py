"""What declarations say about values: types, ranges, literals of a known type. Called by the declaration checker."""

from __future__ import annotations

from mpl import nodes
from mpl.codes import types as codes
from mpl.diagnostic import Diagnostics
from mpl.expressions import FunctionTable, check_expression
from mpl.expressions.conversions import assign
from mpl.expressions.written_types import declared_type
from mpl.literals import literal_text
from mpl.scope import Scope
from mpl.typed import Const
from mpl.types import (
    OPEN,
    Bounds,
    DecimalType,
    DurationType,
    ErrorType,
    FloatType,
    IntType,
    TimeType,
    Type,
    Value,
)

__all__ = ["declared_bounds", "declared_default", "declared_type", "literal_value"]

_NO_COLUMNS = Scope(())


def declared_bounds(node: nodes.RangeNode, type: Type, diagnostics: Diagnostics) -> Bounds:
    """The range in canonical values of `type`; `OPEN` after a diagnostic."""
    if isinstance(type, ErrorType):
        return OPEN
    if not isinstance(type, IntType | DecimalType | FloatType | TimeType | DurationType):
        diagnostics.report(
            codes.RANGE_INVALID,
            node.span,
            f"{type} takes no range",
            "only numbers, times and durations do",
        )
        return OPEN
    low, high = (None if end is None else _end(end, type, diagnostics) for end in (node.low, node.high))
    if low is not None and high is not None and low > high:
        diagnostics.report(
            codes.RANGE_INVALID,
            node.span,
            "this range is empty",
            "the first end is above the second",
            help="swap the ends",
        )
        return OPEN
    return Bounds(low, high)


def _end(expr: nodes.Expr, type: Type, diagnostics: Diagnostics) -> int | float | None:
    value = literal_value(expr, type, diagnostics)
    return value if isinstance(value, int | float) else None


def declared_default(
    decl: nodes.ColumnDecl, expr: nodes.Expr, type: Type, bounds: Bounds, diagnostics: Diagnostics
) -> Value:
    """The canonical value of a column's default; None after a diagnostic."""
    before = len(diagnostics)
    value = literal_value(expr, type, diagnostics, f"column `{decl.name.text}`")
    if len(diagnostics) > before:
        return None
    if value is None or decl.nullable:
        diagnostics.report(
            codes.DEFAULT_INVALID,
            expr.span,
            "`null` is no default" if value is None else "a column is `null` or has a default, not both",
            "a default is a value" if value is None else "so it would never be null",
            help="declare it `null` without a default: then it is null in events that were published without it",
        )
        return None
    if isinstance(value, str):
        return value
    for end, is_outside, words in (
        (bounds.low, bounds.low is not None and value < bounds.low, "below {}, the smallest"),
        (bounds.high, bounds.high is not None and value > bounds.high, "above {}, the largest"),
    ):
        if is_outside:
            diagnostics.report(
                codes.DEFAULT_INVALID,
                expr.span,
                f"the default of `{decl.name.text}` is not in its range",
                f"{words.format(literal_text(end, type))} value declared",
                help="an event without this column would have a value that nobody may publish",
            )
            return None
    return value


def literal_value(expr: nodes.Expr, type: Type, diagnostics: Diagnostics, what: str = "the value here") -> Value:
    """The canonical value of a literal (perhaps negated) of `type`; None for `null` and after a diagnostic, which says
    what `what` takes."""
    value = check_expression(expr, _NO_COLUMNS, FunctionTable(), diagnostics)
    converted = assign(value, type, what, diagnostics, only_literals=True)
    if isinstance(converted, Const):
        return converted.value
    diagnostics.report(codes.LITERAL_WANTED, expr.span, "a value in a declaration must be a literal", "not a literal")
    return None
