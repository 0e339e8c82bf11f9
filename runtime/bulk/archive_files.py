"""The Parquet files of an archive: written by Spark beside it, moved into place, checked, removed when unnamed.

A file is named by the ticks it holds and by its content, so that no file ever changes. Which of them count says the
manifest.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from runtime.bulk.manifest import ArchiveBusy, ArchivedFile, ArchivedStream, ArchiveError, read_manifest
from runtime.files import make_folder, sync_folder

UNFINISHED = "unfinished"
LOCK_WAIT_S = 60.0
"""So long a run waits for another one; two that follow the same logs take turns."""

LOCK_LOOK_S = 0.1
DIGEST_CHUNK_BYTES = 1 << 20
_WILD = re.compile(r"[\\*?\[\]{}]")
_NAME = re.compile(r"(\d+)-(\d+)-[0-9a-f]+\.parquet")


def spark_path(path: Path) -> str:
    """A file of this machine, also where Spark's own default is another file system or its processes have another
    folder. Not quoted as an address would be: Spark takes every character as it is."""
    return f"file://{path.absolute()}"


def spark_file(path: Path) -> str:
    """The same for a file that Spark reads: there it would take some characters of a folder's name for wildcards."""
    return _WILD.sub(r"\\\g<0>", spark_path(path))


@contextmanager
def locked(archive: Path) -> Iterator[None]:
    """One writer at a time: wait for another one, or ArchiveBusy after a while. A killed one leaves no lock behind."""
    make_folder(archive)
    handle = os.open(archive / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        end = time.monotonic() + LOCK_WAIT_S
        while not _is_locked(handle):
            if time.monotonic() >= end:
                raise ArchiveBusy(f"{archive}: another run is under way")
            time.sleep(LOCK_LOOK_S)
        shutil.rmtree(archive / UNFINISHED, ignore_errors=True)
        yield
    finally:
        os.close(handle)


def _is_locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def written(archive: Path, stream: str, frame: DataFrame, tick: str) -> tuple[ArchivedFile, ...]:
    """The frame's partitions, each in the order of ticks, as files in place, in the order of their ticks.
    `tick` is what their column is called.

    ArchiveError if a partition is not in order, or has a tick twice: then nothing is named, and nothing has changed.
    """
    temporary = archive / UNFINISHED / uuid.uuid4().hex
    frame.write.option("compression", "zstd").parquet(spark_path(temporary))
    target = _folder(archive, stream)
    make_folder(target)
    found = []
    for path in sorted(temporary.glob("*.parquet")):
        ticks = np.asarray(pq.read_table(path, columns=[tick]).column(tick))
        if len(ticks):
            if not bool((np.diff(ticks) > 0).all()):
                raise ArchiveError(f"stream `{stream}`: Spark has written events in another order than it was given")
            found.append(_moved(archive, path, target, int(ticks[0]), int(ticks[-1]), rows=len(ticks)))
    sync_folder(target)
    shutil.rmtree(temporary)
    return tuple(sorted(found, key=lambda file: file.first_tick))


def _folder(archive: Path, stream: str) -> Path:
    return archive / "streams" / quote(stream, safe="")


def group_ticks(facts: pq.FileMetaData, tick: str) -> dict[int, tuple[int, int]]:
    """First and last tick of each row group of a file."""
    at = facts.schema.to_arrow_schema().get_field_index(tick)
    ends = {number: facts.row_group(number).column(at).statistics for number in range(facts.num_row_groups)}
    return {number: (one.min, one.max) for number, one in ends.items()}


def _moved(archive: Path, path: Path, target: Path, first: int, last: int, *, rows: int) -> ArchivedFile:
    with path.open("rb") as file:
        os.fsync(file.fileno())
    digest = _digest(path)
    place = target / f"{first}-{last}-{digest[:12]}.parquet"
    size = path.stat().st_size
    os.replace(path, place)
    return ArchivedFile(str(place.relative_to(archive)), first, last, rows, size, digest)


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(DIGEST_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def clean(archive: Path, name: str, stream: ArchivedStream, trimmed_tick: int) -> None:
    """Remove what an interrupted run has left of this stream, and what was retired long ago.

    If somebody went back to an older manifest, files that it does not name may have the only copy of what the log has
    trimmed since. So a file goes only if the log still has all of its ticks, or other files of this manifest do.
    """
    manifest = read_manifest(archive)
    named = manifest.paths | manifest.retired.keys()
    for path in _folder(archive, name).glob("*.parquet"):
        ticks = _NAME.fullmatch(path.name)
        if ticks is None or str(path.relative_to(archive)) in named:
            continue
        first, last = int(ticks[1]), int(ticks[2])
        is_elsewhere = last <= stream.horizon and not stream.gaps_in(first, last)
        if is_elsewhere or first > trimmed_tick:
            path.unlink(missing_ok=True)


def verify_files(archive: Path) -> list[str]:
    """Files of the current manifest that are missing or not what they were, in words."""
    wrong: list[str] = []
    for stream in read_manifest(archive).streams.values():
        for file in stream.files:
            path = archive / file.path
            if not path.exists():
                wrong.append(f"{path} is missing")
            elif _digest(path) != file.sha256:
                wrong.append(f"{path} was changed or is damaged")
    return wrong
