"""What every syntax node has: a place; and names, which all kinds of nodes use."""

from __future__ import annotations

from dataclasses import dataclass, field

from mpl.source import Span


@dataclass(frozen=True, kw_only=True)
class Node:
    """Anything with a place."""

    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Name(Node):
    """One identifier as written (case kept; names are case-sensitive, keywords are not)."""

    text: str


@dataclass(frozen=True)
class ColumnName(Node):
    """A column, perhaps with the alias of the relation it comes from: `price`, `B.ts`."""

    qualifier: Name | None
    name: Name

    @property
    def text(self) -> str:
        return f"{self.qualifier.text}.{self.name.text}" if self.qualifier else self.name.text
