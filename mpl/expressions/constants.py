"""Which expressions are the same for every row."""

from __future__ import annotations

from enum import Enum

from mpl.evaluate import evaluate
from mpl.expressions.walk import children
from mpl.failures import EvaluationError
from mpl.typed import ColumnRef, Const, Expr, PythonCall
from mpl.types import ErrorType, Value


class NotConstant(Enum):
    """What `constant_value` says of an expression that depends on a row, or that fails."""

    NOT_CONSTANT = "not constant"


NOT_CONSTANT = NotConstant.NOT_CONSTANT


def constant_value(expr: Expr) -> Value | NotConstant:
    """The canonical value, if it needs no row. An error that was reported is not a constant."""
    if isinstance(expr, Const):
        return NOT_CONSTANT if isinstance(expr.type, ErrorType) else expr.value
    waiting: list[Expr] = [expr]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ColumnRef | PythonCall):
            return NOT_CONSTANT
        waiting.extend(children(part))
    try:
        return evaluate(expr, ())
    except EvaluationError:
        return NOT_CONSTANT
