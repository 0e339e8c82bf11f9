"""`smile archive`: move what the logs have into the archive, once or for as long as it runs; or check what is there."""

from __future__ import annotations

import json
import signal
import time
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from smile.cli.connecting import AsJson
from smile.cli.exits import Exit
from smile.cli.files import fail
from smile.cli.histories import DEFAULT_ARCHIVE, ArchiveFolder, DataFolders, Master, find_sources, spark_session
from smile.errors import SmileError

if TYPE_CHECKING:
    from smile.bulk.sources import Sources

FOLLOW_EVERY_S = 10.0
"""Shorter, and there would be many small files to merge; longer, and logs would be trimmed later."""

FAILURES_MAX = 5
"""So many rounds in a row may do nothing at all before whoever follows gives up."""


def archive(
    archive: ArchiveFolder = None,
    data: DataFolders = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C: archive what comes, merge small files.")
    ] = False,
    every: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="With --follow: how long to wait between two rounds.")
    ] = FOLLOW_EVERY_S,
    compact: Annotated[bool, typer.Option("--compact", help="Rewrite small files as larger ones, too.")] = False,
    accept_gaps: Annotated[
        bool, typer.Option("--accept-gaps", help="Go on without events that left a log before they were archived.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing: read all archived files, and compare their checksums.")
    ] = False,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Write the events of the logs as Parquet files, each event exactly once, beside whatever is running.

    Can be interrupted at any moment and run again. Exit code 1: some streams could not be archived, the others were.

    Example: smile archive --data .smile/tickets --archive archive --follow
    """
    if check:
        _check(find_sources(archive, data, quiet=True).archive or DEFAULT_ARCHIVE, as_json=as_json)
        return
    sources = _sources(archive, data)  # before Spark is started for nothing
    with spark_session(master) as spark:
        if not follow:
            done = _round(spark, sources, compact=compact, accept_gaps=accept_gaps, quiet=as_json)
            _tell(done, as_json=as_json)
            _tell_failed(done["failed"])
            if done["failed"]:
                raise typer.Exit(Exit.FAILED)
            return
        signal.signal(signal.SIGTERM, _interrupt)
        try:
            _follow(spark, archive, data, every, accept_gaps=accept_gaps, as_json=as_json)
        except KeyboardInterrupt:
            if not as_json:
                typer.echo("stopped; what is archived is whole, and the next run goes on from there")


def _check(archive: Path, *, as_json: bool) -> None:
    """Leaves with exit code 1 if a file is not what it was, or if there is no archive at all."""
    from runtime.bulk.archive_files import verify_files
    from runtime.bulk.manifest import ArchiveError, read_manifest

    try:
        manifest = read_manifest(archive)
        if not manifest.number:
            fail(f"{archive} holds no archive: there is no manifest in it", Exit.FAILED)
        count, wrong = len(manifest.paths), verify_files(archive)
    except (ArchiveError, OSError) as error:
        fail(str(error), Exit.FAILED)
    if as_json:
        typer.echo(json.dumps({"archive": str(archive), "files": count, "wrong": wrong}))
    else:
        for what in wrong:
            typer.echo(what)
        typer.echo(
            f"{archive}: {count} files, {f'{len(wrong)} of them wrong' if wrong else 'all as they were written'}"
        )
    if wrong:
        raise typer.Exit(Exit.FAILED)


def _follow(
    spark: Any, archive: Path | None, data: list[Path] | None, every: float, *, accept_gaps: bool, as_json: bool
) -> NoReturn:
    failures = 0
    known: dict[str, str] = {}
    while True:
        sources = _sources(archive, data, quiet=True)  # there may be more brokers by now
        try:
            done = _round(spark, sources, compact=True, accept_gaps=accept_gaps, quiet=as_json)
            if done["events"]:
                _tell(done, as_json=as_json)
            _tell_failed({name: why for name, why in done["failed"].items() if known.get(name) != why})
            known = done["failed"]
            if known and not done["streams"]:
                raise _TryAgain("no stream could be archived")
            failures = 0
        except _TryAgain as error:
            failures += 1
            if failures == FAILURES_MAX:
                raise
            typer.echo(f"smile: {error}; trying again in {every:g} s", err=True)
        time.sleep(every)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _sources(archive: Path | None, data: list[Path] | None, *, quiet: bool = False) -> Sources:
    sources = find_sources(archive, data, quiet=quiet)
    if not sources.folders:
        fail("no logs are known here; name the data folder of a broker or of a run with --data")
    return sources


class _TryAgain(SmileError):
    """A round did not succeed, but the next one may; it has changed nothing."""


def _round(spark: Any, sources: Sources, *, compact: bool, accept_gaps: bool, quiet: bool) -> dict[str, Any]:
    """What was done, as plain data."""
    from runtime.bulk.archive import Unfinished, archive_logs
    from runtime.bulk.archive import compact as compact_archive
    from runtime.bulk.manifest import ArchiveBusy, ArchiveError
    from smile.bulk.progress import watched

    target = sources.archive or DEFAULT_ARCHIVE
    began = time.monotonic()
    failed: dict[str, str] = {}
    merged = 0

    def watch(doing: str, stream: str, events: int) -> AbstractContextManager[None]:
        return watched(spark, f"{doing} {stream}", rows=events, quiet=quiet)

    try:
        try:
            done = archive_logs(
                spark, target, sources.folders, watch=partial(watch, "archiving"), accept_gaps=accept_gaps
            )
        except Unfinished as error:
            done, failed = list(error.done), error.failed
        try:
            merged = compact_archive(spark, target, watch=partial(watch, "merging files of")) if compact else 0
        except Unfinished as error:
            failed = {**error.failed, **failed}
    except (ArchiveBusy, OSError) as error:
        raise _TryAgain(str(error)) from error
    except ArchiveError as error:
        raise SmileError(str(error)) from error
    return {
        "events": sum(one.events for one in done),
        "seconds": time.monotonic() - began,
        "merged": merged,
        "streams": [vars(one) for one in done],
        "failed": failed,
    }


def _tell_failed(failed: dict[str, str]) -> None:
    for name, why in failed.items():
        typer.echo(f"smile: {name} was not archived: {why}", err=True)


def _tell(done: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(done))
        return
    for one in done["streams"]:
        missing = sum(last - first + 1 for first, last in one["gaps"])
        gaps = f"; {len(one['gaps'])} gaps, {missing} ticks, are missing" if missing else ""
        written = f"{one['events']} events in {one['files']} files"
        typer.echo(f"{one['stream']}: {written}, archived up to tick {one['horizon']}{gaps}")
    rate = done["events"] / max(done["seconds"], 1e-9)
    merged = f", {done['merged']} small files merged" if done["merged"] else ""
    typer.echo(f"{done['events']} events in {done['seconds']:.1f} s ({rate:,.0f} a second){merged}")
