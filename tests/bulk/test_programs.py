"""Goal: random programs over random events give the same rows in Spark as in the reference interpreter."""

from __future__ import annotations

from collections import Counter

from pyspark.sql import SparkSession

from mpl.check import check
from mpl.source import Source
from tests.bulk.differential import compare, run
from tests.reference.relations import Row

PROGRAMS = 20


def test_random_programs_agree(spark: SparkSession, cases: int) -> None:
    counts: Counter[str] = Counter()
    wrong = list(run(spark, range(PROGRAMS * cases), counts))
    assert not wrong, f"{wrong[0].name}: {wrong[0].what}\n{wrong[0].text}"
    assert counts["views"] >= PROGRAMS


def test_the_comparison_sees_a_missing_a_wrong_and_an_extra_row() -> None:
    program = check(
        Source("one.mpl", "stream S(a int); view V = from S |> aggregate n := count() group by a;")
    ).require()
    schema = program.program.views["V"].schema
    rows: list[Row] = [(1, 2), (2, 3)]
    assert compare(schema, rows, [[1, 2], [2, 3]]) is None
    for other in ([[1, 2]], [[1, 2], [2, 4]], [[1, 2], [2, 3], [3, 1]]):
        assert compare(schema, rows, other) is not None
