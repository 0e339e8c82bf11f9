"""Exact arithmetic and text on Spark columns, as MPL defines it: what generated bulk programs call.

Every function takes and gives Spark columns; nothing here runs per row in Python. Values are canonical: decimals are
64-bit scaled integers, times and durations microseconds. Spark's ANSI mode must be on (`runtime/bulk/session.py` sees
to that): then sums, products and casts beyond 64 bits are errors, as they are in the streaming engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark user knows

WIDE = "decimal(38,0)"
"""Room for the product of two 18-digit numbers, and for a 64-bit number with eighteen more digits."""

WHOLE_FLOATS = 2.0**53
"""Floats from here on have no digits after the point."""

DAY_US = 86_400_000_000
EPOCH_DAY = "1970-01-01"


def fail(message: str) -> Column:
    """A column that has no value: the query stops with this message where one is needed."""
    return F.raise_error(F.lit(message))


def here() -> Column:
    """Always true, which Spark does not know. So it moves no filter past one by this, and what has no value for some
    rows is not evaluated for those that a join or another filter keeps out."""
    return part() >= 0


def part() -> Column:
    """A number that Spark knows nothing of, but that it is another one in each frame."""
    return F.spark_partition_id()


def within(value: Column, low: int, high: int, message: str) -> Column:
    """`value` if it lies in the range, null if it is null."""
    return F.when(value.between(F.lit(low), F.lit(high)) | value.isNull(), value).otherwise(fail(message))


def wide(value: Column) -> Column:
    return value.cast(WIDE)


def narrow(value: Column, low: int, high: int, message: str) -> Column:
    """A wide number as 64 bits, checked before the cast."""
    return within(value, low, high, message).cast("bigint")


def truncated(numerator: Column, denominator: Column) -> Column:
    """Toward zero; a denominator of zero is an error. The quotient must have 64 bits: of wide numbers Spark would give
    the lower bits of a larger one."""
    return F.call_function("div", numerator, denominator)


def rounded(numerator: Column, denominator: Column) -> Column:
    """Wide numbers: the nearest integer to the quotient, a half away from zero; a wide number too."""
    above, below = F.abs(numerator) * 2 + F.abs(denominator), F.abs(denominator) * 2
    size = wide((above - above % below) / below)  # nothing is left over, so that `/` has nothing to round
    # Not `when`, which would have the size twice: what is nested a few times would have no end.
    return wide(size * (F.signum(numerator) * F.signum(denominator)).cast("decimal(1,0)"))


def rescaled(value: Column, digits: int) -> Column:
    """A wide number with `digits` more digits after the point (fewer if negative: then it is rounded)."""
    power = F.lit(Decimal(10 ** abs(digits))).cast(WIDE)  # an int of more than 64 bits is no literal
    return (value * power).cast(WIDE) if digits >= 0 else rounded(value, power)


def floored(value: Column, power: int) -> Column:
    """A 64-bit number divided by a positive constant, downward."""
    rest = F.pmod(value, F.lit(power))
    return truncated(value - rest, F.lit(power))


def finite(value: Column, message: str) -> Column:
    """A float that is a number; there is one zero."""
    is_bad = F.isnan(value) | (F.abs(value) == F.lit(float("inf")))
    return F.when(is_bad, fail(message)).otherwise(value + F.lit(0.0))


def float_of(value: Column, scale: int) -> Column:
    """The float nearest to an exact number."""
    if scale == 0:
        return value.cast("double")
    # A 64-bit number need not be a float itself, so the division must not be one of floats.
    return value.cast(f"decimal(38,{scale})").__truediv__(F.lit(10**scale).cast("decimal(19,0)")).cast("double")


def exact_of_float(value: Column, scale: int) -> Column:
    """The number that the float's shortest text says, rounded to `scale` digits, as a wide scaled integer."""
    unit = F.lit(10**scale).cast("decimal(19,0)")
    small, large = ((number * unit).cast(WIDE) for number in _rounded_texts(value, scale))
    return F.when(F.abs(value) < 1, small).otherwise(large)


def float_rounded(value: Column, digits: int) -> Column:
    """The float nearest to the number that its shortest text says, rounded to so many digits."""
    small, large = (number.cast("double") for number in _rounded_texts(value, digits))
    size = F.abs(value)
    return F.when(size < 1, small).when(size < F.lit(WHOLE_FLOATS), large).otherwise(value) + F.lit(0.0)


def _rounded_texts(value: Column, digits: int) -> tuple[Column, Column]:
    """What the shortest text says, rounded once: for floats below 1, and for those from there to 10^21. It has up to
    17 digits, and which of them come after the point decides how many places a decimal needs for them."""
    text = value.cast("string")
    return F.round(text.cast("decimal(38,37)"), digits), F.round(text.cast("decimal(38,17)"), digits)


# Text


def substring(text: Column, start: Column, length: Column | None) -> Column:
    whole = F.length(text)
    count = whole if length is None else length
    problem = fail("substring: positions count from 1, and a length is not negative")
    cut = F.substring(text, F.least(start, whole + 1).cast("int"), F.least(count, whole).cast("int"))
    return (
        F.when((start >= 1) & (count >= 0), cut)
        .when(start.isNull() | count.isNull() | text.isNull(), F.lit(None))
        .otherwise(problem)
    )


