"""Scalar code: the statements that compute a typed expression from local variables.

One writer per expression. Columns are local variables `c0`, `c1`, ...; every step is another, `v1`, `v2`, ..., after a
prefix that sets expressions of the same loop apart.
Null is None and is only tested for where the checker says that it can occur; 64-bit overflow is only tested for where
ranges do not rule it out. What is not written out here is called through the library, so its meaning is that of
`mpl/functions/`. `mpl/evaluate.py` is what the result is compared with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mpl.functions import BY_NAME
from mpl.functions.spec import Nulls
from mpl.scaled import limits_of, scale_of
from mpl.typed import Apply, CaseOf, ColumnRef, Const, Expr, PythonCall
from mpl.types import DecimalType, EnumType, FloatType, IntType, TextType, Type, Value

_COMPARISONS = {
    "equal": "==",
    "unequal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_ARITHMETIC = {"add": "+", "subtract": "-", "multiply": "*"}


@dataclass
class Constants:
    """The constants table of one module: `K[n]` values and `F[n]` library functions, each once."""

    values: list[Value] = field(default_factory=list)
    functions: list[tuple[str, tuple[Type, ...], Type]] = field(default_factory=list)
    python: list[tuple[str, str, Type, bool]] = field(default_factory=list)
    _positions: dict[tuple[type, Value], int] = field(default_factory=dict)

    def value(self, value: Value) -> str:
        if value is None or isinstance(value, bool):
            return str(value)
        key = (type(value), value)
        if key not in self._positions:
            self._positions[key] = len(self.values)
            self.values.append(value)
        return f"K[{self._positions[key]}]"

    def function(self, name: str, arguments: Sequence[Type], result: Type) -> str:
        """A library function for these types. Types are data here: an enum's values are the user's words."""
        wanted = (name, tuple(arguments), result)
        if wanted not in self.functions:
            self.functions.append(wanted)
        return f"F[{self.functions.index(wanted)}]"

    def python_function(self, call: PythonCall) -> str:
        wanted = (call.module, call.function, call.type, call.nullable)
        if wanted not in self.python:
            self.python.append(wanted)
        return f"P[{self.python.index(wanted)}]"


class ScalarWriter:
    """Writes one expression. `columns` maps a position of the input to the expression that reads it."""

    def __init__(self, constants: Constants, columns: Mapping[int, str], prefix: str = "v") -> None:
        self.constants = constants
        self._prefix = prefix
        self.columns = columns
        self.lines: list[str] = []
        self._depth = 0
        self._count = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    def _name(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"

    def value(self, expr: Expr) -> str:
        """Writes what `expr` needs and returns the name, or the constant, that then holds its value."""
        match expr:
            case Const():
                return self.constants.value(expr.value)
            case ColumnRef():
                return self.columns[expr.index]
            case CaseOf():
                return self._case(expr)
            case PythonCall():
                return self._python(expr)
            case Apply():
                return self._apply(expr)

    def truth(self, expr: Expr) -> str:
        """As `value`, for a condition: null counts as false."""
        value = self.value(expr)
        return f"{value} is True" if expr.nullable else value

    # Choices evaluate only what they need.

    def _case(self, expr: CaseOf) -> str:
        name = self._name()
        depth = self._depth
        for condition, value in expr.branches:
            self.line(f"if {self.truth(condition)}:")
            self._indented(name, value)
            self.line("else:")
            self._depth += 1
        self.line(f"{name} = {self.value(expr.otherwise)}")
        self._depth = depth
        return name

    def _indented(self, name: str, value: Expr) -> None:
        self._depth += 1
        self.line(f"{name} = {self.value(value)}")
        self._depth -= 1

    def _logic(self, expr: Apply) -> str:
        """`and` stops at the first false, `or` at the first true; null only shows if nothing else decides."""
        decides = expr.function == "or"
        name = self._name()
        depth = self._depth
        self.line(f"{name} = {not decides}")
        unknown = None
        if expr.nullable:
            unknown = self._name()
            self.line(f"{unknown} = False")
        for position, operand in enumerate(expr.arguments):
            value = self.value(operand)
            self.line(f"if {value} is {decides}:" if operand.nullable else f"if {'' if decides else 'not '}{value}:")
            self._depth += 1
            self.line(f"{name} = {decides}")
            self._depth -= 1
            if operand.nullable:
                self.line(f"elif {value} is None:")
                self._depth += 1
                self.line(f"{unknown} = True")
                self._depth -= 1
            if position + 1 < len(expr.arguments):
                self.line(f"if {name} is {not decides}:")
                self._depth += 1
        self._depth = depth
        if unknown is not None:
            self.line(f"if {unknown} and {name} is {not decides}:")
            self._depth += 1
            self.line(f"{name} = None")
            self._depth -= 1
        return name

    def _coalesce(self, expr: Apply) -> str:
        name = self._name()
        depth = self._depth
        for position, argument in enumerate(expr.arguments):
            self.line(f"{name} = {self.value(argument)}")
            if not argument.nullable:
                break
            if position + 1 < len(expr.arguments):
                self.line(f"if {name} is None:")
                self._depth += 1
        self._depth = depth
        return name

    # Functions

    def _apply(self, expr: Apply) -> str:
        if expr.function in ("and", "or"):
            return self._logic(expr)
        if expr.function == "coalesce":
            return self._coalesce(expr)
        arguments = [self.value(argument) for argument in expr.arguments]
        name = self._name()
        if expr.function == "is_null":
            self.line(f"{name} = {arguments[0]} is None")
            return name
        depth = self._depth
        if BY_NAME[expr.function].nulls is Nulls.PROPAGATE:
            nullable = [text for text, argument in zip(arguments, expr.arguments, strict=True) if argument.nullable]
            if nullable:
                self.line(f"{name} = None")
                self.line(f"if {' and '.join(f'{text} is not None' for text in dict.fromkeys(nullable))}:")
                self._depth += 1
        self._compute(name, expr, arguments)
        self._depth = depth
        return name

    def _compute(self, name: str, expr: Apply, arguments: list[str]) -> None:
        types = tuple(argument.type for argument in expr.arguments)
        if expr.function in _COMPARISONS and _compare_alike(types):
            left, right = arguments
            self.line(f"{name} = {left} {_COMPARISONS[expr.function]} {right}")
        elif expr.function == "not":
            self.line(f"{name} = not {arguments[0]}")
        elif expr.function in _ARITHMETIC and _is_plain(expr, types):
            left, right = (
                _scaled(text, scale_of(operand), scale_of(expr.type), expr.function)
                for text, operand in zip(arguments, types, strict=True)
            )
            self.line(f"{name} = {left} {_ARITHMETIC[expr.function]} {right}")
            self._check(name, expr)
        else:
            function = self.constants.function(expr.function, types, expr.type)
            self.line(f"{name} = {function}({', '.join(arguments)})")

    def _check(self, name: str, expr: Apply) -> None:
        """Overflow, unless the ranges of the operands rule it out."""
        limits = limits_of(expr.type)
        assert limits is not None, "only exact numbers are computed in line"
        low, high = expr.bounds.low, expr.bounds.high
        if low is not None and high is not None and limits[0] <= low and high <= limits[1]:
            return
        self.line(f"if not {limits[0]} <= {name} <= {limits[1]}:")
        self._depth += 1
        self.line(f"overflow({self.constants.value(str(expr.type))})")
        self._depth -= 1

    def _python(self, expr: PythonCall) -> str:
        arguments = [self.value(argument) for argument in expr.arguments]
        name = self._name()
        self.line(f"{name} = {self.constants.python_function(expr)}({', '.join(arguments)})")
        return name


def _compare_alike(types: tuple[Type, ...]) -> bool:
    """Do canonical values of these types compare as the values they stand for?"""
    left, right = types
    if left == right:
        return True
    if isinstance(left, TextType | EnumType) and isinstance(right, TextType | EnumType):
        return True
    exact = (IntType, DecimalType)
    return isinstance(left, exact) and isinstance(right, exact) and scale_of(left) == scale_of(right)


def _is_plain(expr: Apply, types: tuple[Type, ...]) -> bool:
    """Exact arithmetic that needs no rounding."""
    if isinstance(expr.type, FloatType) or any(isinstance(operand, FloatType) for operand in types):
        return False
    if expr.function == "multiply":
        return scale_of(types[0]) + scale_of(types[1]) == scale_of(expr.type)
    return True


def _scaled(text: str, scale: int, wanted: int, function: str) -> str:
    """An operand in the units of the result; a product has the scales of both anyway."""
    if function == "multiply" or scale == wanted:
        return text
    return f"{text} * {10 ** (wanted - scale)}"
