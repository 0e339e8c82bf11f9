"""A view at a tick: its bulk program run by Spark over the events up to then.

The result is a Spark frame with the view's columns as users know them (decimals, timestamps), so that it can be shown,
written or joined. `canonical` has the values that the engine computes with, for whoever compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compiler.bulk.expressions import spark_type
from compiler.bulk.program import BulkProgram, bulk_program
from compiler.bulk.writer import NotInBulk
from mpl.typed import Schema
from smile.bulk.sources import Sources
from smile.errors import SmileError
from smile.program import Program
from smile.streams import StreamInput
from smile.tables import table_rows


@dataclass(frozen=True)
class Recomputed:
    """`canonical` has columns c0, c1, ... for all of `schema`, hidden ones included. Both are frames of Spark."""

    view: str
    as_of: int
    schema: Schema
    canonical: Any

    @property
    def frame(self) -> Any:
        """With names and types as users know them; hidden columns are left out."""
        from runtime.bulk.columns import LoggedColumn
        from runtime.bulk.evaluate import shown

        columns = {
            at: LoggedColumn(column.name, str(column.type))
            for at, column in enumerate(self.schema.columns)
            if not column.hidden
        }
        return shown(self.canonical, columns)


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
    view: str,
    sources: Sources,
    *,
    as_of: int | None = None,
    tables: Mapping[str, object] | None = None,
) -> Recomputed:
    """The view of all events with a tick up to `as_of`; by default of all that there are.

    Nothing is computed before the frame is used. The caller knows whether all events up to `as_of` are there yet.
    """
    from runtime.bulk.evaluate import evaluate_bulk

    bulk = plan_of(program, view)
    typed = program.checked.program
    streams = [name for name in bulk.sources if name in typed.streams]
    if as_of is None:
        as_of = max(sources.latest(streams).values(), default=-1)
    frames = {name: _events(spark, typed.streams[name].schema, name, sources, as_of) for name in streams}
    for name in bulk.sources:
        if name in typed.tables:
            frames[name] = _table(spark, program, name, tables or {})
    return Recomputed(view, as_of, bulk.schema, evaluate_bulk(bulk.load(), bulk.constants, frames))


def _events(spark: Any, schema: Schema, stream: str, sources: Sources, as_of: int) -> Any:
    """The archive is read as the Parquet that it is; only what it does not have yet goes through our reader."""
    from runtime.bulk.columns import TICK, canonical, logged_columns
    from runtime.bulk.manifest import read_manifest
    from runtime.bulk.source import SmileSource

    columns = {column.name: column for column in logged_columns(sources.columns_of(stream))}
    chosen = []
    for at, column in enumerate(schema.columns):
        if column.is_tick:
            chosen.append(f"{TICK} as c{at}")
        elif column.name not in columns:
            raise SmileError(f"the events of stream `{stream}` have no column `{column.name}`")
        else:
            chosen.append(f"{canonical(columns[column.name])} as c{at}")
    parts = []
    first = 0
    archived = None if sources.archive is None else read_manifest(sources.archive).streams.get(stream)
    if archived is not None and sources.archive is not None:
        paths = [str(sources.archive / file.path) for file in archived.files_in(0, as_of)]
        if paths:
            reader = spark.read.option("mergeSchema", str(archived.schema_version > 1).lower())
            parts.append(reader.parquet(*paths).where(f"{TICK} <= {as_of}").selectExpr(*chosen))
        first = archived.horizon + 1
    if sources.folders and first <= as_of:
        spark.dataSource.register(SmileSource)
        options = {"stream": stream, "data": ",".join(map(str, sources.folders)), "from": str(first), "to": str(as_of)}
        parts.append(spark.read.format("smile").options(**options).load().selectExpr(*chosen))
    if not parts:
        kinds = ", ".join(f"c{at} {spark_type(column.type)}" for at, column in enumerate(schema.columns))
        return spark.createDataFrame([], kinds)
    made = parts[0]
    for part in parts[1:]:
        made = made.unionAll(part)
    return made


def _table(spark: Any, program: Program, name: str, given: Mapping[str, object]) -> Any:
    table = program.checked.program.tables[name]
    taken = StreamInput(table, program.plan.tables[name])
    columns, count = taken.encode_many(table_rows(program, table, given))
    by_name = {cell.name: column for cell, column in zip(taken.cells, columns, strict=True)} if count else {}
    values = [list(by_name[column.name]) if count else [] for column in table.schema.columns]
    kinds = ", ".join(f"c{at} {spark_type(column.type)}" for at, column in enumerate(table.schema.columns))
    return spark.createDataFrame(list(zip(*values, strict=True)), kinds)
