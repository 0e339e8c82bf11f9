"""Builds typed nodes: constants, applications of library functions, and the node that stands for an error.

Every application goes through `apply`, so that types, nullability and ranges are always the record's, and a call on
constants is always folded.
"""

from __future__ import annotations

from dataclasses import replace

from mpl.codes import types as codes
from mpl.diagnostic import Diagnostics
from mpl.evaluate import evaluate
from mpl.failures import EvaluationError, Failure
from mpl.functions import BY_NAME
from mpl.source import Span
from mpl.typed import Apply, Const, Expr
from mpl.types import OPEN, BoolType, Bounds, ErrorType, Type, Value

ERROR = ErrorType()

FAILURE_HELP = {
    Failure.DIVISION_BY_ZERO: "write `nullif(divisor, 0)` for a divisor that may be 0: the result is null then",
    Failure.OVERFLOW: "numbers never wrap; compute with smaller ones, or with float where digits do not matter",
}


def error(span: Span) -> Const:
    """Stands where an error was reported."""
    return Const(type=ERROR, value=None, span=span)


def is_error(*exprs: Expr) -> bool:
    for expr in exprs:  # noqa: SIM110  called for every node, and a generator doubles its cost
        if isinstance(expr.type, ErrorType):
            return True
    return False


def constant(value: Value, type: Type, span: Span) -> Const:
    has_bounds = isinstance(value, int | float) and not isinstance(type, BoolType)
    bounds = Bounds(value, value) if has_bounds else OPEN  # type: ignore[arg-type]
    return Const(type=type, nullable=value is None, bounds=bounds, value=value, span=span)


def apply(
    function: str,
    arguments: tuple[Expr, ...],
    span: Span,
    diagnostics: Diagnostics | None,
    type: Type | None = None,
) -> Expr:
    """The application of a library function to arguments that suit it; folded if they are constants.

    Constants on which it fails are reported; without `diagnostics` they stay an application that fails when it is
    evaluated, if it ever is. `type` overrules the record's result (`cast`, inlined functions).
    """
    if is_error(*arguments):
        return error(span)
    spec = BY_NAME[function]
    result = type if type is not None else spec.result(arguments)
    assert result is not None, f"{function} was not checked before it was built"
    node = Apply(
        type=result,
        nullable=spec.may_be_null(arguments),
        bounds=spec.bounds_of(arguments, result),
        function=function,
        arguments=arguments,
        span=span,
    )
    return fold(node, diagnostics)


def fold(node: Apply, diagnostics: Diagnostics | None) -> Expr:
    """The constant that an application on constants is. What differs between machines is left to the machine."""
    for argument in node.arguments:
        if not isinstance(argument, Const):
            return node
    if not BY_NAME[node.function].deterministic:
        return node
    try:
        value = evaluate(node, ())
        # A null is within any range; whoever computes with it goes by the one that was derived.
        made = constant(value, node.type, node.span)
        return replace(made, bounds=node.bounds) if value is None else made
    except EvaluationError as failure:
        if diagnostics is None:
            return node
        diagnostics.report(
            codes.CONSTANT_FAILS,
            node.span,
            f"this fails for every row: {failure.message}",
            "has no value",
            help=FAILURE_HELP.get(failure.code),
        )
        return error(node.span)
