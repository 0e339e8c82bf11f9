"""Events that agree with given values in some columns: how many there are for each, and the first ticks of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark user knows


@dataclass(frozen=True)
class Match:
    """Events agree with the n-th of `values` if their columns at `places` have them, nulls included. No places: all do.

    `tick` is the place of the tick; `kinds` are Spark's types of the values.
    """

    tick: int
    places: tuple[int, ...]
    kinds: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]


def first_ticks(spark: SparkSession, events: DataFrame, matches: Sequence[Match], count: int) -> DataFrame:
    """Columns row (the number of the values), events (how many agree in one of the ways), ticks (the first `count`)."""
    found: DataFrame | None = None
    for match in matches:
        kinds = "".join(f", k{at} {kind}" for at, kind in enumerate(match.kinds))
        rows = [(number, *values) for number, values in enumerate(match.values)]
        keys = spark.createDataFrame(rows, f"row bigint{kinds}")
        agree = F.lit(True)
        for at, place in enumerate(match.places):
            agree = agree & F.col(f"c{place}").eqNullSafe(F.col(f"k{at}"))
        one = events.join(F.broadcast(keys), agree).select("row", F.col(f"c{match.tick}").alias("tick"))
        found = one if found is None else found.unionAll(one)
    assert found is not None, "somebody asks about no path at all"
    by_row = Window.partitionBy("row")
    numbered = F.row_number().over(by_row.orderBy("tick"))
    counted = found.distinct().withColumns({"place": numbered, "events": F.count("tick").over(by_row)})
    first = counted.where(F.col("place") <= count).groupBy("row")
    return first.agg(F.max("events").alias("events"), F.array_sort(F.collect_list("tick")).alias("ticks"))
