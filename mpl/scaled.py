"""Exact numbers as scaled integers: rounding, rescaling, range checks.

The bottom of all number functions. Everything here is exact integer arithmetic; the only rounding rule of the language
for exact numbers is `divide_rounded`: half away from zero, as in SQL.
"""

from __future__ import annotations

import math
from decimal import Decimal

from mpl.failures import EvaluationError, Failure
from mpl.types import (
    INT_MAX,
    INT_MIN,
    TIME_MAX,
    TIME_MIN,
    DecimalType,
    DurationType,
    FloatType,
    IntType,
    TimeType,
    Type,
)

Number = int | float


def power_of_ten(exponent: int) -> int:
    assert exponent >= 0
    return int(10**exponent)


def divide_truncated(numerator: int, denominator: int) -> int:
    """The quotient without its fraction: toward zero, as SQL does (Python's `//` goes down)."""
    quotient = abs(numerator) // abs(denominator)
    return quotient if (numerator < 0) == (denominator < 0) else -quotient


def divide_rounded(numerator: int, denominator: int) -> int:
    """The nearest integer to the quotient; a half goes away from zero."""
    quotient, rest = divmod(abs(numerator), abs(denominator))
    if 2 * rest >= abs(denominator):
        quotient += 1
    return quotient if (numerator < 0) == (denominator < 0) else -quotient


def remainder(numerator: int, denominator: int) -> int:
    """What `divide_truncated` leaves; it has the sign of the numerator."""
    rest = abs(numerator) % abs(denominator)
    return -rest if numerator < 0 else rest


def rescale(value: int, scale_from: int, scale_to: int) -> int:
    """The same number with another count of digits after the point; rounds when digits go."""
    if scale_to >= scale_from:
        return value * power_of_ten(scale_to - scale_from)
    return divide_rounded(value, power_of_ten(scale_from - scale_to))


def scale_of(type: Type) -> int:
    """Digits after the point of an exact number; durations count whole microseconds."""
    return type.scale if isinstance(type, DecimalType) else 0


def to_float(value: Number, type: Type) -> float:
    """The float nearest to an exact number."""
    if isinstance(type, DecimalType):
        # True division of two ints is correctly rounded in Python, whatever their size.
        return int(value) / power_of_ten(type.scale)
    return float(value)


def float_to_decimal(value: float) -> Decimal:
    """The number that the shortest text of this float says (0.145 is 145/1000, not the binary neighbour below it)."""
    return Decimal(repr(value))


def decimal_to_scaled(value: Decimal, scale: int) -> int:
    """An exact decimal as an integer scaled by 10^scale, rounded half away from zero."""
    numerator, denominator = value.as_integer_ratio()
    return divide_rounded(numerator * power_of_ten(scale), denominator)


def limits_of(type: Type) -> tuple[int, int] | None:
    """Smallest and largest canonical value of an exact number type."""
    match type:
        case IntType() | DurationType():
            return INT_MIN, INT_MAX
        case DecimalType():
            return 1 - power_of_ten(type.precision), power_of_ten(type.precision) - 1
        case TimeType():
            return TIME_MIN, TIME_MAX
        case _:
            return None


def checked(value: Number, type: Type) -> Number:
    """`value` if `type` can hold it, otherwise an overflow. A float must be finite, and there is only one zero."""
    if isinstance(type, FloatType):
        if not math.isfinite(value):
            raise EvaluationError(Failure.OVERFLOW, "the result is too large for float")
        return value + 0.0  # -0.0 becomes 0.0, so that equal floats have equal bits
    limits = limits_of(type)
    if limits is not None and not limits[0] <= value <= limits[1]:
        raise EvaluationError(Failure.OVERFLOW, f"the result is too large for {type}")
    return value
