"""Random programs through Spark, against the reference interpreter.

    python -m tests.bulk.differential --programs 2000

Views of many programs go into one Spark job, because a job costs more than what it computes here. A view whose
evaluation fails in the reference must not give rows in Spark without an error, and is left out of the common jobs.
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
from random import Random

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from compiler.bulk.expressions import spark_type
from compiler.bulk.program import BulkProgram, bulk_program
from compiler.bulk.writer import NotInBulk
from compiler.graph.build import graph_of
from mpl.check import check
from mpl.failures import EvaluationError
from mpl.source import Source
from mpl.typed import Schema, TypedProgram
from mpl.types import FloatType, Value
from runtime.bulk.evaluate import evaluate_bulk
from runtime.bulk.session import SparkSettings, session
from tests.generator.program import generate
from tests.reference.data import random_events, random_tables
from tests.reference.relations import KeyBroken, Row, evaluate_program

EVENTS = 24
VIEWS_PER_JOB = 40
FLOAT_TOLERANCE = 1e-9


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
    """A random program with random events, and what the reference makes of them."""

    text: str
    program: TypedProgram
    rows: dict[str, list[Row]]
    expected: dict[str, list[Row]]


def generated(seed: int) -> Generated | None:
    """None if the program has no value for these events, or calls Python."""
    text = generate(seed).text
    program = check(Source("random.mpl", text)).require().program
    rng = Random(f"bulk {seed}")
    events, tables = random_events(program, rng, EVENTS), random_tables(program, rng, 4)
    try:
        expected = evaluate_program(program, events, tables)
    except (EvaluationError, KeyBroken, KeyError):
        return None
    return Generated(text, program, {**events, **tables}, expected)


def cases_of(spark: SparkSession, seed: int, counts: Counter[str]) -> Iterator[Case]:
    made = generated(seed)
    if made is None:
        counts["programs without a value"] += 1
        return
    program, rows = made.program, made.rows
    graph = graph_of(program)
    frames: dict[str, DataFrame] = {}
    for view in graph.outputs:
        try:
            bulk = bulk_program(program, view, graph)
        except NotInBulk as reason:
            counts[f"not in bulk: {reason}"] += 1
            continue
        for source in bulk.sources:
            if source not in frames:
                frames[source] = frame_of(spark, source_schema(program, source), rows[source])
        frame = evaluate_bulk(bulk.load(), bulk.constants, frames)
        yield Case(f"{seed}:{view}", made.text, bulk, frame, bulk.schema, made.expected[view])


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
            return [Difference(case.name, case.text, f"Spark failed: {str(error)[:600]}\n{case.bulk.text}")]
        half = len(cases) // 2
        return [*differences(spark, cases[:half]), *differences(spark, cases[half:])]
    wrong = []
    for number, case in enumerate(cases):
        problem = compare(case.schema, case.expected, found.get(number, []))
        if problem is not None:
            wrong.append(Difference(case.name, case.text, f"{problem}\n{case.bulk.text}"))
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
    wanted, got = _by_key(schema, expected), _by_key(schema, found)
    for key in wanted.keys() | got.keys():
        one, other = wanted.get(key), got.get(key)
        if one is None or other is None or not _same(schema, one, other):
            return f"key {key}: the reference has {one}, Spark {other}"
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
    waiting: list[Case] = []
    for seed in seeds:
        counts["programs"] += 1
        for case in cases_of(spark, seed, counts):
            counts["views"] += 1
            waiting.append(case)
        if len(waiting) >= VIEWS_PER_JOB:
            yield from differences(spark, waiting)
            waiting = []
    if waiting:
        yield from differences(spark, waiting)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--start", type=int, default=0)
    arguments = parser.parse_args()
    spark = session(SparkSettings(conf={"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false"}))
    counts: Counter[str] = Counter()
    started = time.monotonic()
    failed = 0
    for wrong in run(spark, range(arguments.start, arguments.start + arguments.programs), counts):
        failed += 1
        print(f"--- {wrong.name}: {wrong.what}\n{wrong.text}", flush=True)
    for what, count in counts.items():
        print(f"{count:6} {what}")
    print(f"{failed} differences in {time.monotonic() - started:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
