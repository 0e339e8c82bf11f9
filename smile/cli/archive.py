"""`smile archive`: move what the logs have into the archive."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer

from smile.cli.connecting import AsJson
from smile.cli.exits import Exit
from smile.cli.files import fail
from smile.cli.histories import DEFAULT_ARCHIVE, ArchiveFolder, DataFolders, Master, find_sources, start_spark


def archive(
    archive: ArchiveFolder = None,
    data: DataFolders = None,
    every: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="Again and again; 0: once.")] = 0,
    compact: Annotated[bool, typer.Option("--compact", help="Rewrite small files as larger ones, too.")] = False,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Write the events of the logs as Parquet files, each event exactly once, beside whatever is running.

    Can be interrupted at any moment and run again.

    Example: smile archive --data .smile/tickets --archive archive
    """
    sources = find_sources(archive, data)
    target = sources.archive or DEFAULT_ARCHIVE
    if not sources.folders:
        fail("no logs are known here; name the data folder of a broker or of a run with --data")
    spark = start_spark(master)
    from runtime.bulk.archive import archive_logs
    from runtime.bulk.archive import compact as compact_archive
    from runtime.bulk.manifest import ArchiveError
    from runtime.log.stream_log import LogError

    while True:
        began = time.monotonic()
        try:
            done = archive_logs(spark, target, sources.folders)
            gone = compact_archive(spark, target) if compact else 0
        except (ArchiveError, LogError) as error:
            fail(str(error), Exit.FAILED)
        took = time.monotonic() - began
        if as_json:
            typer.echo(json.dumps([vars(one) for one in done]))
        else:
            for one in done:
                typer.echo(f"{one.stream}: {one.events} events in {one.files} files, archived up to tick {one.horizon}")
            events = sum(one.events for one in done)
            merged = f", {gone} small files merged" if gone else ""
            typer.echo(f"{events} events in {took:.1f} s ({events / max(took, 1e-9):,.0f} a second){merged}")
        if not every:
            return
        time.sleep(every)
