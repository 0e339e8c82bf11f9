"""`smile query`: the rows that a view has now, or had at a moment of the past."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from smile.cli.cells import json_row, json_value, shown
from smile.cli.completing import views
from smile.cli.connecting import TIMEOUT_S, Address, AsJson, KeysFile, Timeout, column_names, connected
from smile.cli.files import fail
from smile.cli.histories import (
    AcceptLoss,
    ArchiveFolder,
    AsOf,
    DataFolders,
    Master,
    ProgramFile,
    find_sources,
    past,
    spark_session,
)
from smile.cli.output import console
from smile.cli.ticks import tick_of

Rows = list[dict[str, object]]


def query(
    view: Annotated[
        str,
        typer.Argument(metavar="VIEW", help="A view, stream or table of the program that runs.", autocompletion=views),
    ],
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=0, help="At most so many rows.")] = None,
    form: Annotated[str, typer.Option("--format", help="table, csv or jsonl.")] = "table",
    as_of: AsOf = None,
    program: ProgramFile = None,
    archive: ArchiveFolder = None,
    data: DataFolders = None,
    master: Master = None,
    accept_loss: AcceptLoss = False,
    address: Address = None,
    keys: KeysFile = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Print the rows of a view in the order of its key, and nothing that follows later.

    Now: with everything that was acknowledged before the question, as far as the brokers of its streams answer;
    those that do not are named on standard error.

    With --as-of: computed by Spark from the archive and the logs, with exactly the events up to that moment.

    Example: smile query Available --as-of '2026-01-31 12:00'
    """
    if form not in ("table", "csv", "jsonl"):
        fail(f"unknown format `{form}`: one of table, csv, jsonl")
    tick = tick_of(as_of)
    if tick is not None:
        from smile.bulk.progress import watched
        from smile.bulk.recompute import recompute

        sources = find_sources(archive, data)
        with past(program, address, keys, timeout) as before:
            relation = before.program.relation(view).name
            before.wait_for(relation, tick, sources, timeout)
            with spark_session(master) as spark:
                found = recompute(
                    spark, before.program, view, sources, as_of=tick, tables=before.tables, accept_loss=accept_loss
                )
                with watched(spark, view, rows=found.events, quiet=as_json):
                    rows = found.rows(limit)
                names = [column.name for _, column in found.visible]
        _print(view, names, rows, form, as_json=as_json, as_of=tick)
        return
    if program is not None or archive is not None or data is not None:
        fail("--program, --archive and --data are for questions about the past: add --as-of")
    with connected(address, keys, timeout) as system:
        rows, silent = system.rows_and_silent(view)
        names = list(column_names(system, view))
    if silent:
        which = f"broker {silent[0]} does" if len(silent) == 1 else f"brokers {', '.join(silent)} do"
        typer.echo(
            f"smile: warning: {which} not answer: these rows are true, but what was acknowledged there may be missing "
            "(`smile status`)",
            err=True,
        )
    _print(view, names, rows[:limit], form, as_json=as_json, silent=silent)


def _print(
    view: str,
    names: list[str],
    rows: Rows,
    form: str,
    *,
    as_json: bool,
    as_of: int | None = None,
    silent: Sequence[str] = (),
) -> None:
    if as_json:
        told = {"view": view, "as_of": as_of, "silent": list(silent), "rows": [json_row(row) for row in rows]}
        typer.echo(json.dumps(told, indent=2))
    elif form == "jsonl":
        for row in rows:
            typer.echo(json.dumps(json_row(row)))
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([json_value(row[name]) for name in names] for row in rows)
    else:
        when = "" if as_of is None else f" as of tick {as_of}"
        print_table(f"{view}: {len(rows)} rows{when}", names, rows)


def print_table(title: str, names: list[str], rows: Rows) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for name in names:
        numeric = all(isinstance(row[name], int | float) or hasattr(row[name], "adjusted") for row in rows)
        table.add_column(name, justify="right" if numeric and rows else "left")
    for row in rows:
        table.add_row(*(Text(shown(row[name])) for name in names))
    console().print(table)
