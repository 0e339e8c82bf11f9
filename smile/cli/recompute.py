"""`smile recompute`: a view by Spark, over all history or up to a tick of the past."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from smile.cli.cells import json_row
from smile.cli.completing import views
from smile.cli.connecting import TIMEOUT_S, Address, AsJson, KeysFile, Timeout
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
from smile.cli.installs import install_view
from smile.cli.ticks import tick_of


def recompute(
    view: Annotated[str, typer.Argument(metavar="VIEW", help="A view of the program.", autocompletion=views)],
    as_of: AsOf = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="PATH", help="Write here instead of printing.")
    ] = None,
    form: Annotated[
        str, typer.Option("--format", help="Of what is written: parquet, csv, json, or any that your Spark has.")
    ] = "parquet",
    install: Annotated[
        bool, typer.Option("--install", help="Let it take the place of what the brokers have, while they go on.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Print at most so many rows.")] = 20,
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
    """Compute a view from the archive and the logs with Spark, whatever the brokers have.

    Example: smile recompute Available --as-of '2026-01-31 12:00' --output available
    """
    from smile.bulk.progress import watched
    from smile.bulk.recompute import plan_of, spark_errors
    from smile.bulk.recompute import recompute as recompute_view

    if install and (accept_loss or output is not None):
        fail(f"{'--accept-loss' if accept_loss else '--output'} is for views that are computed, not for --install")
    tick = tick_of(as_of)
    sources = find_sources(archive, data)
    with past(program, address, keys, timeout) as before:
        if install:
            install_view(before, view, sources, tick, timeout, master, as_json=as_json)
            return
        bulk = plan_of(before.program, view)
        if tick is None:
            tick = before.newest(view, bulk.sources, sources, timeout)
        else:
            before.wait_for(view, tick, sources, timeout)
        with spark_session(master) as spark:
            found = recompute_view(
                spark, before.program, view, sources, as_of=tick, tables=before.tables, accept_loss=accept_loss
            )
            with watched(spark, view, rows=found.events, quiet=as_json):
                if output is not None:
                    with _whole(output), spark_errors(view):
                        found.frame.write.format(form).mode("errorifexists").save(output)
                rows = found.rows(limit) if output is None else []
    if as_json:
        told = {"view": view, "as_of": found.as_of}
        typer.echo(json.dumps({**told, "output": output} if output else {**told, "rows": [json_row(r) for r in rows]}))
    elif output is not None:
        typer.echo(f"{view} as of tick {found.as_of} is in {output}")
    else:
        from smile.cli.query import print_table

        names = [column.name for _, column in found.visible]
        print_table(f"{view} as of tick {found.as_of}", names, rows)


@contextmanager
def _whole(output: str) -> Iterator[None]:
    """A folder on this machine that could not be written to its end is removed; elsewhere Spark cleans up itself."""
    folder = Path(output)
    was_there = folder.exists()
    try:
        yield
    except BaseException:
        if not was_there:
            shutil.rmtree(folder, ignore_errors=True)
        raise
