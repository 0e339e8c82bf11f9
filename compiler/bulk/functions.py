"""Every function of the library as text of a Spark column expression: `FUNCTIONS` has one writer each.

A writer gets the expression writer (for arguments and constants) and the typed call. What Spark cannot compute the
same way raises `NotInBulk` with the reason; the program is then refused for bulk work, never computed differently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.bulk import casts, numbers, texts, times
from compiler.bulk.casts import cast_text
from compiler.bulk.failing import may_fail
from compiler.bulk.numbers import float_text, wide_text
from compiler.bulk.writer import Writer
from mpl.arithmetic import is_number
from mpl.functions import BY_NAME
from mpl.scaled import scale_of
from mpl.typed import Apply, Expr
from mpl.types import BoolType, FloatType

if TYPE_CHECKING:
    from compiler.bulk.expressions import ExpressionWriter


# --- comparison and logic ---------------------------------------------------------------------------------------------


def _alike(out: ExpressionWriter, left: Expr, right: Expr) -> tuple[str, str]:
    """Both sides so that Spark compares what the values stand for."""
    if left.type != right.type and is_number(left.type) and is_number(right.type):
        if isinstance(left.type, FloatType) or isinstance(right.type, FloatType):
            return float_text(out, left), float_text(out, right)
        scale = max(scale_of(left.type), scale_of(right.type))
        if scale_of(left.type) != scale_of(right.type):
            return wide_text(out, left, scale), wide_text(out, right, scale)
    return out.value(left), out.value(right)


def _comparison(symbol: str) -> Writer:
    def write(out: ExpressionWriter, expr: Apply) -> str:
        left, right = _alike(out, *expr.arguments)
        return f"({left} {symbol} {right})"

    return write


def _in_list(out: ExpressionWriter, expr: Apply) -> str:
    first, *items = expr.arguments
    pairs = (_alike(out, first, item) for item in items)
    return "(" + " | ".join(f"({left} == {right})" for left, right in pairs) + ")"


def _logic(symbol: str, decides: bool) -> Writer:
    def write(out: ExpressionWriter, expr: Apply) -> str:
        text = out.value(expr.arguments[0])
        for argument in expr.arguments[1:]:
            both = f"({text} {symbol} {out.value(argument)})"
            if may_fail(argument):
                # Spark may evaluate either side of & and | first; only a case keeps the order.
                is_decided = text if decides else f"(~{text})"
                both = f"F.when({is_decided}, F.lit({decides})).otherwise({both})"
            text = both
        return text

    return write


# --- plain functions --------------------------------------------------------------------------------------------------


def _call(template: str) -> Writer:
    """A function that Spark has with the same meaning; {0}, {1} are the arguments."""
    return lambda out, expr: template.format(*out.arguments(expr))


def _common(function: str) -> Writer:
    """Of values that are converted to the type of the result first."""

    def write(out: ExpressionWriter, expr: Apply) -> str:
        values = [
            out.value(argument) if argument.type == expr.type else cast_text(out, argument, expr.type)
            for argument in expr.arguments
        ]
        return f"F.{function}({', '.join(values)})"

    return write


def _nullif(out: ExpressionWriter, expr: Apply) -> str:
    left, right = _alike(out, *expr.arguments)
    value = out.value(expr.arguments[0])
    return f"F.when({left} == {right}, F.lit(None)).otherwise({value})"


def _hash(out: ExpressionWriter, expr: Apply) -> str:
    argument = expr.arguments[0]
    value = out.value(argument)
    if isinstance(argument.type, BoolType):
        value = f'{value}.cast("bigint")'
    return f"F.when({value}.isNotNull(), F.xxhash64({value}))"


FUNCTIONS: dict[str, Writer] = {
    "add": numbers.sum_of("+"),
    "subtract": numbers.sum_of("-"),
    "multiply": numbers.multiply,
    "divide": numbers.divide,
    "modulo": numbers.modulo,
    "negate": numbers.negate,
    "equal": _comparison("=="),
    "unequal": _comparison("!="),
    "less": _comparison("<"),
    "less_equal": _comparison("<="),
    "greater": _comparison(">"),
    "greater_equal": _comparison(">="),
    "in_list": _in_list,
    "like": texts.like,
    "is_null": _call("{0}.isNull()"),
    "and": _logic("&", decides=False),
    "or": _logic("|", decides=True),
    "not": _call("(~{0})"),
    "abs": numbers.absolute,
    "sign": numbers.sign,
    "floor": numbers.floor,
    "ceil": numbers.ceil,
    "round": numbers.rounded,
    "power": numbers.power,
    "sqrt": numbers.sqrt,
    "least": _common("least"),
    "greatest": _common("greatest"),
    "length": _call('F.length({0}).cast("bigint")'),
    "lower": _call("F.lower({0})"),
    "upper": _call("F.upper({0})"),
    "trim": _call("F.trim({0})"),
    "substring": texts.substring,
    "replace": _call("X.replaced({0}, {1}, {2})"),
    "concat": lambda out, expr: f"F.concat({', '.join(out.arguments(expr))})",
    "starts_with": _call("F.startswith({0}, {1})"),
    "ends_with": _call("F.endswith({0}, {1})"),
    "contains": _call("F.contains({0}, {1})"),
    "split_part": _call("X.split_part({0}, {1}, {2})"),
    "regexp_match": texts.regexp_match,
    "regexp_extract": texts.regexp_extract,
    "date": times.date,
    "year": times.day_part("year"),
    "month": times.day_part("month"),
    "day": times.day_part("dayofmonth"),
    "hour": times.clock_part(3_600_000_000, 24),
    "minute": times.clock_part(60_000_000, 60),
    "second": times.clock_part(1_000_000, 60),
    "truncate": times.truncate,
    "format": times.formatted,
    "parse_time": times.parse_time,
    "epoch": _call("{0}"),
    "coalesce": _common("coalesce"),
    "nullif": _nullif,
    "cast": casts.cast,
    "hash": _hash,
}

assert FUNCTIONS.keys() == BY_NAME.keys(), "every function of the library, and no other"
