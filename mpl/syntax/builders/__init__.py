"""Builders: one function per grammar rule, from the rule's children to a syntax node.

lark calls them while it parses, by rule name, with every child of the rule: tokens, and what other builders returned;
`None` stands for an absent optional part. They hold no state. What the grammar cannot say is refused here by raising
`Refused`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpl.syntax.builders import expressions, relations, statements


class Builders:
    """What lark asks for the function of a rule. Rules that only choose among others have none."""

    def __getattr__(self, rule: str) -> Callable[[list[Any]], Any]:
        for module in (expressions, relations, statements):
            function = getattr(module, rule, None)
            if function is not None and not rule.startswith("_"):
                return lambda children: function(*children)
        raise AttributeError(rule)
