"""Expressions of one row, as text that a template puts into its loop.

The compiler makes `Scalar`s. Whoever writes an operator's specification by hand passes Python functions instead; they
are called from the loop. Either way the row's columns are the local variables c0, c1, ...
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

Function = Callable[..., Any]
Guard = Callable[[Function], Function]

_COLUMN = re.compile(r"\bc(\d+)\b")
_CALL = re.compile(r"\b[FP]\[|\boverflow\(")


@dataclass(frozen=True, eq=False)
class Tables:
    """What generated code can reach: constants `K`, library functions `F`, Python functions `P`, and `overflow`, which
    raises. `guard` wraps a loaded loop, so that a failure in it can say which row it is about."""

    constants: tuple[object, ...] = ()
    functions: tuple[Function, ...] = ()
    python: tuple[Function, ...] = ()
    overflow: Function | None = None
    guard: Guard | None = None


NO_TABLES = Tables()


@dataclass(frozen=True)
class Inline:
    """Statements and then an expression over c0, c1, ...; `nullable`: it may be None. `columns`: those to be read."""

    lines: tuple[str, ...]
    result: str
    nullable: bool
    columns: tuple[int, ...]
    may_fail: bool

    @staticmethod
    def of(lines: Sequence[str], result: str, *, nullable: bool) -> Inline:
        text = "\n".join((*lines, result))
        columns = tuple(sorted({int(number) for number in _COLUMN.findall(text)}))
        return Inline(tuple(lines), result, nullable, columns, _CALL.search(text) is not None)

    def named(self, width: int) -> Inline:
        """If it may fail all columns are read, so that the row can be named."""
        return replace(self, columns=tuple(range(width))) if self.may_fail else self


class Scalar:
    """A compiled expression. Its local variables are its own among all expressions with the same tables."""

    def __init__(self, name: str, inline: Inline, tables: Tables) -> None:
        self.__name__ = name
        self.inline = inline
        self.tables = tables

    def __call__(self, *row: Any) -> Any:
        raise AssertionError(f"{self.__name__} stands in a loop: nobody calls it")


def inlined(functions: Sequence[Function | None], width: int) -> tuple[tuple[Inline | None, ...], Tables]:
    """The text of each function of `width` columns, and the tables that all of them need."""
    found: list[Inline | None] = []
    called: list[Function] = []
    tables: Tables | None = None
    row = ", ".join(f"c{number}" for number in range(width))
    for function in functions:
        if function is None:
            found.append(None)
        elif isinstance(function, Scalar):
            assert tables is None or function.tables is tables, "expressions of one loop come from one module"
            tables = function.tables
            found.append(function.inline.named(width))
        else:
            found.append(Inline.of((), f"P[{len(called)}]({row})", nullable=True))
            called.append(function)
    assert tables is None or not called, "either all functions are compiled or none is"
    return tuple(found), tables or Tables(python=tuple(called))
