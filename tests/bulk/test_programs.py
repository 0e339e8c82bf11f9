"""Goal: random programs over random events give the same rows in Spark as in the reference interpreter."""

from __future__ import annotations

from collections import Counter

import duckdb
from pyspark.sql import SparkSession

from mpl.check import check
from mpl.source import Source
from tests.bulk.differential import compare, generated, run
from tests.bulk.duck import NotInDuck, duck_rows
from tests.reference.relations import Row

PROGRAMS = 20
THIRD_PROGRAMS = 60


def test_random_programs_agree(spark: SparkSession, cases: int) -> None:
    counts: Counter[str] = Counter()
    wrong = list(run(spark, range(PROGRAMS * cases), counts))
    assert not wrong, f"{wrong[0].name}: {wrong[0].what}\n{wrong[0].text}"
    assert counts["views"] >= PROGRAMS


def test_a_third_engine_agrees(cases: int) -> None:
    counts: Counter[str] = Counter()
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for seed in range(THIRD_PROGRAMS * cases):
        made = generated(seed)
        if made is None:
            continue
        for view, expected in made.expected.items():
            try:
                found = duck_rows(made.program, view, made.rows, connection)
            except NotInDuck:
                counts["left out"] += 1
                continue
            counts["views"] += 1
            problem = compare(made.program.views[view].schema, expected, found)
            assert problem is None, f"program {seed}, view {view}: {problem}\n{made.text}"
    assert counts["views"] > 3 * counts["left out"]
    assert counts["views"] >= THIRD_PROGRAMS


def test_the_comparison_sees_a_missing_a_wrong_and_an_extra_row() -> None:
    program = check(
        Source("one.mpl", "stream S(a int); view V = from S |> aggregate n := count() group by a;")
    ).require()
    schema = program.program.views["V"].schema
    rows: list[Row] = [(1, 2), (2, 3)]
    assert compare(schema, rows, [[1, 2], [2, 3]]) is None
    for other in ([[1, 2]], [[1, 2], [2, 4]], [[1, 2], [2, 3], [3, 1]]):
        assert compare(schema, rows, other) is not None
