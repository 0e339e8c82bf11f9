"""Times as text: the literal form, and the patterns of `format` and `parse_time`.

A small set of directives that means the same everywhere, whatever the locale: digits only, fixed widths.

    %Y year, 4 digits      %H hour 00-23      %f microsecond, 6 digits (parsing takes 1 to 6)
    %m month 01-12         %M minute 00-59    %j day of the year 001-366   (format only)
    %d day 01-31           %S second 00-59    %u weekday 1-7, Monday is 1  (format only)
                                              %% a percent sign
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from mpl.failures import EvaluationError, Failure
from mpl.types import Value

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

_LITERAL = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:[ T](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?)?Z?", re.ASCII)

_FORMATS: dict[str, Callable[[datetime], str]] = {
    "%Y": lambda moment: f"{moment.year:04}",
    "%m": lambda moment: f"{moment.month:02}",
    "%d": lambda moment: f"{moment.day:02}",
    "%H": lambda moment: f"{moment.hour:02}",
    "%M": lambda moment: f"{moment.minute:02}",
    "%S": lambda moment: f"{moment.second:02}",
    "%f": lambda moment: f"{moment.microsecond:06}",
    "%j": lambda moment: f"{moment.timetuple().tm_yday:03}",
    "%u": lambda moment: str(moment.isoweekday()),
    "%%": lambda _: "%",
}
_PARSED: dict[str, tuple[str, str]] = {
    "%Y": ("year", r"(\d{4})"),
    "%m": ("month", r"(\d{2})"),
    "%d": ("day", r"(\d{2})"),
    "%H": ("hour", r"(\d{2})"),
    "%M": ("minute", r"(\d{2})"),
    "%S": ("second", r"(\d{2})"),
    "%f": ("microsecond", r"(\d{1,6})"),
}


def moment_of(time_us: int) -> datetime:
    return EPOCH + timedelta(microseconds=time_us)


def microseconds_of(moment: datetime) -> int:
    return (moment - EPOCH) // MICROSECOND


def time_of_literal(text: str) -> int:
    """Microseconds of `2026-01-31`, `2026-01-31 12:00`, `2026-01-31 12:00:00.5`; `T` and a final `Z` are allowed."""
    found = _LITERAL.fullmatch(text)
    if found is None:
        raise EvaluationError(Failure.TIME_TEXT, f"{shown(text)} is not a time; times look like '2026-01-31 12:00:00'")
    year, month, day, hour, minute, second, fraction = found.groups(default="0")
    return _time_of_fields(
        text,
        {
            "year": int(year),
            "month": int(month),
            "day": int(day),
            "hour": int(hour),
            "minute": int(minute),
            "second": int(second),
            "microsecond": int(fraction.ljust(6, "0")),
        },
    )


def time_to_text(time_us: int) -> str:
    """The form that `cast(t as text)` gives: always 26 characters, so that texts sort like times."""
    return format_time(time_us, "%Y-%m-%d %H:%M:%S.%f")


def _time_of_fields(text: str, fields: dict[str, int]) -> int:
    try:
        moment = datetime(**{"year": 1970, "month": 1, "day": 1, **fields}, tzinfo=UTC)
    except ValueError as error:
        raise EvaluationError(Failure.TIME_TEXT, f"{shown(text)} is not a time: {error}") from None
    return microseconds_of(moment)


def shown(text: str) -> str:
    """A text for a message: quoted, one line, not too long."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


# --- patterns -------------------------------------------------------------------------------------------------------


def _pieces(pattern: str) -> list[str]:
    """The pattern cut into directives and single ordinary characters."""
    return re.findall(r"%.|.", pattern, re.DOTALL)


def format_problem(pattern: Value) -> str | None:
    """What is wrong with a pattern for `format`, or None."""
    assert isinstance(pattern, str)
    for piece in _pieces(pattern):
        if piece.startswith("%") and piece not in _FORMATS:
            return f"`{piece}` is not a directive; there are {' '.join(_FORMATS)}"
    return None


def parse_problem(pattern: Value) -> str | None:
    """What is wrong with a pattern for `parse_time`, or None."""
    assert isinstance(pattern, str)
    directives = [piece for piece in _pieces(pattern) if piece.startswith("%") and piece != "%%"]
    for piece in directives:
        if piece not in _PARSED:
            return f"`{piece}` cannot be parsed; there are {' '.join(_PARSED)} %%"
        if directives.count(piece) > 1:
            return f"`{piece}` stands in the pattern twice"
    if "%Y" not in directives:
        return "a time needs at least its year, `%Y`"
    return None


def format_time(time_us: int, pattern: str) -> str:
    moment = moment_of(time_us)
    return "".join(_FORMATS[piece](moment) if piece in _FORMATS else piece for piece in _pieces(pattern))


@lru_cache(maxsize=256)
def _parser(pattern: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    fields: list[str] = []
    expression = ""
    for piece in _pieces(pattern):
        if piece in _PARSED:
            field, digits = _PARSED[piece]
            fields.append(field)
            expression += digits
        else:
            expression += re.escape("%" if piece == "%%" else piece)
    return re.compile(expression, re.ASCII), tuple(fields)


def parse_time(text: str, pattern: str) -> int:
    """The time that `text` says; what the pattern leaves out is the first of January, midnight."""
    expression, fields = _parser(pattern)
    found = expression.fullmatch(text)
    if found is None:
        raise EvaluationError(Failure.TIME_TEXT, f"{shown(text)} does not look like {shown(pattern)}")
    values = {field: int(digits) for field, digits in zip(fields, found.groups(), strict=True)}
    if "microsecond" in values:
        values["microsecond"] = int(found.group(fields.index("microsecond") + 1).ljust(6, "0"))
    return _time_of_fields(text, values)
