"""`smile query`: the rows that a view has now."""

from __future__ import annotations

import csv
import json
import sys
from typing import Annotated

import typer

from smile.cli.cells import json_row, json_value, shown
from smile.cli.completing import views
from smile.cli.connecting import TIMEOUT_S, Address, AsJson, KeysFile, Timeout, column_names, connected
from smile.cli.files import fail
from smile.cli.output import console


def query(
    view: Annotated[
        str,
        typer.Argument(metavar="VIEW", help="A view, stream or table of the program that runs.", autocompletion=views),
    ],
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=0, help="At most so many rows.")] = None,
    form: Annotated[str, typer.Option("--format", help="table, csv or jsonl.")] = "table",
    address: Address = None,
    keys: KeysFile = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Print the rows of a view in the order of its key, and nothing that follows later.

    Includes everything that was acknowledged before the question, as far as the brokers of its streams answer.

    Example: smile query Available --limit 10
    """
    if form not in ("table", "csv", "jsonl"):
        fail(f"unknown format `{form}`: one of table, csv, jsonl")
    with connected(address, keys, timeout) as system:
        rows = system.rows(view)
        names = list(column_names(system, view))
    rows = rows[:limit]
    if as_json:
        typer.echo(json.dumps([json_row(row) for row in rows], indent=2))
    elif form == "jsonl":
        for row in rows:
            typer.echo(json.dumps(json_row(row)))
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([json_value(row[name]) for name in names] for row in rows)
    else:
        _print_table(view, names, rows)


def _print_table(view: str, names: list[str], rows: list[dict[str, object]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"{view}: {len(rows)} rows", title_justify="left")
    for name in names:
        numeric = all(isinstance(row[name], int | float) or hasattr(row[name], "adjusted") for row in rows)
        table.add_column(name, justify="right" if numeric and rows else "left")
    for row in rows:
        table.add_row(*(Text(shown(row[name])) for name in names))
    console().print(table)
