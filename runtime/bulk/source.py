"""The data source `smile` for Spark: events of a stream, from the archive and from the live log.

    spark.dataSource.register(SmileSource)
    spark.read.format("smile").option("stream", "Sellers").option("archive", A).option("data", D).load()
    spark.readStream.format("smile")...

`archive` and `data` are folders (one or both; `data` may name several, separated by commas). Ticks that both have come
from the archive; what leaves the log while it is read, because the archive has it now, too. Ticks that neither has are
an error, unless `missing=skip`. `columns` (comma-separated) reads only some; `from` and `to` are ticks. With
`pushdown=true` filters on the tick skip files and batches too (the session needs
spark.sql.python.filterPushdown.enabled=true). Its column is called `tick`, or `tick_` if the stream has such a column.
A stream query takes about `maxEventsPerTrigger` events at a time. This module runs in Spark's Python workers too: they
need this package, as the documentation says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from runtime.batch import Batch
from runtime.bulk.archive_files import group_ticks
from runtime.bulk.columns import TICK, LoggedColumn, arrow_schema, logged_columns, record_batch, spark_column, tick_name
from runtime.bulk.manifest import ArchivedStream, read_manifest
from runtime.log.reader import LoggedStream, LogReader, TicksGone

TICK_MAX = 2**63 - 1
PARTITION_ROWS = 1_000_000
"""Events of one task: enough to be worth one, few enough to spread over workers."""

BATCH_ROWS = 16_384
"""Events that Spark gets at once, about."""

MAX_EVENTS_PER_TRIGGER = 1_000_000


class SourceError(ValueError):
    """An option is missing or wrong, or events are gone; the message says which."""


@dataclass(frozen=True)
class Piece(InputPartition):
    """Ticks [first..last] of one archived file, or of the log in one folder."""

    place: str
    is_archived: bool
    first: int
    last: int


@dataclass(frozen=True)
class Origin:
    """Where the events of one stream are. Made on the driver, opened again by every worker."""

    stream: str
    archive: str | None
    folders: tuple[str, ...]
    columns: tuple[LoggedColumn, ...]
    skips_missing: bool = False

    @property
    def tick(self) -> str:
        """What the column of ticks is called."""
        return tick_name([(column.name, column.declared) for column in self.columns])

    def archived(self) -> ArchivedStream | None:
        return None if self.archive is None else read_manifest(Path(self.archive)).streams.get(self.stream)

    def logged(self) -> tuple[str, LoggedStream] | None:
        """The folder that has this stream, and how far."""
        for folder in self.folders:
            with LogReader(folder) as reader:
                found = reader.streams().get(self.stream)
            if found is not None:
                return folder, found
        return None

    def latest(self) -> int:
        """All events up to this tick are there."""
        archived, logged = self.archived(), self.logged()
        return max(archived.horizon if archived else -1, logged[1].last_tick if logged else -1)

    def pieces(self, first: int, last: int, rows: int = PARTITION_ROWS) -> list[Piece]:
        """Disjoint pieces that hold all events in [first..last]. SourceError if some are nowhere."""
        # In this order: what the log forgets meanwhile is in the archive by then.
        logged, archived = self.logged(), self.archived()
        found: list[Piece] = []
        missing: list[tuple[int, int]] = []
        if archived is not None:
            until = min(last, archived.horizon)
            missing += archived.gaps_in(first, until)
            found += self._archived_pieces(archived, first, until, rows)
            first = max(first, archived.horizon + 1)
        if logged is not None:
            folder, stream = logged
            last = min(last, stream.last_tick)
            missing += stream.gone(first, last)
            for low, high in stream.present(first, last):
                found += _log_pieces(folder, stream, low, high, rows)
        if missing and not self.skips_missing:
            raise self._missing(*missing[0])
        return found

    def _missing(self, first: int, last: int) -> SourceError:
        places = ", ".join(filter(None, (self.archive, *self.folders)))
        return SourceError(
            f"events of stream `{self.stream}` at ticks {first}..{last} are no longer in {places}. Name the archive"
            ' that has them, read .option("from", TICK) onwards, or do without: .option("missing", "skip")'
        )

    def _archived_pieces(self, archived: ArchivedStream, first: int, last: int, rows: int) -> list[Piece]:
        """Large files are cut, by ticks: as if these were spread evenly."""
        found: list[Piece] = []
        for file in archived.files_in(first, last):
            path = str(Path(self.archive or "") / file.path)
            low, high = max(first, file.first_tick), min(last, file.last_tick)
            step = max(1, (file.last_tick - file.first_tick + 1) * rows // file.rows)
            found += [Piece(path, True, at, min(at + step - 1, high)) for at in range(low, high + 1, step)]
        return found

    def read(self, piece: Piece, names: Sequence[str]) -> Iterator[Any]:
        """What has left the log since the pieces were made is in the archive now."""
        if piece.is_archived:
            yield from _archived_batches(piece, self.columns, names)
            return
        first = piece.first
        while first <= piece.last:
            try:
                for batch in _logged_batches(piece.place, self.stream, first, piece.last):
                    yield record_batch(self.columns, batch).select(list(names))
                    first = batch.max_ticks[-1] + 1
                return
            except TicksGone:
                archived = self.archived()
                until = -1 if archived is None else min(piece.last, archived.horizon)
                if archived is None or until < first or archived.gaps_in(first, until):
                    raise
            for one in self._archived_pieces(archived, first, until, PARTITION_ROWS):
                yield from _archived_batches(one, self.columns, names)
            first = until + 1


def _logged_batches(folder: str, stream: str, first: int, last: int) -> Iterator[Batch]:
    """Gathered: events may have been published one by one. TicksGone comes after everything that was there before."""
    gathered: list[Batch] = []
    rows = 0
    try:
        with LogReader(folder) as reader:
            for batch in reader.batches(reader.streams()[stream], first, last):
                gathered.append(batch)
                rows += len(batch)
                if rows >= BATCH_ROWS:
                    yield Batch.concat(gathered)
                    gathered, rows = [], 0
    except TicksGone:
        if gathered:
            yield Batch.concat(gathered)
        raise
    if gathered:
        yield Batch.concat(gathered)


def _log_pieces(folder: str, stream: LoggedStream, first: int, last: int, rows: int) -> list[Piece]:
    """Cut between batches."""
    with LogReader(folder) as reader:
        ranges = reader.ranges(stream, first, last)
    found: list[Piece] = []
    start, events = first, 0
    for at, one in enumerate(ranges):
        events += one.events
        is_end = at + 1 == len(ranges)
        if is_end or events + ranges[at + 1].events > rows:
            end = last if is_end else one.last_tick
            found.append(Piece(folder, False, start, end))
            start, events = end + 1, 0
    return found


def _archived_batches(piece: Piece, columns: Sequence[LoggedColumn], names: Sequence[str]) -> Iterator[Any]:
    """Files of an older version of the schema lack the newest columns: those are null there, or have their default."""
    file = pq.ParquetFile(piece.place)
    wanted = arrow_schema(columns)
    declared = {column.name: column for column in columns}
    tick = wanted.names[0]
    stored = [name for name in dict.fromkeys([*names, tick]) if name in file.schema_arrow.names]
    groups = [
        number
        for number, (first, last) in group_ticks(file.metadata, tick).items()
        if first <= piece.last and piece.first <= last
    ]
    for batch in file.iter_batches(row_groups=groups, columns=stored):
        ticks = batch.column(tick)
        inside = batch.filter(pc.and_(pc.greater_equal(ticks, piece.first), pc.less_equal(ticks, piece.last)))
        found = {
            name: inside.column(name).cast(wanted.field(name).type)
            if name in stored
            else pa.nulls(len(inside), wanted.field(name).type)
            for name in names
        }
        arrays = [declared[name].filled(found[name]) if name in declared else found[name] for name in names]
        yield pa.RecordBatch.from_arrays(arrays, names=list(names))


class SmileSource(DataSource):
    """Options: stream, archive, data, columns, from, to, missing, pushdown, maxEventsPerTrigger."""

    @classmethod
    def name(cls) -> str:
        return "smile"

    def _origin(self) -> Origin:
        stream, archive, data = (self.options.get(name) for name in ("stream", "archive", "data"))
        if not stream:
            raise SourceError('the option "stream" is missing: .option("stream", NAME)')
        if not archive and not data:
            raise SourceError('neither "archive" nor "data" is given: name the folder of an archive or of a broker')
        # Absolute: workers have other folders of their own.
        archive = str(Path(archive).absolute()) if archive else None
        # A comma may also be part of the name of the one folder that is meant.
        parts = [data] if data and Path(data).is_dir() else (data or "").split(",")
        folders = tuple(str(Path(part).absolute()) for part in parts if part)
        origin = Origin(stream, archive, folders, ())
        archived, logged = origin.archived(), origin.logged()
        if archived is None and logged is None:
            raise SourceError(f"no stream `{stream}` in {', '.join(filter(None, (archive, *folders)))}")
        if archived is not None and logged is not None:
            with LogReader(logged[0]) as reader:
                if not archived.is_of(reader, logged[1]):
                    raise SourceError(
                        f"the archive in {archive} is not of the log in {logged[0]}, which does not have the event of"
                        f" stream `{stream}` that the archive has at tick {archived.horizon}: name one of the two"
                    )
        stored = logged[1].columns if logged is not None else archived.columns if archived is not None else ()
        if archived is not None and tick_name(archived.columns) != tick_name(stored):
            raise SourceError(
                f"stream `{stream}` has got a column `{tick_name(archived.columns)}`, as the ticks are called in"
                f" {archive}: call it otherwise, or archive the changed stream elsewhere"
            )
        missing = self.options.get("missing", "refuse")
        if missing not in ("refuse", "skip"):
            raise SourceError(f'the option "missing" is "refuse" or "skip", not {missing!r}')
        return Origin(stream, archive, folders, logged_columns(stored), missing == "skip")

    def _names(self, origin: Origin) -> tuple[str, ...]:
        known = (origin.tick, *(column.name for column in origin.columns))
        given = tuple(part.strip() for part in (self.options.get("columns") or "").split(",") if part.strip())
        for name in given:
            if name not in known:
                raise SourceError(f"stream `{origin.stream}` has no column `{name}`; it has {', '.join(known)}")
        return given or known

    def schema(self) -> str:
        origin = self._origin()
        names = self._names(origin)
        by_name = {origin.tick: f"{origin.tick} bigint", **{c.name: spark_column(c) for c in origin.columns}}
        return ", ".join(by_name[name] for name in names)

    def reader(self, schema: Any) -> DataSourceReader:
        origin = self._origin()
        kind = PruningReader if self.options.get("pushdown") == "true" else EventReader
        return kind(origin, self._names(origin), self._end("from", 0), self._end("to", TICK_MAX))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        origin = self._origin()
        limit = int(self.options.get("maxEventsPerTrigger") or MAX_EVENTS_PER_TRIGGER)
        return EventStreamReader(origin, self._names(origin), self._end("from", 0), limit)

    def _end(self, option: str, default: int) -> int:
        given = self.options.get(option)
        try:
            return default if given is None else int(given)
        except ValueError:
            raise SourceError(f'the option "{option}" is a tick, not {given!r}') from None


class EventReader(DataSourceReader):
    def __init__(self, origin: Origin, names: tuple[str, ...], first: int, last: int) -> None:
        self._origin = origin
        self._names = names
        self._first = first
        self._last = last

    def partitions(self) -> Sequence[InputPartition]:
        return self._origin.pieces(self._first, self._last) or [Piece("", True, 0, -1)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Piece)
        if partition.last < partition.first:
            return iter(())
        return self._origin.read(partition, self._names)


class PruningReader(EventReader):
    """Skips ticks that a filter excludes. Spark refuses a reader that can do this unless the session allows it, hence
    the option `pushdown`; our own session does."""

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802  Spark's name
        """Ticks are pruned here; every filter is still applied by Spark, which is cheap and cannot be wrong."""
        tick_column = self._origin.tick
        for one in filters:
            match one:
                case GreaterThanOrEqual(attribute=(name,), value=int(tick)) if name == tick_column:
                    self._first = max(self._first, tick)
                case GreaterThan(attribute=(name,), value=int(tick)) if name == tick_column:
                    self._first = max(self._first, tick + 1)
                case LessThanOrEqual(attribute=(name,), value=int(tick)) if name == tick_column:
                    self._last = min(self._last, tick)
                case LessThan(attribute=(name,), value=int(tick)) if name == tick_column:
                    self._last = min(self._last, tick - 1)
                case EqualTo(attribute=(name,), value=int(tick)) if name == tick_column:
                    self._first, self._last = max(self._first, tick), min(self._last, tick)
                case _:
                    pass
            yield one


class EventStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The offset is a tick: everything up to it has been read."""

    def __init__(self, origin: Origin, names: tuple[str, ...], first: int, limit: int) -> None:
        self._origin = origin
        self._names = names
        self._first = first
        self._limit = limit
        self._target = TICK_MAX

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        """What comes later is for another run. Without this Spark would take everything at once."""
        self._target = self._origin.latest()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        return ReadMaxRows(self._limit)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  Spark's name
        return {TICK: self._first - 1}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802  Spark's name
        latest = max(min(self._origin.latest(), self._target), start[TICK])
        if isinstance(limit, ReadAllAvailable):
            return {TICK: latest}
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else self._limit
        pieces = self._origin.pieces(start[TICK] + 1, latest, rows)
        return {TICK: pieces[0].last if pieces else latest}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return self._origin.pieces(start[TICK] + 1, end[TICK])

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Piece)
        return self._origin.read(partition, self._names)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing to release: the log and the archive decide themselves what they keep."""
