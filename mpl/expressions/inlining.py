"""Puts the arguments of a call in the place of the parameters of a declared function.

Types stay those that the body was checked with; nullability and ranges are derived again, because those of the
arguments are often better known than those of the parameters.
"""

from __future__ import annotations

from mpl.expressions.build import apply
from mpl.functions.conditional import union_of_bounds
from mpl.typed import Apply, CaseOf, ColumnRef, Const, Expr, PythonCall


def substitute(body: Expr, arguments: tuple[Expr, ...]) -> Expr:
    """`body` with every reference to column i replaced by argument i. As deep as the body, which has a limit."""
    match body:
        case Const():
            return body
        case ColumnRef():
            return arguments[body.index]
        case Apply():
            parts = tuple(substitute(part, arguments) for part in body.arguments)
            # No diagnostics: a branch that fails on these constants may never be taken.
            return apply(body.function, parts, body.span, None, body.type)
        case CaseOf():
            branches = tuple(
                (substitute(condition, arguments), substitute(value, arguments)) for condition, value in body.branches
            )
            otherwise = substitute(body.otherwise, arguments)
            values = (*(value for _, value in branches), otherwise)
            return CaseOf(
                type=body.type,
                nullable=any(value.nullable for value in values),
                bounds=union_of_bounds(values, body.type),
                branches=branches,
                otherwise=otherwise,
                span=body.span,
            )
        case PythonCall():
            return PythonCall(
                type=body.type,
                nullable=body.nullable,
                module=body.module,
                function=body.function,
                arguments=tuple(substitute(part, arguments) for part in body.arguments),
                monotone=body.monotone,
                span=body.span,
            )
