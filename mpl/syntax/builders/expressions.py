"""Builders of names, literals, types and scalar expressions."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any
from typing import cast as typed

from mpl.nodes import (
    Arithmetic,
    Between,
    BoolLiteral,
    Call,
    Case,
    Cast,
    ColumnExpr,
    ColumnName,
    Compare,
    DecimalLiteral,
    DurationLiteral,
    Expr,
    FloatLiteral,
    InList,
    IntLiteral,
    IsNull,
    Like,
    Logical,
    Name,
    Negate,
    Not,
    NullLiteral,
    TextLiteral,
    TimeLiteral,
    TypeNode,
)
from mpl.syntax.builders.parts import Phrase, Refused, cover, every_second
from mpl.syntax.limits import TERMS_MAX, terms_error
from mpl.syntax.tokens import Token

# --- names -----------------------------------------------------------------------------------------------------------


def name(token: Token) -> Name:
    text = token.text
    return Name(text[1:-1] if text[0] == "`" else text, span=token.span)


def names(*parts: Any) -> tuple[Name, ...]:
    return every_second(parts)


def column(word: Name | Token) -> ColumnName:
    head = name(word) if isinstance(word, Token) else word
    return ColumnName(None, head, span=head.span)


def qualified_column(alias: Name | Token, _dot: Token, second: Name) -> ColumnName:
    head = name(alias) if isinstance(alias, Token) else alias
    return ColumnName(head, second, span=cover(head, second))


def columns(*parts: Any) -> tuple[ColumnName, ...]:
    return every_second(parts)


# --- literals --------------------------------------------------------------------------------------------------------


def quoted(token: Token) -> str:
    """The text between quotes; two single quotes inside a text are one."""
    return token.text[1:-1].replace("''", "'") if token.text[0] == "'" else token.text[1:-1]


def int_literal(token: Token) -> IntLiteral:
    return IntLiteral(int(token.text), span=token.span)


def decimal_literal(token: Token) -> DecimalLiteral:
    return DecimalLiteral(Decimal(token.text), span=token.span)


def float_literal(token: Token) -> FloatLiteral:
    return FloatLiteral(float(token.text), span=token.span)


def text_literal(token: Token) -> TextLiteral:
    return TextLiteral(quoted(token), span=token.span)


def bool_literal(token: Token) -> BoolLiteral:
    return BoolLiteral(token.text.lower() == "true", span=token.span)


def null_literal(token: Token) -> NullLiteral:
    return NullLiteral(span=token.span)


def time_literal(word: Token, text: Token) -> TimeLiteral:
    return TimeLiteral(quoted(text), span=cover(word, text))


def duration(token: Token) -> DurationLiteral:
    unit = token.text.lstrip("0123456789")
    return DurationLiteral(int(token.text[: -len(unit)]), unit.strip().lower(), span=token.span)


# --- types -----------------------------------------------------------------------------------------------------------


def simple_type(word: Token) -> TypeNode:
    return TypeNode(typed(Any, word.text.lower()), span=word.span)


def decimal_type(word: Token, _opening: Token, precision: Token, _comma: Token, scale: Token, close: Token) -> TypeNode:
    return TypeNode("decimal", (int(precision.text), int(scale.text)), span=cover(word, close))


def text_type(word: Token, _opening: Token | None, length: Token | None, close: Token | None) -> TypeNode:
    return TypeNode("text", () if length is None else (int(length.text),), span=cover(word, close))


def enum_type(word: Token, _opening: Token, *values_and_close: Token) -> TypeNode:
    values = tuple(quoted(value) for value in values_and_close[::2])
    return TypeNode("enum", (), values, span=cover(word, values_and_close[-1]))


# --- operators, loosest binding first --------------------------------------------------------------------------------


def logical(*parts: Any) -> Logical:
    return Logical(parts[1].text.lower(), every_second(parts), span=cover(parts[0], parts[-1]))


def negation(word: Token, operand: Expr) -> Not:
    return Not(operand, span=cover(word, operand))


def comparison(sign: Token) -> Token:
    return sign


def compare(left: Expr, sign: Token, right: Expr) -> Compare:
    return Compare(typed(Any, sign.text), left, right, span=cover(left, right))


def in_list(
    operand: Expr, negated: Token | None, _word: Token, _opening: Token, items: tuple[Expr, ...], close: Token
) -> InList:
    return InList(operand, items, negated is not None, span=cover(operand, close))


def between(operand: Expr, negated: Token | None, _word: Token, low: Expr, _word_and: Token, high: Expr) -> Between:
    return Between(operand, low, high, negated is not None, span=cover(operand, high))


def like(operand: Expr, negated: Token | None, _word: Token, pattern: Expr) -> Like:
    return Like(operand, pattern, negated is not None, span=cover(operand, pattern))


def is_null(operand: Expr, _word: Token, negated: Token | None, null: Token) -> IsNull:
    return IsNull(operand, negated is not None, span=cover(operand, null))


def arithmetic(*parts: Any) -> Arithmetic:
    rest = tuple((sign.text, operand) for sign, operand in zip(parts[1::2], parts[2::2], strict=True))
    span = cover(parts[0], parts[-1])
    if len(rest) >= TERMS_MAX:
        raise Refused(terms_error(len(rest) + 1, span))
    return Arithmetic(parts[0], rest, span=span)


def negate(sign: Token, operand: Expr) -> Negate:
    return Negate(operand, span=cover(sign, operand))


# --- atoms -----------------------------------------------------------------------------------------------------------


def column_expr(column: ColumnName) -> ColumnExpr:
    return ColumnExpr(column, span=column.span)


def call(function: Name | Token, _opening: Token, arguments: tuple[Expr, ...] | None, close: Token) -> Call:
    called = name(function) if isinstance(function, Token) else function
    return Call(called, arguments or (), span=cover(called, close))


def expr_list(*parts: Any) -> tuple[Expr, ...]:
    return every_second(parts)


def when(word: Token, condition: Expr, _then: Token, value: Expr) -> Phrase[tuple[Expr, Expr]]:
    return Phrase((condition, value), cover(word, value))


def case(word: Token, *parts: Any) -> Case:
    *branches, _otherwise_word, otherwise, end = parts
    return Case(tuple(branch.value for branch in branches), otherwise, span=cover(word, end))


def cast(word: Token, _opening: Token, operand: Expr, _as_word: Token, type_node: TypeNode, close: Token) -> Cast:
    return Cast(operand, type_node, span=cover(word, close))


def parenthesised(opening: Token, inner: Expr, close: Token) -> Expr:
    """Parentheses leave no node; the place covers them, so that what is built around starts and ends right."""
    return replace(inner, span=cover(opening, close))
