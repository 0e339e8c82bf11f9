"""Types as written: `decimal(10,2)`, `text(40)`, `enum('a', 'b')`."""

from __future__ import annotations

from mpl import nodes
from mpl.codes import types as codes
from mpl.diagnostic import Diagnostics
from mpl.types import (
    DECIMAL_DIGITS_MAX,
    BoolType,
    DecimalType,
    DurationType,
    EnumType,
    ErrorType,
    FloatType,
    IntType,
    TextType,
    TimeType,
    Type,
)

TEXT_LENGTH_MAX = 1_048_576
ENUM_VALUES_MAX = 1_000

_PLAIN: dict[str, Type] = {
    "int": IntType(),
    "float": FloatType(),
    "bool": BoolType(),
    "time": TimeType(),
    "duration": DurationType(),
}


def declared_type(node: nodes.TypeNode, diagnostics: Diagnostics) -> Type:
    """The type that was written, or `ErrorType` after a diagnostic."""
    match node.name:
        case "decimal":
            problem = _decimal_problem(node.numbers)
            found: Type = DecimalType(*node.numbers) if problem is None else ErrorType()
        case "text":
            problem = _text_problem(node.numbers)
            found = TextType(*node.numbers) if problem is None else ErrorType()
        case "enum":
            problem = _enum_problem(node.values)
            found = EnumType(node.values) if problem is None else ErrorType()
        case _:
            problem, found = None, _PLAIN[node.name]
    if problem is not None:
        message, remedy = problem
        diagnostics.report(codes.TYPE_INVALID, node.span, message, "not a type", help=remedy)
    return found


def _decimal_problem(numbers: tuple[int, ...]) -> tuple[str, str] | None:
    if len(numbers) != 2:
        return "decimal needs two numbers", "`decimal(10,2)` has 10 digits, 2 of them after the point"
    precision, scale = numbers
    if not 1 <= precision <= DECIMAL_DIGITS_MAX:
        return (
            f"a decimal has 1 to {DECIMAL_DIGITS_MAX} digits, not {precision}",
            "`decimal(18,2)` is the largest for money",
        )
    if scale > precision:
        return (
            f"{scale} digits after the point, but only {precision} in all",
            f"write `decimal({scale},{scale})` or more",
        )
    return None


def _text_problem(numbers: tuple[int, ...]) -> tuple[str, str] | None:
    if len(numbers) <= 1 and all(1 <= number <= TEXT_LENGTH_MAX for number in numbers):
        return None
    return f"the length of a text goes from 1 to {TEXT_LENGTH_MAX}", "`text` alone has no declared length"


def _enum_problem(values: tuple[str, ...]) -> tuple[str, str] | None:
    if not 1 <= len(values) <= ENUM_VALUES_MAX:
        return f"an enum has 1 to {ENUM_VALUES_MAX} values", "use `text` for values that are not known beforehand"
    twice = next((value for position, value in enumerate(values) if value in values[:position]), None)
    if twice is not None:
        return f"the value '{twice}' stands in the enum twice", "each value once"
    return None
