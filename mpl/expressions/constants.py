"""Constants. In progress."""

from __future__ import annotations

from enum import Enum

from mpl import typed
from mpl.types import Value


class NotConstant(Enum):
    """What `constant_value` says of an expression that depends on a row, or fails."""

    NOT_CONSTANT = "not constant"


NOT_CONSTANT = NotConstant.NOT_CONSTANT


def constant_value(expr: typed.Expr) -> Value | NotConstant:
    return expr.value if isinstance(expr, typed.Const) else NOT_CONSTANT
