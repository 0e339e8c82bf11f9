"""Literals: what a number, a text or a time in the program is as a typed constant.

The lexer has already refused numbers beyond 64 bits; what is left to see here is a decimal with too many places.
"""

from __future__ import annotations

from mpl import nodes
from mpl.codes import types as codes
from mpl.diagnostic import Diagnostics
from mpl.expressions.build import constant, error
from mpl.failures import EvaluationError
from mpl.functions.time_text import time_of_literal
from mpl.scaled import decimal_to_scaled
from mpl.typed import Const
from mpl.types import (
    DECIMAL_DIGITS_MAX,
    BoolType,
    DecimalType,
    DurationType,
    FloatType,
    IntType,
    NullType,
    TextType,
    TimeType,
)

Literal = (
    nodes.IntLiteral
    | nodes.DecimalLiteral
    | nodes.FloatLiteral
    | nodes.TextLiteral
    | nodes.BoolLiteral
    | nodes.NullLiteral
    | nodes.DurationLiteral
    | nodes.TimeLiteral
)
LITERALS = (
    nodes.IntLiteral,
    nodes.DecimalLiteral,
    nodes.FloatLiteral,
    nodes.TextLiteral,
    nodes.BoolLiteral,
    nodes.NullLiteral,
    nodes.DurationLiteral,
    nodes.TimeLiteral,
)


def literal(node: Literal, diagnostics: Diagnostics) -> Const:
    match node:
        case nodes.IntLiteral():
            return constant(node.value, IntType(), node.span)
        case nodes.DecimalLiteral():
            return _decimal(node, diagnostics)
        case nodes.FloatLiteral():
            return constant(node.value, FloatType(), node.span)
        case nodes.TextLiteral():
            return constant(node.value, TextType(), node.span)
        case nodes.BoolLiteral():
            return constant(node.value, BoolType(), node.span)
        case nodes.NullLiteral():
            return constant(None, NullType(), node.span)
        case nodes.DurationLiteral():
            return constant(node.microseconds, DurationType(), node.span)
        case nodes.TimeLiteral():
            return _time(node, diagnostics)


def _decimal(node: nodes.DecimalLiteral, diagnostics: Diagnostics) -> Const:
    _, digits, exponent = node.value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    whole = "".join(map(str, digits)).lstrip("0")
    precision = max(len(whole) + max(exponent, 0), scale, 1)
    if precision > DECIMAL_DIGITS_MAX:
        diagnostics.report(
            codes.NUMBER_TOO_LARGE,
            node.span,
            f"this number needs {precision} digits",
            "too many for decimal",
            help=f"a decimal has at most {DECIMAL_DIGITS_MAX} digits; with an exponent (`1e-20`) it is a float",
        )
        return error(node.span)
    return constant(decimal_to_scaled(node.value, scale), DecimalType(precision, scale), node.span)


def _time(node: nodes.TimeLiteral, diagnostics: Diagnostics) -> Const:
    try:
        return constant(time_of_literal(node.text), TimeType(), node.span)
    except EvaluationError as failure:
        diagnostics.report(
            codes.TIME_INVALID,
            node.span,
            failure.message,
            "not a time",
            help="a time is written `time '2026-01-31'` or `time '2026-01-31 12:00:00'`, in UTC",
        )
        return error(node.span)
