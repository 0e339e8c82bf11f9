"""`smile recompute`: a view by Spark, over all history or up to a tick of the past."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from smile.cli.cells import json_row
from smile.cli.connecting import AsJson
from smile.cli.files import fail
from smile.cli.histories import ArchiveFolder, DataFolders, Master, find_sources, start_spark
from smile.cli.ticks import tick_of


def recompute(
    program: Annotated[Path, typer.Argument(metavar="FILE", help="The MPL program.")],
    view: Annotated[str, typer.Argument(metavar="VIEW", help="One of its views.")],
    as_of: Annotated[
        str | None, typer.Option(help="A tick, or a time such as '2026-01-31 12:00'; default: now.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write Parquet here instead of printing.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Print at most so many rows.")] = 20,
    archive: ArchiveFolder = None,
    data: DataFolders = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Compute a view from the archive and the logs with Spark, independently of any broker.

    Example: smile recompute tickets.mpl Available --as-of '2026-01-31 12:00'
    """
    from smile.bulk.recompute import plan_of
    from smile.bulk.recompute import recompute as recompute_view
    from smile.errors import SmileError
    from smile.program import compile as compile_program

    try:
        compiled = compile_program(program)
        plan_of(compiled, view)
    except SmileError as error:
        fail(str(error))
    sources = find_sources(archive, data)
    spark = start_spark(master)
    try:
        found = recompute_view(spark, compiled, view, sources, as_of=tick_of(as_of))
    except SmileError as error:
        fail(str(error))
    if output is not None:
        found.frame.write.mode("errorifexists").parquet(str(output))
        typer.echo(f"{view} as of tick {found.as_of} is in {output}")
    elif as_json:
        rows = [row.asDict() for row in found.frame.limit(limit).collect()]
        typer.echo(json.dumps({"view": view, "as_of": found.as_of, "rows": [json_row(row) for row in rows]}))
    else:
        found.frame.show(limit, truncate=False)
        typer.echo(f"as of tick {found.as_of}")
