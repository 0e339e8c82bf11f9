"""Conversions without being asked. In progress: signatures."""

from __future__ import annotations

from mpl import typed
from mpl.diagnostic import Diagnostics
from mpl.types import Type


def unify(*types: Type) -> Type | None:
    """The one type that all of these widen to; None when there is none. `NullType` widens to anything."""
    raise NotImplementedError


def can_convert(expr: typed.Expr, type: Type) -> bool:
    """Whether `expr` may stand where `type` is wanted without a written cast (never loses digits)."""
    raise NotImplementedError


def convert(expr: typed.Expr, type: Type) -> typed.Expr:
    """`expr` as `type`: itself, a converted constant, or a cast around it. Ask `can_convert` (or `unify`) first."""
    raise NotImplementedError


def assign(expr: typed.Expr, type: Type, what: str, diagnostics: Diagnostics) -> typed.Expr:
    """`convert`, or a diagnostic MPL0327 that says that `what` (e.g. "column `total`") does not take the value."""
    raise NotImplementedError
