"""`smile explain`: what follows from a program, in words, without running anything."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console

from mpl.check import check as check_source
from mpl.diagnostic import did_you_mean
from mpl.explain import explain as explain_program
from smile.cli.files import fail, read_source
from smile.cli.output import show_diagnostics

WIDTH_WITHOUT_TERMINAL = 100


def explain(
    file: Annotated[str, typer.Argument(metavar="FILE", help="An MPL file; - reads standard input.")],
    views: Annotated[list[str] | None, typer.Argument(metavar="VIEW...", help="Only these views.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON with stable field names.")] = False,
) -> None:
    """Explain every view: columns and how they may move, when rows show and are final, what state is kept.

    Kinds of columns are described in docs/kinds.md.
    """
    checked = check_source(read_source(file))
    show_diagnostics(checked)
    if checked.knowledge is None:
        raise typer.Exit(1)
    for view in views or ():
        if view not in checked.program.views:
            hint = did_you_mean(view, checked.program.views)
            fail(f"{checked.source.name} has no view `{view}`" + (f"; {hint}" if hint else ""))
    explanation = explain_program(checked.program, checked.knowledge, views)
    if as_json:
        typer.echo(json.dumps(explanation.to_json(), indent=2))
        return
    console = Console()
    typer.echo(explanation.to_text(console.width if console.is_terminal else WIDTH_WITHOUT_TERMINAL))
