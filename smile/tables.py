"""Rows of tables: given when a program is run, or read from the file that it names."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping

from mpl.typed import Table
from smile.errors import Problem, PublishError, SmileError
from smile.program import Program
from smile.values import Refused, from_text


def table_rows(program: Program, table: Table, given: Mapping[str, object]) -> object:
    """What `publish_many` would take."""
    for name in given:
        if name not in program.checked.program.tables:
            raise program.unknown("table", name, program.checked.program.tables)
    if table.name in given:
        return given[table.name]
    if table.path is None:
        return []
    path = program.folder / table.path
    if path.suffix.lower() != ".csv":
        raise SmileError(f"table `{table.name}`: {table.path} is not a .csv file; pass its rows in `tables`")
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return read_table_text(table, file)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SmileError(f"table `{table.name}`: cannot read {path}: {error}") from error


def read_table_text(table: Table, lines: Iterable[str]) -> list[dict[str, object]]:
    """The first line names the columns; an empty cell of a column that may be null is null."""
    columns = {column.name: column for column in table.schema.columns}
    # Not strict, a quote that is not closed would swallow the rest.
    records = filter(None, csv.reader(lines, strict=True))
    names = [name.removeprefix("\ufeff").strip() for name in next(records, [])]
    for at, name in enumerate(names):
        if name not in columns or name in names[:at]:
            rule = "is there twice" if name in columns else f"is none of its columns: it has {', '.join(columns)}"
            raise PublishError(table.name, [Problem(None, name, f"the first line: `{name}` {rule}")])
    rows: list[dict[str, object]] = []
    for number, cells in enumerate(records):
        if len(cells) != len(names):
            rule = f"it has {len(cells)} cells, the first line names {len(names)} columns"
            raise PublishError(table.name, [Problem(None, cells, rule, number)])
        row: dict[str, object] = {}
        for name, text in zip(names, cells, strict=True):
            column = columns[name]
            try:
                row[name] = None if text == "" and column.nullable else from_text(text, column.type)
            except Refused as refused:
                raise PublishError(table.name, [Problem(name, text, str(refused), number)]) from None
        rows.append(row)
    return rows
