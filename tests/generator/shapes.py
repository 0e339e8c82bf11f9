"""What the generator knows about values and relations while it writes a program.

Its own bookkeeping, written from the language reference and not from the checker, so that the two can disagree: the
tests compare the columns that a generated view should have with those that the checker gives it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Family = Literal["int", "decimal", "float", "bool", "text", "time", "duration", "enum"]

ORDERED: tuple[Family, ...] = ("int", "decimal", "float", "text", "time", "duration")
"""Families with `<`."""
NUMBERS: tuple[Family, ...] = ("int", "decimal", "float")


@dataclass(frozen=True)
class Shape:
    """A type. `digits` is None for a decimal whose exact digits the generator does not follow."""

    family: Family
    digits: tuple[int, int] | None = None
    values: tuple[str, ...] = ()
    length: int | None = None

    @property
    def written(self) -> str:
        if self.family == "decimal":
            assert self.digits is not None
            return f"decimal({self.digits[0]},{self.digits[1]})"
        if self.family == "enum":
            return "enum(" + ", ".join(quote_text(value) for value in self.values) + ")"
        if self.family == "text" and self.length is not None:
            return f"text({self.length})"
        return self.family

    def alike(self, other: Shape) -> bool:
        """Do equal values look equal? What `using`, `union`, `merge` and `minus` need."""
        if self.family == "decimal" and other.family == "decimal":
            return self.digits is not None and other.digits is not None and self.digits[1] == other.digits[1]
        return self.family == other.family and self.values == other.values


INT, FLOAT, BOOL, TEXT, TIME, DURATION = (
    Shape("int"),
    Shape("float"),
    Shape("bool"),
    Shape("text"),
    Shape("time"),
    Shape("duration"),
)
SOME_DECIMAL = Shape("decimal")


def quote_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


@dataclass(frozen=True)
class Column:
    """`name` is written as it must be (backticks and all); `qualifier` too, for a column that a join renamed."""

    name: str
    shape: Shape
    nullable: bool = False
    qualifier: str | None = None
    is_tick: bool = False
    is_event_time: bool = False
    aliases: tuple[str, ...] = ()

    @property
    def written(self) -> str:
        return f"{self.qualifier}.{self.name}" if self.qualifier else self.name

    @property
    def full_name(self) -> str:
        """As the checker should call it: without backticks."""
        return self.written.replace("`", "")


@dataclass(frozen=True)
class Rows:
    """A relation: its visible columns, and what may be done with it.

    `key` names columns that identify rows, None when the generator does not know. `is_event`: rows are events with one
    tick, so they can be merged. `streams` are those that events come from. `one_tick`: `latest` needs no `by`.
    """

    columns: tuple[Column, ...]
    key: tuple[str, ...] | None = None
    is_event: bool = False
    one_tick: bool = False
    streams: frozenset[str] = frozenset()

    def of(self, *families: Family) -> list[Column]:
        return [column for column in self.columns if column.shape.family in families]

    def named(self, alias: str | None) -> Rows:
        """The same rows read under an alias."""
        aliases = (alias,) if alias else ()
        return replace(self, columns=tuple(replace(column, aliases=aliases) for column in self.columns))

    @property
    def full_names(self) -> set[str]:
        return {column.full_name for column in self.columns}

    @property
    def used_aliases(self) -> set[str]:
        return {alias for column in self.columns for alias in column.aliases}

    def with_columns(self, columns: tuple[Column, ...]) -> Rows:
        """After a projection or an extension: the key stays if its columns do."""
        kept = {column.written for column in columns}
        key = self.key if self.key is not None and kept.issuperset(self.key) else None
        return replace(self, columns=columns, key=key)


@dataclass(frozen=True)
class Function:
    """A declared function that expressions may call."""

    name: str
    parameters: tuple[tuple[Shape, bool], ...]
    result: Shape
    nullable: bool
