"""The archive: ranges of the logs as Parquet files, written by Spark, each event exactly once.

A run reads what the logs have beyond the archive's horizon, writes files beside it, moves them into place and then
names them in a new manifest. Only that last step changes anything for readers. Killed at any moment, a run leaves at
most files that no manifest names; the next run removes them. It reads logs as any reader does, so publishing goes on.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from runtime.bulk.columns import TICK
from runtime.bulk.manifest import (
    ArchiveBusy,
    ArchivedFile,
    ArchivedStream,
    ArchiveError,
    Manifest,
    forget_old,
    kept_manifests,
    read_manifest,
    write_manifest,
)
from runtime.bulk.source import SmileSource
from runtime.files import make_folder, sync_folder
from runtime.log.reader import LoggedStream, LogReader

FILE_ROWS = 4_000_000
"""Events of one compacted file: some 50 to 150 megabytes."""

COMPACT_FILES_MIN = 8
"""So many small neighbours are worth rewriting as one file."""

CHUNK_BYTES = 1 << 20

Told = Callable[[str, int, int], None]
"""stream, events archived now, events to archive in all: for a progress bar."""


@dataclass(frozen=True)
class Archived:
    """What one run did for one stream."""

    stream: str
    events: int
    horizon: int
    files: int


def archive_logs(
    spark: SparkSession, archive: Path, folders: Sequence[Path], told: Told = lambda _stream, _done, _all: None
) -> list[Archived]:
    """Bring the archive up to what the logs in these folders have now. ArchiveBusy if another run is under way."""
    spark.dataSource.register(SmileSource)
    with _locked(archive):
        _clean(archive)
        done: list[Archived] = []
        for folder in folders:
            with LogReader(folder) as reader:
                streams = reader.streams()
            for stream in streams.values():
                if stream.name.startswith("table "):  # rows of a table: they travel with the deployment
                    continue
                done.append(_archive_stream(spark, archive, folder, stream, told))
        for path in forget_old(archive):
            (archive / path).unlink(missing_ok=True)
        return done


def _archive_stream(spark: SparkSession, archive: Path, folder: Path, stream: LoggedStream, told: Told) -> Archived:
    manifest = read_manifest(archive)
    known = manifest.streams.get(stream.name, ArchivedStream(stream.columns))
    if known.columns != stream.columns:
        known = _evolved(stream, known)
    first = known.horizon + 1
    if stream.trimmed_tick > known.horizon:
        raise ArchiveError(
            f"stream `{stream.name}`: its log was trimmed up to tick {stream.trimmed_tick}, the archive ends at"
            f" {known.horizon}. What lies between is lost; name the archive in the broker's settings so that this"
            " cannot happen"
        )
    if stream.last_tick < first:
        return Archived(stream.name, 0, known.horizon, 0)
    frame = (
        spark.read.format("smile")
        .option("stream", stream.name)
        .option("data", str(folder))
        .option("from", str(first))
        .option("to", str(stream.last_tick))
        .load()
    )
    files = _written(archive, stream.name, frame)
    lost = tuple(gap for gap in stream.lost if gap[1] >= first)
    grown = replace(known, horizon=stream.last_tick, gaps=(*known.gaps, *lost), files=(*known.files, *files))
    write_manifest(archive, manifest.with_stream(stream.name, grown))
    events = sum(file.rows for file in files)
    told(stream.name, events, events)
    return Archived(stream.name, events, stream.last_tick, len(files))


def _evolved(stream: LoggedStream, known: ArchivedStream) -> ArchivedStream:
    """A column more, at the end and nullable, is a new version of the schema; older files have nulls there."""
    added = stream.columns[len(known.columns) :]
    if stream.columns[: len(known.columns)] != known.columns or not all(kind.endswith(" null") for _, kind in added):
        raise ArchiveError(
            f"stream `{stream.name}` has the columns {_listed(stream.columns)}, the archive {_listed(known.columns)}:"
            " only nullable columns at the end can be added. Archive the changed stream under another name"
        )
    return replace(known, columns=stream.columns, schema_version=known.schema_version + 1)


def _listed(columns: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns)


# Files


def _written(archive: Path, stream: str, frame: DataFrame) -> tuple[ArchivedFile, ...]:
    """The frame's partitions as files in place, each sorted by tick, in the order of their ticks."""
    temporary = archive / "unfinished" / uuid.uuid4().hex
    frame.sortWithinPartitions(TICK).write.option("compression", "zstd").parquet(str(temporary))
    target = archive / "streams" / quote(stream, safe="")
    make_folder(target)
    found = []
    for path in sorted(temporary.glob("*.parquet")):
        facts = pq.read_metadata(path)
        if facts.num_rows:
            found.append(_moved(archive, path, target, *_ticks_of(facts), rows=facts.num_rows))
    sync_folder(target)
    shutil.rmtree(temporary)
    return tuple(sorted(found, key=lambda file: file.first_tick))


