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
import os
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
    """Write a bundle. A folder that is there already is replaced only if it is empty or holds a bundle and no more."""
    try:
        _write_bundle(files, Path(os.path.realpath(folder)))
    except OSError as error:
        raise BundleError(f"cannot write {folder}: {error.strerror or error}") from error


def _write_bundle(files: dict[str, bytes], folder: Path) -> None:
    is_replaced = folder.exists() and not _is_empty(folder)
    if is_replaced:
        _check_replaceable(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for path, data in files.items():
            (made / path).parent.mkdir(exist_ok=True)
            (made / path).write_bytes(data)
        made.chmod(0o755)
        if is_replaced:
            _exchange(folder, made)
        else:
            made.rename(folder)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def _exchange(folder: Path, made: Path) -> None:
    """The old one goes only when the new one is there: whatever happens between, one of them is whole on disk."""
    aside = made.with_name(f"{made.name}.old")
    folder.rename(aside)
    try:
        made.rename(folder)
    except BaseException:
        aside.rename(folder)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


def _check_replaceable(folder: Path) -> None:
    """Other programs write a manifest.json too, and people put files of their own where they find room."""
    advice = "it is left as it is; choose another folder, or remove this one yourself"
    try:
        listed, _ = _manifest(folder)
    except BundleError as error:
        raise BundleError(f"{folder} exists and is not a bundle: {advice}") from error
    ours = {folder / "manifest.json"} | {folder / path for path in listed}
    ours |= {parent for path in ours for parent in path.parents}
    for path in sorted(set(folder.rglob("*")) - ours):
        raise BundleError(f"{folder} is a bundle with something else in it, {path.relative_to(folder)}: {advice}")


def _manifest(folder: Path) -> tuple[dict[str, str], int]:
    """The digests of the files by path, and the format."""
    try:
        manifest = json.loads((folder / "manifest.json").read_bytes())
        files, found = manifest["files"], manifest["format"]
        if not isinstance(found, int) or not all(digest.startswith("sha256:") for digest in files.values()):
            raise ValueError("not the manifest of a bundle")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BundleError(f"{folder} has no readable manifest") from error
    return files, found


def verify_bundle(folder: Path) -> None:
    """Every file that the manifest names is there with the digest it says, and there are no others."""
    expected, found = _manifest(folder)
    if found != FORMAT:
        raise BundleError(f"{folder} has format {found}; this compiler knows format {FORMAT}")
    present = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {"manifest.json"}
    for path in sorted(present ^ expected.keys()):
        raise BundleError(f"{folder}: {path} is {'not in the manifest' if path in present else 'missing'}")
    for path, digest in expected.items():
        if f"sha256:{hashlib.sha256((folder / path).read_bytes()).hexdigest()}" != digest:
            raise BundleError(f"{folder}: {path} was changed")
