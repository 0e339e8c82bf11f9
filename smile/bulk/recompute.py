"""A view at a tick: its bulk program run by Spark over the events up to then.

The result is a Spark frame with the view's columns as users know them (decimals, timestamps), so that it can be shown,
written or joined. `canonical` has the values that the engine computes with, for whoever compares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compiler.bulk.expressions import spark_type
from compiler.bulk.program import BulkProgram, bulk_program
from compiler.bulk.writer import NotInBulk
from mpl.typed import Column, Schema
from runtime.log.reader import TicksGone
from runtime.log.schema import NULLABLE
from runtime.protocol.coverage import Coverage
from smile.bulk.as_of import condition, held, require_events
from smile.bulk.sources import Sources, reading
from smile.errors import SmileError
from smile.program import Program
from smile.streams import StreamInput
from smile.tables import table_rows
from smile.values import decode

if TYPE_CHECKING:
    from runtime.bulk.columns import LoggedColumn

LOCAL_EVENTS_MAX = 200_000
"""Of a log, read in this process and handed to Spark: some ten megabytes. More are read by Spark's workers."""


@dataclass(frozen=True)
class Recomputed:
    """`canonical` has columns c0, c1, ... for all of `schema`, hidden ones included. Both are frames of Spark."""

    view: str
    as_of: int
    schema: Schema
    canonical: Any
    events: int
    """Roughly how many have to be read for it."""

    @property
    def visible(self) -> tuple[tuple[int, Column], ...]:
        """The columns that users see, with their positions."""
        return tuple((at, column) for at, column in enumerate(self.schema.columns) if not column.hidden)

    def canonical_rows(self) -> list[tuple[Any, ...]]:
        """The values that users see, as the engine has them; in no order."""
        places = [f"c{at}" for at, _ in self.visible]
        with spark_errors(self.view):
            if not places:
                return [()] * self.canonical.count()
            table = self.canonical.select(*places).toArrow()
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def rows(self, limit: int | None = None) -> list[dict[str, object]]:
        """As users know them, in the order of the key."""
        order = [self.canonical[f"c{position}"].asc_nulls_last() for position in self.schema.key]
        ordered = self.canonical.orderBy(*order) if order else self.canonical
        chosen = ordered if limit is None else ordered.limit(limit)
        with spark_errors(self.view):
            found = chosen.collect()
        return [{column.name: decode(row[at], column.type) for at, column in self.visible} for row in found]

    @property
    def frame(self) -> Any:
        """With names and types as users know them; hidden columns are left out."""
        from runtime.bulk.columns import LoggedColumn
        from runtime.bulk.evaluate import shown

        return shown(self.canonical, {at: LoggedColumn(column.name, str(column.type)) for at, column in self.visible})


@contextmanager
def spark_errors(view: str) -> Iterator[None]:
    """What Spark complains about while it computes a view is a SmileError of one sentence."""
    from runtime.bulk.failures import SPARK_ERRORS, words_of

    try:
        yield
    except SPARK_ERRORS as error:
        raise SmileError(f"`{view}` cannot be computed: {words_of(error)}") from error


def plan_of(program: Program, view: str) -> BulkProgram:
    """The bulk program of a view; SmileError if Spark cannot compute it the same way."""
    typed = program.checked.program
    if view not in typed.views:
        raise program.unknown("view", view, typed.views)
    try:
        return bulk_program(typed, view)
    except NotInBulk as reason:
        raise SmileError(f"view `{view}` cannot be computed in bulk: {reason}") from reason


def recompute(
    spark: Any,
    program: Program,
    name: str,
    sources: Sources,
    *,
    as_of: int | None = None,
    within: Mapping[str, Coverage] | None = None,
    tables: Mapping[str, object] | None = None,
    accept_loss: bool = False,
) -> Recomputed:
    """A view, or a stream or table itself, of all events with a tick up to `as_of`; by default of all that there are.

    `within` gives for each stream the ticks that count, which may have gaps, instead. Nothing is computed before the
    frame is used. SmileError if events in these ticks are no longer there; the caller knows whether all are there yet.
    Where only an archive is known, streams count as silent after its end, unless `within` is given.
    """
    typed = program.checked.program
    bulk = None if name in typed.streams or name in typed.tables else plan_of(program, name)
    inputs = (name,) if bulk is None else bulk.sources
    streams = [one for one in inputs if one in typed.streams]
    if as_of is None:
        as_of = max(sources.latest(streams).values(), default=-1)
    ticks = {stream: Coverage.prefix(as_of) if within is None else within[stream] for stream in streams}
    events = require_events(sources, ticks, archive_is_all=within is None, accept_loss=accept_loss)
    with spark_errors(name):
        frames = {
            one: events_in(spark, typed.streams[one].schema, one, sources, ticks[one], accept_loss=accept_loss)
            for one in streams
        }
        for one in inputs:
            if one in typed.tables:
                frames[one] = _table(spark, program, one, tables or {})
    if bulk is None:
        base = typed.streams[name] if name in typed.streams else typed.tables[name]
        return Recomputed(name, as_of, base.schema, frames[name], events)
    from runtime.bulk.evaluate import evaluate_bulk

    with spark_errors(name):
        made = evaluate_bulk(bulk.load(), bulk.constants, frames)
    return Recomputed(name, as_of, bulk.schema, made, events)


