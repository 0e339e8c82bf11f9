"""`smile fmt`: the canonical layout."""

from __future__ import annotations

import difflib
import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smile.cli.files import STDIN, fail, read_source
from smile.cli.output import show

if TYPE_CHECKING:
    from mpl.source import Source


def fmt(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="MPL files to rewrite; - formats standard input to output.")
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit code 1 if a file is not in canonical layout.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Change nothing; print what would change.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print which files were not in that layout, as JSON.")
    ] = False,
) -> None:
    """Bring MPL files into the canonical layout. Comments stay, and so does the meaning.

    A file with syntax errors is left as it is and its errors are printed.

    Example: smile fmt --diff *.mpl
    """
    if as_json and (diff or (STDIN in files and not check)):
        fail("--json says which files change; it does not go with --diff, nor with - unless there is --check")
    not_canonical: list[str] = []
    broken: list[str] = []
    for file in files:
        source = read_source(file)
        formatted = _formatted(source)
        if formatted is None:
            broken.append(source.name)
            continue
        changed = formatted != source.text
        if changed:
            not_canonical.append(source.name)
        if diff and changed:
            typer.echo(_difference(source, formatted), nl=False)
        elif check and changed and not as_json:
            typer.echo(f"{source.name}: not in canonical layout")
        elif not (check or diff):
            _write(file, formatted, changed, quiet=as_json)
    if as_json:
        typer.echo(json.dumps({"changed": not_canonical, "written": not check, "broken": broken}, indent=2))
    if broken or ((check or diff) and not_canonical):
        raise typer.Exit(1)


def _formatted(source: Source) -> str | None:
    from mpl.diagnostic import MplError
    from mpl.formatter import format_source

    try:
        return format_source(source)
    except MplError as error:
        show(error.diagnostics)
        return None


def _difference(source: Source, formatted: str) -> str:
    before, after = (list(io.StringIO(text, newline="\n")) for text in (source.text, formatted))
    lines = difflib.unified_diff(before, after, source.name, f"{source.name} (formatted)")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _write(file: str, formatted: str, changed: bool, *, quiet: bool) -> None:
    """In place of what was there, or not at all: on a full disk the program stays as it was."""
    from runtime.files import write_durably

    if file == STDIN:
        sys.stdout.buffer.write(formatted.encode("utf-8"))
        return
    if not changed:
        return
    try:
        program = Path(file).resolve()  # what a link leads to
        mode = program.stat().st_mode
        write_durably(program, [formatted.encode("utf-8")])
        program.chmod(mode)
    except OSError as error:
        fail(f"cannot write {file}: {error.strerror or error}")
    if not quiet:
        typer.echo(f"{file}: formatted")
