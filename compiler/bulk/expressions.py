"""Typed scalar expressions as text of Spark column expressions.

Columns of a relation are called c0, c1, ... by position (d0, d1, ... on the right side of a join). Constants of the
user's go through the table `K`; what is written out are numbers that the compiler computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from compiler.bulk.functions import FUNCTIONS
from compiler.bulk.writer import NotInBulk
from mpl.typed import Apply, CaseOf, ColumnRef, Const, Expr, PythonCall
from mpl.types import BoolType, EnumType, FloatType, NullType, TextType, Type, Value


def spark_type(type: Type) -> str:
    """How Spark keeps canonical values of a type."""
    match type:
        case FloatType():
            return "double"
        case BoolType():
            return "boolean"
        case TextType() | EnumType():
            return "string"
        case NullType():
            return "void"
        case _:
            return "bigint"


@dataclass
class Constants:
    """The constants table of one bulk program."""

    values: list[Value] = field(default_factory=list)

    def add(self, value: Value) -> str:
        for number, known in enumerate(self.values):
            if type(known) is type(value) and known == value:
                return f"K[{number}]"
        self.values.append(value)
        return f"K[{len(self.values) - 1}]"


class ExpressionWriter:
    """`column` names the column at a position of the operator's input."""

    def __init__(self, constants: Constants, column: Callable[[int], str]) -> None:
        self.constants = constants
        self._column = column

    def value(self, expr: Expr) -> str:
        match expr:
            case Const():
                return self.constant(expr.value, expr.type)
            case ColumnRef():
                return f'F.col("{self._column(expr.index)}")'
            case CaseOf():
                return self._case(expr)
            case PythonCall():
                raise NotInBulk("a Python function would have to run row by row in Spark's workers")
            case Apply():
                return FUNCTIONS[expr.function](self, expr)

    def constant(self, value: Value, type: Type) -> str:
        if value is None:
            return f'F.lit(None).cast("{spark_type(type)}")'
        literal = f"F.lit({self.constants.add(value)})"
        # A whole number would otherwise be an int of 32 bits where it fits.
        return f'{literal}.cast("bigint")' if spark_type(type) == "bigint" else literal

    def _case(self, expr: CaseOf) -> str:
        start = "F"
        for condition, value in expr.branches:
            start = f"{start}.when({self.value(condition)}, {self.value(value)})"
        return f"{start}.otherwise({self.value(expr.otherwise)})"

    def arguments(self, expr: Apply) -> list[str]:
        return [self.value(argument) for argument in expr.arguments]

    def message(self, text: str) -> str:
        """A message of ours for a row without value; the type's name may hold the user's words."""
        return self.constants.add(text)
