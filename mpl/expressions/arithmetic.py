"""Checks `+ - * / % ||` and unary minus: picks the function, or says why there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mpl import nodes
from mpl.arithmetic import is_number
from mpl.codes import types as codes
from mpl.diagnostic import Diagnostics
from mpl.expressions.build import apply, constant, error, is_error
from mpl.expressions.calls import call_library, report_problem
from mpl.expressions.conversions import repair, says_time
from mpl.functions import BY_NAME
from mpl.functions.casts import can_cast
from mpl.source import Span
from mpl.typed import Apply, Const, Expr
from mpl.types import DecimalType, DurationType, EnumType, FloatType, IntType, NullType, TextType, TimeType

FUNCTIONS: dict[str, str] = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "%": "modulo",
    "||": "concat",
}
_REFUSALS = {
    "+": "cannot add {left} and {right}",
    "-": "cannot subtract {right} from {left}",
    "*": "cannot multiply {left} by {right}",
    "/": "cannot divide {left} by {right}",
    "%": "cannot take {left} modulo {right}",
}


def check_arithmetic(node: nodes.Arithmetic, first: Expr, operands: Sequence[Expr], diagnostics: Diagnostics) -> Expr:
    """The chain, from the left; `a || b || c` becomes one `concat`."""
    result = first
    for (symbol, _), operand in zip(node.rest, operands, strict=True):
        span = node.first.span.to(operand.span)
        if symbol == "||":
            result = _concat(result, operand, span, diagnostics)
        else:
            result = binary(symbol, result, operand, span, diagnostics)
    return result


def _concat(left: Expr, right: Expr, span: Span, diagnostics: Diagnostics) -> Expr:
    if isinstance(left, Apply) and left.function == "concat":
        return call_library(BY_NAME["concat"], (*left.arguments, right), span, diagnostics, "||")
    return call_library(BY_NAME["concat"], (left, right), span, diagnostics, "||")


def binary(symbol: str, left: Expr, right: Expr, span: Span, diagnostics: Diagnostics) -> Expr:
    if is_error(left, right):
        return error(span)
    for operand in (left, right):
        if isinstance(operand.type, NullType):
            diagnostics.report(
                codes.NULL_OPERAND,
                operand.span,
                "`null` makes the whole expression null",
                "always null",
                help="leave it out, or write `cast(null as int)` for the whole",
            )
            return error(span)
    function = FUNCTIONS[symbol]
    spec = BY_NAME[function]
    result = spec.result((left, right))
    if result is None:
        diagnostics.report(
            codes.OPERAND_TYPE,
            span,
            _REFUSALS[symbol].format(left=left.type, right=right.type),
            f"{left.type} {symbol} {right.type}",
            help=_help(symbol, left, right),
        )
        return error(span)
    if spec.problem is not None and report_problem(spec, (left, right), symbol, diagnostics):
        return error(span)
    return apply(function, (left, right), span, diagnostics, result)


def _help(symbol: str, left: Expr, right: Expr) -> str | None:
    """What was probably meant."""
    types = (left.type, right.type)
    if all(isinstance(each, TextType | EnumType) for each in types):
        return "`||` joins texts" if symbol == "+" else "cast texts to numbers first: `cast(x as int)`"
    if symbol == "+" and isinstance(left.type, TextType | EnumType) and can_cast(right.type, TextType()):
        return f"to join texts write `|| cast({right.span.quoted} as text)`"
    for operand, other in ((right, left), (left, right)):
        if isinstance(operand, Const) and isinstance(other.type, TimeType | DurationType) and symbol in "+-":
            return _repair_constant(symbol, left, right, operand)
        if isinstance(operand.type, DurationType) and isinstance(other.type, DecimalType | FloatType):
            if symbol in "+-":
                return repair(operand, other.type)
            return "a duration is multiplied and divided by int; `cast(x as int)` or a smaller unit helps"
        if is_number(other.type) and isinstance(operand.type, TextType | EnumType):
            return repair(operand, other.type)
    return None


def _repair_constant(symbol: str, left: Expr, right: Expr, operand: Const) -> str | None:
    """For one operand next to a time or duration: the time or duration that was meant, where it can stand there."""
    wanted = TimeType() if isinstance(operand.type, TextType) and says_time(operand) else DurationType()
    meant = constant(0, wanted, operand.span)
    result = BY_NAME[FUNCTIONS[symbol]].result((meant, right) if operand is left else (left, meant))
    return repair(operand, wanted) if result is not None else None


def check_negation(node: nodes.Negate, check_operand: Callable[[], Expr], diagnostics: Diagnostics) -> Expr:
    """Unary minus. A number literal is negated as a whole: the smallest int has no positive counterpart."""
    if isinstance(node.operand, nodes.IntLiteral):
        return constant(-node.operand.value, IntType(), node.span)
    operand = check_operand()
    if is_error(operand) or isinstance(operand.type, NullType):
        return binary("-", operand, operand, node.span, diagnostics)
    if not is_number(operand.type) and not isinstance(operand.type, DurationType):
        diagnostics.report(
            codes.OPERAND_TYPE,
            node.span,
            f"cannot negate {operand.type}",
            f"- {operand.type}",
        )
        return error(node.span)
    return apply("negate", (operand,), node.span, diagnostics)
