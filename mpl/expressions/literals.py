"""Literals: what a number, a text or a time in the program is as a typed constant."""

from __future__ import annotations

import math

from mpl import nodes
from mpl.codes import types as codes
from mpl.diagnostic import Diagnostics
from mpl.expressions.build import constant, error
from mpl.failures import EvaluationError
from mpl.functions.time_text import time_of_literal
from mpl.scaled import decimal_to_scaled
from mpl.source import Span
from mpl.typed import Const
from mpl.types import (
    DECIMAL_DIGITS_MAX,
    INT_MAX,
    INT_MIN,
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
            return int_constant(node.value, node.span, diagnostics)
        case nodes.DecimalLiteral():
            return _decimal(node, diagnostics)
        case nodes.FloatLiteral():
            if math.isfinite(node.value):
                return constant(node.value + 0.0, FloatType(), node.span)
            return _too_large(node.span, "float", diagnostics)
        case nodes.TextLiteral():
            return constant(node.value, TextType(), node.span)
        case nodes.BoolLiteral():
            return constant(node.value, BoolType(), node.span)
        case nodes.NullLiteral():
            return constant(None, NullType(), node.span)
        case nodes.DurationLiteral():
            if node.microseconds <= INT_MAX:
                return constant(node.microseconds, DurationType(), node.span)
            return _too_large(node.span, "duration", diagnostics)
        case nodes.TimeLiteral():
            return _time(node, diagnostics)


def int_constant(value: int, span: Span, diagnostics: Diagnostics) -> Const:
    if INT_MIN <= value <= INT_MAX:
        return constant(value, IntType(), span)
    return _too_large(span, "int", diagnostics, f"an int goes from {INT_MIN} to {INT_MAX}")


def _decimal(node: nodes.DecimalLiteral, diagnostics: Diagnostics) -> Const:
    _, digits, exponent = node.value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    whole = "".join(map(str, digits)).lstrip("0")
    precision = max(len(whole) + max(exponent, 0), scale, 1)
    if precision > DECIMAL_DIGITS_MAX:
        return _too_large(node.span, "decimal", diagnostics, f"a decimal has at most {DECIMAL_DIGITS_MAX} digits")
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


def _too_large(span: Span, what: str, diagnostics: Diagnostics, help: str | None = None) -> Const:
    diagnostics.report(codes.NUMBER_TOO_LARGE, span, f"this number does not fit into {what}", "too large", help=help)
    return error(span)
