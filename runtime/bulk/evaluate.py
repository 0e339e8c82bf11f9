"""Running a bulk program: frames of streams and tables in, the view's frame out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark user knows

from runtime.bulk import exact


def evaluate_bulk(bulk: Callable[..., Any], constants: Sequence[object], sources: Mapping[str, DataFrame]) -> DataFrame:
    """`sources` have columns c0, c1, ... with canonical values, as the compiler numbers them."""
    made = bulk(sources, F, exact, Window, tuple(constants))
    assert isinstance(made, DataFrame) or hasattr(made, "sparkSession")
    return made  # type: ignore[no-any-return]
