"""`smile explain`: what follows from a program, in words, without running anything."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from smile.cli.files import fail, read_source
from smile.cli.output import show, show_diagnostics

if TYPE_CHECKING:
    from mpl.check import Checked

WIDTH_WITHOUT_TERMINAL = 100


def explain(
    file: Annotated[str, typer.Argument(metavar="FILE", help="An MPL file; - reads standard input.")],
    views: Annotated[list[str] | None, typer.Argument(metavar="VIEW...", help="Only these views.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON with stable field names.")] = False,
    stage: Annotated[
        str | None, typer.Option(help="Show a stage of compiling instead: algebra, graph, plan or code.")
    ] = None,
    form: Annotated[str, typer.Option("--format", help="With --stage: text, mermaid, dot or svg.")] = "text",
) -> None:
    """Explain every view: columns and how they may move, when rows show and are final, what state is kept.

    Kinds of columns are described in docs/kinds.md. With --stage, show what the compiler makes of the program.

    Example: smile explain tickets.mpl Available
    """
    from rich.console import Console

    from mpl.check import check as check_source
    from mpl.diagnostic import did_you_mean
    from mpl.explain import explain as explain_program

    if stage is not None and (views or as_json):
        fail("--stage shows the whole program, as text or as a picture: it goes neither with views nor with --json")
    if stage is None and form != "text":
        fail("--format is for what the compiler makes of a program: add --stage")
    checked = check_source(read_source(file))
    show_diagnostics(checked)
    if checked.knowledge is None:
        raise typer.Exit(1)
    if stage is not None:
        _show_stage(checked, stage, form)
        return
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


def _show_stage(checked: Checked, stage: str, form: str) -> None:
    # Here, so that explaining a program does not load the compiler.
    from compiler.pictures import Format
    from compiler.stages import STAGES, explain_stage
    from mpl.diagnostic import MplError

    formats = get_args(Format)
    if stage not in STAGES:
        fail(f"unknown stage `{stage}`: one of {', '.join(STAGES)}")
    if form not in ("text", *formats):
        fail(f"unknown format `{form}`: one of text, {', '.join(formats)}")
    if stage == "code" and form != "text":
        fail(f"code is text: there is no `{form}` of it; --stage plan has one")
    try:
        typer.echo(explain_stage(checked, stage, cast(Format, form)), nl=False)
    except MplError as error:
        show(error.diagnostics)
        raise typer.Exit(1) from None
