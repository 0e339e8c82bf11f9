"""What declarations say about values: types, ranges, literals of a known type. Called by the declaration checker."""

from __future__ import annotations

from mpl import nodes
from mpl.codes import types as codes
from mpl.diagnostic import Diagnostics
from mpl.expressions import FunctionTable, check_expression
from mpl.expressions.conversions import assign
from mpl.expressions.written_types import declared_type
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

__all__ = ["declared_bounds", "declared_type", "literal_value"]

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


def literal_value(expr: nodes.Expr, type: Type, diagnostics: Diagnostics) -> Value:
    """The canonical value of a literal (perhaps negated) of `type`; None for `null` and after a diagnostic."""
    value = check_expression(expr, _NO_COLUMNS, FunctionTable(), diagnostics)
    converted = assign(value, type, "the value here", diagnostics)
    if isinstance(converted, Const):
        return converted.value
    diagnostics.report(codes.LITERAL_WANTED, expr.span, "a value in a declaration must be a literal", "not a literal")
    return None
