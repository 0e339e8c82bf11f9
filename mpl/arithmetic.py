"""Types and ranges of arithmetic: what `+ - * / %` and unary minus give, and which types have one in common.

Called by the expression checker through the operator records in `mpl/functions/operators.py`, where the values are
computed. The rules:

- int with int gives int; `/` truncates toward zero, `%` has the sign of the dividend. Beyond 64 bits: an overflow.
- An int next to a decimal counts as a decimal without fraction, with as many digits as its range needs (a literal: as
  many as written; without a range: 18).
- decimal, with p digits of which s after the point, i = p - s before it:
      + -   scale max(s1, s2), never rounds            i = max(i1, i2) + 1
      *     scale s1 + s2                              i = i1 + i2
      /     scale max(6, s1)                           i = i1 + s2
      %     scale max(s1, s2), never rounds            i = min(i1, i2)
  A decimal has at most 18 digits. If i + scale is more, `*` and `/` give up digits after the point, but keep
  min(scale, 6) of them; the result is rounded half away from zero. Then the precision is cut to 18: a value that needs
  more digits is an overflow, never a wrong number.
- Anything with a float gives float. A result that is not finite is an overflow.
- time - time = duration; time + duration, duration + time, time - duration = time; duration + - % duration = duration;
  duration * int, int * duration, duration / int (truncated) = duration; duration / duration = decimal(18,6), "how many
  times". A time outside the years 1 to 9999 is an overflow.
- Dividing by zero is an error, for every type.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from mpl.scaled import divide_rounded, divide_truncated, limits_of, power_of_ten, rescale, scale_of, to_float
from mpl.types import (
    DECIMAL_DIGITS_MAX,
    OPEN,
    Bounds,
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

Operation = Literal["add", "subtract", "multiply", "divide", "modulo"]

DIVISION_SCALE_MIN = 6
DURATION_RATIO = DecimalType(DECIMAL_DIGITS_MAX, DIVISION_SCALE_MIN)
INT, FLOAT, TIME, DURATION = IntType(), FloatType(), TimeType(), DurationType()

Number = int | float


def is_number(type: Type) -> bool:
    return isinstance(type, IntType | DecimalType | FloatType)


def is_ordered(type: Type) -> bool:
    """Types with `<`: bool and enum have none, because readers would disagree about it."""
    return isinstance(type, IntType | DecimalType | FloatType | TextType | TimeType | DurationType)


# --- result types ---------------------------------------------------------------------------------------------------


def result_type(operation: Operation, left: Type, right: Type, ranges: tuple[Bounds, Bounds]) -> Type | None:
    """The type of `left operation right`, or None when there is no such operation."""
    if is_number(left) and is_number(right):
        if isinstance(left, FloatType) or isinstance(right, FloatType):
            return FLOAT
        if isinstance(left, IntType) and isinstance(right, IntType):
            return INT
        return _decimal_result(operation, as_decimal(left, ranges[0]), as_decimal(right, ranges[1]))
    return _TIME_RESULTS.get((operation, type_word(left), type_word(right)))


_TIME_RESULTS: dict[tuple[str, str, str], Type] = {
    ("subtract", "time", "time"): DURATION,
    ("add", "time", "duration"): TIME,
    ("add", "duration", "time"): TIME,
    ("subtract", "time", "duration"): TIME,
    ("add", "duration", "duration"): DURATION,
    ("subtract", "duration", "duration"): DURATION,
    ("modulo", "duration", "duration"): DURATION,
    ("multiply", "duration", "int"): DURATION,
    ("multiply", "int", "duration"): DURATION,
    ("divide", "duration", "int"): DURATION,
    ("divide", "duration", "duration"): DURATION_RATIO,
}


def type_word(type: Type) -> str:
    """The name of the family: `decimal` for `decimal(10,2)`."""
    return str(type).partition("(")[0]


def as_decimal(type: Type, bounds: Bounds) -> DecimalType:
    """An exact number as a decimal: an int with as many digits as its range needs."""
    if isinstance(type, DecimalType):
        return type
    if bounds.low is None or bounds.high is None:
        return DecimalType(DECIMAL_DIGITS_MAX, 0)
    digits = len(str(max(abs(int(bounds.low)), abs(int(bounds.high)))))
    return DecimalType(min(digits, DECIMAL_DIGITS_MAX), 0)


def _decimal_result(operation: Operation, left: DecimalType, right: DecimalType) -> DecimalType:
    before_left, before_right = left.precision - left.scale, right.precision - right.scale
    scale = max(left.scale, right.scale)
    match operation:
        case "add" | "subtract":
            return _cut(max(before_left, before_right) + 1, scale)
        case "modulo":
            return _cut(min(before_left, before_right), scale)
        case "multiply":
            return _cut(*_give_up_scale(before_left + before_right, left.scale + right.scale))
        case "divide":
            return _cut(*_give_up_scale(before_left + right.scale, max(DIVISION_SCALE_MIN, left.scale)))


def _give_up_scale(before: int, scale: int) -> tuple[int, int]:
    if before + scale <= DECIMAL_DIGITS_MAX:
        return before, scale
    return before, max(DECIMAL_DIGITS_MAX - before, min(scale, DIVISION_SCALE_MIN))


def _cut(before: int, scale: int) -> DecimalType:
    return DecimalType(max(1, min(before + scale, DECIMAL_DIGITS_MAX)), scale)


# --- one type for several values ------------------------------------------------------------------------------------


def unify(*types: Type) -> Type | None:
    """The type that all of these widen to; None when there is none.

    int widens to decimal and both to float; decimals take the larger scale and the larger part before the point (18
    digits at most, beyond which a value is an overflow); texts the larger length, enums that differ become text.
    `null` widens to anything. An error already reported wins, so that it is not reported again.
    """
    result: Type = NullType()
    for each in types:
        if isinstance(each, ErrorType):
            return each
        common = _unify_pair(result, each)
        if common is None:
            return None
        result = common
    return result


def _unify_pair(left: Type, right: Type) -> Type | None:
    if left == right or isinstance(right, NullType):
        return left
    if isinstance(left, NullType):
        return right
    if is_number(left) and is_number(right):
        if isinstance(left, FloatType) or isinstance(right, FloatType):
            return FLOAT
        one, other = as_decimal(left, OPEN), as_decimal(right, OPEN)
        return _cut(max(one.precision - one.scale, other.precision - other.scale), max(one.scale, other.scale))
    if isinstance(left, TextType | EnumType) and isinstance(right, TextType | EnumType):
        lengths = (text_length_max(left), text_length_max(right))
        return TextType(None if None in lengths else max(length for length in lengths if length is not None))
    return None


def text_length_max(type: Type) -> int | None:
    """How long a text of this type can be; None when nobody said."""
    if isinstance(type, EnumType):
        return max(len(value) for value in type.values)
    return type.length_max if isinstance(type, TextType) else None


# --- ranges ---------------------------------------------------------------------------------------------------------


def bounds_within(type: Type, low: Number, high: Number) -> Bounds:
    """The range as bounds of `type`; an end that the type cannot reach is open (a value there is an overflow)."""
    limits = limits_of(type) or (-math.inf, math.inf)
    return Bounds(low if limits[0] < low < math.inf else None, high if -math.inf < high < limits[1] else None)


def ends_of(bounds: Bounds) -> tuple[Number, Number]:
    """Both ends as numbers; an open end is infinite."""
    low, high = bounds.low, bounds.high
    return -math.inf if low is None else low, math.inf if high is None else high


def scaled_ends(bounds: Bounds, type: Type, result: Type) -> tuple[Number, Number]:
    """The ends in canonical units of `result`, when that is an exact number or a float."""
    low, high = ends_of(bounds)
    if type == result:
        return low, high
    return _scaled(low, type, result), _scaled(high, type, result)


def _scaled(value: Number, type: Type, result: Type) -> Number:
    if math.isinf(value):
        return value
    if isinstance(result, FloatType):
        return to_float(value, type)
    return rescale(int(value), scale_of(type), scale_of(result))


def result_bounds(operation: Operation, left: tuple[Type, Bounds], right: tuple[Type, Bounds], result: Type) -> Bounds:
    """A range that holds every value of `left operation right`."""
    if operation != "modulo" and (left[1].is_open or right[1].is_open):
        return OPEN
    if operation == "add":
        low_left, high_left = scaled_ends(left[1], left[0], result)
        low_right, high_right = scaled_ends(right[1], right[0], result)
        return bounds_within(result, low_left + low_right, high_left + high_right)
    if operation == "subtract":
        low_left, high_left = scaled_ends(left[1], left[0], result)
        low_right, high_right = scaled_ends(right[1], right[0], result)
        return bounds_within(result, low_left - high_right, high_left - low_right)
    if operation == "multiply":
        return _corners(left, right, result, _product(left[0], right[0], result))
    if operation == "divide":
        low, high = ends_of(right[1])
        if low <= 0 <= high:
            return OPEN
        return _corners(left, right, result, _quotient(left[0], right[0], result))
    return _remainder_bounds(left, right, result)


def negated_bounds(bounds: Bounds, type: Type) -> Bounds:
    low, high = ends_of(bounds)
    return bounds_within(type, -high, -low)


def _corners(
    left: tuple[Type, Bounds], right: tuple[Type, Bounds], result: Type, compute: Callable[[Number, Number], Number]
) -> Bounds:
    """Products and quotients are monotone in each operand on either side of zero: the extremes are at the corners."""
    values = [compute(a, b) for a in ends_of(left[1]) for b in ends_of(right[1])]
    return bounds_within(result, min(values), max(values))


def _product(left: Type, right: Type, result: Type) -> Callable[[Number, Number], Number]:
    def compute(a: Number, b: Number) -> Number:
        if a == 0 or b == 0:
            return 0
        if math.isinf(a) or math.isinf(b):
            return math.inf if (a > 0) == (b > 0) else -math.inf
        if isinstance(result, FloatType):
            return to_float(a, left) * to_float(b, right)
        return rescale(int(a) * int(b), scale_of(left) + scale_of(right), scale_of(result))

    return compute


def _quotient(left: Type, right: Type, result: Type) -> Callable[[Number, Number], Number]:
    def compute(a: Number, b: Number) -> Number:
        if a == 0 or math.isinf(b):
            return 0
        if math.isinf(a):
            return math.inf if (a > 0) == (b > 0) else -math.inf
        if isinstance(result, FloatType):
            return to_float(a, left) / to_float(b, right)
        return exact_quotient(int(a), left, int(b), right, result)

    return compute


def exact_quotient(a: int, left: Type, b: int, right: Type, result: Type) -> int:
    """`a / b` in units of `result`: truncated for int and duration, rounded half away from zero for decimals."""
    if not isinstance(result, DecimalType):
        return divide_truncated(a, b)
    shift = result.scale + scale_of(right) - scale_of(left)
    return divide_rounded(a * power_of_ten(max(shift, 0)), b * power_of_ten(max(-shift, 0)))


def _remainder_bounds(left: tuple[Type, Bounds], right: tuple[Type, Bounds], result: Type) -> Bounds:
    """Smaller than the divisor, no larger than the dividend, and with its sign."""
    low, high = scaled_ends(left[1], left[0], result)
    divisor = max(abs(end) for end in scaled_ends(right[1], right[0], result))
    largest = divisor if isinstance(result, FloatType) else max(divisor - 1, 0)
    return bounds_within(result, max(min(low, 0), -largest), min(max(high, 0), largest))
