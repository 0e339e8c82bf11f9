"""One generated module: a template, what goes into it, its text, and the functions in it.

Texts and what was compiled from them are remembered: components that differ in constants only have the same.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache, lru_cache
from types import CodeType
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from runtime.loops.layout import laid_out
from runtime.loops.safety import check_module
from runtime.loops.scalar import NO_TABLES, Function, Inline, Tables

REMEMBERED_MAX = 4_096

BUILTINS: dict[str, Any] = {"len": len, "range": range, "zip": zip}


@dataclass(frozen=True, eq=False)
class Code:
    """`context` is a frozen record, all that the template is told."""

    template: str
    context: Hashable
    tables: Tables = NO_TABLES

    @property
    def text(self) -> str:
        return print_template(self.template, self.context)

    def load(self, **names: Function) -> dict[str, Function]:
        """The functions by name. `names` are further functions that this template calls."""
        found = {
            "__builtins__": {},
            "K": self.tables.constants,
            "F": self.tables.functions,
            "P": self.tables.python,
            "overflow": self.tables.overflow,
            **BUILTINS,
            **names,
        }
        compiled, defined = _compiled(self.text)
        exec(compiled, found)  # noqa: S102  the tree was checked against the list of what our templates can make
        guard = self.tables.guard
        return {name: found[name] if guard is None else guard(found[name]) for name in defined}


@dataclass(frozen=True)
class _RowFunction:
    width: int
    value: Inline


def row_function(value: Inline, width: int, tables: Tables) -> Code:
    """A function `compute` of one row, for operators that meet rows one at a time."""
    return Code("row_function.py.j2", _RowFunction(width, value), tables)


@lru_cache(maxsize=REMEMBERED_MAX)
def print_template(template: str, context: Hashable) -> str:
    printed = environment().get_template(template).render(it=context)
    # Templates are laid out to be read; blank lines are put where they belong in what they print.
    lines = [part for line in printed.splitlines() if line.strip() for part in laid_out(line.rstrip())]
    return "".join(f"\n\n{line}\n" if line.startswith("def ") else f"{line}\n" for line in lines)


@lru_cache(maxsize=REMEMBERED_MAX)
def _compiled(text: str) -> tuple[CodeType, tuple[str, ...]]:
    tree = check_module(text)
    defined = tuple(node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    return compile(tree, "<generated>", "exec"), defined


@cache
def environment() -> Environment:
    return Environment(
        loader=PackageLoader("codegen_templates", ""),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
