"""Running a bulk program: frames of streams and tables in, the view's frame out; and that frame as users know it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark user knows

from runtime.bulk import exact
from runtime.bulk.columns import LoggedColumn


def evaluate_bulk(bulk: Callable[..., Any], constants: Sequence[object], sources: Mapping[str, DataFrame]) -> DataFrame:
    """`sources` have columns c0, c1, ... with canonical values, as the compiler numbers them."""
    made = bulk(sources, F, exact, Window, tuple(constants))
    assert isinstance(made, DataFrame) or hasattr(made, "sparkSession")
    return made  # type: ignore[no-any-return]


def evaluate_state(
    bulk: Callable[..., Any], constants: Sequence[object], sources: Mapping[str, DataFrame]
) -> list[DataFrame]:
    """The same for a program that makes the frames of a component's state."""
    return list(bulk(sources, F, exact, Window, tuple(constants)))


def shown(canonical: DataFrame, columns: Mapping[int, LoggedColumn]) -> DataFrame:
    """The columns at these positions, with names and types as users know them."""
    return canonical.select(*(_shown(F.col(f"c{at}"), column).alias(column.name) for at, column in columns.items()))


def _shown(value: Column, column: LoggedColumn) -> Column:
    match column.word:
        case "decimal":
            precision, scale = column.precision
            unit = F.lit(10**scale).cast("decimal(19,0)")
            return (value.cast("decimal(19,0)") / unit).cast(f"decimal({precision},{scale})")
        case "time":
            return F.timestamp_micros(value)
        case _:
            return value
