"""Files that are on disk when a function returns: one in place of another, whole or not at all, and names of folders.

For checkpoints and logs, and for whoever else must find after a power loss what it wrote before.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

TEMPORARY = ".tmp"


def write_durably(path: Path, parts: Sequence[bytes]) -> None:
    """On disk when this returns. OSError if that failed: then `path` is as it was."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            for part in parts:
                _write_all(handle, part)
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def make_folder(folder: Path) -> None:
    """With all that lead to it; their names are on disk when this returns."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in reversed(missing):
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Names of files in it are on disk when this returns."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