def events_in(
    spark: Any, schema: Schema, stream: str, sources: Sources, ticks: Coverage, *, accept_loss: bool = False
) -> Any:
    """The events of a stream in these ticks, with columns c0, c1, ... of canonical values.

    The archive is read as the Parquet that it is; only what it does not have yet comes from the log.
    """
    from runtime.bulk.archive_files import spark_file
    from runtime.bulk.columns import canonical, logged_columns, spark_schema, tick_name

    stored = sources.columns_of(stream)
    columns, tick = {column.name: column for column in logged_columns(stored)}, tick_name(stored)
    chosen: list[str] = []
    for at, column in enumerate(schema.columns):
        if not column.is_tick:
            _check_column(stream, column, columns.get(column.name))
        chosen.append(f"{tick if column.is_tick else canonical(columns[column.name])} as c{at}")
    parts = []
    first, last = 0, ticks.highest()
    archived = sources.archived().get(stream)
    if archived is not None and sources.archive is not None:
        if tick_name(archived.columns) != tick:
            raise SmileError(
                f"stream `{stream}` has got a column `{tick_name(archived.columns)}`, as the ticks are called in the"
                f" archive {sources.archive}; call it otherwise, or archive the changed stream elsewhere"
            )
        # Named columns: Spark need not look into files first, and those added later are null in older files, which
        # `canonical` turns into the default of those that have one.
        reader = spark.read.schema(spark_schema(list(columns.values())))
        whole: list[str] = []
        cut: list[str] = []
        for file in archived.files_in(0, last):
            is_whole = ticks.contains(Coverage.of((file.first_tick, file.last_tick)))
            (whole if is_whole else cut).append(spark_file(sources.archive / file.path))
        if whole:  # without a condition on the tick, which is then not even read
            parts.append(reader.parquet(*whole))
        if cut:
            parts.append(reader.parquet(*cut).where(condition(tick, ticks)))
        first = archived.horizon + 1
    if first <= last and held(sources, stream).log is not None:
        logged = _logged(spark, stream, sources, first, last, accept_loss=accept_loss)
        parts.append(logged.where(condition(tick, ticks)))
    if not parts:
        kinds = ", ".join(f"c{at} {spark_type(column.type)}" for at, column in enumerate(schema.columns))
        return spark.createDataFrame([], kinds)
    made = parts[0].selectExpr(*chosen)
    for part in parts[1:]:
        made = made.unionAll(part.selectExpr(*chosen))
    return made


def _check_column(stream: str, column: Column, logged: LoggedColumn | None) -> None:
    """A program that does not run may say anything about a stream; brokers have compared one that does."""
    from runtime.bulk.columns import LoggedColumn

    if logged is None:
        raise SmileError(f"the events of stream `{stream}` have no column `{column.name}`")
    is_null_new = logged.declared.endswith(NULLABLE) and not column.nullable
    if is_null_new or not logged.is_like(LoggedColumn(column.name, str(column.type))):
        declared = f"{column.type}{NULLABLE if column.nullable else ''}"
        raise SmileError(
            f"column `{column.name}` of stream `{stream}` was logged as {logged.declared}, and the program says"
            f" {declared}; declare it as it was logged, and `extend` a column with a cast"
        )


def _logged(spark: Any, stream: str, sources: Sources, first: int, last: int, *, accept_loss: bool) -> Any:
    """What the log has in [first..last]. A short tail is read here: starting workers for it would take longer, and they
    need not have our package or see the broker's folder. A long one is read by the workers."""
    import pyarrow as pa

    from runtime.bulk.columns import arrow_schema, logged_columns, record_batch
    from runtime.bulk.source import SmileSource

    found = held(sources, stream)
    assert found.folder is not None
    assert found.log is not None
    with reading(found.folder) as reader, suppress(TicksGone):  # in the middle of it: then the source goes on
        ranges = reader.ranges(found.log, first, last)
        if sum(one.events for one in ranges) <= LOCAL_EVENTS_MAX:
            columns = logged_columns(found.log.columns)
            parts = found.log.present(first, last) if accept_loss else ((first, last),)
            batches = [record_batch(columns, batch) for part in parts for batch in reader.batches(found.log, *part)]
            return spark.createDataFrame(pa.Table.from_batches(batches, arrow_schema(columns)))
    spark.dataSource.register(SmileSource)
    options = {"stream": stream, "data": str(found.folder), "from": str(first), "to": str(last)}
    if sources.archive is not None:  # which has by then what leaves the log
        options["archive"] = str(sources.archive)
    if accept_loss:
        options["missing"] = "skip"
    return spark.read.format("smile").options(**options).load()


def _table(spark: Any, program: Program, name: str, given: Mapping[str, object]) -> Any:
    table = program.checked.program.tables[name]
    taken = StreamInput(table, program.plan.tables[name])
    columns, count = taken.encode_many(table_rows(program, table, given))
    by_name = {cell.name: column for cell, column in zip(taken.cells, columns, strict=True)} if count else {}
    values = [list(by_name[column.name]) if count else [] for column in table.schema.columns]
    kinds = ", ".join(f"c{at} {spark_type(column.type)}" for at, column in enumerate(table.schema.columns))
    return spark.createDataFrame(list(zip(*values, strict=True)), kinds)
