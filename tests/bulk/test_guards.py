"""Goal: what may have no value is evaluated for the rows that reach it, and not for those that a join keeps out."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from compiler.bulk.program import bulk_program
from mpl.check import check
from mpl.source import Source
from runtime.bulk.evaluate import evaluate_bulk
from tests.bulk.differential import compare, frame_of, source_schema
from tests.reference.relations import Row, evaluate_program

STREAMS = "stream A(k int, x int);\nstream B(k int, z int);\n"
EVENTS: dict[str, list[Row]] = {
    "A": [(1, 0, 10), (2, 5, 20), (3, 4, 30)],
    "B": [(2, 7, 11), (2, 1, 21), (9, 0, 31)],
}
"""Dividing by x or z has no value for the first of A and the last of B, which have no partner."""


@pytest.mark.parametrize(
    "view",
    [
        "from A |> join B on k = B.k |> where 10 / x > 1",
        "from A |> join B on k = B.k |> extend r := 10 / x |> where r > 1",
        "from A |> join B on k = B.k |> extend r := 10 / x |> join B as C on r = C.k",
        "from A |> join B on k = B.k and 10 / x > 1",
        "from A |> join B on k = B.k and 10 / B.z > 1",
        "from A |> left join B on k = B.k and 10 / B.z > 1",
        "from A |> full join B on k = B.k and 10 / (x * B.z) > 1",
        "from A |> matching B on k = B.k |> where 10 / x > 1",
        "from A |> matching B on k = B.k and 10 / x > 1",
        "from A |> not matching B on k = B.k and 10 / B.z > 1",
        "from A |> not matching (from A |> where x = 0) as C on k = C.k |> where 10 / x > 1",
    ],
)
def test_rows_that_a_join_keeps_out_are_not_looked_at(spark: SparkSession, view: str) -> None:
    program = check(Source("guards.mpl", f"{STREAMS}view V = {view};")).require().program
    bulk = bulk_program(program, "V")
    frames = {name: frame_of(spark, source_schema(program, name), EVENTS[name]) for name in bulk.sources}
    found = [tuple(row) for row in evaluate_bulk(bulk.load(), bulk.constants, frames).collect()]
    expected = evaluate_program(program, EVENTS, {})["V"]
    assert compare(program.views["V"].schema, expected, found) is None


def test_rows_that_get_there_are(spark: SparkSession) -> None:
    program = check(Source("guards.mpl", f"{STREAMS}view V = from A |> where 10 / x > 1;")).require().program
    bulk = bulk_program(program, "V")
    frame = frame_of(spark, source_schema(program, "A"), EVENTS["A"])
    with pytest.raises(PySparkException, match="by zero"):
        evaluate_bulk(bulk.load(), bulk.constants, {"A": frame}).collect()
