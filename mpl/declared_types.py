"""Types, ranges and literals in declarations. In progress: signatures."""

from __future__ import annotations

from mpl import nodes
from mpl.diagnostic import Diagnostics
from mpl.types import Bounds, Type, Value


def declared_type(node: nodes.TypeNode, diagnostics: Diagnostics) -> Type:
    """The type that was written, or `ErrorType` after a diagnostic."""
    raise NotImplementedError


def declared_bounds(node: nodes.RangeNode, type: Type, diagnostics: Diagnostics) -> Bounds:
    """The range in canonical values of `type`; `OPEN` after a diagnostic."""
    raise NotImplementedError


def literal_value(expr: nodes.Expr, type: Type, diagnostics: Diagnostics) -> Value:
    """The canonical value of a literal (perhaps negated) of `type`; None for `null` and after a diagnostic."""
    raise NotImplementedError
