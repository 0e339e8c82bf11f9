"""The manifest of an archive: which files hold which ticks of which stream, and how far everything is there.

Manifests are numbered and never changed. One is current if it has the highest number: it appears whole or not at all,
and only once, so that two writers cannot both believe that they were next. Files that it does not name do not exist.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from runtime.files import make_folder, sync_folder

FORMAT = 1
MANIFESTS_KEPT = 16
"""Older ones go, with the files that only they name: readers that began before have had that long."""

NO_TICK = -1


class ArchiveError(Exception):
    """The archive is not what it should be; the message says what, and what to do."""


class ArchiveBusy(ArchiveError):
    """Somebody else has written a manifest meanwhile."""


@dataclass(frozen=True)
class ArchivedFile:
    path: str
    first_tick: int
    last_tick: int
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class ArchivedStream:
    """`files` in the order of their ticks. Everything up to `horizon` is in them, except `gaps`."""

    columns: tuple[tuple[str, str], ...]
    schema_version: int = 1
    horizon: int = NO_TICK
    gaps: tuple[tuple[int, int], ...] = ()
    files: tuple[ArchivedFile, ...] = ()

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    def files_in(self, first: int, last: int) -> tuple[ArchivedFile, ...]:
        return tuple(file for file in self.files if file.first_tick <= last and first <= file.last_tick)


@dataclass(frozen=True)
class Manifest:
    number: int = 0
    streams: Mapping[str, ArchivedStream] = field(default_factory=dict)

    def with_stream(self, name: str, stream: ArchivedStream) -> Manifest:
        return replace(self, number=self.number + 1, streams={**self.streams, name: stream})

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(file.path for stream in self.streams.values() for file in stream.files)


def read_manifest(archive: Path) -> Manifest:
    """The current one; an empty one for a folder without."""
    numbers = _numbers(archive)
    return _read(archive, numbers[-1]) if numbers else Manifest()


def kept_manifests(archive: Path) -> list[Manifest]:
    """Those whose files are still there, for readers that began before the newest."""
    return [_read(archive, number) for number in _numbers(archive)[-MANIFESTS_KEPT:]]


def write_manifest(archive: Path, manifest: Manifest) -> None:
    """Make it current, or ArchiveBusy. On disk when this returns."""
    folder = archive / "manifests"
    make_folder(folder)
    body = json.dumps(_plain(manifest), indent=1, sort_keys=True)
    text = json.dumps({"sha256": hashlib.sha256(body.encode()).hexdigest()}) + "\n" + body + "\n"
    temporary = folder / f".{manifest.number}.{os.getpid()}"
    with temporary.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(temporary, _path(archive, manifest.number))  # unlike a rename, this fails if it is there
    except FileExistsError:
        raise ArchiveBusy(f"{archive}: another process has written manifest {manifest.number}; try again") from None
    finally:
        temporary.unlink()
    sync_folder(folder)


def forget_old(archive: Path) -> list[str]:
    """Delete manifests beyond those kept; the files that only they named, which the caller deletes."""
    numbers = _numbers(archive)
    kept, old = numbers[-MANIFESTS_KEPT:], numbers[:-MANIFESTS_KEPT]
    named = {path for number in kept for path in _read(archive, number).paths}
    gone: set[str] = set()
    for number in old:
        gone |= _read(archive, number).paths - named
        _path(archive, number).unlink()
    return sorted(gone)


def _path(archive: Path, number: int) -> Path:
    return archive / "manifests" / f"{number:010}.json"


def _numbers(archive: Path) -> list[int]:
    return sorted(int(path.stem) for path in (archive / "manifests").glob("[0-9]*.json"))


def _read(archive: Path, number: int) -> Manifest:
    path = _path(archive, number)
    try:
        head, _, body = path.read_text().partition("\n")
        body = body.removesuffix("\n")
        if json.loads(head)["sha256"] != hashlib.sha256(body.encode()).hexdigest():
            raise ValueError("its checksum does not fit")
        return _manifest(json.loads(body))
    except (OSError, ValueError, KeyError, TypeError) as broken:
        raise ArchiveError(
            f"{path} cannot be read: {broken}. Restore it, or delete it to fall back to the manifest before it"
        ) from broken


def _plain(manifest: Manifest) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "number": manifest.number,
        "streams": {
            name: {
                "columns": stream.columns,
                "schema_version": stream.schema_version,
                "horizon": stream.horizon,
                "gaps": stream.gaps,
                "files": [
                    [file.path, file.first_tick, file.last_tick, file.rows, file.bytes, file.sha256]
                    for file in stream.files
                ],
            }
            for name, stream in manifest.streams.items()
        },
    }


def _manifest(data: Any) -> Manifest:
    if data["format"] != FORMAT:
        raise ValueError(f"format {data['format']}, this version reads {FORMAT}")
    streams = {
        name: ArchivedStream(
            columns=tuple((column, declared) for column, declared in stream["columns"]),
            schema_version=stream["schema_version"],
            horizon=stream["horizon"],
            gaps=tuple((first, last) for first, last in stream["gaps"]),
            files=tuple(ArchivedFile(*file) for file in stream["files"]),
        )
        for name, stream in data["streams"].items()
    }
    return Manifest(data["number"], streams)
