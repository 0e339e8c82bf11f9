"""Scalar expressions, types and columns, as written."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from mpl.nodes.base import ColumnName, Name, Node


@dataclass(frozen=True)
class IntLiteral(Node):
    value: int


@dataclass(frozen=True)
class DecimalLiteral(Node):
    """`12.50`; its scale is the number of digits written after the point."""

    value: Decimal


@dataclass(frozen=True)
class FloatLiteral(Node):
    """`1e3`: a number with an exponent is a float."""

    value: float


@dataclass(frozen=True)
class TextLiteral(Node):
    value: str


@dataclass(frozen=True)
class BoolLiteral(Node):
    value: bool


@dataclass(frozen=True)
class NullLiteral(Node):
    pass


@dataclass(frozen=True)
class DurationLiteral(Node):
    """`200 ms`, `4 s`, `1 h`; `unit` as written in lower case, for the formatter."""

    amount: int
    unit: str

    @property
    def microseconds(self) -> int:
        return self.amount * DURATION_UNITS[self.unit]


DURATION_UNITS: dict[str, int] = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
"""How durations are written, in microseconds. `d` is 24 hours: there are no time zones here."""


@dataclass(frozen=True)
class TimeLiteral(Node):
    """`time '2026-01-31 12:00:00'`, UTC; the text is checked later so that the error can point into it."""

    text: str


@dataclass(frozen=True)
class ColumnExpr(Node):
    column: ColumnName


@dataclass(frozen=True)
class Negate(Node):
    operand: Expr


@dataclass(frozen=True)
class Not(Node):
    operand: Expr


ArithmeticOp = Literal["+", "-", "*", "/", "%", "||"]


@dataclass(frozen=True)
class Arithmetic(Node):
    """A chain of operators of equal precedence, left to right: `a + b - c`. Flat, so that long chains do not nest."""

    first: Expr
    rest: tuple[tuple[ArithmeticOp, Expr], ...]


CompareOp = Literal["=", "<>", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Compare(Node):
    """Comparisons do not chain: `a < b < c` is a syntax error."""

    op: CompareOp
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Logical(Node):
    op: Literal["and", "or"]
    operands: tuple[Expr, ...]


@dataclass(frozen=True)
class InList(Node):
    operand: Expr
    items: tuple[Expr, ...]
    negated: bool


@dataclass(frozen=True)
class Between(Node):
    operand: Expr
    low: Expr
    high: Expr
    negated: bool


@dataclass(frozen=True)
class Like(Node):
    """`%` any text, `_` any one character, `\\` escapes."""

    operand: Expr
    pattern: Expr
    negated: bool


@dataclass(frozen=True)
class IsNull(Node):
    operand: Expr
    negated: bool


@dataclass(frozen=True)
class Case(Node):
    """`case when c then x ... else y end`; without `else` the value may be null."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None


@dataclass(frozen=True)
class Cast(Node):
    operand: Expr
    type: TypeNode


@dataclass(frozen=True)
class Call(Node):
    """A library function, a declared function, or (only inside `aggregate`) an aggregate."""

    function: Name
    arguments: tuple[Expr, ...]


Expr = (
    IntLiteral
    | DecimalLiteral
    | FloatLiteral
    | TextLiteral
    | BoolLiteral
    | NullLiteral
    | DurationLiteral
    | TimeLiteral
    | ColumnExpr
    | Negate
    | Not
    | Arithmetic
    | Compare
    | Logical
    | InList
    | Between
    | Like
    | IsNull
    | Case
    | Cast
    | Call
)


@dataclass(frozen=True)
class TypeNode(Node):
    """`int`, `decimal(10,2)`, `text(40)`, `enum('a','b')`; `name` in lower case."""

    name: Literal["int", "decimal", "float", "bool", "text", "time", "duration", "enum"]
    numbers: tuple[int, ...] = ()
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class RangeNode(Node):
    """`[0..1000]`, `[0..]`: inclusive, either end may be open. The ends are literals, perhaps negated."""

    low: Expr | None
    high: Expr | None


@dataclass(frozen=True)
class ColumnDecl(Node):
    """`default` is a literal, perhaps negated."""

    name: Name
    type: TypeNode
    range: RangeNode | None
    nullable: bool
    default: Expr | None
