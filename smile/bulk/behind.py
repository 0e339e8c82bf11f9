"""The events behind rows: which ticks of which streams can have made a row what it is or should be.

Found by the columns that the view passes on from its streams (`compiler/bulk/origins.py`), by Spark, for a few rows at
a time. An event that is listed need not have counted; one that counted is among those counted here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compiler.bulk.expressions import spark_type
from compiler.bulk.origins import Origin, origins_of
from mpl.typed import TypedProgram
from runtime.protocol.coverage import Coverage
from smile.bulk.recompute import events_in, spark_errors
from smile.bulk.sources import Sources

TICKS_SHOWN = 5


@dataclass(frozen=True)
class Behind:
    """Events of one stream. `ticks` are the first few. `by_key`: only those that agree with the row in some column."""

    stream: str
    events: int
    ticks: tuple[int, ...]
    by_key: bool


def behind(
    spark: Any,
    program: TypedProgram,
    view: str,
    columns: tuple[int, ...],
    rows: Sequence[tuple[Any, ...]],
    sources: Sources,
    ticks: Mapping[str, Coverage],
    *,
    accept_loss: bool = False,
) -> list[tuple[Behind, ...]]:
    """For each row, given by the canonical values of these columns of the view, the events behind it."""
    found: list[list[Behind]] = [[] for _ in rows]
    paths: dict[str, list[Origin]] = {}
    for origin in origins_of(program, view, columns):
        paths.setdefault(origin.stream, []).append(origin)
    for stream, origins in paths.items():
        schema = program.streams[stream].schema
        events = events_in(spark, schema, stream, sources, ticks[stream], accept_loss=accept_loss)
        by_key = all(origin.columns for origin in origins)
        with spark_errors(view):
            for row in _first_ticks(spark, program, events, origins, columns, rows).collect():
                found[row["row"]].append(Behind(stream, row["events"], tuple(row["ticks"]), by_key))
    return [tuple(each) for each in found]


def _first_ticks(
    spark: Any,
    program: TypedProgram,
    events: Any,
    origins: Sequence[Origin],
    columns: tuple[int, ...],
    rows: Sequence[tuple[Any, ...]],
) -> Any:
    """A frame: number of a row, how many events, their first ticks."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812  the name that every Spark user knows

    matched = None
    for origin in origins:
        schema = program.streams[origin.stream].schema
        tick = next(at for at, column in enumerate(schema.columns) if column.is_tick)
        kinds = ", ".join(f"k{at} {spark_type(schema.columns[place].type)}" for at, place in origin.columns)
        values = [(number, *(row[columns.index(at)] for at, _ in origin.columns)) for number, row in enumerate(rows)]
        keys = spark.createDataFrame(values, f"row bigint{', ' if kinds else ''}{kinds}")
        agree = F.lit(True)
        for at, place in origin.columns:
            agree = agree & F.col(f"c{place}").eqNullSafe(F.col(f"k{at}"))
        one = events.join(F.broadcast(keys), agree).select("row", F.col(f"c{tick}").alias("tick"))
        matched = one if matched is None else matched.unionAll(one)
    assert matched is not None
    by_row = Window.partitionBy("row")
    numbered = F.row_number().over(by_row.orderBy("tick"))
    counted = matched.distinct().withColumns({"place": numbered, "events": F.count("tick").over(by_row)})
    first = counted.where(F.col("place") <= TICKS_SHOWN).groupBy("row")
    return first.agg(F.max("events").alias("events"), F.array_sort(F.collect_list("tick")).alias("ticks"))
