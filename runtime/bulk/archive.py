"""The archive: ranges of the logs as Parquet files, written by Spark, each event exactly once.

A run reads what the logs have beyond the archive's horizon, writes files beside it, moves them into place, counts
their events, and then names them in a new manifest. Only that last step changes anything for readers. Killed at any
moment, a run leaves at most files that no manifest names; the next run removes them. It reads logs as any reader does,
so publishing goes on. What a log has lost becomes a gap, which is filled should the log have it again. A stream that
cannot be archived does not keep the others from it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from runtime.bulk.archive_files import clean, locked, spark_file, written
from runtime.bulk.columns import tick_name
from runtime.bulk.failures import SPARK_ERRORS, words_of
from runtime.bulk.manifest import (
    ArchiveBusy,
    ArchivedFile,
    ArchivedStream,
    ArchiveError,
    Manifest,
    forget_old,
    read_manifest,
    write_manifest,
)
from runtime.bulk.source import SmileSource
from runtime.log.reader import LoggedStream, LogReader, Ranges
from runtime.log.schema import check_growth
from runtime.log.stream_log import LogError, SchemaChanged
from runtime.protocol.coverage import Coverage

FILE_ROWS = 4_000_000
"""Events of one compacted file: some 50 to 150 megabytes."""

COMPACT_FILES_MIN = 8
"""So many small neighbours of about one size are worth rewriting as one file, which is of the next size then. So an
event is rewritten once for each size, and not whenever a few more have come."""

TABLE = "table "
"""Logs of tables are called so; their rows travel with the deployment."""

Watch = Callable[[str, int], AbstractContextManager[object]]
"""Entered while Spark works: for which stream, and on how many events."""


@dataclass(frozen=True)
class Archived:
    """What one run did for one stream. `gaps` are ticks that the archive lacks, all in all."""

    stream: str
    events: int
    horizon: int
    files: int
    bytes: int
    gaps: Ranges


class Unfinished(ArchiveError):
    """Streams, or folders, that could not be archived, with the reasons; `done` is what was done for the others."""

    def __init__(self, failed: Mapping[str, str], done: Sequence[Archived] = ()) -> None:
        super().__init__("; ".join(failed.values()))
        self.failed = dict(failed)
        self.done = tuple(done)


@contextmanager
def _apart(failed: dict[str, str], name: str) -> Iterator[None]:
    """What goes wrong in the block concerns this stream or folder only, and is noted."""
    try:
        yield
    except ArchiveBusy:
        raise
    except SPARK_ERRORS as error:
        failed[name] = words_of(error)
    except (ArchiveError, LogError, OSError) as error:
        failed[name] = str(error)


@dataclass(frozen=True)
class _Work:
    """What of a stream is to be archived: ranges of ticks, how many events they have, and what is known afterwards."""

    folder: Path
    stream: LoggedStream
    known: ArchivedStream
    ranges: Ranges
    events: int
    gaps: Ranges
    horizon: int
    end_checksum: int | None


def archive_logs(
    spark: SparkSession,
    archive: Path,
    folders: Sequence[Path],
    *,
    watch: Watch = lambda _stream, _events: nullcontext(),
    accept_gaps: bool = False,
) -> list[Archived]:
    """Bring the archive up to what the logs in these folders have now. ArchiveBusy if another run is under way;
    Unfinished if some streams could not be archived, after the others were.

    `accept_gaps`: events that a log has trimmed before they were archived are lost; go on without them.
    """
    spark.dataSource.register(SmileSource)
    done: list[Archived] = []
    failed: dict[str, str] = {}
    with locked(archive):
        read_manifest(archive)  # or nothing can be archived at all
        for folder in folders:
            with _apart(failed, str(folder)), LogReader(folder) as reader:
                for stream in reader.streams().values():
                    if stream.name.startswith(TABLE):
                        continue
                    with _apart(failed, stream.name):
                        known = read_manifest(archive).streams.get(stream.name, ArchivedStream(stream.columns))
                        work = _work(archive, reader, stream, known, accept_gaps=accept_gaps)
                        done.append(_archive(spark, archive, work, watch))
        forget_old(archive)
    if failed:
        raise Unfinished(failed, done)
    return done


def _work(archive: Path, reader: LogReader, stream: LoggedStream, known: ArchivedStream, *, accept_gaps: bool) -> _Work:
    """ArchiveError if this log does not continue the archive."""
    known = _grown(stream, known)
    _check_same_log(archive, reader, stream, known)
    first = known.horizon + 1
    if first <= stream.trimmed_tick and not accept_gaps:
        raise ArchiveError(
            f"stream `{stream.name}`: its log was trimmed up to tick {stream.trimmed_tick}, the archive in {archive}"
            f" ends at {known.horizon}. If it once had more, restore its newest manifest. If not, what lies between is"
            ' lost: `--accept-gaps` goes on without it, and `keep = "archive"` keeps it from happening again'
        )
    horizon = max(stream.last_tick, known.horizon)
    refilled = tuple(part for gap in known.gaps for part in stream.present(*gap))
    gaps = Coverage.of(*(part for gap in known.gaps for part in stream.gone(*gap)), *stream.gone(first, horizon))
    ranges = refilled + stream.present(first, horizon)
    events = sum(reader.count(stream, *one) for one in ranges)
    checksum = reader.checksum_at(stream, horizon) if horizon >= 0 else None
    return _Work(reader.folder, stream, known, ranges, events, tuple(gaps), horizon, checksum)


def _grown(stream: LoggedStream, known: ArchivedStream) -> ArchivedStream:
    """A column more, at the end and nullable or with a default, is a new version of the schema. Older files lack it, or
    have nulls there if they were compacted with newer ones: whoever reads puts the default in their place."""
    if known.columns == stream.columns:
        return known
    try:
        check_growth(stream.name, known.columns, stream.columns)
    except SchemaChanged as changed:
        raise ArchiveError(
            f"{changed} (the archive has {_listed(known.columns)}). Only columns at the end that are"
            " nullable or have a default can be added: archive the changed stream elsewhere"
        ) from changed
    if (tick := tick_name(known.columns)) != tick_name(stream.columns):
        raise ArchiveError(
            f"stream `{stream.name}`: its new column is called `{tick}`, as the ticks are in the archive's files. Call"
            " it otherwise, or archive the changed stream elsewhere"
        )
    return replace(known, columns=stream.columns, schema_version=known.schema_version + 1)


def _check_same_log(archive: Path, reader: LogReader, stream: LoggedStream, known: ArchivedStream) -> None:
    if not known.is_of(reader, stream):
        raise ArchiveError(
            f"stream `{stream.name}`: the archive in {archive} is not of the log in {reader.folder}, which has not the"
            f" event that the archive has at tick {known.horizon}; name another --archive for it"
        )


def _listed(columns: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns)


def _archive(spark: SparkSession, archive: Path, work: _Work, watch: Watch) -> Archived:
    name, known = work.stream.name, work.known
    clean(archive, name, known, work.stream.trimmed_tick)
    files: tuple[ArchivedFile, ...] = ()
    if work.events:
        with watch(name, work.events):
            files = written(archive, name, _frame(spark, work), tick_name(known.columns))
    _check_count(work, files)
    after = replace(
        known,
        horizon=work.horizon,
        end_checksum=work.end_checksum if work.horizon > known.horizon else known.end_checksum,
        gaps=work.gaps,
        files=tuple(sorted((*known.files, *files), key=lambda file: file.first_tick)),
    )
    manifest = read_manifest(archive)
    if manifest.streams.get(name) != after:  # also without an event yet: readers of the archive alone then know of it
        write_manifest(archive, manifest.with_stream(name, after, int(time.time())))
    return Archived(name, work.events, after.horizon, len(files), sum(file.bytes for file in files), after.gaps)


def _frame(spark: SparkSession, work: _Work) -> DataFrame:
    reader = spark.read.format("smile").options(stream=work.stream.name, data=str(work.folder.absolute()))
    frames = [reader.options(**{"from": str(low), "to": str(high)}).load() for low, high in work.ranges]
    return reduce(DataFrame.unionAll, frames)


def _check_count(work: _Work, files: Sequence[ArchivedFile]) -> None:
    """The log may forget what the archive has: so count before saying that it has it."""
    count = sum(file.rows for file in files)
    if count != work.events:
        raise ArchiveError(
            f"stream `{work.stream.name}`: {count} events were written, the log has {work.events}; nothing was changed."
            " Run it again"
        )


# Compaction


def compact(
    spark: SparkSession,
    archive: Path,
    rows: int = FILE_ROWS,
    *,
    watch: Watch = lambda _stream, _events: nullcontext(),
) -> int:
    """Rewrite runs of small neighbouring files as one each; how many files went. Readers keep what they opened.
    Unfinished if that could not be for some streams."""
    gone = 0
    failed: dict[str, str] = {}
    with locked(archive):
        for name in read_manifest(archive).streams:
            with _apart(failed, name):
                while True:
                    manifest = read_manifest(archive)
                    run = _small_run(manifest.streams[name].files, rows)
                    if not run:
                        break
                    with watch(name, sum(file.rows for file in run)):
                        after = _compacted(spark, archive, manifest, name, run)
                    write_manifest(archive, after)
                    gone += len(run) - 1
        forget_old(archive)
    if failed:
        raise Unfinished(failed)
    return gone


def _small_run(files: Sequence[ArchivedFile], rows: int) -> tuple[ArchivedFile, ...]:
    """The neighbours to rewrite next: enough of one size, smaller ones between them included, or all that fit into one
    file. Empty if there are none."""
    sizes = {_size(file) for file in files if file.rows < rows // 2}
    for size in sorted(sizes):
        for run, is_full in _runs(files, rows, size):
            if is_full or sum(_size(file) == size for file in run) >= COMPACT_FILES_MIN:
                return run
    return ()


def _runs(files: Sequence[ArchivedFile], rows: int, size: int) -> Iterator[tuple[tuple[ArchivedFile, ...], bool]]:
    """Neighbours up to this size that together fit into one file, and whether the next one would not."""
    run: list[ArchivedFile] = []
    for file in files:
        is_small = file.rows < rows // 2 and _size(file) <= size
        is_full = is_small and len(run) > 1 and sum(one.rows for one in run) + file.rows > rows
        if is_full or not is_small:
            yield tuple(run), is_full
            run = []
        if is_small:
            run.append(file)
    yield tuple(run), False


def _size(file: ArchivedFile) -> int:
    """Files of one size differ by less than COMPACT_FILES_MIN times."""
    return int(math.log(file.rows, COMPACT_FILES_MIN))


def _compacted(
    spark: SparkSession, archive: Path, manifest: Manifest, name: str, run: Sequence[ArchivedFile]
) -> Manifest:
    frame = spark.read.option("mergeSchema", "true").parquet(*(spark_file(archive / file.path) for file in run))
    tick = tick_name(manifest.streams[name].columns)
    (made,) = written(archive, name, frame.coalesce(1).sortWithinPartitions(tick), tick)
    if made.rows != sum(file.rows for file in run):
        raise ArchiveError(f"stream `{name}`: {made.rows} events after compaction of {sum(f.rows for f in run)}")
    stream = manifest.streams[name]
    at = stream.files.index(run[0])
    files = (*stream.files[:at], made, *stream.files[at + len(run) :])
    return manifest.with_stream(name, replace(stream, files=files), int(time.time()))
