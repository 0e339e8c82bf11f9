"""`smile verify`: live views against what Spark computes from the events."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from smile.cli.cells import json_row
from smile.cli.connecting import TIMEOUT_S, Address, AsJson, KeysFile, Timeout, connected
from smile.cli.exits import Exit
from smile.cli.files import fail
from smile.cli.histories import ArchiveFolder, DataFolders, Master, find_sources, start_spark

DIFFERENCES_SHOWN = 20


def verify(
    views: Annotated[
        list[str] | None, typer.Argument(metavar="[VIEW]...", help="Views of the program that runs.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All views.")] = False,
    archive: ArchiveFolder = None,
    data: DataFolders = None,
    master: Master = None,
    address: Address = None,
    keys: KeysFile = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Take live views at a consistent cut, compute them anew at the same tick, and list what differs.

    Exit code 0 if nothing does, 1 if something does: for cron.

    Example: smile verify Available --archive archive
    """
    from smile.bulk.verify import verify as verify_view
    from smile.errors import SmileError

    sources = find_sources(archive, data)
    verdicts = []
    with connected(address, keys, timeout) as system:
        names = list(system.program.plan.views) if every else list(views or ())
        if not names:
            fail("name a view, or give --all")
        spark = start_spark(master)
        for name in names:
            try:
                verdicts.append(verify_view(spark, system, name, sources))
            except SmileError as error:
                fail(str(error), Exit.FAILED)
    if as_json:
        typer.echo(
            json.dumps(
                [
                    {
                        "view": one.view,
                        "as_of": one.as_of,
                        "rows": one.rows,
                        "differences": [
                            {
                                "live": None if each.live is None else json_row(dict(each.live)),
                                "truth": None if each.truth is None else json_row(dict(each.truth)),
                            }
                            for each in one.differences
                        ],
                    }
                    for one in verdicts
                ]
            )
        )
    else:
        for one in verdicts:
            verdict = "right" if one.is_right else f"{len(one.differences)} rows differ"
            typer.echo(f"{one.view}: {one.rows} rows as of tick {one.as_of}: {verdict}")
            for each in one.differences[:DIFFERENCES_SHOWN]:
                typer.echo(f"  {each.key}: live {each.live}, should be {each.truth}")
    if not all(one.is_right for one in verdicts):
        raise typer.Exit(Exit.FAILED)
