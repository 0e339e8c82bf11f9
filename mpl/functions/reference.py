"""The reference of the function library as Markdown, from the records."""

from __future__ import annotations

from mpl.functions import FUNCTIONS
from mpl.functions.spec import FunctionSpec

_THEMES: dict[str, str] = {
    "operators": "Operators",
    "numbers": "Numbers",
    "text": "Text",
    "time": "Time",
    "conditional": "Nulls and types",
    "hashing": "Hashing",
}

_HEAD = """\
# Functions and operators

Written by `python -m mpl.functions`; the examples are run by the tests. `x -> y` reads "x gives y".

## Rules that hold everywhere

**No wrong value.** An expression that has no value is an error that names the view and the row: a division by zero, a
number beyond 64 bits or 18 digits, a text that does not say a number. It never gives a wrapped number or a silent
null. `nullif(divisor, 0)` and `case` are the ways around; what fails for every row is reported by `smile check`.

**Null.** An argument that is null makes the result null, unless the text says otherwise. `and`, `or`, `not` follow
three-valued logic: `null and false` is false, `null or true` is true. `where` and `when` need true.

**Order.** Arguments are evaluated from the left. `and`, `or`, `coalesce` and `case` stop as soon as the result is
known, so `x <> 0 and 10 / x > 1` is safe.

**Numbers.** int with int gives int; `/` drops the fraction, `%` has the sign of the dividend. Next to a decimal an int
counts as a decimal without places, with as many digits as its range needs (a literal as many as written, else 18).
Anything with a float gives float; floats are finite, and there is one zero. Of two decimals with s1, s2 places and i1,
i2 digits before the point:

| | places | digits before the point |
| --- | --- | --- |
| `+` `-` | max(s1, s2), never rounds | max(i1, i2) + 1 |
| `*` | s1 + s2 | i1 + i2 |
| `/` | max(6, s1) | i1 + s2 |
| `%` | max(s1, s2), never rounds | min(i1, i2) |

A decimal has at most 18 digits. If both columns together are more, `*` and `/` give up places, but keep 6 of them (or
all, if fewer); then a value that needs more digits is an overflow. Rounding is always half away from zero.

**Times.** `time - time` is a duration; `time + duration`, `duration + time`, `time - duration` are times; durations are
added, subtracted and taken `%` each other, multiplied and divided by int (dropping parts of a microsecond); `duration /
duration` is a decimal(18,6). Times go from year 1 to 9999, in UTC, without leap seconds; `d` is 24 hours.

**Comparing.** Exact numbers are compared exactly, whatever their places; next to a float, as floats. Text is compared
by code point, an enum as its text but only with `=` and `<>`. A text is never read as a time or number by itself.

**Converting without being asked** never rounds: int to decimal, decimal to more places, both to float, enum to text, a
text literal to an enum that lists it. Everything else is written as a `cast`:

| from | to |
| --- | --- |
| int | decimal, float, text |
| decimal | int, decimal, float, text with all places: `12.50` |
| float | int, decimal (both from the shortest text of the float), text (that text) |
| bool | int 0 or 1, text |
| text | int, decimal, float, bool, time (as in a literal), enum, a shorter text |
| enum | text, enum |
| time | text: `2026-01-31 12:00:00.000000` |

**Patterns** of `regexp_match` and `regexp_extract` are literals in a subset that means the same everywhere and takes
linear time: characters, `.` (not a newline), `[a-z]`, `[^,]`, `\\d \\w \\s \\D \\W \\S` (ASCII), `\\t \\n \\r`,
a backslash before punctuation, `^` and `$` for the whole text, `(...)`, `(?:...)`, `|`, `* + ? {2} {2,} {2,5}` and the
same with `?` behind for as few as possible. Patterns of times are `%Y %m %d %H %M %S %f`, for `format` also `%j %u`,
and `%%`.

**Direction** says how the result moves when an argument grows, all else equal: `up`, `down`, or `-` for anyhow; "by
sign" where it depends on the range of the other operand, "by type" where it depends on the types. The checker derives
from it what is rising and what is final.
"""


def reference() -> str:
    """The whole page."""
    parts = [_HEAD]
    for theme, title in _THEMES.items():
        specs = [spec for spec in FUNCTIONS if spec.theme == theme]
        parts.append(f"\n## {title}\n\n| Written | Meaning | Direction | Examples |\n| --- | --- | --- | --- |\n")
        parts.extend(_row(spec) for spec in specs)
    return "".join(parts)


def _row(spec: FunctionSpec) -> str:
    examples = "<br>".join(f"`{example.call} -> {example.result}`" for example in spec.examples)
    return (
        "| "
        + " | ".join(_cell(cell) for cell in (f"`{spec.usage}`", spec.summary, _direction(spec), examples))
        + " |\n"
    )


def _direction(spec: FunctionSpec) -> str:
    if spec.directions is not None:
        return "by type" if spec.name == "cast" else "by sign"
    return ", ".join(direction or "-" for direction in spec.monotone)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
