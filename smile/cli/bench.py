"""`smile bench`: the measurements of a checkout."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from smile.cli.connecting import AsJson
from smile.cli.files import fail


def bench(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Which one to run; left out: list them.")] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGUMENT...]", help="Handed on; put -- before options.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the benchmarks of a checkout of the sources, or run one of them. Its exit code is the command's.

    Example: smile bench tickets -- --help
    """
    found = _benches(Path.cwd())
    if name is None:
        if as_json:
            typer.echo(json.dumps(found, indent=2))
            return
        width = max(map(len, found))
        for one, summary in found.items():
            typer.echo(f"{one:{width}}  {summary}")
        return
    if name not in found:
        from mpl.diagnostic import did_you_mean

        fail(f"there is no benchmark `{name}`; {did_you_mean(name, found) or 'one of ' + ', '.join(found)}")
    done = subprocess.run([sys.executable, "-m", f"bench.{name}", *(arguments or ())], check=False)
    raise typer.Exit(done.returncode)


def _benches(folder: Path) -> dict[str, str]:
    """Name and first sentence of every script in bench/."""
    files = sorted((folder / "bench").glob("[a-z]*.py"))
    if not files:
        fail("there is no bench/ here; benchmarks come with a checkout of the sources, and run in its folder")
    found = {}
    for file in files:
        told = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        found[file.stem] = told.partition("\n")[0]
    return found
