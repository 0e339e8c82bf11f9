"""Conversions that nobody has to write, and the diagnostics for those that somebody should.

A conversion without being asked never rounds and never changes a text: int to decimal, decimal to a larger scale,
exact numbers to float (which is declared approximate), enum to text, a text literal to an enum that has it, a shorter
text to a longer type. A number that does not fit before the point is an overflow when it is evaluated.
"""

from __future__ import annotations

import re

from mpl.arithmetic import is_number, text_length_max, type_word, unify
from mpl.codes import types as codes
from mpl.diagnostic import Diagnostics, did_you_mean
from mpl.expressions.build import apply, constant, error, is_error
from mpl.failures import EvaluationError
from mpl.functions.casts import can_cast, cast_value
from mpl.functions.time_text import time_of_literal
from mpl.scaled import power_of_ten
from mpl.typed import Const, Expr
from mpl.types import (
    DecimalType,
    DurationType,
    EnumType,
    ErrorType,
    FloatType,
    IntType,
    NullType,
    TextType,
    TimeType,
    Type,
)

__all__ = ["assign", "can_convert", "convert", "enum_help", "repair", "says_time", "shown_operand", "unify"]

_WRITTEN = {
    "int": "`42`",
    "decimal": "`12.50`",
    "float": "`1e3`",
    "bool": "`true`",
    "text": "`'abc'`",
    "time": "`time '2026-01-31 12:00:00'`",
    "duration": "`90 s`",
    "enum": "in quotes",
}


def can_convert(expr: Expr, type: Type) -> bool:
    """Whether `expr` may stand where `type` is wanted without a written cast."""
    source = expr.type
    if source == type or isinstance(source, NullType | ErrorType) or isinstance(type, ErrorType):
        return True
    match type:
        case FloatType():
            return is_number(source)
        case DecimalType():
            if isinstance(expr, Const):
                return isinstance(source, IntType | DecimalType) and _is_exact(expr, type)
            return isinstance(source, IntType) or (isinstance(source, DecimalType) and source.scale <= type.scale)
        case TextType():
            length = len(str(expr.value)) if isinstance(expr, Const) else text_length_max(source)
            fits = type.length_max is None or (length is not None and length <= type.length_max)
            return isinstance(source, TextType | EnumType) and fits
        case EnumType():
            if isinstance(source, EnumType):
                return set(source.values) <= set(type.values)
            return isinstance(expr, Const) and expr.value in type.values
        case _:
            return False


def _is_exact(expr: Const, type: DecimalType) -> bool:
    assert isinstance(expr.value, int)
    scale = expr.type.scale if isinstance(expr.type, DecimalType) else 0
    try:
        converted = cast_value(expr.value, expr.type, type)
    except EvaluationError:
        return False
    assert isinstance(converted, int)
    return converted * power_of_ten(scale) == expr.value * power_of_ten(type.scale)


def convert(expr: Expr, type: Type) -> Expr:
    """`expr` as `type`: itself, a converted constant, or a cast around it. Ask `can_convert` (or `unify`) first."""
    if expr.type == type or is_error(expr):
        return expr
    if isinstance(type, ErrorType):
        return error(expr.span)
    if isinstance(expr, Const) and (expr.value is None or isinstance(type, TextType | EnumType)):
        return constant(expr.value, type, expr.span)
    return apply("cast", (expr,), expr.span, None, type)


def assign(expr: Expr, type: Type, what: str, diagnostics: Diagnostics, *, only_literals: bool = False) -> Expr:
    """`convert`, or a diagnostic which says that `what` (such as "column `total`") does not take the value."""
    if can_convert(expr, type):
        return convert(expr, type)
    if isinstance(type, EnumType) and isinstance(expr, Const) and isinstance(expr.value, str):
        diagnostics.report(
            codes.ENUM_VALUE,
            expr.span,
            f"{what} has no value '{expr.value}'",
            f"not among {type}",
            help=enum_help(expr.value, type),
        )
    elif isinstance(type, DecimalType) and isinstance(expr, Const) and isinstance(expr.type, IntType | DecimalType):
        diagnostics.report(
            codes.VALUE_TYPE,
            expr.span,
            f"{what} is {type}, which has no {expr.span.quoted}",
            "too large, or too many digits after the point",
            help=f"{type} has {type.precision - type.scale} digits before the point and {type.scale} after it",
        )
    else:
        diagnostics.report(
            codes.VALUE_TYPE,
            expr.span,
            f"{what} is {type}, not {expr.type}",
            f"this is {expr.type}",
            help=_literal_help(expr, type) if only_literals else repair(expr, type),
        )
    return error(expr.span)


def _literal_help(expr: Expr, wanted: Type) -> str | None:
    """A help line where a calculation or a cast would not do."""
    if isinstance(wanted, TextType) and isinstance(expr.type, TextType):
        return f"at most {wanted.length_max} characters fit"
    is_text = isinstance(expr, Const) and isinstance(expr.value, str)
    return repair(expr, wanted) if is_text else f"a value of type {wanted} is written {_WRITTEN[type_word(wanted)]}"


def enum_help(text: str, type: EnumType) -> str:
    """The value that was probably meant, or all of them."""
    return did_you_mean(text, type.values) or f"the values are {str(type).removeprefix('enum')}"


def repair(expr: Expr, wanted: Type) -> str | None:
    """A help line: how to write this value so that it has the wanted type."""
    if isinstance(expr, Const) and isinstance(expr.value, str) and isinstance(expr.type, TextType):
        return _repair_text(expr, wanted)
    written = shown_operand(expr)
    if isinstance(expr.type, IntType) and isinstance(wanted, DurationType):
        is_literal = re.fullmatch(r"-?\d+", expr.span.quoted)
        return f"a duration has a unit: `{expr.span.quoted} s`" if is_literal else f"write `{written} * 1 s`"
    if isinstance(expr.type, DurationType) and is_number(wanted):
        return f"`{written} / 1 s` is the number of seconds"
    if isinstance(expr.type, IntType) and isinstance(wanted, TimeType):
        return f"`time '1970-01-01' + {written} * 1 s` if it counts seconds"
    if isinstance(expr.type, TimeType) and is_number(wanted):
        return f"`epoch({written})` is the number of seconds since 1970"
    if not can_cast(expr.type, wanted) or (isinstance(expr, Const) and not _says(expr, wanted)):
        return None
    return f"write `cast({expr.span.quoted} as {wanted})`"


def shown_operand(expr: Expr) -> str:
    """An expression as written, for a help line that puts it next to an operator."""
    written = expr.span.quoted
    return written if re.fullmatch(r"[\w.]+", written) else f"({written})"


def says_time(expr: Const) -> bool:
    """Whether the text could be the one of a time literal."""
    try:
        time_of_literal(str(expr.value))
    except EvaluationError:
        return False
    return True


def _repair_text(text: Const, wanted: Type) -> str | None:
    if isinstance(wanted, TimeType):
        return f"write `time '{text.value}'`" if says_time(text) else "a time is written `time '2026-01-31 12:00:00'`"
    if isinstance(wanted, DurationType):
        return "a duration is written with a unit and without quotes: `10 s`"
    return f"write `{text.value}` without the quotes" if _says(text, wanted) else None


def _says(expr: Const, wanted: Type) -> bool:
    """Whether the constant, cast, is a value of that type."""
    try:
        cast_value(expr.value, expr.type, wanted)
    except (EvaluationError, AssertionError):
        return False
    return True
