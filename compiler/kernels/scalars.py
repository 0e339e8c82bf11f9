"""Scalar code for kernels: statements over whole numbers and floats that mean the same in Python and in machine code.

Only what is certain to: no nulls, no text but for equality (codes), no division, no float arithmetic. Everything else
raises `NotFusable`, and the subgraph runs on the operators one by one. Overflow is tested before it happens, because
machine code would wrap around: `failed` gets the number of a reason and the loop over the batch is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from mpl.scaled import limits_of, scale_of
from mpl.typed import Apply, CaseOf, ColumnRef, Const, Expr, PythonCall
from mpl.types import INT_MAX, INT_MIN, BoolType, DecimalType, EnumType, FloatType, IntType, TextType, Type, Value

COMPARISONS = {
    "equal": "==",
    "unequal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
EXACT = (IntType, DecimalType)


class NotFusable(Exception):
    """This subgraph cannot be a kernel; the message says why, in words for `explain`."""


@dataclass
class Constants:
    """The constants table: nothing of a user's program is written into the text of a kernel, not even numbers."""

    integers: list[int] = field(default_factory=list)
    floats: list[float] = field(default_factory=list)
    texts: list[tuple[int, str]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    _known: dict[tuple[type, Value], str] = field(default_factory=dict)

    def value(self, value: Value) -> str:
        """The local variable that holds a constant."""
        key = (type(value), value)
        if key not in self._known:
            self._known[key] = self._added(value)
        return self._known[key]

    def _added(self, value: Value) -> str:
        match value:
            case float():
                self.floats.append(value)
                return f"x{len(self.floats) - 1}"
            case str():
                self.texts.append((len(self.integers), value))
                self.integers.append(0)
            case int():
                self.integers.append(int(value))
            case None:
                raise NotFusable("nulls")
        return f"k{len(self.integers) - 1}"

    def reason(self, what: str) -> int:
        """The number of a reason to fail, from 1."""
        if what not in self.reasons:
            self.reasons.append(what)
        return self.reasons.index(what) + 1


class Block:
    """Statements under construction, with indentation. Every local that it makes has a name of its own."""

    def __init__(self, prefix: str, constants: Constants) -> None:
        self.lines: list[str] = []
        self.constants = constants
        self.depth = 0
        self._prefix = prefix
        self._count = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """What is written inside runs if the condition holds; if nothing is written, there is no `if` either."""
        self.line(f"if {condition}:")
        written, depth = len(self.lines), self.depth
        self.depth += 1
        yield
        self.depth = depth
        if len(self.lines) == written:
            del self.lines[-1]

    def name(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"

    def fail_if(self, condition: str, reason: str) -> None:
        self.line(f"if {condition}:")
        self.line(f"    failed = {self.constants.reason(reason)}")
        self.line("    break")

    # Expressions

    def value(self, expr: Expr, columns: Mapping[int, str | None]) -> str:
        """Writes what `expr` needs and returns the local that then holds its value.

        `columns` maps positions to locals; None stands for a column that cannot be computed with.
        """
        if expr.nullable:
            raise NotFusable("a value that may be null")
        match expr:
            case Const():
                return self.constants.value(expr.value)
            case ColumnRef():
                found = columns[expr.index]
                if found is None:
                    raise NotFusable("computing with an average")
                return found
            case CaseOf():
                return self._case(expr, columns)
            case PythonCall():
                raise NotFusable("a Python function")
            case Apply():
                return self._apply(expr, columns)

    def _case(self, expr: CaseOf, columns: Mapping[int, str | None]) -> str:
        name, depth = self.name(), self.depth
        for condition, value in expr.branches:
            self.line(f"if {self.value(condition, columns)}:")
            self._assigned(name, value, columns)
            self.line("else:")
            self.depth += 1
        self.line(f"{name} = {self.value(expr.otherwise, columns)}")
        self.depth = depth
        return name

    def _assigned(self, name: str, value: Expr, columns: Mapping[int, str | None]) -> None:
        self.depth += 1
        self.line(f"{name} = {self.value(value, columns)}")
        self.depth -= 1

    def _logic(self, expr: Apply, columns: Mapping[int, str | None]) -> str:
        """`and` stops at the first false, `or` at the first true: what follows may overflow."""
        name, depth = self.name(), self.depth
        again = "if" if expr.function == "and" else "if not"
        for position, operand in enumerate(expr.arguments):
            if position:
                self.line(f"{again} {name}:")
                self.depth += 1
            self.line(f"{name} = {self.value(operand, columns)}")
        self.depth = depth
        return name

    def _apply(self, expr: Apply, columns: Mapping[int, str | None]) -> str:
        types = tuple(argument.type for argument in expr.arguments)
        if expr.function in ("and", "or"):
            return self._logic(expr, columns)
        if expr.function in COMPARISONS:
            _check_comparison(expr.function, types)
            left, right = (self.value(argument, columns) for argument in expr.arguments)
            return self._made(f"{left} {COMPARISONS[expr.function]} {right}")
        if expr.function == "not":
            return self._made(f"not {self.value(expr.arguments[0], columns)}")
        if expr.function in ("add", "subtract", "multiply"):
            return self._arithmetic(expr, types, columns)
        raise NotFusable(f"the function `{expr.function}`")

    def _made(self, text: str) -> str:
        name = self.name()
        self.line(f"{name} = {text}")
        return name

    # Exact arithmetic

    def _arithmetic(self, expr: Apply, types: tuple[Type, ...], columns: Mapping[int, str | None]) -> str:
        limits = limits_of(expr.type)
        if limits is None or None in map(limits_of, types):
            raise NotFusable("arithmetic with floats")
        left, right = (
            self._scaled(argument, scale_of(expr.type), expr.function, columns) for argument in expr.arguments
        )
        if expr.function == "multiply":
            return self._product(expr, types, left, right, limits)
        operator, reason = ("+", "sum") if expr.function == "add" else ("-", "difference")
        if not _is_within(expr, limits):
            low, high = (self.constants.value(limit) for limit in limits)
            rising, falling = (f"{left} > {high} - {right}", f"{left} < {low} - {right}")
            if operator == "-":
                rising, falling = (f"{left} < {low} + {right}", f"{left} > {high} + {right}")
            self.fail_if(
                f"({right} >= 0 and {rising}) or ({right} < 0 and {falling})",
                f"a {reason} is too large for {expr.type}",
            )
        return self._made(f"{left} {operator} {right}")

    def _product(self, expr: Apply, types: tuple[Type, ...], left: str, right: str, limits: tuple[int, int]) -> str:
        if scale_of(types[0]) + scale_of(types[1]) != scale_of(expr.type):
            raise NotFusable("a product that is rounded")
        ranges = [_range_of(argument) for argument in expr.arguments]
        corners = [one * other for one in ranges[0] for other in ranges[1]]
        reason = f"a product is too large for {expr.type}"
        if min(corners) < INT_MIN or max(corners) > INT_MAX:
            self._check_factors(left, right, limits, reason)
            return self._made(f"{left} * {right}")
        name = self._made(f"{left} * {right}")
        if not _is_within(expr, limits):
            low, high = (self.constants.value(limit) for limit in limits)
            self.fail_if(f"{name} < {low} or {name} > {high}", reason)
        return name

    def _check_factors(self, left: str, right: str, limits: tuple[int, int], reason: str) -> None:
        """By division, rounded towards the inside of the limits; no intermediate value leaves 64 bits."""
        low, high = (self.constants.value(limit) for limit in limits)
        name = self._made("False")
        self.line(f"if {left} > 0:")
        self.line(f"    {name} = {right} > {high} // {left} or {right} < ({low} + {left} - 1) // {left}")
        self.line(f"elif {left} < -1:")
        self.line(f"    {name} = {right} > {low} // {left} or {right} < ({high} + {left} + 1) // {left}")
        self.line(f"elif {left} == -1:")
        least, most = self.constants.value(-limits[1]), self.constants.value(min(-limits[0], INT_MAX))
        self.line(f"    {name} = {right} < {least} or {right} > {most}")
        self.fail_if(name, reason)

    def _scaled(self, argument: Expr, scale: int, function: str, columns: Mapping[int, str | None]) -> str:
        """An operand in the units of the result; a product has the scales of both anyway."""
        text = self.value(argument, columns)
        factor = 10 ** (scale - scale_of(argument.type))
        if function == "multiply" or factor == 1:
            return text
        low, high = _range_of(argument)
        if low * factor < INT_MIN or high * factor > INT_MAX:
            raise NotFusable("decimals that may need more than 64 bits")
        return self._made(f"{text} * {self.constants.value(factor)}")


def _check_comparison(function: str, types: tuple[Type, ...]) -> None:
    left, right = types
    if isinstance(left, TextType | EnumType) and isinstance(right, TextType | EnumType):
        if function not in ("equal", "unequal"):
            raise NotFusable("texts compared by order")
        return
    alike = left == right and not isinstance(left, BoolType)
    alike = alike or (isinstance(left, BoolType) and function in ("equal", "unequal"))
    exact = isinstance(left, EXACT) and isinstance(right, EXACT) and scale_of(left) == scale_of(right)
    if not alike and not exact:
        raise NotFusable("a comparison of unlike numbers")


def _range_of(expr: Expr) -> tuple[int, int]:
    """What an exact operand is known to stay in."""
    limits = limits_of(expr.type)
    assert limits is not None
    low, high = expr.bounds.low, expr.bounds.high
    if isinstance(expr, Const) and isinstance(expr.value, int):
        low = high = expr.value
    return (
        int(low) if isinstance(low, int) else limits[0],
        int(high) if isinstance(high, int) else limits[1],
    )


def _is_within(expr: Expr, limits: tuple[int, int]) -> bool:
    low, high = expr.bounds.low, expr.bounds.high
    return low is not None and high is not None and limits[0] <= low and high <= limits[1]


def is_text(type: Type) -> bool:
    return isinstance(type, TextType | EnumType)


def is_float(type: Type) -> bool:
    return isinstance(type, FloatType)
