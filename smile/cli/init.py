"""`smile init`: a folder with a program that runs, its smile.toml, and events to try it with."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from smile.cli.connecting import AsJson
from smile.cli.files import fail


def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new or empty folder.")] = Path("shop"),
    as_json: AsJson = False,
) -> None:
    """Make a project: a program, smile.toml, a generator of events, a README that says what to do next.

    Files that are there already are never touched: then nothing is written.

    Example: smile init shop && cd shop && smile run shop.mpl
    """
    from smile.cli.project import project_files

    name = re.sub(r"\W+", "_", folder.resolve().name).strip("_") or "shop"
    files = project_files(name)
    for path in files:
        if (folder / path).exists():
            fail(f"{folder / path} is there already; choose another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            (folder / path).write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"cannot write to {folder}: {error.strerror or error}")
    if as_json:
        typer.echo(json.dumps({"folder": str(folder), "files": sorted(files)}, indent=2))
        return
    typer.echo(f"{folder}: {', '.join(files)}")
    typer.echo(f"next: cd {shlex.quote(str(folder))} && smile run {name}.mpl --brokers 2")
