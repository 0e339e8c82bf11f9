"""What one function of the library is: a record.

The checker reads names, parameters, the result and the null rule; the monotonic analysis reads `directions_of`; the
evaluator calls `evaluate`; the documentation prints `summary` and `examples`. Code generators later print the same
meaning in another language, so a record says everything and nothing is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from mpl.arithmetic import is_number, is_ordered, unify
from mpl.failures import Failure
from mpl.typed import Expr
from mpl.types import (
    OPEN,
    BoolType,
    Bounds,
    DurationType,
    EnumType,
    IntType,
    NullType,
    TextType,
    TimeType,
    Type,
    Value,
)

Theme = Literal["operators", "numbers", "text", "time", "conditional", "hashing"]
Direction = Literal["up", "down"] | None


class Kind(Enum):
    """What a parameter takes; the value is how messages say it."""

    ANY = "a value"
    ORDERED = "a value with an order"
    NUMBER = "a number"
    AMOUNT = "a number or a duration"
    INT = "an int"
    TEXT = "text"
    BOOL = "true or false"
    TIME = "a time"
    DURATION = "a duration"

    def accepts(self, type: Type) -> bool:
        if isinstance(type, NullType):
            return True
        match self:
            case Kind.ANY:
                return True
            case Kind.ORDERED:
                return is_ordered(type)
            case Kind.NUMBER:
                return is_number(type)
            case Kind.AMOUNT:
                return is_number(type) or isinstance(type, DurationType)
            case Kind.INT:
                return isinstance(type, IntType)
            case Kind.TEXT:
                return isinstance(type, TextType | EnumType)
            case Kind.BOOL:
                return isinstance(type, BoolType)
            case Kind.TIME:
                return isinstance(type, TimeType)
            case Kind.DURATION:
                return isinstance(type, DurationType)


class Nulls(Enum):
    """PROPAGATE: any null argument gives null. SKIP: null only if all arguments are. OWN: see the summary."""

    PROPAGATE = "null if any argument is null"
    SKIP = "null arguments are skipped"
    OWN = "as described"


@dataclass(frozen=True)
class Parameter:
    """`literal`: must be known when the program is checked. `problem`: what is wrong with a known value, or None."""

    name: str
    kind: Kind
    literal: bool = False
    optional: bool = False
    problem: Callable[[Value], str | None] | None = None


@dataclass(frozen=True)
class Signature:
    """The types of one call, for functions whose values depend on them (a decimal is an int with a scale)."""

    arguments: tuple[Type, ...]
    result: Type


@dataclass(frozen=True)
class Example:
    """`call` and `result` are MPL; a test evaluates both and compares them."""

    call: str
    result: str


@dataclass(frozen=True)
class FunctionSpec:
    """One function or operator.

    `name` is what `typed.Apply` says; `called` is what a user calls it, None for what is only an operator.
    `variadic`: the last parameter may be repeated. `common`: all arguments are converted to the result's type first.
    `monotone` has a direction per parameter (the last repeats), true between values that are not null: `up` = a larger
    argument never gives a smaller result, all else equal; false counts as smaller than true. Where it depends on types
    or ranges, `directions` decides instead.
    `problem`: what is wrong with arguments that are fine one by one, or None.
    `lazy`: `evaluate` receives functions of no argument and calls those that it needs, from the left.
    `deterministic`: the same bits on every machine and in every engine.
    `evaluate` gets the signature, then the values.
    """

    name: str
    theme: Theme
    called: str | None
    parameters: tuple[Parameter, ...]
    result: Callable[[tuple[Expr, ...]], Type | None]
    nulls: Nulls
    monotone: tuple[Direction, ...]
    evaluate: Callable[..., Value]
    summary: str
    examples: tuple[Example, ...]
    written: str = ""
    variadic: bool = False
    common: bool = False
    lazy: bool = False
    deterministic: bool = True
    bounds: Callable[[tuple[Expr, ...], Type], Bounds] | None = None
    problem: Callable[[tuple[Expr, ...]], tuple[Failure, str] | None] | None = None
    directions: Callable[[tuple[Expr, ...], Type], tuple[Direction, ...]] | None = None
    nullable: Callable[[tuple[Expr, ...]], bool] | None = None

    @property
    def usage(self) -> str:
        """How it is written: `round(x [, digits])`, `a + b`."""
        if self.written:
            return self.written
        required = ", ".join(parameter.name for parameter in self.parameters if not parameter.optional)
        optional = "".join(f" [, {parameter.name}]" for parameter in self.parameters if parameter.optional)
        return f"{self.called}({required}{optional}{', ...' if self.variadic else ''})"

    def parameter(self, position: int) -> Parameter:
        return self.parameters[min(position, len(self.parameters) - 1)]

    def bounds_of(self, arguments: tuple[Expr, ...], result: Type) -> Bounds:
        return self.bounds(arguments, result) if self.bounds else OPEN

    def may_be_null(self, arguments: tuple[Expr, ...]) -> bool:
        if self.nullable:
            return self.nullable(arguments)
        if self.nulls is Nulls.SKIP:
            return all(argument.nullable for argument in arguments)
        for argument in arguments:  # noqa: SIM110  called for every node, and a generator doubles its cost
            if argument.nullable:
                return True
        return False

    def directions_of(self, arguments: tuple[Expr, ...], result: Type) -> tuple[Direction, ...]:
        """One direction per argument of this call."""
        if self.directions:
            return self.directions(arguments, result)
        last = len(self.monotone) - 1
        return tuple(self.monotone[min(position, last)] for position in range(len(arguments)))


def fixed(type: Type) -> Callable[[tuple[Expr, ...]], Type | None]:
    """Result rule: always `type`."""
    return lambda _: type


def same_as_first(arguments: tuple[Expr, ...]) -> Type | None:
    """Result rule: the type of the first argument."""
    return arguments[0].type


def common_type(arguments: tuple[Expr, ...]) -> Type | None:
    """Result rule: what all arguments widen to."""
    return unify(*(argument.type for argument in arguments))


def fixed_bounds(low: int | None, high: int | None) -> Callable[[tuple[Expr, ...], Type], Bounds]:
    """Bounds rule: always the same."""
    return lambda _arguments, _result: Bounds(low, high)
