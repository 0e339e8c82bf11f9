"""`smile verify`: live views against what Spark computes from the events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smile.cli.cells import json_row, json_value, shown
from smile.cli.completing import views as complete_views
from smile.cli.connecting import TIMEOUT_S, Address, AsJson, KeysFile, Timeout, connected
from smile.cli.exits import Exit
from smile.cli.files import fail
from smile.cli.histories import (
    AcceptLoss,
    ArchiveFolder,
    DataFolders,
    Master,
    deployed_tables,
    find_sources,
    spark_session,
)

if TYPE_CHECKING:
    from smile.bulk.verify import Difference, Verdict

DIFFERENCES_SHOWN = 20


def verify(
    views: Annotated[
        list[str] | None,
        typer.Argument(metavar="[VIEW]...", help="Views of the program that runs.", autocompletion=complete_views),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All views.")] = False,
    archive: ArchiveFolder = None,
    data: DataFolders = None,
    master: Master = None,
    accept_loss: AcceptLoss = False,
    address: Address = None,
    keys: KeysFile = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Take live views as they are, compute them anew from the events they include, and list what differs.

    Exit code 0: all are right. 1: a row, bound, finality or horizon is wrong, or a view has stopped. 3: some views
    cannot be verified, the others are right. For cron.

    Example: smile verify Available --archive archive
    """
    from smile.bulk.recompute import plan_of
    from smile.bulk.verify import verify as verify_view
    from smile.errors import SmileError, UnknownName

    sources = find_sources(archive, data)
    verdicts: list[Verdict] = []
    refused: dict[str, str] = {}
    with connected(address, keys, timeout) as system:
        names = list(system.program.plan.views) if every else list(dict.fromkeys(views or ()))
        if not names:
            fail("name a view, or give --all")
        for name in names:
            try:
                plan_of(system.program, name)
            except UnknownName:
                raise
            except SmileError as error:
                refused[name] = str(error)
        tables = deployed_tables(system)
        if len(refused) < len(names):
            with spark_session(master) as spark:
                for name in names:
                    if name in refused:
                        continue
                    try:
                        found = verify_view(
                            spark, system, name, sources, tables, accept_loss=accept_loss, quiet=as_json
                        )
                        verdicts.append(found)
                    except SmileError as error:
                        refused[name] = str(error)
    if as_json:
        said = [json_verdict(one) for one in verdicts]
        typer.echo(json.dumps([*said, *({"view": name, "refused": reason} for name, reason in refused.items())]))
    else:
        for one in verdicts:
            _print(one)
        for name, reason in refused.items():
            typer.echo(f"{name}: not verified: {reason}")
    if not all(one.is_right for one in verdicts):
        raise typer.Exit(Exit.FAILED)
    if refused:
        raise typer.Exit(Exit.PARTIAL)


def _print(one: Verdict) -> None:
    count = len(one.differences)
    ahead = f", {one.unsettled} of them ahead of it" if one.unsettled else ""
    typer.echo(f"{one.view}: {one.rows} rows, horizon {one.as_of}{ahead}: {f'{count} wrong' if count else 'right'}")
    if one.failure is not None:
        typer.echo(f"  has stopped: {one.failure}")
    for each in one.differences[:DIFFERENCES_SHOWN]:
        _print_difference(each)
    if count > DIFFERENCES_SHOWN:
        typer.echo(f"  and {count - DIFFERENCES_SHOWN} more; --json lists them all")


def _print_difference(each: Difference) -> None:
    typer.echo(f"  ({', '.join(shown(value) for value in each.key)}) {each.kind.value}")
    for what, row in (("live", each.live), (f"truth as of tick {each.as_of}", each.truth)):
        cells = "no row" if row is None else ", ".join(f"{name} {shown(value)}" for name, value in row.items())
        typer.echo(f"    {what}: {cells}")
    for one in each.behind:
        first = ", ".join(map(str, one.ticks))
        more = ", ..." if one.events > len(one.ticks) else ""
        which = "" if one.by_key else " (of any key)"
        typer.echo(f"    from {one.events} events of {one.stream}{which}: ticks {first}{more}")


def json_verdict(one: Verdict) -> dict[str, Any]:
    return {
        "view": one.view,
        "as_of": one.as_of,
        "rows": one.rows,
        "unsettled": one.unsettled,
        "right": one.is_right,
        "failure": one.failure,
        "differences": [
            {
                "kind": each.kind.name.lower(),
                "key": [json_value(value) for value in each.key],
                "live": None if each.live is None else json_row(each.live),
                "truth": None if each.truth is None else json_row(each.truth),
                "as_of": each.as_of,
                "behind": [vars(events) for events in each.behind],
            }
            for each in one.differences
        ],
    }
