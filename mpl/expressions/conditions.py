"""Warns of conditions that are the same for every row: usually a slip, always a surprise."""

from __future__ import annotations

from mpl.arithmetic import ends_of
from mpl.codes import types as codes
from mpl.diagnostic import Diagnostics
from mpl.typed import Apply, Const, Expr
from mpl.types import BoolType, Bounds


def warn_if_constant(expr: Expr, diagnostics: Diagnostics) -> None:
    """For the whole condition and, if it is an `and`, for each part."""
    parts = expr.arguments if isinstance(expr, Apply) and expr.function == "and" else (expr,)
    for part in parts:
        outcome = always(part)
        if outcome is None:
            continue
        diagnostics.report(
            codes.CONDITION_CONSTANT,
            part.span,
            f"this condition is {outcome} for every row",
            "does not depend on the row" if isinstance(part, Const) else "by the declared ranges",
            help="leave it out" if outcome == "true" else "no row gets through; was another comparison meant?",
        )


def always(expr: Expr) -> str | None:
    """`true`, `false` or `null` if the condition is that for every row, as far as constants and ranges tell."""
    if isinstance(expr, Const) and isinstance(expr.type, BoolType):
        return {True: "true", False: "false", None: "null"}[expr.value]  # type: ignore[index]
    if not isinstance(expr, Apply) or expr.nullable or len(expr.arguments) != 2:
        return None
    left, right = expr.arguments
    return _by_ranges(expr.function, left.bounds, right.bounds) if left.type == right.type else None


def _by_ranges(function: str, left: Bounds, right: Bounds) -> str | None:
    low_left, high_left = ends_of(left)
    low_right, high_right = ends_of(right)
    match function:
        case "less":
            return "true" if high_left < low_right else "false" if low_left >= high_right else None
        case "less_equal":
            return "true" if high_left <= low_right else "false" if low_left > high_right else None
        case "greater":
            return _by_ranges("less", right, left)
        case "greater_equal":
            return _by_ranges("less_equal", right, left)
        case "equal" | "unequal":
            apart = high_left < low_right or high_right < low_left
            return ("false" if function == "equal" else "true") if apart else None
        case _:
            return None
