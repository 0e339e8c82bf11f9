"""Declared functions. In progress: signatures."""

from __future__ import annotations

from mpl import nodes
from mpl.diagnostic import Diagnostics


class FunctionTable:
    """The library and the functions that the program declares.

    Use: `declare` every `FunctionDecl` first, then `resolve` once, then check expressions.
    """

    def declare(self, decl: nodes.FunctionDecl, diagnostics: Diagnostics) -> None:
        raise NotImplementedError

    def resolve(self, diagnostics: Diagnostics) -> None:
        """Checks all bodies, in an order in which each follows those that it calls."""
        raise NotImplementedError
