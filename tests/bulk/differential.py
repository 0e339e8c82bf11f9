"""Random programs through the streaming engine, Spark and DuckDB, each against the reference interpreter.

    python -m tests.bulk.differential --programs 2000 [--start SEED]

Events go through the engine first, which gives them their ticks; then all compute from the same events. Views of many
programs go into one Spark job, because a job costs more than what it computes here. A program whose evaluation fails
in the reference is left out, and so is in each engine what it cannot say; how much that was is printed, and too much
is a failure like a difference.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import duckdb
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import smile
from compiler.bulk.expressions import spark_type
from compiler.bulk.program import BulkProgram, bulk_program
from compiler.bulk.writer import NotInBulk
from compiler.graph.build import graph_of
from mpl.failures import EvaluationError
from mpl.typed import Schema, TypedProgram
from mpl.types import FloatType, Value
from runtime.bulk.evaluate import evaluate_bulk
from runtime.bulk.session import SparkSettings, session
from tests.bulk.duck import NotInDuck, duck_rows
from tests.generator.program import generate
from tests.reference.relations import KeyBroken, Row, evaluate_program
from tests.smile.test_against_reference import Run, as_dict, in_order

EVENTS = 24
VIEWS_PER_JOB = 40
FLOAT_TOLERANCE = 1e-9
SMALL_JOBS = {"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false"}


@dataclass(frozen=True)
class Case:
    """One view of one program with what it must show."""

    name: str
    text: str
    bulk: BulkProgram
    frame: DataFrame
    schema: Schema
    expected: list[Row]


@dataclass(frozen=True)
class Difference:
    name: str
    text: str
    what: str


@dataclass(frozen=True)
class Generated:
    """A random program with random events: what the reference makes of them, and what the engine shows."""

    seed: int
    text: str
    program: TypedProgram
    rows: dict[str, list[Row]]
    expected: dict[str, list[Row]]
    shown: dict[str, list[dict[str, object]]]


def generated(seed: int) -> Generated | None:
    """None if the program has no value for these events, calls Python, or has windows, which do not run yet."""
    text = generate(seed).text
    try:
        run = Run(seed, text)
    except smile.MplError as refused:
        if "CMP0101" not in {found.code.name for found in refused.diagnostics}:
            raise
        return None
    with run.system as system:
        if run.python:
            return None
        run.publish(EVENTS)
        try:
            expected = evaluate_program(run.typed, run.events, run.tables)
        except (EvaluationError, KeyBroken):
            return None
        system.settle()
        shown = {view: system.rows(view) for view in expected if view in run.program.plan.views}
    return Generated(seed, text, run.typed, {**run.events, **run.tables}, expected, shown)


def engine_differences(made: Generated, counts: Counter[str]) -> Iterator[Difference]:
    for view, rows in made.shown.items():
        counts["views in the engine"] += 1
        schema = made.program.views[view].schema
        if rows != [as_dict(schema, row) for row in in_order(schema, made.expected[view])]:
            yield Difference(f"{made.seed}:{view}", made.text, f"the engine shows {rows}")


def duck_differences(
    made: Generated, connection: duckdb.DuckDBPyConnection, counts: Counter[str]
) -> Iterator[Difference]:
    for view, expected in made.expected.items():
        try:
            found = duck_rows(made.program, view, made.rows, connection)
        except NotInDuck as reason:
            counts["not in DuckDB"] += 1
            counts[f"not in DuckDB: {reason}"] += 1
            continue
        counts["views in DuckDB"] += 1
        problem = compare(made.program.views[view].schema, expected, found)
        if problem is not None:
            yield Difference(f"{made.seed}:{view}", made.text, f"in DuckDB: {problem}")


def cases_of(spark: SparkSession, made: Generated, counts: Counter[str]) -> Iterator[Case]:
    program, rows = made.program, made.rows
    graph = graph_of(program)
    frames: dict[str, DataFrame] = {}
    for view in graph.outputs:
        try:
            bulk = bulk_program(program, view, graph)
        except NotInBulk as reason:
            counts["not in bulk"] += 1
            counts[f"not in bulk: {reason}"] += 1
            continue
        for source in bulk.sources:
            if source not in frames:
                frames[source] = frame_of(spark, source_schema(program, source), rows[source])
        counts["views in Spark"] += 1
        frame = evaluate_bulk(bulk.load(), bulk.constants, frames)
        yield Case(f"{made.seed}:{view}", made.text, bulk, frame, bulk.schema, made.expected[view])


def source_schema(program: TypedProgram, name: str) -> Schema:
    return program.streams[name].schema if name in program.streams else program.tables[name].schema


def frame_of(spark: SparkSession, schema: Schema, rows: Sequence[Row]) -> DataFrame:
    columns = ", ".join(f"c{at} {spark_type(column.type)}" for at, column in enumerate(schema.columns))
    return spark.createDataFrame(list(rows), columns)


def differences(spark: SparkSession, cases: Sequence[Case]) -> list[Difference]:
    """One job for all; if it fails, one for each, so that the failing one is known."""
    try:
        found = _collected(cases)
    except Exception as error:  # noqa: BLE001  whatever Java threw
        if len(cases) == 1:
            (case,) = cases
            return [Difference(case.name, case.text, f"in Spark: failed: {str(error)[:600]}\n{case.bulk.text}")]
        half = len(cases) // 2
        return [*differences(spark, cases[:half]), *differences(spark, cases[half:])]
    wrong = []
    for number, case in enumerate(cases):
        problem = compare(case.schema, case.expected, found.get(number, []))
        if problem is not None:
            wrong.append(Difference(case.name, case.text, f"in Spark: {problem}\n{case.bulk.text}"))
    return wrong


def _collected(cases: Sequence[Case]) -> dict[int, list[list[Value]]]:
    frames = []
    for number, case in enumerate(cases):
        width = len(case.schema.columns)
        # Floats as text would lose digits in JSON, so every value travels as what Spark shows of it, typed again below.
        row = F.to_json(F.array(*(F.col(f"c{at}").cast("string") for at in range(width))))
        frames.append(case.frame.select(F.lit(number).alias("n"), row.alias("r")))
    union = frames[0]
    for frame in frames[1:]:
        union = union.unionAll(frame)
    found: dict[int, list[list[Value]]] = {}
    for number, row in union.collect():
        columns = cases[number].schema.columns
        values = [_value(text, spark_type(column.type)) for text, column in zip(json.loads(row), columns, strict=True)]
        found.setdefault(number, []).append(values)
    return found


def _value(text: str | None, kind: str) -> Value:
    if text is None:
        return None
    match kind:
        case "bigint":
            return int(text)
        case "double":
            return float(text)
        case "boolean":
            return text == "true"
        case _:
            return text


def compare(schema: Schema, expected: Iterable[Row], found: Iterable[Sequence[Value]]) -> str | None:
    """The first row that is not the same on both sides, in words."""
    given = list(found)
    wanted, got = _by_key(schema, expected), _by_key(schema, given)
    if len(got) < len(given):
        return f"{len(given)} rows have {len(got)} keys"
    for key in wanted.keys() | got.keys():
        one, other = wanted.get(key), got.get(key)
        if one is None or other is None or not _same(schema, one, other):
            return f"key {key}: the reference has {one}, here is {other}"
    return None


def _by_key(schema: Schema, rows: Iterable[Sequence[Value]]) -> dict[tuple[Value, ...], tuple[Value, ...]]:
    return {tuple(row[position] for position in schema.key): tuple(row) for row in rows}


def _same(schema: Schema, one: Row, other: Row) -> bool:
    for column, left, right in zip(schema.columns, one, other, strict=True):
        if isinstance(column.type, FloatType) and left is not None and right is not None:
            if not math.isclose(float(left), float(right), rel_tol=FLOAT_TOLERANCE, abs_tol=1e-12):
                return False
        elif left != right or type(left) is not type(right):
            return False
    return True


def run(spark: SparkSession, seeds: Iterable[int], counts: Counter[str]) -> Iterator[Difference]:
    """All three engines; what was compared and what was left out is counted."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    waiting: list[Case] = []
    for seed in seeds:
        counts["programs"] += 1
        made = generated(seed)
        if made is None:
            counts["programs without a value"] += 1
            continue
        yield from engine_differences(made, counts)
        yield from duck_differences(made, connection, counts)
        waiting += cases_of(spark, made, counts)
        if len(waiting) >= VIEWS_PER_JOB:
            yield from differences(spark, waiting)
            waiting = []
    if waiting:
        yield from differences(spark, waiting)


def left_out(counts: Counter[str]) -> str | None:
    """In words, if so much was left out that agreement says little."""
    if counts["programs without a value"] > counts["programs"] / 3:
        return f"{counts['programs without a value']} of {counts['programs']} programs have no value"
    for left, compared in (("not in bulk", "views in Spark"), ("not in DuckDB", "views in DuckDB")):
        if counts[left] * 3 > counts[compared]:
            return f"{counts[left]} views are {left}, {counts[compared]} were compared"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--start", type=int, default=0)
    arguments = parser.parse_args()
    spark = session(SparkSettings(conf=SMALL_JOBS))
    counts: Counter[str] = Counter()
    started = time.monotonic()
    failed = 0
    for wrong in run(spark, range(arguments.start, arguments.start + arguments.programs), counts):
        failed += 1
        print(f"--- {wrong.name}: {wrong.what}\n{wrong.text}", flush=True)
    for what, count in sorted(counts.items()):
        print(f"{count:6} {what}")
    problem = left_out(counts)
    print(f"{failed} differences in {time.monotonic() - started:.0f} s{'; ' + problem if problem else ''}")
    return 1 if failed or problem else 0


if __name__ == "__main__":
    sys.exit(main())
