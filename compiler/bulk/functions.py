"""Every function of the library as text of a Spark column expression: `FUNCTIONS` has one writer each.

A writer gets the expression writer (for arguments and constants) and the typed call. What Spark cannot compute the
same way raises `NotInBulk` with the reason; the program is then refused for bulk work, never computed differently.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from compiler.bulk.failing import may_fail
from mpl.arithmetic import is_number
from mpl.functions import BY_NAME
from mpl.functions.like import ANY_CHARACTER, ANY_TEXT, like_pieces
from mpl.functions.regexp import WHITE_SPACE
from mpl.scaled import limits_of, scale_of
from mpl.typed import Apply, Const, Expr
from mpl.types import BoolType, DecimalType, EnumType, FloatType, IntType, TextType, TimeType, Type

if TYPE_CHECKING:
    from compiler.bulk.expressions import ExpressionWriter

Writer = Callable[["ExpressionWriter", Apply], str]


class NotInBulk(Exception):
    """Spark would compute something else, or only row by row in Python. The text says what and why."""


# --- arithmetic -------------------------------------------------------------------------------------------------------


def _is_within(expr: Expr, limits: tuple[int, int]) -> bool:
    low, high = expr.bounds.low, expr.bounds.high
    return low is not None and high is not None and limits[0] <= low and high <= limits[1]


def _too_large(out: ExpressionWriter, type: Type) -> str:
    return out.message(f"the result is too large for {type}")


def _checked(out: ExpressionWriter, expr: Expr, text: str) -> str:
    """A 64-bit result against the narrower range of its type; Spark itself refuses what needs more than 64 bits."""
    limits = limits_of(expr.type)
    if limits is None or isinstance(expr.type, IntType) or _is_within(expr, limits):
        return text
    return f"X.within({text}, {limits[0]}, {limits[1]}, {_too_large(out, expr.type)})"


def _narrow(out: ExpressionWriter, expr: Expr, text: str) -> str:
    limits = limits_of(expr.type)
    assert limits is not None
    return f"X.narrow({text}, {limits[0]}, {limits[1]}, {_too_large(out, expr.type)})"


def _float(out: ExpressionWriter, argument: Expr) -> str:
    text = out.value(argument)
    return text if isinstance(argument.type, FloatType) else f"X.float_of({text}, {scale_of(argument.type)})"


def _finite(out: ExpressionWriter, text: str) -> str:
    return f"X.finite({text}, {out.message('the result is too large for float')})"


def _sum(symbol: str) -> Writer:
    def write(out: ExpressionWriter, expr: Apply) -> str:
        left, right = expr.arguments
        if isinstance(expr.type, FloatType):
            return _finite(out, f"({_float(out, left)} {symbol} {_float(out, right)})")
        scale = scale_of(expr.type)
        if scale_of(left.type) == scale_of(right.type) == scale:
            return _checked(out, expr, f"({out.value(left)} {symbol} {out.value(right)})")
        one, other = _wide(out, left, scale), _wide(out, right, scale)
        return _narrow(out, expr, f"({one} {symbol} {other})")

    return write


def _wide(out: ExpressionWriter, argument: Expr, scale: int) -> str:
    """An exact number in units of another scale, with room to spare."""
    text = f"X.wide({out.value(argument)})"
    digits = scale - scale_of(argument.type)
    return text if digits == 0 else f"X.rescaled({text}, {digits})"


def _multiply(out: ExpressionWriter, expr: Apply) -> str:
    left, right = expr.arguments
    if isinstance(expr.type, FloatType):
        return _finite(out, f"({_float(out, left)} * {_float(out, right)})")
    lost = scale_of(left.type) + scale_of(right.type) - scale_of(expr.type)
    if lost == 0:
        return _checked(out, expr, f"({out.value(left)} * {out.value(right)})")
    product = f"X.wide({out.value(left)}) * X.wide({out.value(right)})"
    return _narrow(out, expr, f"X.rescaled(({product}).cast(X.WIDE), {-lost})")


def _divide(out: ExpressionWriter, expr: Apply) -> str:
    left, right = expr.arguments
    if isinstance(expr.type, FloatType):
        return _finite(out, f"({_float(out, left)} / {_float(out, right)})")
    if not isinstance(expr.type, DecimalType):
        return _checked(out, expr, f"X.truncated({out.value(left)}, {out.value(right)})")
    shift = expr.type.scale + scale_of(right.type) - scale_of(left.type)
    above, below = f"X.wide({out.value(left)})", f"X.wide({out.value(right)})"
    if shift > 0:
        above = f"X.rescaled({above}, {shift})"
    elif shift < 0:
        below = f"X.rescaled({below}, {-shift})"
    return _narrow(out, expr, f"X.wide(X.rounded({above}, {below}))")


def _modulo(out: ExpressionWriter, expr: Apply) -> str:
    left, right = expr.arguments
    if isinstance(expr.type, FloatType):
        return _finite(out, f"({_float(out, left)} % {_float(out, right)})")
    scale = scale_of(expr.type)
    if scale_of(left.type) == scale_of(right.type) == scale:
        return f"({out.value(left)} % {out.value(right)})"
    return _narrow(out, expr, f"({_wide(out, left, scale)} % {_wide(out, right, scale)})")


def _negate(out: ExpressionWriter, expr: Apply) -> str:
    text = f"(-{out.value(expr.arguments[0])})"
    return f"({text} + F.lit(0.0))" if isinstance(expr.type, FloatType) else _checked(out, expr, text)


# --- comparison and logic ---------------------------------------------------------------------------------------------


def _alike(out: ExpressionWriter, left: Expr, right: Expr) -> tuple[str, str]:
    """Both sides so that Spark compares what the values stand for."""
    if left.type != right.type and is_number(left.type) and is_number(right.type):
        if isinstance(left.type, FloatType) or isinstance(right.type, FloatType):
            return _float(out, left), _float(out, right)
        scale = max(scale_of(left.type), scale_of(right.type))
        if scale_of(left.type) != scale_of(right.type):
            return _wide(out, left, scale), _wide(out, right, scale)
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


def _like(out: ExpressionWriter, expr: Apply) -> str:
    pattern = expr.arguments[1]
    assert isinstance(pattern, Const)
    pieces = [
        "[\\s\\S]*" if piece is ANY_TEXT else "[\\s\\S]" if piece is ANY_CHARACTER else java_literal(str(piece))
        for piece in like_pieces(str(pattern.value))
    ]
    return f"{out.value(expr.arguments[0])}.rlike({out.constants.add('^' + ''.join(pieces) + chr(92) + 'z')})"


def java_literal(character: str) -> str:
    """One character as a Java pattern that fits it and nothing else."""
    return character if character.isalnum() and character.isascii() else f"\\x{{{ord(character):x}}}"


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
            out.value(argument) if argument.type == expr.type else _cast_text(out, argument, expr.type)
            for argument in expr.arguments
        ]
        return f"F.{function}({', '.join(values)})"

    return write


def _nullif(out: ExpressionWriter, expr: Apply) -> str:
    left, right = _alike(out, *expr.arguments)
    value = out.value(expr.arguments[0])
    return f"F.when({left} == {right}, F.lit(None)).otherwise({value})"


def _abs(out: ExpressionWriter, expr: Apply) -> str:
    return f"F.abs({out.value(expr.arguments[0])})"


def _sign(out: ExpressionWriter, expr: Apply) -> str:
    return f'F.signum({out.value(expr.arguments[0])}).cast("bigint")'


def _floor(out: ExpressionWriter, expr: Apply) -> str:
    argument = expr.arguments[0]
    value = out.value(argument)
    if isinstance(argument.type, FloatType):
        return f'F.floor({value}).cast("bigint")'
    scale = scale_of(argument.type)
    return value if scale == 0 else f"X.floored({value}, {10**scale})"


def _ceil(out: ExpressionWriter, expr: Apply) -> str:
    argument = expr.arguments[0]
    value = out.value(argument)
    if isinstance(argument.type, FloatType):
        return f'F.ceil({value}).cast("bigint")'
    scale = scale_of(argument.type)
    return value if scale == 0 else f"(-X.floored(-{value}, {10**scale}))"


def _round(out: ExpressionWriter, expr: Apply) -> str:
    argument = expr.arguments[0]
    if isinstance(argument.type, FloatType):
        digits = _digits(expr)
        exact = f"X.exact_of_float({out.value(argument)}, {digits})"
        if isinstance(expr.type, IntType):
            return _narrow(out, expr, exact)
        return f"({exact} / F.lit({10**digits})).cast('double')".replace("'", '"')
    lost = scale_of(argument.type) - scale_of(expr.type)
    if lost <= 0:
        return out.value(argument)
    return _narrow(out, expr, f"X.rescaled(X.wide({out.value(argument)}), {-lost})")


def _digits(expr: Apply) -> int:
    if len(expr.arguments) == 1:
        return 0
    digits = expr.arguments[1]
    assert isinstance(digits, Const)
    assert isinstance(digits.value, int)
    return digits.value


def _power(out: ExpressionWriter, expr: Apply) -> str:
    return _finite(out, f"F.pow({_float(out, expr.arguments[0])}, {_float(out, expr.arguments[1])})")


def _sqrt(out: ExpressionWriter, expr: Apply) -> str:
    return _finite(out, f"F.sqrt({_float(out, expr.arguments[0])})")


def _substring(out: ExpressionWriter, expr: Apply) -> str:
    arguments = [*out.arguments(expr), "None"]
    return f"X.substring({', '.join(arguments[:3])})"


# --- patterns ---------------------------------------------------------------------------------------------------------

_PIECE = re.compile(r"\\.|[\[\]$.]", re.DOTALL)


def java_pattern(pattern: str) -> str:
    """The same pattern for Java: `.` is any but a newline, `$` only the very end, white space spelled out."""
    inside = False

    def spelled(found: re.Match[str]) -> str:
        nonlocal inside
        piece = found.group()
        match piece:
            case "\\s":
                return (
                    WHITE_SPACE.replace("\\v", "\\x0B") if inside else "[" + WHITE_SPACE.replace("\\v", "\\x0B") + "]"
                )
            case "\\S":
                return "[^" + WHITE_SPACE.replace("\\v", "\\x0B") + "]"
            case "[" | "]":
                inside = piece == "["
            case "$" if not inside:
                return "\\z"
            case "." if not inside:
                return "[^\\n]"
            case _:
                pass
        return piece

    return _PIECE.sub(spelled, pattern)


def _pattern(out: ExpressionWriter, expr: Apply) -> str:
    pattern = expr.arguments[1]
    assert isinstance(pattern, Const)
    return out.constants.add(java_pattern(str(pattern.value)))


def _regexp_match(out: ExpressionWriter, expr: Apply) -> str:
    return f"{out.value(expr.arguments[0])}.rlike({_pattern(out, expr)})"


def _regexp_extract(out: ExpressionWriter, expr: Apply) -> str:
    group = expr.arguments[2].value if len(expr.arguments) > 2 and isinstance(expr.arguments[2], Const) else 1
    return f"F.regexp_extract({out.value(expr.arguments[0])}, {_pattern(out, expr)}, {group})"


# --- time -------------------------------------------------------------------------------------------------------------


def _day_part(function: str) -> Writer:
    return lambda out, expr: f'F.{function}(X.day_of({out.value(expr.arguments[0])})).cast("bigint")'


def _clock_part(unit_us: int, count: int) -> Writer:
    return lambda out, expr: f"X.clock_part({out.value(expr.arguments[0])}, {unit_us}, {count})"


def _date(out: ExpressionWriter, expr: Apply) -> str:
    value = out.value(expr.arguments[0])
    return f"({value} - F.pmod({value}, F.lit(X.DAY_US)))"


def _truncate(out: ExpressionWriter, expr: Apply) -> str:
    value, step = out.arguments(expr)
    message = out.message("truncate needs a duration above zero")
    cut = _checked(out, expr, f"({value} - F.pmod({value}, {step}))")
    return f"F.when({step} > 0, {cut}).when({step}.isNotNull() & {value}.isNotNull(), X.fail({message}))"


def _time_pieces(pattern: Expr) -> list[str]:
    assert isinstance(pattern, Const)
    return re.findall(r"%.|.", str(pattern.value), re.DOTALL)


def _format(out: ExpressionWriter, expr: Apply) -> str:
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
_TIME_LITERAL = (
    r"^([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?)?Z?\z",
    ("year", "month", "day", "hour", "minute", "second", "microsecond"),
)


def _parse_time(out: ExpressionWriter, expr: Apply) -> str:
    fields: list[str] = []
    pattern = ""
    for piece in _time_pieces(expr.arguments[1]):
        if piece in _PARSED:
            name, digits = _PARSED[piece]
            fields.append(name)
            pattern += digits
        else:
            pattern += java_literal("%" if piece == "%%" else piece)
    return _parsed(out, expr.arguments[0], f"^{pattern}\\z", tuple(fields))


def _parsed(out: ExpressionWriter, text: Expr, pattern: str, fields: tuple[str, ...]) -> str:
    message = out.message("a text is not a time of the wanted form")
    names = ", ".join(f'"{field}"' for field in fields)
    return f"X.parsed_time({out.value(text)}, {out.constants.add(pattern)}, [{names}], {message})"


# --- casts ------------------------------------------------------------------------------------------------------------


def _cast(out: ExpressionWriter, expr: Apply) -> str:
    return _cast_text(out, expr.arguments[0], expr.type)


def _cast_text(out: ExpressionWriter, argument: Expr, target: Type) -> str:
    source, value = argument.type, out.value(argument)
    if source == target:
        return value
    match target:
        case IntType() | DecimalType():
            return _to_exact(out, argument, target)
        case FloatType():
            return _to_float(out, argument)
        case TextType():
            return _limited(out, _to_text(argument.type, value), target)
        case EnumType():
            message = out.message(f"a text is not among the values of {target}")
            known = f"{value}.isin([{', '.join(map(out.constants.add, target.values))}]) | {value}.isNull()"
            return f"F.when({known}, {value}).otherwise(X.fail({message}))"
        case BoolType():
            message = out.message("a text is neither true nor false")
            return (
                f'F.when({value} == "true", F.lit(True)).when({value} == "false", F.lit(False))'
                f".when({value}.isNotNull(), X.fail({message}))"
            )
        case TimeType():
            return _parsed(out, argument, *_TIME_LITERAL)
        case _:
            return value


def _to_exact(out: ExpressionWriter, argument: Expr, target: IntType | DecimalType) -> str:
    source, value, scale = argument.type, out.value(argument), scale_of(target)
    limits = limits_of(target)
    assert limits is not None
    ends = f"{limits[0]}, {limits[1]}"
    message = _too_large(out, target)
    match source:
        case BoolType():
            return f'({value}.cast("bigint") * {10**scale})'
        case FloatType():
            return f"X.narrow(X.exact_of_float({value}, {scale}), {ends}, {message})"
        case TextType() | EnumType():
            pattern = r"^[+-]?[0-9]{1,40}\z" if isinstance(target, IntType) else r"^[+-]?[0-9]{1,40}(\.[0-9]{1,40})?\z"
            message = out.message(f"a text does not say a value of type {target}")
            return f"X.number_of_text({value}, {out.constants.add(pattern)}, {scale}, {ends}, {message})"
        case _:
            digits = scale - scale_of(source)
            if digits == 0:
                return value if isinstance(target, IntType) else f"X.within({value}, {ends}, {message})"
            return f"X.narrow(X.rescaled(X.wide({value}), {digits}), {ends}, {message})"


def _to_float(out: ExpressionWriter, argument: Expr) -> str:
    if isinstance(argument.type, TextType | EnumType):
        value = out.value(argument)
        pattern = out.constants.add(r"^[+-]?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,4})?\z")
        message = out.message("a text does not say a float")
        read = _finite(out, f'{value}.cast("double")')
        return f"F.when({value}.rlike({pattern}), {read}).when({value}.isNotNull(), X.fail({message}))"
    return _float(out, argument)


def _to_text(source: Type, value: str) -> str:
    match source:
        case DecimalType():
            return f"X.decimal_text({value}, {source.scale})"
        case FloatType():
            raise NotInBulk("Spark writes floats as text in another form")
        case TimeType():
            pieces = ["%Y", "-", "%m", "-", "%d", " ", "%H", ":", "%M", ":", "%S", ".", "%f"]
            shown = ", ".join(f'"{piece}"' for piece in pieces)
            return f"X.formatted({value}, [{shown}])"
        case TextType() | EnumType():
            return value
        case _:
            return f'{value}.cast("string")'


def _limited(out: ExpressionWriter, text: str, target: TextType) -> str:
    if target.length_max is None:
        return text
    message = out.message(f"a text is longer than {target} allows")
    fits = f"(F.length({text}) <= {target.length_max}) | {text}.isNull()"
    return f"F.when({fits}, {text}).otherwise(X.fail({message}))"


def _hash(out: ExpressionWriter, expr: Apply) -> str:
    argument = expr.arguments[0]
    value = out.value(argument)
    if isinstance(argument.type, BoolType):
        value = f'{value}.cast("bigint")'
    return f"F.when({value}.isNotNull(), F.xxhash64({value}))"


FUNCTIONS: dict[str, Writer] = {
    "add": _sum("+"),
    "subtract": _sum("-"),
    "multiply": _multiply,
    "divide": _divide,
    "modulo": _modulo,
    "negate": _negate,
    "equal": _comparison("=="),
    "unequal": _comparison("!="),
    "less": _comparison("<"),
    "less_equal": _comparison("<="),
    "greater": _comparison(">"),
    "greater_equal": _comparison(">="),
    "in_list": _in_list,
    "like": _like,
    "is_null": _call("{0}.isNull()"),
    "and": _logic("&", decides=False),
    "or": _logic("|", decides=True),
    "not": _call("(~{0})"),
    "abs": _abs,
    "sign": _sign,
    "floor": _floor,
    "ceil": _ceil,
    "round": _round,
    "power": _power,
    "sqrt": _sqrt,
    "least": _common("least"),
    "greatest": _common("greatest"),
    "length": _call('F.length({0}).cast("bigint")'),
    "lower": _call("F.lower({0})"),
    "upper": _call("F.upper({0})"),
    "trim": _call("F.trim({0})"),
    "substring": _substring,
    "replace": _call("X.replaced({0}, {1}, {2})"),
    "concat": lambda out, expr: f"F.concat({', '.join(out.arguments(expr))})",
    "starts_with": _call("F.startswith({0}, {1})"),
    "ends_with": _call("F.endswith({0}, {1})"),
    "contains": _call("F.contains({0}, {1})"),
    "split_part": _call("X.split_part({0}, {1}, {2})"),
    "regexp_match": _regexp_match,
    "regexp_extract": _regexp_extract,
    "date": _date,
    "year": _day_part("year"),
    "month": _day_part("month"),
    "day": _day_part("dayofmonth"),
    "hour": _clock_part(3_600_000_000, 24),
    "minute": _clock_part(60_000_000, 60),
    "second": _clock_part(1_000_000, 60),
    "truncate": _truncate,
    "format": _format,
    "parse_time": _parse_time,
    "epoch": _call("{0}"),
    "coalesce": _common("coalesce"),
    "nullif": _nullif,
    "cast": _cast,
    "hash": _hash,
}

assert FUNCTIONS.keys() == BY_NAME.keys(), "every function of the library, and no other"
