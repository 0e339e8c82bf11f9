"""`cast(x as type)`: which casts there are, and what they give.

Digits that do not fit after the point are rounded half away from zero, also toward int; a number that does not fit
before the point is an overflow; a text that does not say a value of the type is an error. Never a silent null.

    from        to
    int         decimal, float, text
    decimal     int, decimal, float, text (all digits of the scale: `12.50`)
    float       int, decimal (both from the shortest text of the float), text (that text)
    bool        int (0, 1), text (`false`, `true`)
    text        int, decimal, float, bool, time (as in a time literal), enum, text(n) (longer texts are an error)
    enum        text, enum (an error if the value is not among the others)
    time        text (`2026-01-31 12:00:00.000000`)
    duration    nothing: divide it by `1 s` to get a number
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

from mpl.arithmetic import bounds_within, ends_of, is_number, scaled_ends, type_word
from mpl.failures import EvaluationError, Failure
from mpl.functions.spec import Direction, Example, FunctionSpec, Kind, Nulls, Parameter, same_as_first
from mpl.functions.time_text import shown, time_of_literal, time_to_text
from mpl.scaled import (
    checked,
    decimal_to_scaled,
    float_to_decimal,
    power_of_ten,
    rescale,
    scale_of,
    to_float,
)
from mpl.typed import Expr
from mpl.types import (
    OPEN,
    BoolType,
    Bounds,
    DecimalType,
    EnumType,
    FloatType,
    IntType,
    NullType,
    TextType,
    TimeType,
    Type,
    Value,
)

_CASTS: dict[str, frozenset[str]] = {
    "int": frozenset({"decimal", "float", "text"}),
    "decimal": frozenset({"int", "decimal", "float", "text"}),
    "float": frozenset({"int", "decimal", "text"}),
    "bool": frozenset({"int", "text"}),
    "text": frozenset({"int", "decimal", "float", "bool", "time", "enum", "text"}),
    "enum": frozenset({"text", "enum"}),
    "time": frozenset({"text"}),
    "duration": frozenset(),
}

_INT = re.compile(r"[+-]?[0-9]{1,40}")
_DECIMAL = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?")
_FLOAT = re.compile(r"[+-]?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,4})?")


def can_cast(source: Type, target: Type) -> bool:
    if source == target or isinstance(source, NullType):
        return True
    return type_word(target) in _CASTS[type_word(source)]


def cast_value(value: Value, source: Type, target: Type) -> Value:
    """The value as `target`; null stays null."""
    if value is None or source == target:
        return value
    match target:
        case IntType() | DecimalType():
            return checked(_to_exact(value, source, target), target)
        case FloatType():
            return _to_float(value, source)
        case TextType():
            return _limited(_to_text(value, source), target)
        case EnumType():
            assert isinstance(value, str)
            if value not in target.values:
                raise EvaluationError(Failure.CAST, f"{shown(value)} is not among the values of {target}")
            return value
        case BoolType():
            if value not in ("true", "false"):
                raise _no_cast(value, target)
            return value == "true"
        case TimeType():
            return time_of_literal(str(value))
        case _:
            raise AssertionError(f"no cast from {source} to {target}")


def _to_exact(value: Value, source: Type, target: IntType | DecimalType) -> int:
    scale = scale_of(target)
    match source:
        case IntType() | DecimalType():
            assert isinstance(value, int)
            return rescale(value, scale_of(source), scale)
        case FloatType():
            assert isinstance(value, float)
            return decimal_to_scaled(float_to_decimal(value), scale)
        case BoolType():
            return int(value is True)
        case _:
            assert isinstance(value, str)
            if not (_INT if isinstance(target, IntType) else _DECIMAL).fullmatch(value):
                raise _no_cast(value, target)
            return decimal_to_scaled(Decimal(value), scale)


def _to_float(value: Value, source: Type) -> Value:
    if isinstance(value, str):
        if not _FLOAT.fullmatch(value):
            raise _no_cast(value, FloatType())
        return checked(float(value), FloatType())
    assert isinstance(value, int | float)
    return to_float(value, source)


def _to_text(value: Value, source: Type) -> str:
    match source:
        case DecimalType():
            assert isinstance(value, int)
            return decimal_to_text(value, source.scale)
        case BoolType():
            return "true" if value else "false"
        case FloatType():
            return repr(value)
        case TimeType():
            assert isinstance(value, int)
            return time_to_text(value)
        case _:
            return str(value)


def decimal_to_text(value: int, scale: int) -> str:
    """All digits of the scale: 1250 with scale 2 is `12.50`."""
    whole, fraction = divmod(abs(value), power_of_ten(scale))
    sign = "-" if value < 0 else ""
    return f"{sign}{whole}.{fraction:0{scale}}" if scale else f"{sign}{whole}"


def _limited(text: str, target: TextType) -> str:
    if target.length_max is not None and len(text) > target.length_max:
        raise EvaluationError(Failure.CAST, f"{shown(text)} is longer than {target} allows")
    return text


def _no_cast(value: Value, target: Type) -> EvaluationError:
    return EvaluationError(Failure.CAST, f"{shown(str(value))} does not say a value of type {target}")


def _bounds(arguments: tuple[Expr, ...], result: Type) -> Bounds:
    source = arguments[0]
    if not is_number(source.type) or not is_number(result):
        return Bounds(0, 1) if isinstance(source.type, BoolType) and is_number(result) else OPEN
    if isinstance(source.type, FloatType):
        low, high = ends_of(source.bounds)
        return bounds_within(result, _cast_end(low, result), _cast_end(high, result))
    return bounds_within(result, *scaled_ends(source.bounds, source.type, result))


def _cast_end(end: float, result: Type) -> int | float:
    if math.isinf(end) or isinstance(result, FloatType):
        return end
    return decimal_to_scaled(float_to_decimal(end), scale_of(result))


def _directions(arguments: tuple[Expr, ...], result: Type) -> tuple[Direction, ...]:
    """Rounding keeps the order, and so does a text that is only limited in length; other casts do not promise it."""
    source = arguments[0].type
    kept = source == result or (is_number(source) and is_number(result))
    kept = kept or (isinstance(source, TextType | EnumType) and isinstance(result, TextType))
    return ("up" if kept or isinstance(source, BoolType) else None,)


CAST = FunctionSpec(
    name="cast",
    theme="conditional",
    called=None,
    written="cast(x as type)",
    parameters=(Parameter("x", Kind.ANY),),
    result=same_as_first,  # the checker puts the written type in its place
    nulls=Nulls.PROPAGATE,
    monotone=(None,),
    directions=_directions,
    bounds=_bounds,
    evaluate=lambda call, value: cast_value(value, call.arguments[0], call.result),
    summary="The value as another type; numbers are rounded half away from zero, a text must say a value of the type.",
    examples=(
        Example("cast(2.5 as int)", "3"),
        Example("cast('12.5' as decimal(10,2))", "12.50"),
        Example("cast(7 as text)", "'7'"),
        Example("cast('2026-01-31' as time)", "time '2026-01-31 00:00:00'"),
    ),
)
