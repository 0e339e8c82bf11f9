"""Functions of time as text of Spark column expressions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from compiler.bulk.numbers import checked_text
from compiler.bulk.texts import java_literal
from compiler.bulk.writer import Writer
from mpl.typed import Apply, Const, Expr

if TYPE_CHECKING:
    from compiler.bulk.expressions import ExpressionWriter


def day_part(function: str) -> Writer:
    return lambda out, expr: f'F.{function}(X.day_of({out.value(expr.arguments[0])})).cast("bigint")'


def clock_part(unit_us: int, count: int) -> Writer:
    return lambda out, expr: f"X.clock_part({out.value(expr.arguments[0])}, {unit_us}, {count})"


def date(out: ExpressionWriter, expr: Apply) -> str:
    value = out.value(expr.arguments[0])
    return f"({value} - F.pmod({value}, F.lit(X.DAY_US)))"


def truncate(out: ExpressionWriter, expr: Apply) -> str:
    value, step = out.arguments(expr)
    message = out.message("truncate needs a duration above zero")
    cut = checked_text(out, expr, f"({value} - F.pmod({value}, {step}))")
    return f"F.when({step} > 0, {cut}).when({step}.isNotNull() & {value}.isNotNull(), X.fail({message}))"


def _time_pieces(pattern: Expr) -> list[str]:
    assert isinstance(pattern, Const)
    return re.findall(r"%.|.", str(pattern.value), re.DOTALL)


def formatted(out: ExpressionWriter, expr: Apply) -> str:
    pieces: list[str] = []
    for piece in _time_pieces(expr.arguments[1]):
        if pieces and not piece.startswith("%") and not pieces[-1].startswith("%"):
            pieces[-1] += piece
        else:
            pieces.append(piece)
    return f"X.formatted({out.value(expr.arguments[0])}, [{', '.join(map(out.constants.add, pieces))}])"


_PARSED = {
    "%Y": ("year", "([0-9]{4})"),
    "%m": ("month", "([0-9]{2})"),
    "%d": ("day", "([0-9]{2})"),
    "%H": ("hour", "([0-9]{2})"),
    "%M": ("minute", "([0-9]{2})"),
    "%S": ("second", "([0-9]{2})"),
    "%f": ("microsecond", "([0-9]{1,6})"),
}
TIME_LITERAL = (
    r"^([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?)?Z?\z",
    ("year", "month", "day", "hour", "minute", "second", "microsecond"),
)


def parse_time(out: ExpressionWriter, expr: Apply) -> str:
    fields: list[str] = []
    pattern = ""
    for piece in _time_pieces(expr.arguments[1]):
        if piece in _PARSED:
            name, digits = _PARSED[piece]
            fields.append(name)
            pattern += digits
        else:
            pattern += java_literal("%" if piece == "%%" else piece)
    return parsed_text(out, expr.arguments[0], f"^{pattern}\\z", tuple(fields))


def parsed_text(out: ExpressionWriter, text: Expr, pattern: str, fields: tuple[str, ...]) -> str:
    message = out.message("a text is not a time of the wanted form")
    names = ", ".join(f'"{field}"' for field in fields)
    return f"X.parsed_time({out.value(text)}, {out.constants.add(pattern)}, [{names}], {message})"
