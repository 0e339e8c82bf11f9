"""Which expressions can stop a bulk query: those must not be evaluated where the program would not."""

from __future__ import annotations

from mpl.typed import Apply, CaseOf, ColumnRef, Const, Expr, PythonCall


def may_fail(expr: Expr) -> bool:
    """Could evaluating this stop the query? Then it must not be evaluated where the program would not."""
    match expr:
        case Const() | ColumnRef():
            return False
        case CaseOf():
            inner = [part for branch in expr.branches for part in branch]
            return any(map(may_fail, [*inner, expr.otherwise]))
        case PythonCall():
            return True
        case Apply():
            return expr.function in _FALLIBLE or any(map(may_fail, expr.arguments))


_FALLIBLE = frozenset(
    (
        *("add", "subtract", "multiply", "divide", "modulo", "negate", "abs", "floor", "ceil", "round", "power"),
        *("sqrt", "substring", "split_part", "truncate", "parse_time", "cast", "least", "greatest", "coalesce"),
    )
)
