"""The manifest of an archive: which files hold which ticks of which stream, and how far everything is there.

Manifests are numbered and never changed. One is current if it has the highest number: it appears whole or not at all,
and only once, so that two writers cannot both believe that they were next. Files that it does not name do not exist.
Brokers read it too, to know what their logs may forget, so nothing here needs Spark.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runtime.files import make_folder, sync_folder
from runtime.log.reader import LoggedStream, LogReader

FORMAT = 1
MANIFESTS_KEPT = 16
RETIRED_KEPT_S = 3_600
"""Files that others have replaced stay so long: for readers that began before."""

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
    """`files` in the order of their ticks. Everything up to `horizon` is in them, except `gaps`.

    `end_checksum` is that of the events which the log had in one batch up to the horizon. A log with others there, or
    none, is not the log that was archived.
    """

    columns: tuple[tuple[str, str], ...]
    schema_version: int = 1
    horizon: int = NO_TICK
    end_checksum: int | None = None
    gaps: tuple[tuple[int, int], ...] = ()
    files: tuple[ArchivedFile, ...] = ()

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def complete_tick(self) -> int:
        """Every event up to here is in the archive."""
        return min((first - 1 for first, _ in self.gaps), default=self.horizon)

    def is_of(self, reader: LogReader, logged: LoggedStream) -> bool:
        """Does this log go on where the archive ends, as far as one can tell? It may have forgotten what was there."""
        if self.horizon <= NO_TICK or reader.checksum_at(logged, self.horizon) == self.end_checksum:
            return True
        # Looked at afterwards: the log may have forgotten it while we asked.
        return bool(reader.streams()[logged.name].gone(self.horizon, self.horizon))

    def gaps_in(self, first: int, last: int) -> tuple[tuple[int, int], ...]:
        """What of [first..last], up to the horizon, is missing."""
        return tuple((max(first, low), min(last, high)) for low, high in self.gaps if low <= last and first <= high)

    def files_in(self, first: int, last: int) -> tuple[ArchivedFile, ...]:
        return tuple(file for file in self.files if file.first_tick <= last and first <= file.last_tick)


@dataclass(frozen=True)
class Manifest:
    """`retired` are files that others have replaced, with the time (seconds) when that was."""

    number: int = 0
    streams: Mapping[str, ArchivedStream] = field(default_factory=dict)
    retired: Mapping[str, int] = field(default_factory=dict)

    def with_stream(self, name: str, stream: ArchivedStream, now_s: int = 0) -> Manifest:
        """The next one. Files of this stream that it no longer has are retired now."""
        before = self.streams[name].files if name in self.streams else ()
        gone = {file.path for file in before} - {file.path for file in stream.files}
        kept = {path: at for path, at in self.retired.items() if at > now_s - RETIRED_KEPT_S}
        retired = {**kept, **dict.fromkeys(sorted(gone), now_s)}
        return Manifest(self.number + 1, {**self.streams, name: stream}, retired)

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(file.path for stream in self.streams.values() for file in stream.files)


def read_manifest(archive: Path) -> Manifest:
    """The current one; an empty one for a folder without."""
    numbers = _numbers(archive)
    return _read(archive, numbers[-1]) if numbers else Manifest()


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


def newest_number(archive: Path) -> int:
    """Of the current manifest; 0 if there is none."""
    return max(_numbers(archive), default=0)


def forget_old(archive: Path) -> None:
    """Delete manifests beyond those kept for people who must go back to one."""
    for number in _numbers(archive)[:-MANIFESTS_KEPT]:
        _path(archive, number).unlink(missing_ok=True)


def _path(archive: Path, number: int) -> Path:
    return archive / "manifests" / f"{number:010}.json"


def _numbers(archive: Path) -> list[int]:
    """Of files that are called as we call them: somebody may have put a copy beside one."""
    found = (int(path.stem) for path in (archive / "manifests").glob("[0-9]*.json") if path.stem.isdecimal())
    return sorted(number for number in found if _path(archive, number).exists())


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
            f"{path} cannot be read: {broken}. Restore it from a copy. If there is none, delete it to go back to the"
            " manifest before it: the next run archives again what the logs still have"
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
                "end_checksum": stream.end_checksum,
                "gaps": stream.gaps,
                "files": [
                    [file.path, file.first_tick, file.last_tick, file.rows, file.bytes, file.sha256]
                    for file in stream.files
                ],
            }
            for name, stream in manifest.streams.items()
        },
        "retired": dict(manifest.retired),
    }


def _manifest(data: Any) -> Manifest:
    if data["format"] != FORMAT:
        raise ValueError(f"format {data['format']}, this version reads {FORMAT}")
    streams = {
        name: ArchivedStream(
            columns=tuple((column, declared) for column, declared in stream["columns"]),
            schema_version=stream["schema_version"],
            horizon=stream["horizon"],
            end_checksum=stream["end_checksum"],
            gaps=tuple((first, last) for first, last in stream["gaps"]),
            files=tuple(ArchivedFile(*file) for file in stream["files"]),
        )
        for name, stream in data["streams"].items()
    }
    return Manifest(data["number"], streams, data["retired"])
