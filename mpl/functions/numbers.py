"""Functions of numbers. Exact on int and decimal; a float only comes out where one went in, or by `power`, `sqrt`."""

from __future__ import annotations

import math

from mpl.arithmetic import INT, bounds_within, ends_of, is_number, scaled_ends
from mpl.failures import EvaluationError, Failure
from mpl.functions.spec import (
    Example,
    FunctionSpec,
    Kind,
    Nulls,
    Parameter,
    Signature,
    common_type,
    fixed,
    fixed_bounds,
    same_as_first,
)
from mpl.scaled import Number, checked, decimal_to_scaled, float_to_decimal, power_of_ten, rescale, scale_of, to_float
from mpl.typed import Const, Expr
from mpl.types import DECIMAL_DIGITS_MAX, OPEN, Bounds, DecimalType, FloatType, IntType, Type, Value


def _absolute_bounds(arguments: tuple[Expr, ...], result: Type) -> Bounds:
    low, high = ends_of(arguments[0].bounds)
    smallest = 0 if low <= 0 <= high else min(abs(low), abs(high))
    return bounds_within(result, smallest, max(abs(low), abs(high)))


def _floor(call: Signature, x: Number) -> Value:
    if isinstance(call.arguments[0], FloatType):
        return checked(math.floor(x), INT)
    return int(x) // power_of_ten(scale_of(call.arguments[0]))


