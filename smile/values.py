"""Values as users write and read them, and as the engine keeps them.

    type          a user may publish                                     a user gets
    int           int, numpy integer                                     int
    decimal       str, Decimal, int                                      Decimal
    float         float, and int if a float can be that number           float
    bool          bool                                                   bool
    text, enum    str                                                    str
    time          datetime (without a zone: UTC), ISO text, int us       datetime in UTC
    duration      timedelta, int us                                      timedelta
    null          None, NaT or NA of numpy and pandas, masked of numpy   None

A number is never rounded on its way in: what does not fit the declared digits is refused, and so are floats for
decimals. Whole columns go through `smile/columns.py`, which falls back to these functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal, InvalidOperation
from functools import cached_property

import numpy as np

from mpl.literals import literal_text
from mpl.scaled import limits_of, power_of_ten
from mpl.typed import Column
from mpl.types import (
    BoolType,
    DecimalType,
    DurationType,
    EnumType,
    FloatType,
    IntType,
    TextType,
    TimeType,
    Type,
    Value,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
DIGITS_MAX = 60
"""Longer texts are not tried as numbers: no decimal has that many digits."""

EXACT = Context(prec=2 * DIGITS_MAX)
"""The caller's own decimal context must not round what passes through here."""


UNIT_US = {
    "ns": (1, 1_000),
    "us": (1, 1),
    "ms": (1_000, 1),
    "s": (1_000_000, 1),
    "m": (60_000_000, 1),
    "h": (3_600_000_000, 1),
    "D": (86_400_000_000, 1),
}
"""numpy's units of time in microseconds: so many, divided by so many."""

MISSING_TYPES = frozenset(("NaTType", "NAType"))
"""What pandas writes for null in columns that are not floats."""

NUMPY_TIMES = (np.datetime64, np.timedelta64)


class Refused(Exception):
    """The value breaks this rule; the caller knows stream, column and row."""


@dataclass(frozen=True)
class Cell:
    """What one column takes: its type, whether null is allowed, the declared range, and what stands in for a value
    that was not given (None: nothing does)."""

    column: Column
    default: Value = None

    @cached_property
    def name(self) -> str:
        return self.column.name

    @cached_property
    def whole(self) -> tuple[int, int]:
        """Of a column of whole numbers the smallest and the largest; otherwise no number is between these."""
        limits = limits_of(self.column.type)
        if not isinstance(self.column.type, IntType) or limits is None:
            return 1, 0
        low, high = self.column.bounds.low, self.column.bounds.high
        return (limits[0] if low is None else max(limits[0], int(low))), (
            limits[1] if high is None else min(limits[1], int(high))
        )

    def __str__(self) -> str:
        """As it is declared."""
        bounds = self.column.bounds
        low, high = ("" if one is None else str(one) for one in (bounds.low, bounds.high))
        declared = "" if bounds.is_open else f" [{low}..{high}]"
        default = "" if self.default is None else f" default {literal_text(self.default, self.column.type)}"
        return f"{self.column.type}{declared}{' null' if self.column.nullable else ''}{default}"

    def encode(self, value: object) -> Value:
        """The canonical value, or `Refused`."""
        if value is None or is_missing(value):
            if self.column.nullable:
                return None
            if self.default is not None:
                raise Refused("is not allowed: leave the column out, and it has its default")
            raise Refused("is not allowed: the column is not declared `null`")
        found = encode(value, self.column.type)
        self.check_range(found)
        return found

    def check_range(self, value: Value) -> None:
        bounds = self.column.bounds
        if isinstance(value, str) or value is None:
            return
        if bounds.low is not None and value < bounds.low:
            raise Refused(f"is below {decode(bounds.low, self.column.type)}, the smallest value declared")
        if bounds.high is not None and value > bounds.high:
            raise Refused(f"is above {decode(bounds.high, self.column.type)}, the largest value declared")


def encode(value: object, type: Type) -> Value:
    """A user's value as the canonical one of the type; `Refused` if it is none."""
    if isinstance(value, np.generic):
        # numpy's scalars know their Python value, but those of time only up to a microsecond.
        value = _from_numpy_time(value, type) if isinstance(value, NUMPY_TIMES) else value.item()
    found = _ENCODERS[type.__class__](value, type)
    limits = limits_of(type)
    if limits is not None and isinstance(found, int) and not limits[0] <= found <= limits[1]:
        raise Refused(f"does not fit {type}")
    return found


def is_missing(value: object) -> bool:
    """Is this what pandas or numpy write for null? (Not a float's nan: in a list or an array that is a number.)"""
    if isinstance(value, NUMPY_TIMES):
        return bool(np.isnat(value))
    return value is np.ma.masked or value.__class__.__name__ in MISSING_TYPES