def _ticks_of(facts: pq.FileMetaData) -> tuple[int, int]:
    groups = [facts.row_group(number) for number in range(facts.num_row_groups)]
    at = facts.schema.to_arrow_schema().get_field_index(TICK)
    ends = [group.column(at).statistics for group in groups]
    return min(one.min for one in ends), max(one.max for one in ends)


def _moved(archive: Path, path: Path, target: Path, first: int, last: int, *, rows: int) -> ArchivedFile:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
        os.fsync(file.fileno())
    place = target / f"{first}-{last}-{digest.hexdigest()[:12]}.parquet"
    size = path.stat().st_size
    os.replace(path, place)
    return ArchivedFile(str(place.relative_to(archive)), first, last, rows, size, digest.hexdigest())


def _clean(archive: Path) -> None:
    """What an interrupted run has left: files that no manifest names."""
    shutil.rmtree(archive / "unfinished", ignore_errors=True)
    named = {path for manifest in kept_manifests(archive) for path in manifest.paths}
    for path in (archive / "streams").rglob("*.parquet"):
        if str(path.relative_to(archive)) not in named:
            path.unlink()


@contextmanager
def _locked(archive: Path) -> Iterator[None]:
    make_folder(archive)
    handle = os.open(archive / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ArchiveBusy(f"{archive}: another run is under way") from None
        yield
    finally:
        os.close(handle)


# Compaction


def compact(spark: SparkSession, archive: Path, rows: int = FILE_ROWS) -> int:
    """Rewrite runs of small neighbouring files as one each; how many files went. Readers keep what they opened."""
    with _locked(archive):
        gone = 0
        for name in read_manifest(archive).streams:
            while True:
                manifest = read_manifest(archive)
                run = _small_run(manifest.streams[name].files, rows)
                if len(run) < COMPACT_FILES_MIN:
                    break
                write_manifest(archive, _compacted(spark, archive, manifest, name, run))
                gone += len(run) - 1
        return gone


def _small_run(files: Sequence[ArchivedFile], rows: int) -> tuple[ArchivedFile, ...]:
    """The first run of neighbours that together fit into one file."""
    run: list[ArchivedFile] = []
    for file in files:
        if sum(one.rows for one in run) + file.rows > rows:
            if len(run) >= COMPACT_FILES_MIN:
                break
            run = []
        if file.rows < rows // 2:
            run.append(file)
        else:
            run = []
    return tuple(run)


def _compacted(
    spark: SparkSession, archive: Path, manifest: Manifest, name: str, run: Sequence[ArchivedFile]
) -> Manifest:
    frame = spark.read.option("mergeSchema", "true").parquet(*(str(archive / file.path) for file in run))
    (made,) = _written(archive, name, frame.coalesce(1))
    if made.rows != sum(file.rows for file in run):
        raise ArchiveError(f"stream `{name}`: {made.rows} events after compaction of {sum(f.rows for f in run)}")
    stream = manifest.streams[name]
    at = stream.files.index(run[0])
    files = (*stream.files[:at], made, *stream.files[at + len(run) :])
    return manifest.with_stream(name, replace(stream, files=files))


def verify_files(archive: Path) -> list[str]:
    """Files of the current manifest that are missing or not what they were, in words."""
    wrong: list[str] = []
    for stream in read_manifest(archive).streams.values():
        for file in stream.files:
            path = archive / file.path
            if not path.exists():
                wrong.append(f"{path} is missing")
            elif hashlib.sha256(path.read_bytes()).hexdigest() != file.sha256:
                wrong.append(f"{path} was changed or is damaged")
    return wrong
