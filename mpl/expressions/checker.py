"""Checks scalar expressions. In progress: the signatures are what the relation checker may rely on."""

from __future__ import annotations

from mpl import nodes, typed
from mpl.diagnostic import Diagnostics
from mpl.expressions.table import FunctionTable
from mpl.scope import Scope


def check_expression(expr: nodes.Expr, scope: Scope, functions: FunctionTable, diagnostics: Diagnostics) -> typed.Expr:
    """The typed expression. Never raises on user text: where an error was reported the type is `ErrorType`.

    A bare `null` gives a constant of `NullType`; `convert` gives it a type.
    """
    raise NotImplementedError


def check_value(expr: nodes.Expr, scope: Scope, functions: FunctionTable, diagnostics: Diagnostics) -> typed.Expr:
    """As `check_expression`, but a value that stays without a type (a bare `null`) is an error: for `extend`."""
    raise NotImplementedError


def check_predicate(expr: nodes.Expr, scope: Scope, functions: FunctionTable, diagnostics: Diagnostics) -> typed.Expr:
    """As `check_expression`, of type bool (or `ErrorType`)."""
    raise NotImplementedError
