"""Goal: random programs over random events give the same rows in the engine, in Spark and in DuckDB as in the reference
interpreter. `tests/bulk/differential.py` as a command runs thousands."""

from __future__ import annotations

from collections import Counter

import duckdb
from pyspark.sql import SparkSession

from mpl.check import check
from mpl.source import Source
from tests.bulk.differential import compare, duck_differences, generated, left_out, run
from tests.reference.relations import Row

PROGRAMS = 20
THIRD_PROGRAMS = 60


def test_random_programs_agree(spark: SparkSession, cases: int) -> None:
    counts: Counter[str] = Counter()
    wrong = list(run(spark, range(PROGRAMS * cases), counts))
    assert not wrong, f"{wrong[0].name}: {wrong[0].what}\n{wrong[0].text}"
    for engine in ("the engine", "Spark", "DuckDB"):
        assert counts[f"views in {engine}"] >= PROGRAMS * cases * 3 // 4, engine
    assert left_out(counts) is None


def test_a_third_engine_agrees(cases: int) -> None:
    counts: Counter[str] = Counter()
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for seed in range(PROGRAMS * cases, THIRD_PROGRAMS * cases):
        made = generated(seed)
        if made is not None:
            wrong = list(duck_differences(made, connection, counts))
            assert not wrong, f"{wrong[0].name}: {wrong[0].what}\n{wrong[0].text}"
    assert counts["views in DuckDB"] > 3 * counts["not in DuckDB"]
    assert counts["views in DuckDB"] >= (THIRD_PROGRAMS - PROGRAMS) * cases


def test_what_was_left_out_is_noticed() -> None:
    assert left_out(Counter({"programs": 9, "views in Spark": 9, "views in DuckDB": 9})) is None
    for left in ("programs without a value", "not in bulk", "not in DuckDB"):
        assert left_out(Counter({"programs": 9, "views in Spark": 9, "views in DuckDB": 9, left: 5})) is not None


def test_the_comparison_sees_a_missing_a_wrong_and_an_extra_row() -> None:
    program = check(
        Source("one.mpl", "stream S(a int); view V = from S |> aggregate n := count() group by a;")
    ).require()
    schema = program.program.views["V"].schema
    rows: list[Row] = [(1, 2), (2, 3)]
    assert compare(schema, rows, [[1, 2], [2, 3]]) is None
    for other in ([[1, 2]], [[1, 2], [2, 4]], [[1, 2], [2, 3], [3, 1]], [[1, 2], [2, 3], [1, 2]]):
        assert compare(schema, rows, other) is not None
