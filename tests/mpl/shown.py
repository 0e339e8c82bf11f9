"""Relations in one line, for the tests of the relation checker.

`a int, b text null, ~tick; key ~tick` has a hidden tick, which is its key; other unique column sets follow after `or`.
"""

from __future__ import annotations

from mpl.check import Checked, check
from mpl.render import render_all
from mpl.source import Source
from mpl.typed import Column, Schema


def checked(text: str) -> Checked:
    return check(Source("test.mpl", text))


def codes(text: str) -> list[str]:
    """The codes that checking reports, warnings too, in source order."""
    return [item.code.name for item in checked(text).diagnostics]


def errors(text: str) -> list[str]:
    return [item.code.name for item in checked(text).diagnostics if item.severity.value == "error"]


def view(text: str, name: str = "V") -> str:
    """The columns and the key of a view of a program without errors."""
    result = checked(text)
    assert result.ok, render_all(result.diagnostics)
    return shown(result.program.views[name].schema)


def shown(schema: Schema) -> str:
    names = [_name(column) for column in schema.columns]
    columns = ", ".join(_column(column) for column in schema.columns)
    keys = [", ".join(names[position] for position in key) or "()" for key in (schema.key, *schema.unique)]
    return f"{columns}; key {' or '.join(keys)}"


def _column(column: Column) -> str:
    if column.hidden:
        return _name(column)
    return f"{column.name} {column.type}{' null' if column.nullable else ''}"


def _name(column: Column) -> str:
    return "~tick" if column.hidden else column.name
