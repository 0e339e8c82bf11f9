"""Casts as text of Spark column expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.bulk.numbers import finite_text, float_text, too_large
from compiler.bulk.times import TIME_LITERAL, parsed_text
from compiler.bulk.writer import NotInBulk
from mpl.scaled import limits_of, scale_of
from mpl.typed import Apply, Expr
from mpl.types import BoolType, DecimalType, EnumType, FloatType, IntType, TextType, TimeType, Type

if TYPE_CHECKING:
    from compiler.bulk.expressions import ExpressionWriter


def cast(out: ExpressionWriter, expr: Apply) -> str:
    return cast_text(out, expr.arguments[0], expr.type)


def cast_text(out: ExpressionWriter, argument: Expr, target: Type) -> str:
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
            return parsed_text(out, argument, *TIME_LITERAL)
        case _:
            return value


def _to_exact(out: ExpressionWriter, argument: Expr, target: IntType | DecimalType) -> str:
    source, value, scale = argument.type, out.value(argument), scale_of(target)
    limits = limits_of(target)
    assert limits is not None
    ends = f"{limits[0]}, {limits[1]}"
    message = too_large(out, target)
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
        read = finite_text(out, f'{value}.cast("double")')
        return f"F.when({value}.rlike({pattern}), {read}).when({value}.isNotNull(), X.fail({message}))"
    return float_text(out, argument)


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
