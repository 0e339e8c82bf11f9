"""Types of values, and how they combine.

A type says which values a column may hold; whether it may be null and which range it is declared to stay in is said
by the column, not by the type. The rules for arithmetic are in `mpl/arithmetic.py`.

Canonical values, the same in the evaluator, the engine and the log: int -> int, decimal -> int scaled by 10^scale,
float -> float, bool -> bool, text and enum -> str, time -> int microseconds since 1970 UTC, duration -> int
microseconds, null -> None.
"""

from __future__ import annotations

from dataclasses import dataclass

INT_MIN = -(2**63)
INT_MAX = 2**63 - 1
TIME_MIN = -62_135_596_800_000_000
TIME_MAX = 253_402_300_799_999_999
"""Years 1 to 9999, so that every time can be written, in Python and in SQL alike."""
DECIMAL_DIGITS_MAX = 18
"""A decimal is one 64-bit scaled integer, so that sums and products can be checked for overflow and stay fast."""


@dataclass(frozen=True)
class IntType:
    """64-bit signed integer."""

    def __str__(self) -> str:
        return "int"


@dataclass(frozen=True)
class DecimalType:
    """Exact decimal number, `precision` digits of which `scale` stand after the point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True)
class FloatType:
    def __str__(self) -> str:
        return "float"


@dataclass(frozen=True)
class BoolType:
    def __str__(self) -> str:
        return "bool"


@dataclass(frozen=True)
class TextType:
    """Unicode text; `length_max` in characters, None when not declared."""

    length_max: int | None = None

    def __str__(self) -> str:
        return "text" if self.length_max is None else f"text({self.length_max})"


@dataclass(frozen=True)
class TimeType:
    """A moment, microseconds, UTC."""

    def __str__(self) -> str:
        return "time"


@dataclass(frozen=True)
class DurationType:
    def __str__(self) -> str:
        return "duration"


@dataclass(frozen=True)
class EnumType:
    values: tuple[str, ...]

    def __str__(self) -> str:
        return "enum(" + ", ".join("'" + value.replace("'", "''") + "'" for value in self.values) + ")"


@dataclass(frozen=True)
class NullType:
    """The type of a bare `null`, before it meets another type."""

    def __str__(self) -> str:
        return "null"


@dataclass(frozen=True)
class ErrorType:
    """Stands where an error was already reported, so that one mistake gives one message."""

    def __str__(self) -> str:
        return "?"


Type = (
    IntType | DecimalType | FloatType | BoolType | TextType | TimeType | DurationType | EnumType | NullType | ErrorType
)

Value = int | float | str | bool | None


@dataclass(frozen=True)
class Bounds:
    """A declared or derived inclusive range of canonical values; None means open."""

    low: int | float | None = None
    high: int | float | None = None

    @property
    def is_open(self) -> bool:
        return self.low is None and self.high is None

    @property
    def non_negative(self) -> bool:
        return self.low is not None and self.low >= 0

    @property
    def non_positive(self) -> bool:
        return self.high is not None and self.high <= 0


OPEN = Bounds()