def _from_numpy_time(value: np.datetime64 | np.timedelta64, type: Type) -> int:
    if not isinstance(type, TimeType if isinstance(value, np.datetime64) else DurationType):
        raise _wrong(value, str(type))
    unit, count = np.datetime_data(value.dtype)
    times, per = UNIT_US.get(unit, (0, 0))
    raw = int(value.astype(np.int64)) * times * count
    if per == 0 or raw % per:
        raise Refused("is not a whole number of microseconds")
    return raw // per


def type_name(value: object) -> str:
    kind = value.__class__
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _wrong(value: object, wanted: str) -> Refused:
    return Refused(f"is {type_name(value)}, not {wanted}")


def _int(value: object, type: Type) -> Value:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(value, f"a whole number ({type})")
    return int(value)


def _decimal(value: object, type: Type) -> Value:
    assert isinstance(type, DecimalType)
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
        raise _wrong(value, f"an exact number ({type}): write it as text, Decimal or int")
    if isinstance(value, str):
        if len(value) > DIGITS_MAX:
            raise Refused(f"is not a number that fits {type}")
        try:
            value = Decimal(value)
        except InvalidOperation:
            raise Refused(f"is not a number ({type})") from None
    if isinstance(value, int):
        return value * power_of_ten(type.scale)
    if not value.is_finite() or value.adjusted() > DIGITS_MAX or len(value.as_tuple().digits) > DIGITS_MAX:
        raise Refused(f"does not fit {type}")
    scaled = value.scaleb(type.scale, EXACT)
    if scaled != scaled.to_integral_value():
        raise Refused(f"has more than {type.scale} digits after the point ({type})")
    return int(scaled)


def _float(value: object, type: Type) -> Value:
    if isinstance(value, bool) or not isinstance(value, int | float | np.longdouble):
        raise _wrong(value, f"a number ({type})")
    try:
        found = float(value)
    except OverflowError:
        raise Refused(f"does not fit {type}") from None
    if not math.isfinite(found):
        raise Refused("is not a finite number")
    if found != value:
        raise Refused(f"cannot be kept exactly ({type}): the nearest is {found!r}")
    return found + 0.0  # there is one zero


def _bool(value: object, type: Type) -> Value:
    if not isinstance(value, bool):
        raise _wrong(value, f"true or false ({type})")
    return value


def _text(value: object, type: Type) -> Value:
    assert isinstance(type, TextType)
    if not isinstance(value, str):
        raise _wrong(value, f"text ({type})")
    if type.length_max is not None and len(value) > type.length_max:
        raise Refused(f"has {len(value)} characters, {type} takes {type.length_max}")
    if not _is_encodable(value):
        raise Refused("is not valid Unicode: it contains half of a surrogate pair")
    return str(value)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _enum(value: object, type: Type) -> Value:
    assert isinstance(type, EnumType)
    if not isinstance(value, str) or value not in type.values:
        raise Refused(f"is not one of {', '.join(type.values)}")
    return str(value)


def _time(value: object, type: Type) -> Value:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise Refused("is not a time such as 2026-12-31 23:59:59.5") from None
    if isinstance(value, datetime):
        if getattr(value, "nanosecond", 0):  # of pandas
            raise Refused("is not a whole number of microseconds")
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value
        return (moment - EPOCH) // MICROSECOND
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise _wrong(value, f"a {type}: datetime, ISO text, or microseconds since 1970")


def _duration(value: object, type: Type) -> Value:
    if isinstance(value, timedelta):
        if getattr(value, "nanoseconds", 0):  # of pandas
            raise Refused("is not a whole number of microseconds")
        return value // MICROSECOND
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise _wrong(value, f"a {type}: timedelta or microseconds")


_ENCODERS: dict[type, Callable[[object, Type], Value]] = {
    IntType: _int,
    DecimalType: _decimal,
    FloatType: _float,
    BoolType: _bool,
    TextType: _text,
    EnumType: _enum,
    TimeType: _time,
    DurationType: _duration,
}


def from_text(text: str, type: Type) -> object:
    """A cell of a text file as something that `encode` takes."""
    match type:
        case IntType() | DurationType():
            convert: Callable[[str], object] = int
        case FloatType():
            convert = float
        case BoolType():
            convert = _bool_from_text
        case _:
            return text
    try:
        return convert(text.strip())
    except (ValueError, KeyError):
        raise Refused(f"cannot be read as {type}") from None


def _bool_from_text(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def decoder(type: Type) -> Callable[[Value], object] | None:
    """From the canonical value to the user's; None where the two are the same."""
    match type:
        case DecimalType(scale=scale):
            return lambda value: None if value is None else Decimal(value).scaleb(-scale, EXACT)
        case TimeType():
            return lambda value: None if value is None else EPOCH + value * MICROSECOND  # type: ignore[operator]
        case DurationType():
            return lambda value: None if value is None else value * MICROSECOND  # type: ignore[operator]
        case _:
            return None


def decode(value: Value, type: Type) -> object:
    change = decoder(type)
    return value if change is None else change(value)
