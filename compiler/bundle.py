"""Bundles: a compiled program as a folder of files, the same bytes for the same program and compiler.

    manifest.json    format, compiler version, the program's name, and the digest of every other file
    plan.json        components, their operators and columns, views and streams
    program.mpl      the text it was compiled from
    modules/*.py     the generated loops of each component, and next to each its constants (*.json)

Written whole into a new folder and then moved into place, so that nobody ever sees half a bundle.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from importlib.metadata import version
from pathlib import Path
from tempfile import mkdtemp

from compiler.codegen.module import Module
from compiler.graph import TransformGraph
from compiler.modules import module_texts
from compiler.plan.build import ProgramPlan
from compiler.plan.show import plan_data

FORMAT = 1


class BundleError(Exception):
    """A bundle cannot be written, or is not what its manifest says."""


def bundle_files(graph: TransformGraph, plan: ProgramPlan, name: str, text: str) -> dict[str, bytes]:
    """The files of a bundle by path."""
    files = {"program.mpl": text.encode(), "plan.json": _json(plan_data(plan))}
    for number, (component, module) in enumerate(module_texts(plan).items()):
        # Component names are the user's words, so files are numbered; the header inside says which it is.
        files[f"modules/m{number:04}.py"] = module.encode()
        files[f"modules/m{number:04}.json"] = _json(_constants(component, plan.parts[component].module))
    manifest = {
        "format": FORMAT,
        "compiler": version("smile-mpl"),
        "program": name,
        "streams": sorted(graph.program.streams),
        "views": sorted(graph.outputs),
        "subscriptions": sorted(graph.program.subscriptions),
        "files": {path: f"sha256:{hashlib.sha256(data).hexdigest()}" for path, data in sorted(files.items())},
    }
    return {"manifest.json": _json(manifest), **files}


def _constants(component: str, module: Module) -> dict[str, object]:
    return {
        "component": component,
        "values": list(module.constants.values),
        "functions": [
            [name, [str(argument) for argument in arguments], str(result)]
            for name, arguments, result in module.constants.functions
        ],
        "python": [
            [name, function, str(result), nullable] for name, function, result, nullable in module.constants.python
        ],
    }


def _json(data: object) -> bytes:
    return (json.dumps(data, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode()


def write_bundle(files: dict[str, bytes], folder: Path) -> None:
    """Write a bundle. A folder that is there already is replaced only if it is empty or holds a bundle."""
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / "manifest.json").exists())):
        raise BundleError(f"{folder} exists and is not a bundle")
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for path, data in files.items():
            (made / path).parent.mkdir(exist_ok=True)
            (made / path).write_bytes(data)
        made.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        made.rename(folder)
    except OSError as error:
        shutil.rmtree(made, ignore_errors=True)
        raise BundleError(f"cannot write {folder}: {error.strerror or error}") from error


def verify_bundle(folder: Path) -> None:
    """Every file that the manifest names is there with the digest it says, and there are no others."""
    try:
        manifest = json.loads((folder / "manifest.json").read_bytes())
        expected: dict[str, str] = manifest["files"]
        found = manifest["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BundleError(f"{folder} has no readable manifest") from error
    if found != FORMAT:
        raise BundleError(f"{folder} has format {found}; this compiler knows format {FORMAT}")
    present = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {"manifest.json"}
    for path in sorted(present ^ expected.keys()):
        raise BundleError(f"{folder}: {path} is {'not in the manifest' if path in present else 'missing'}")
    for path, digest in expected.items():
        if f"sha256:{hashlib.sha256((folder / path).read_bytes()).hexdigest()}" != digest:
            raise BundleError(f"{folder}: {path} was changed")
