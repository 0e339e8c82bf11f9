"""`smile compile`: a program as a bundle of plan and generated modules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from smile.cli.connecting import AsJson
from smile.cli.files import fail
from smile.cli.output import show


def compile(  # noqa: A001
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An MPL file.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Where the bundle goes.")],
    as_json: AsJson = False,
) -> None:
    """Compile a program into a bundle: manifest with digests, plan, generated modules.

    The same program and compiler give the same bytes. What is correct MPL but cannot run yet is refused with its place.

    Example: smile compile tickets.mpl -o bundle
    """
    # Here, so that other commands do not load the compiler.
    from compiler.bundle import BundleError, bundle_files, write_bundle
    from mpl.diagnostic import MplError
    from smile.deploy.bundles import compile_file

    try:
        program = compile_file(file)
    except OSError as error:
        fail(f"cannot read {file}: {error.strerror or error}")
    except MplError as error:
        show(error.diagnostics)
        raise typer.Exit(1) from None
    files = bundle_files(program.graph, program.plan, file.name, program.checked.source.text)
    try:
        write_bundle(files, output)
    except BundleError as error:
        fail(str(error))
    modules = sum(path.endswith(".py") for path in files)
    if as_json:
        manifest = json.loads(files["manifest.json"])
        told = {"output": str(output), "components": len(program.plan.components), "modules": modules, **manifest}
        typer.echo(json.dumps(told, indent=2))
        return
    typer.echo(f"{output}: {len(program.plan.components)} components, {modules} modules")
