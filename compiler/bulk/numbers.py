"""Exact and float arithmetic as text of Spark column expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.bulk.writer import Writer
from mpl.scaled import limits_of, scale_of
from mpl.typed import Apply, Const, Expr
from mpl.types import DecimalType, FloatType, IntType, Type

if TYPE_CHECKING:
    from compiler.bulk.expressions import ExpressionWriter


def is_within(expr: Expr, limits: tuple[int, int]) -> bool:
    low, high = expr.bounds.low, expr.bounds.high
    return low is not None and high is not None and limits[0] <= low and high <= limits[1]


def too_large(out: ExpressionWriter, type: Type) -> str:
    return out.message(f"the result is too large for {type}")


def checked_text(out: ExpressionWriter, expr: Expr, text: str) -> str:
    """A 64-bit result against the narrower range of its type; Spark itself refuses what needs more than 64 bits."""
    limits = limits_of(expr.type)
    if limits is None or isinstance(expr.type, IntType) or is_within(expr, limits):
        return text
    return f"X.within({text}, {limits[0]}, {limits[1]}, {too_large(out, expr.type)})"


def narrow_text(out: ExpressionWriter, expr: Expr, text: str) -> str:
    limits = limits_of(expr.type)
    assert limits is not None
    return f"X.narrow({text}, {limits[0]}, {limits[1]}, {too_large(out, expr.type)})"


def float_text(out: ExpressionWriter, argument: Expr) -> str:
    text = out.value(argument)
    return text if isinstance(argument.type, FloatType) else f"X.float_of({text}, {scale_of(argument.type)})"


def finite_text(out: ExpressionWriter, text: str) -> str:
    return f"X.finite({text}, {out.message('the result is too large for float')})"


def sum_of(symbol: str) -> Writer:
    def write(out: ExpressionWriter, expr: Apply) -> str:
        left, right = expr.arguments
        if isinstance(expr.type, FloatType):
            return finite_text(out, f"({float_text(out, left)} {symbol} {float_text(out, right)})")
        scale = scale_of(expr.type)
        if scale_of(left.type) == scale_of(right.type) == scale:
            return checked_text(out, expr, f"({out.value(left)} {symbol} {out.value(right)})")
        one, other = wide_text(out, left, scale), wide_text(out, right, scale)
        return narrow_text(out, expr, f"({one} {symbol} {other})")

    return write


def wide_text(out: ExpressionWriter, argument: Expr, scale: int) -> str:
    """An exact number in units of another scale, with room to spare."""
    text = f"X.wide({out.value(argument)})"
    digits = scale - scale_of(argument.type)
    return text if digits == 0 else f"X.rescaled({text}, {digits})"


def multiply(out: ExpressionWriter, expr: Apply) -> str:
    left, right = expr.arguments
    if isinstance(expr.type, FloatType):
        return finite_text(out, f"({float_text(out, left)} * {float_text(out, right)})")
    lost = scale_of(left.type) + scale_of(right.type) - scale_of(expr.type)
    if lost == 0:
        return checked_text(out, expr, f"({out.value(left)} * {out.value(right)})")
    product = f"X.wide({out.value(left)}) * X.wide({out.value(right)})"
    return narrow_text(out, expr, f"X.rescaled(({product}).cast(X.WIDE), {-lost})")


def divide(out: ExpressionWriter, expr: Apply) -> str:
    left, right = expr.arguments
    if isinstance(expr.type, FloatType):
        return finite_text(out, f"({float_text(out, left)} / {float_text(out, right)})")
    if not isinstance(expr.type, DecimalType):
        return checked_text(out, expr, f"X.truncated({out.value(left)}, {out.value(right)})")
    shift = expr.type.scale + scale_of(right.type) - scale_of(left.type)
    above, below = f"X.wide({out.value(left)})", f"X.wide({out.value(right)})"
    if shift > 0:
        above = f"X.rescaled({above}, {shift})"
    elif shift < 0:
        below = f"X.rescaled({below}, {-shift})"
    quotient = narrow_text(out, expr, f"X.rounded({above}, {below})")
    # A null divisor gives null, also where the dividend has no room for the digits of the result.
    return f"F.when({out.value(right)}.isNotNull(), {quotient})" if right.nullable else quotient


def modulo(out: ExpressionWriter, expr: Apply) -> str:
    left, right = expr.arguments
    if isinstance(expr.type, FloatType):
        return finite_text(out, f"({float_text(out, left)} % {float_text(out, right)})")
    scale = scale_of(expr.type)
    if scale_of(left.type) == scale_of(right.type) == scale:
        return f"({out.value(left)} % {out.value(right)})"
    return narrow_text(out, expr, f"({wide_text(out, left, scale)} % {wide_text(out, right, scale)})")


def negate(out: ExpressionWriter, expr: Apply) -> str:
    text = f"(-{out.value(expr.arguments[0])})"
    return f"({text} + F.lit(0.0))" if isinstance(expr.type, FloatType) else checked_text(out, expr, text)


def absolute(out: ExpressionWriter, expr: Apply) -> str:
    return f"F.abs({out.value(expr.arguments[0])})"


def sign(out: ExpressionWriter, expr: Apply) -> str:
    return f'F.signum({out.value(expr.arguments[0])}).cast("bigint")'


def floor(out: ExpressionWriter, expr: Apply) -> str:
    argument = expr.arguments[0]
    value = out.value(argument)
    if isinstance(argument.type, FloatType):
        return f'F.floor({value}).cast("bigint")'
    scale = scale_of(argument.type)
    return value if scale == 0 else f"X.floored({value}, {10**scale})"


def ceil(out: ExpressionWriter, expr: Apply) -> str:
    argument = expr.arguments[0]
    value = out.value(argument)
    if isinstance(argument.type, FloatType):
        return f'F.ceil({value}).cast("bigint")'
    scale = scale_of(argument.type)
    return value if scale == 0 else f"(-X.floored(-{value}, {10**scale}))"


def rounded(out: ExpressionWriter, expr: Apply) -> str:
    argument = expr.arguments[0]
    if isinstance(argument.type, FloatType):
        if isinstance(expr.type, IntType):
            return narrow_text(out, expr, f"X.exact_of_float({out.value(argument)}, 0)")
        return f"X.float_rounded({out.value(argument)}, {_digits(expr)})"
    lost = scale_of(argument.type) - scale_of(expr.type)
    if lost <= 0:
        return out.value(argument)
    return narrow_text(out, expr, f"X.rescaled(X.wide({out.value(argument)}), {-lost})")


def _digits(expr: Apply) -> int:
    if len(expr.arguments) == 1:
        return 0
    digits = expr.arguments[1]
    assert isinstance(digits, Const)
    assert isinstance(digits.value, int)
    return digits.value


def power(out: ExpressionWriter, expr: Apply) -> str:
    return finite_text(out, f"F.pow({float_text(out, expr.arguments[0])}, {float_text(out, expr.arguments[1])})")


def sqrt(out: ExpressionWriter, expr: Apply) -> str:
    return finite_text(out, f"F.sqrt({float_text(out, expr.arguments[0])})")
