"""Scopes: which column a written name means.

A scope lists the columns that an expression may use, each with the aliases it can be qualified by. Rules: a plain
name means the leftmost column of that name (a join keeps the left side's names; a clashing right column is only
reachable with its alias); `alias.name` means the column of that name that came in under that alias, or else one that a
view calls so; hidden columns have no name. Built by the relation checker, asked by the expression checker.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mpl.diagnostic import did_you_mean
from mpl.typed import Column, Schema


@dataclass(frozen=True)
class ScopeColumn:
    """A column at a position, the bare name it was declared with, and the aliases that may stand before it."""

    index: int
    column: Column
    bare_name: str
    aliases: tuple[str, ...]


class Scope:
    """An ordered list of reachable columns."""

    def __init__(self, columns: Sequence[ScopeColumn]) -> None:
        self.columns = tuple(columns)
        self._plain: dict[str, ScopeColumn] = {}
        self._qualified: dict[tuple[str, str], ScopeColumn] = {}
        dotted: list[ScopeColumn] = []
        for entry in self.columns:
            if entry.column.hidden:
                continue
            self._plain.setdefault(entry.column.name, entry)
            if entry.column.name == entry.bare_name:
                self._qualify(entry)
            else:
                dotted.append(entry)
        # Of a view with columns `ts` and `B.ts`, read as V, `V.ts` is the first, in whichever order they come.
        for entry in dotted:
            self._qualify(entry)

    def _qualify(self, entry: ScopeColumn) -> None:
        for alias in entry.aliases:
            self._qualified.setdefault((alias, entry.bare_name), entry)

    @classmethod
    def of_schema(cls, schema: Schema, alias: str | None) -> Scope:
        aliases = (alias,) if alias else ()
        return cls(
            [
                ScopeColumn(index, column, column.name.rpartition(".")[2], aliases)
                for index, column in enumerate(schema.columns)
            ]
        )

    def find(self, qualifier: str | None, name: str) -> ScopeColumn | None:
        if qualifier is None:
            return self._plain.get(name)
        # The alias first: whoever writes it in this pipeline means what it stands for here.
        return self._qualified.get((qualifier, name)) or self._plain.get(f"{qualifier}.{name}")

    @property
    def names(self) -> Iterable[str]:
        """Names as a user would write them, for suggestions and lists."""
        return self._plain.keys()

    @property
    def aliases(self) -> Iterable[str]:
        return dict.fromkeys(alias for alias, _ in self._qualified)

    def suggest(self, qualifier: str | None, name: str) -> str | None:
        """A help line for a column that was not found."""
        if qualifier is None:
            close = did_you_mean(name, self._plain)
            return close or did_you_mean(name, (bare for _, bare in self._qualified))
        written = f"{qualifier}.{name}"
        known = [f"{alias}.{bare}" for alias, bare in self._qualified]
        return did_you_mean(written, [*known, *self._plain])
