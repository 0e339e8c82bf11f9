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
        by_key = all(origin.columns for origin in origins)
        with spark_errors(view):
            events = events_in(spark, schema, stream, sources, ticks[stream], accept_loss=accept_loss)
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
    from runtime.bulk.matching import Match, first_ticks

    matches = []
    for origin in origins:
        schema = program.streams[origin.stream].schema
        tick = next(at for at, column in enumerate(schema.columns) if column.is_tick)
        places = [columns.index(at) for at, _ in origin.columns]
        kinds = [spark_type(schema.columns[place].type) for _, place in origin.columns]
        values = [tuple(row[place] for place in places) for row in rows]
        matches.append(Match(tick, tuple(place for _, place in origin.columns), tuple(kinds), tuple(values)))
    return first_ticks(spark, events, matches, TICKS_SHOWN)
