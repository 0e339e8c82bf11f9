"""`smile check`: what is wrong with a program, all of it, at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from smile.cli.files import read_source
from smile.cli.output import show_diagnostics

if TYPE_CHECKING:
    from mpl.check import Checked


def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="MPL files; - reads standard input.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for editors and scripts.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
) -> None:
    """Check MPL programs: names, types, keys, and what can be promised about every column.

    Reports all independent errors of a file in one run, in source order, each with its place, the reason and a remedy.
    docs/errors.md explains every code. Exit code 1 if there are errors.

    Example: smile check tickets.mpl
    """
    from mpl.check import check as check_source

    results = [check_source(read_source(file)) for file in files]
    if as_json:
        typer.echo(json.dumps([_as_json(result) for result in results], indent=2))
    else:
        for result in results:
            show_diagnostics(result)
            if result.ok:
                typer.echo(f"{result.source.name}: {_contents(result)}: ok")
    if any(not result.ok or (strict and result.diagnostics) for result in results):
        raise typer.Exit(1)


def _as_json(result: Checked) -> dict[str, object]:
    from mpl.render import record

    return {
        "file": result.source.name,
        "ok": result.ok,
        "diagnostics": [record(diagnostic) for diagnostic in result.diagnostics],
        "not_shown": result.dropped,
    }


def _contents(result: Checked) -> str:
    program = result.program
    parts = [
        _count(len(program.streams), "stream"),
        _count(len(program.views), "view"),
        _count(len(program.subscriptions), "subscription"),
    ]
    return ", ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
