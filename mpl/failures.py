"""What can go wrong while an expression is evaluated.

Raised by the functions of the library, caught by whoever evaluates: the expression checker turns it into a diagnostic
when no row is involved, the engine into an error that names the view and the row. A failing expression never gives a
wrong value, a wrapped number or a silent null; a user who expects the case writes `nullif` or `case`.
"""

from __future__ import annotations

from enum import Enum


class Failure(Enum):
    """Kinds of failure; the value is the stable name that logs and errors show."""

    OVERFLOW = "overflow"
    DIVISION_BY_ZERO = "division-by-zero"
    ARGUMENT = "argument"
    CAST = "cast"
    TIME_TEXT = "time-text"
    PYTHON = "python"


class EvaluationError(Exception):
    """An expression has no value for this row."""

    def __init__(self, code: Failure, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
