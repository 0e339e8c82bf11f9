"""The value of one aggregate over the values of a group, which come in the order of their ticks."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from mpl.scaled import checked, divide_rounded, scale_of
from mpl.types import FloatType, Type, Value


def aggregate_value(function: str, values: Sequence[Value], distinct: bool, source: Type | None, result: Type) -> Value:
    """`source` is the type of the argument, None for `count()`. Nulls never count."""
    present = [value for value in values if value is not None]
    if distinct:
        present = list(dict.fromkeys(present))
    match function:
        case "count":
            return len(present)
        case "any":
            return any(present)
        case "all":
            return all(present)
        case "sum":
            return _sum(present, result)
        case _:
            pass
    if not present:
        return None
    match function:
        case "first":
            return present[0]
        case "last":
            return present[-1]
        case "min":
            return min(present)
        case "max":
            return max(present)
        case "avg":
            assert source is not None
            return _average(present, source, result)
        case _:
            raise AssertionError(function)


def _sum(values: Sequence[Value], result: Type) -> Value:
    if isinstance(result, FloatType):
        # Exact, so that it does not depend on the order.
        return checked(float(sum(_fraction(value) for value in values)), result)
    return checked(sum(_whole(value) for value in values), result)


def _average(values: Sequence[Value], source: Type, result: Type) -> Value:
    if isinstance(result, FloatType):
        return checked(float(sum(_fraction(value) for value in values)) / len(values), result)
    total = sum(_whole(value) for value in values) * 10 ** (scale_of(result) - scale_of(source))
    return checked(divide_rounded(total, len(values)), result)


def _fraction(value: Value) -> Fraction:
    assert isinstance(value, int | float)
    return Fraction(value)


def _whole(value: Value) -> int:
    assert isinstance(value, int)
    return value
