"""`smile repair`: make damaged logs usable again, and say what is lost."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smile.cli.exits import Exit
from smile.cli.files import fail

if TYPE_CHECKING:
    from runtime.log.repair import Report

DEPTH_MAX = 3
"""Logs are looked for in the folder itself and so many levels below: a run of several brokers has one for each."""


def repair(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The data folder of a run, a broker or a system.")],
    accepts_loss: Annotated[
        bool, typer.Option("--accept-loss", help="From now on take lost ticks for ticks without events.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")] = False,
) -> None:
    """Read all logs below a folder; where one is damaged, save what can be saved and say what is lost.

    Nothing may use them meanwhile. A log without damage is left as it is. Otherwise the damaged files are kept in a
    folder `damaged-1` beside the new ones, and no event is invented: what is lost is never told as silence, so that
    views that need it stop, until you accept the loss. Exit code 1 if anything is lost.

    Example: smile repair .smile/tickets
    """
    # Here, so that other commands do not load the log.
    from runtime.log.database import ACKNOWLEDGED_NAME, FILE_NAME
    from runtime.log.repair import accept_loss
    from runtime.log.repair import repair as repair_log
    from runtime.log.stream_log import LogError

    folders = _folders_with(folder, {FILE_NAME, ACKNOWLEDGED_NAME})
    if not folders:
        fail(f"there is no log in {folder}, nor below it")
    reports = []
    for place in folders:
        try:
            reports.append(repair_log(place, time.time_ns() // 1000))
            accepted = accept_loss(place) if accepts_loss else 0
        except LogError as error:
            fail(str(error))
        if not as_json:
            typer.echo("\n".join(reports[-1].lines()))
            if accepted:
                typer.echo(f"{accepted} lost ranges count as ticks without events from now on, as you said")
    if as_json:
        typer.echo(json.dumps([_as_json(report) for report in reports], indent=2))
    if not accepts_loss and any(_is_lossy(report) for report in reports):
        raise typer.Exit(Exit.FAILED)


def _folders_with(folder: Path, names: set[str]) -> list[Path]:
    """Those that hold a log, without the damaged ones that an earlier repair has put aside."""
    places = [folder, *(path for depth in range(1, DEPTH_MAX + 1) for path in sorted(folder.glob("*/" * depth)))]
    return [
        path
        for path in places
        if any((path / name).is_file() for name in names)
        and not any(part.startswith("damaged-") for part in path.relative_to(folder).parts)
    ]


def _is_lossy(report: Report) -> bool:
    nothing_left = bool(report.damage) and not report.streams
    return nothing_left or any(stream.lost or stream.may_repeat for stream in report.streams)


def _as_json(report: Report) -> dict[str, object]:
    return {
        "folder": str(report.folder),
        "damage": report.damage,
        "kept": None if report.kept is None else str(report.kept),
        "commits_lost": report.commits_lost,
        "streams": [
            {"stream": one.name, "events": one.events, "lost": one.lost, "may_repeat": one.may_repeat}
            for one in report.streams
        ],
    }
