"""`smile status`: brokers and components, and how far each has come."""

from __future__ import annotations

import json
from time import monotonic
from typing import TYPE_CHECKING

import typer

from smile.cli.connecting import Address, AsJson, KeysFile, Timeout, linked
from smile.cli.exits import Exit
from smile.cli.output import console

if TYPE_CHECKING:
    from smile.cli.standing import Standing


def status(address: Address = None, keys: KeysFile = None, timeout: Timeout = 3.0, as_json: AsJson = False) -> None:
    """Show every broker and component: who hosts it, how far its horizon is behind, gaps, rows, problems.

    Exit code 1 if a broker does not answer, brokers run different deployments, or a component cannot go on.

    Example: smile status --json | jq .well
    """
    from smile.cli.standing import standing

    with linked(address, keys, timeout) as connection:
        deployment = connection.deployment
        found = standing(connection.status(), deployment["brokers"], deployment["placement"], monotonic())
    if as_json:
        typer.echo(json.dumps({"deployment": deployment["name"], **found.to_json()}, indent=2))
    else:
        print_standing(found, deployment["name"])
    if not found.is_well:
        raise typer.Exit(Exit.FAILED)


def print_standing(found: Standing, title: str) -> None:
    """As two tables; without a terminal they are plain text."""
    from rich.table import Table
    from rich.text import Text

    screen = console()
    brokers = Table(title=title, title_justify="left")
    for column in ("broker", "address", "state", "up", "components", "peers", "drops"):
        brokers.add_column(column)
    for one in found.brokers.values():
        cells = (str(one.components), str(one.peers), str(one.drops)) if one.is_up else ("", "", "")
        state = Text(one.error or one.problem, "red") if one.error or one.problem else Text("serves", "green")
        brokers.add_row(one.name, one.address, state, duration(one.up_s) if one.is_up else "", *cells)
    screen.print(brokers)
    components = Table()
    for column in ("component", "broker", "kind", "state", "behind", "gaps", "rows"):
        components.add_column(column)
    for name, part in found.components.items():
        state = Text(part.problem, "red") if part.problem else Text(part.state)
        rows = "" if part.rows is None else str(part.rows)
        components.add_row(name, part.broker, part.kind, state, duration(part.behind_s), str(part.gaps), rows)
    screen.print(components)


def duration(seconds: float | None) -> str:
    """Short enough for a column."""
    if seconds is None:
        return "-"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h"