def _ceil(call: Signature, x: Number) -> Value:
    if isinstance(call.arguments[0], FloatType):
        return checked(math.ceil(x), INT)
    return -(-int(x) // power_of_ten(scale_of(call.arguments[0])))


def _round(call: Signature, x: Number, digits: int = 0) -> Value:
    source = call.arguments[0]
    if isinstance(source, FloatType):
        scaled = decimal_to_scaled(float_to_decimal(x), digits)
        return checked(scaled, INT) if isinstance(call.result, IntType) else scaled / power_of_ten(digits)
    return checked(rescale(int(x), scale_of(source), scale_of(call.result)), call.result)


def _round_result(arguments: tuple[Expr, ...]) -> Type | None:
    source = arguments[0].type
    if len(arguments) == 1 or isinstance(source, IntType):
        return INT
    digits = arguments[1]
    if isinstance(source, DecimalType) and isinstance(digits, Const) and isinstance(digits.value, int):
        if digits.value >= source.scale:
            return source
        before = source.precision - source.scale + 1  # 9.99 rounded to one digit is 10.0
        return DecimalType(min(before + digits.value, DECIMAL_DIGITS_MAX), digits.value)
    return source


def _rounded_bounds(arguments: tuple[Expr, ...], result: Type) -> Bounds:
    """Floor, ceiling and rounding stay within one of the value and keep whole numbers."""
    source = arguments[0]
    if isinstance(source.type, FloatType):
        return OPEN
    low, high = scaled_ends(source.bounds, source.type, result)
    slack = 0 if isinstance(source.type, IntType) else 1
    whole_zero = source.bounds.non_negative
    return bounds_within(result, max(low - slack, 0) if whole_zero else low - slack, high + slack)


def _round_digits_problem(digits: Value) -> str | None:
    assert isinstance(digits, int)
    return None if 0 <= digits <= DECIMAL_DIGITS_MAX else f"digits go from 0 to {DECIMAL_DIGITS_MAX}"


def _power(call: Signature, x: Number, y: Number) -> Value:
    base, exponent = to_float(x, call.arguments[0]), to_float(y, call.arguments[1])
    try:
        return checked(math.pow(base, exponent), call.result)
    except OverflowError:
        raise EvaluationError(Failure.OVERFLOW, "the result is too large for float") from None
    except ValueError:
        raise EvaluationError(Failure.ARGUMENT, f"power({base!r}, {exponent!r}) is not a real number") from None


def _sqrt(call: Signature, x: Number) -> Value:
    if x < 0:
        raise EvaluationError(Failure.ARGUMENT, "sqrt of a negative number")
    return checked(math.sqrt(to_float(x, call.arguments[0])), call.result)


def _extreme_bounds(arguments: tuple[Expr, ...], result: Type, *, largest: bool) -> Bounds:
    """Arguments that may be null can drop out, so only the others promise the nearer end."""
    if not is_number(result):
        return OPEN
    ends = [scaled_ends(argument.bounds, argument.type, result) for argument in arguments]
    lows, highs = [low for low, _ in ends], [high for _, high in ends]
    sure = [end for argument, end in zip(arguments, ends, strict=True) if not argument.nullable]
    if largest:
        return bounds_within(result, max((low for low, _ in sure), default=min(lows)), max(highs))
    return bounds_within(result, min(lows), min((high for _, high in sure), default=max(highs)))


def _least(_: Signature, *values: Value) -> Value:
    return min((value for value in values if value is not None), default=None)


def _greatest(_: Signature, *values: Value) -> Value:
    return max((value for value in values if value is not None), default=None)


_X = Parameter("x", Kind.NUMBER)

NUMBERS: tuple[FunctionSpec, ...] = (
    FunctionSpec(
        name="abs",
        theme="numbers",
        called="abs",
        parameters=(Parameter("x", Kind.AMOUNT),),
        result=same_as_first,
        nulls=Nulls.PROPAGATE,
        monotone=(None,),
        bounds=_absolute_bounds,
        evaluate=lambda call, x: checked(abs(x), call.result),
        summary="The number (or duration) without its sign.",
        examples=(Example("abs(-3)", "3"), Example("abs(-1.50)", "1.50")),
    ),
    FunctionSpec(
        name="sign",
        theme="numbers",
        called="sign",
        parameters=(Parameter("x", Kind.AMOUNT),),
        result=fixed(INT),
        nulls=Nulls.PROPAGATE,
        monotone=("up",),
        bounds=fixed_bounds(-1, 1),
        evaluate=lambda _, x: (x > 0) - (x < 0),
        summary="-1, 0 or 1.",
        examples=(Example("sign(-2.5)", "-1"), Example("sign(0)", "0")),
    ),
    FunctionSpec(
        name="floor",
        theme="numbers",
        called="floor",
        parameters=(_X,),
        result=fixed(INT),
        nulls=Nulls.PROPAGATE,
        monotone=("up",),
        bounds=_rounded_bounds,
        evaluate=_floor,
        summary="The largest int that is not above `x`.",
        examples=(Example("floor(2.7)", "2"), Example("floor(-2.1)", "-3")),
    ),
    FunctionSpec(
        name="ceil",
        theme="numbers",
        called="ceil",
        parameters=(_X,),
        result=fixed(INT),
        nulls=Nulls.PROPAGATE,
        monotone=("up",),
        bounds=_rounded_bounds,
        evaluate=_ceil,
        summary="The smallest int that is not below `x`.",
        examples=(Example("ceil(2.1)", "3"), Example("ceil(-2.7)", "-2")),
    ),
    FunctionSpec(
        name="round",
        theme="numbers",
        called="round",
        parameters=(
            _X,
            Parameter("digits", Kind.INT, literal=True, optional=True, problem=_round_digits_problem),
        ),
        result=_round_result,
        nulls=Nulls.PROPAGATE,
        monotone=("up", None),
        bounds=_rounded_bounds,
        evaluate=_round,
        summary="The nearest number with that many digits after the point, a half away from zero; "
        "without `digits` an int.",
        examples=(
            Example("round(2.5)", "3"),
            Example("round(-2.345, 2)", "-2.35"),
            Example("round(145e-3, 2)", "15e-2"),
        ),
    ),
    FunctionSpec(
        name="power",
        theme="numbers",
        called="power",
        parameters=(_X, Parameter("y", Kind.NUMBER)),
        result=fixed(FloatType()),
        nulls=Nulls.PROPAGATE,
        monotone=(None, None),
        deterministic=False,  # C libraries differ in the last digit of pow
        evaluate=_power,
        summary="`x` to the power of `y`, a float; machines may differ in its last digit.",
        examples=(Example("power(2, 10)", "1024e0"),),
    ),
    FunctionSpec(
        name="sqrt",
        theme="numbers",
        called="sqrt",
        parameters=(_X,),
        result=fixed(FloatType()),
        nulls=Nulls.PROPAGATE,
        monotone=("up",),
        bounds=fixed_bounds(0, None),
        evaluate=_sqrt,
        summary="The square root, a float; of a negative number it is an error.",
        examples=(Example("sqrt(2.25)", "1.5e0"),),
    ),
    FunctionSpec(
        name="least",
        theme="numbers",
        called="least",
        parameters=(Parameter("a", Kind.ORDERED), Parameter("b", Kind.ORDERED)),
        variadic=True,
        common=True,
        result=common_type,
        nulls=Nulls.SKIP,
        monotone=("up",),
        bounds=lambda arguments, result: _extreme_bounds(arguments, result, largest=False),
        evaluate=_least,
        summary="The smallest of the values; nulls are left out, and if nothing is left it is null.",
        examples=(Example("least(3, 1.5)", "1.5"), Example("least('b', 'a', 'c')", "'a'")),
    ),
    FunctionSpec(
        name="greatest",
        theme="numbers",
        called="greatest",
        parameters=(Parameter("a", Kind.ORDERED), Parameter("b", Kind.ORDERED)),
        variadic=True,
        common=True,
        result=common_type,
        nulls=Nulls.SKIP,
        monotone=("up",),
        bounds=lambda arguments, result: _extreme_bounds(arguments, result, largest=True),
        evaluate=_greatest,
        summary="The largest of the values; nulls are left out, and if nothing is left it is null.",
        examples=(Example("greatest(3, 7, 5)", "7"), Example("greatest(1, nullif(2, 2))", "1")),
    ),
)
