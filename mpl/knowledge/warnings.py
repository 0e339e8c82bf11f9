"""Warnings: what the analysis found out and an author would want to know. One per place at the most."""

from __future__ import annotations

from collections.abc import Callable

from mpl import typed
from mpl.diagnostic import Diagnostics
from mpl.knowledge.knowledge import Knowledge

Lookup = Callable[[typed.RelationTree], Knowledge]


def warn(program: typed.TypedProgram, views: dict[str, Knowledge], of: Lookup, diagnostics: Diagnostics) -> None:
    """Reports warnings for all views and subscriptions."""
