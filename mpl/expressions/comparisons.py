"""Comparisons: which types go together, and the diagnostics when they do not.

Numbers compare with numbers, text with text and enum, everything else with its own type; `<` and its like need an
order, which bool and enum do not have. A constant is converted to the other side's type where that is exact, so that
the usual comparison is between equal types.
"""

from __future__ import annotations

from mpl.arithmetic import is_number, is_ordered, type_word
from mpl.codes import types as codes
from mpl.diagnostic import Diagnostics
from mpl.expressions.build import error, is_error
from mpl.expressions.conversions import can_convert, convert, enum_help, repair
from mpl.failures import EvaluationError
from mpl.functions.casts import cast_value
from mpl.functions.operators import compare_values
from mpl.source import Span
from mpl.typed import Const, Expr
from mpl.types import EnumType, NullType, TextType, Type

SYMBOLS: dict[str, str] = {
    "=": "equal",
    "<>": "unequal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}


def is_comparable(left: Type, right: Type) -> bool:
    if is_number(left) and is_number(right):
        return True
    if isinstance(left, TextType | EnumType) and isinstance(right, TextType | EnumType):
        return True
    return type_word(left) == type_word(right)


def align(left: Expr, right: Expr, span: Span, diagnostics: Diagnostics, *, ordered: bool) -> tuple[Expr, Expr]:
    """Both operands, ready to be compared; two error nodes after a diagnostic."""
    if is_error(left, right):
        return error(left.span), error(right.span)
    for one, other in ((left, right), (right, left)):
        if isinstance(one.type, NullType):
            _report_null(one, other, diagnostics)
            return error(left.span), error(right.span)
    if not is_comparable(left.type, right.type):
        diagnostics.report(
            codes.COMPARISON_TYPE,
            span,
            f"{left.type} cannot be compared with {right.type}",
            f"{left.type} on the left, {right.type} on the right",
            help=_repair_either(left, right),
        )
        return error(left.span), error(right.span)
    if ordered and not (_orderable(left, diagnostics) and _orderable(right, diagnostics)):
        return error(left.span), error(right.span)
    left, right = _as_other(left, right, diagnostics), _as_other(right, left, diagnostics)
    return (left, right) if not is_error(left, right) else (error(left.span), error(right.span))


def _report_null(null: Expr, other: Expr, diagnostics: Diagnostics) -> None:
    written = other.span.quoted
    diagnostics.report(
        codes.NULL_OPERAND,
        null.span,
        "comparing with `null` gives null, never true",
        "always null",
        help=f"write `{written} is null` or `{written} is not null`",
    )


def _repair_either(left: Expr, right: Expr) -> str | None:
    """How one side could be written in the type of the other; a literal is more likely to be wrong than a column."""
    if isinstance(left, Const):
        return repair(left, right.type) or repair(right, left.type)
    return repair(right, left.type) or repair(left, right.type)


def _orderable(operand: Expr, diagnostics: Diagnostics) -> bool:
    if is_ordered(operand.type):
        return True
    if isinstance(operand.type, EnumType):
        remedy = f"`cast({operand.span.quoted} as text)` compares by code point; `case` can give the values numbers"
    else:
        remedy = "use `and`, `or`, `not`"
    diagnostics.report(
        codes.COMPARISON_TYPE, operand.span, f"{type_word(operand.type)} has no order", "no `<` for this", help=remedy
    )
    return False


def _as_other(expr: Expr, other: Expr, diagnostics: Diagnostics) -> Expr:
    """A constant in the type of the other side, if that is exact."""
    if not isinstance(expr, Const) or isinstance(other, Const) or expr.type == other.type:
        return expr
    if isinstance(other.type, EnumType) and isinstance(expr.value, str) and expr.value not in other.type.values:
        diagnostics.report(
            codes.ENUM_VALUE,
            expr.span,
            f"`{other.span.quoted}` is never '{expr.value}'",
            f"not among {other.type}",
            help=enum_help(expr.value, other.type),
        )
        return error(expr.span)
    if can_convert(expr, other.type) and not is_number(other.type):
        return convert(expr, other.type)
    return _number_as(expr, other.type)


def _number_as(expr: Const, type: Type) -> Expr:
    if not is_number(expr.type) or not is_number(type):
        return expr
    try:
        value = cast_value(expr.value, expr.type, type)
    except EvaluationError:
        return expr
    same = value is not None and compare_values(value, expr.value, type, expr.type) == 0
    return convert(expr, type) if same else expr