def split_part(text: Column, separator: Column, number: Column) -> Column:
    found = F.split_part(text, separator, F.least(number, F.lit(2_147_483_647)).cast("int"))
    whole = F.when(number == 1, text).otherwise(F.lit(""))
    parts = F.when(separator == "", whole).otherwise(found)
    known = text.isNotNull() & separator.isNotNull() & number.isNotNull()
    return F.when(known & (number < 1), fail("split_part: parts count from 1")).when(known, parts)


def replaced(text: Column, old: Column, new: Column) -> Column:
    found = F.replace(text, old, new)
    known = text.isNotNull() & old.isNotNull() & new.isNotNull()
    return F.when(known & (old == ""), text).when(known, found)


def decimal_text(value: Column, scale: int) -> Column:
    """All digits of the scale."""
    if scale == 0:
        return value.cast("string")
    power = 10**scale
    size = F.abs(wide(value))
    fraction = F.lpad((size % F.lit(power)).cast("string"), scale, "0")
    whole = truncated(size, F.lit(power).cast(WIDE)).cast("string")
    return F.concat(F.when(value < 0, F.lit("-")).otherwise(F.lit("")), whole, F.lit("."), fraction)


def number_of_text(text: Column, pattern: str, scale: int, low: int, high: int, message: str) -> Column:
    """An exact number that a text says in full."""
    fits = text.rlike(pattern)
    # The first digit that goes decides; with more of them the cast would round too, before we do. 38 digits are the
    # most that Spark can read; what is longer without leading zeros is too large anyway.
    cut = F.regexp_extract(text, rf"^[^.]*(?:\.[0-9]{{0,{scale + 1}}})?", 0)
    value = F.round(cut.cast(f"decimal(38,{scale + 1})"), scale) * F.lit(10**scale).cast("decimal(19,0)")
    return F.when(fits, narrow(value.cast(WIDE), low, high, message)).when(text.isNotNull(), fail(message))


# Time


def day_of(time: Column) -> Column:
    """The calendar day; no time zone is involved."""
    return F.date_add(F.lit(EPOCH_DAY).cast("date"), floored(time, DAY_US).cast("int"))


def micros_of_day(day: Column) -> Column:
    return F.unix_date(day).cast("bigint") * F.lit(DAY_US)


def clock_part(time: Column, unit_us: int, count: int) -> Column:
    """Hours, minutes or seconds of the day."""
    return F.pmod(floored(time, unit_us), F.lit(count))


def formatted(time: Column, pieces: Sequence[str]) -> Column:
    """The time as text; `pieces` are directives and ordinary text."""
    return F.concat(*(_piece(time, piece) for piece in pieces)) if pieces else F.when(time.isNotNull(), F.lit(""))


def _piece(time: Column, piece: str) -> Column:
    def padded(value: Column, width: int) -> Column:
        return F.lpad(value.cast("string"), width, "0")

    match piece:
        case "%Y":
            return padded(F.year(day_of(time)), 4)
        case "%m":
            return padded(F.month(day_of(time)), 2)
        case "%d":
            return padded(F.dayofmonth(day_of(time)), 2)
        case "%H":
            return padded(clock_part(time, 3_600_000_000, 24), 2)
        case "%M":
            return padded(clock_part(time, 60_000_000, 60), 2)
        case "%S":
            return padded(clock_part(time, 1_000_000, 60), 2)
        case "%f":
            return padded(F.pmod(time, F.lit(1_000_000)), 6)
        case "%j":
            return padded(F.dayofyear(day_of(time)), 3)
        case "%u":
            return (F.weekday(day_of(time)) + 1).cast("string")
        case "%%":
            return F.when(time.isNotNull(), F.lit("%"))
        case _:
            return F.when(time.isNotNull(), F.lit(piece))


def parsed_time(text: Column, pattern: str, fields: Sequence[str], message: str) -> Column:
    """The time that a text says. `pattern` has one group for each of `fields`, in order."""
    found = {field: F.regexp_extract(text, pattern, number) for number, field in enumerate(fields, 1)}

    def part(name: str, default: int) -> Column:
        if name not in found:
            return F.lit(default)
        digits = F.rpad(found[name], 6, "0") if name == "microsecond" else found[name]
        return F.when(digits == "", F.lit(default)).otherwise(F.nullif(digits, F.lit("")).cast("int"))

    hour, minute, second = part("hour", 0), part("minute", 0), part("second", 0)
    is_time = text.rlike(pattern) & (hour < 24) & (minute < 60) & (second < 60) & (part("year", 1) >= 1)
    day = F.make_date(part("year", 1970), part("month", 1), part("day", 1))
    seconds = (hour * 60 + minute) * 60 + second
    value = micros_of_day(day) + seconds.cast("bigint") * 1_000_000 + part("microsecond", 0).cast("bigint")
    return F.when(is_time, value).when(text.isNotNull(), fail(message))
