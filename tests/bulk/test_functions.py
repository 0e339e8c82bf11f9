"""Goal: every function means the same in Spark: the examples of its documentation, and values around its edges."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from compiler.bulk.functions import FUNCTIONS
from compiler.bulk.program import bulk_program
from compiler.bulk.writer import NotInBulk
from mpl.check import check
from mpl.evaluate import evaluate
from mpl.failures import EvaluationError
from mpl.functions import FUNCTIONS as LIBRARY
from mpl.source import Source
from mpl.typed import ExtendNode
from mpl.types import Value
from runtime.bulk.evaluate import evaluate_bulk

STREAM = (
    "stream S(i int null, j int null, d decimal(12,3) null, e decimal(6,2) null, x float null, y float null, "
    "t text null, u text null, b bool null, w time null, l duration null);\n"
)
KINDS = ["bigint"] * 4 + ["double"] * 2 + ["string"] * 2 + ["boolean", "bigint", "bigint", "bigint"]
COLUMNS = ", ".join(f"c{at} {kind}" for at, kind in enumerate(KINDS))
SECOND = 1_000_000
NOON = 1_767_268_800 * SECOND
ROWS: tuple[tuple[Value, ...], ...] = (
    (7, -2, 12_345, 150, 1.5, -2.25, "Straße 42", "a", True, NOON + 1, 90 * SECOND),
    (-7, 2, -2_500, -250, -0.5, 3.0, "naïve\nline", "", False, -NOON, -1),
    (0, 1, 0, 1, 0.0, 1.0, "", "line", True, 0, 1),
    (3, 3, 2_345, 235, 2.345, 1e3, "a/b/c", "/", None, NOON + 86_399_999_999, 3_600 * SECOND),
    (None, None, None, None, None, None, None, None, None, None, None),
    (2**62, 5, 999_999_999_999, 999_999, 1e15, -1e-3, "\u2028x\r", "\u2028", False, 253_402_300_799_999_999, 2**40),
)
EDGES = (
    *(
        "i + j",
        "i - j",
        "i * 3",
        "i / nullif(j, 0)",
        "i % nullif(j, 0)",
        "-j",
        "d + e",
        "d - j",
        "e * e",
        "d / nullif(e, 0)",
    ),
    *(
        "d % nullif(e, 0)",
        "d * 1.5",
        "x + y",
        "x * y",
        "x / nullif(y, 0e0)",
        "x - e",
        "l + l",
        "w - w",
        "l / nullif(l, 0 s)",
    ),
    *(
        "i < j",
        "d > e",
        "d = e",
        "x >= d",
        "t < u",
        "i in (7, 3, j)",
        "d in (1.5, 2.5)",
        "b and i > 0",
        "b or j > 1",
        "not b",
    ),
    *("i <> 0 and 10 / i > 1", "t like '%a%'", "t like '_'", "t like ''", "coalesce(b, false)", "i is null"),
    *(
        "abs(j)",
        "abs(d)",
        "sign(x)",
        "sign(l)",
        "floor(d)",
        "ceil(d)",
        "round(d)",
        "round(d, 1)",
        "round(e, 5)",
        "floor(x)",
    ),
    *(
        "ceil(x)",
        "round(x)",
        "round(x, 2)",
        "sqrt(abs(x))",
        "power(2, j)",
        "least(i, j, 4)",
        "greatest(d, e)",
        "least(t, u)",
    ),
    *("length(t)", "lower(t)", "upper(t)", "trim(t)", "substring(t, 2)", "substring(t, 2, 3)", "substring(t, 1, 0)"),
    *("replace(t, 'a', 'bb')", "replace(t, u, '')", "t || u", "starts_with(t, u)", "ends_with(t, u)", "contains(t, u)"),
    *(
        "split_part(t, '/', 2)",
        "split_part(t, u, 1)",
        "regexp_match(t, '^a')",
        "regexp_match(t, '.$')",
        "regexp_match(t, '\\s')",
    ),
    *("regexp_match(t, '[^a-z]')", "regexp_extract(t, '([a-z]+)/([a-z]+)', 2)", "regexp_extract(t, 'x(y)?', 1)"),
    *(
        "date(w)",
        "year(w)",
        "month(w)",
        "day(w)",
        "hour(w)",
        "minute(w)",
        "second(w)",
        "truncate(w, 15 min)",
        "epoch(w)",
    ),
    *("format(w, '%Y-%m-%d %H:%M:%S.%f day %j %u %%')", "parse_time('31.01.2026 07', '%d.%m.%Y %H')"),
    *(
        "cast(i as text)",
        "cast(d as text)",
        "cast(e as int)",
        "cast(d as decimal(10,1))",
        "cast(i % 1000 as decimal(10,2))",
    ),
    *("cast(b as int)", "cast(b as text)", "cast(w as text)", "cast('12.345' as decimal(10,2))", "cast('-7' as int)"),
    *("cast(x as decimal(18,2))", "cast(d as float)", "cast('1e3' as float)", "cast('2026-01-31T12:00:00.5Z' as time)"),
    *(
        "nullif(i, j)",
        "nullif(d, e)",
        "coalesce(i, j, 0)",
        "coalesce(d, e)",
        "hash(i)",
        "hash(d)",
        "hash(x)",
        "hash(t)",
    ),
    *("hash(b)", "hash(w)", "hash(l)", "case when i > 0 then t when i < 0 then u else 'none' end", "mod(e, 7)"),
)


def both(
    spark: SparkSession, expressions: list[str], rows: tuple[tuple[Value, ...], ...]
) -> list[tuple[str, list[Value], list[Value]]]:
    """What the evaluator and what Spark make of each expression, over these rows; those that fail are left out."""
    names = [f"r{at}" for at in range(len(expressions))]
    made = ", ".join(f"{name} := {text}" for name, text in zip(names, expressions, strict=True))
    program = check(Source("functions.mpl", f"{STREAM}view V = from S |> extend {made};")).require().program
    node = program.views["V"].relation
    assert isinstance(node, ExtendNode)
    expected: list[list[Value]] = [[] for _ in node.values]
    for at, value in enumerate(node.values):
        for number, row in enumerate(rows):
            expected[at].append(evaluate(value, (*row, number)))
    bulk = bulk_program(program, "V")
    source = spark.createDataFrame([(*row, number) for number, row in enumerate(rows)], COLUMNS)
    frame: DataFrame = evaluate_bulk(bulk.load(), bulk.constants, {"S": source})
    shown = sorted(frame.collect(), key=lambda row: row["c11"])
    start = len(KINDS)
    return [(text, expected[at], [row[start + at] for row in shown]) for at, text in enumerate(expressions)]


def test_every_function_has_a_writer() -> None:
    assert FUNCTIONS.keys() == {spec.name for spec in LIBRARY}


def test_examples_of_the_library_mean_the_same(spark: SparkSession) -> None:
    calls = [example.call for spec in LIBRARY for example in spec.examples]
    wrong = [(text, one, other) for text, one, other in both(spark, calls, ROWS[:1]) if one != other]
    assert not wrong
    assert len(calls) > 60


def test_edges_mean_the_same(spark: SparkSession) -> None:
    fits = [text for text in EDGES if _has_values(text)]
    assert len(fits) > 0.9 * len(EDGES), sorted(set(EDGES) - set(fits))
    for text, one, other in both(spark, fits, ROWS):
        for row, left, right in zip(ROWS, one, other, strict=True):
            if isinstance(left, float):
                assert right == pytest.approx(left, rel=1e-12), (text, row)
            else:
                assert left == right, (text, row)
                assert type(left) is type(right), (text, row)


@pytest.mark.parametrize(
    ("text", "column", "values"),
    [
        ("round(x, 8)", "x", (123456.123456789, -0.5, 0.0, 2e-9, 9e18, 1e22, -1e300)),
        ("round(x, 18)", "x", (123456.123456789, 0.1234567890123456789, 2.0**53 + 2, 1e22, None)),
        ("round(x, 4)", "x", (0.00044999999999999993, 0.00045, 1.00005, -0.00005)),
        ("cast(x as decimal(18,18))", "x", (0.1234567890123456789, 5e-19, -4.9e-19)),
        ("cast(x as decimal(18,4))", "x", (0.00044999999999999993, 0.00045, 1e13)),
        ("cast(t as decimal(10,2))", "t", ("0.44499", "-0.44499", "0.445", "7", "0.4" + "4" * 38, "-00.005")),
        ("cast(t as decimal(18,18))", "t", ("0.1234567890123456785", "0.12345678901234567849", "-0.5")),
        ("i / cast(x as decimal(18,18))", "x", (0.5, -0.25, 1e-3)),
        ("1000000000000000 * i / cast(x as decimal(18,18))", "x", (None,)),
        ("regexp_match(t, '[&&a]')", "t", ("&", "a", "b", "a&&")),
        ("regexp_extract(t, '[^&&a]+', 0)", "t", ("&", "ab", "b&c")),
    ],
)
def test_long_numbers_and_texts_mean_the_same(
    spark: SparkSession, text: str, column: str, values: tuple[Value, ...]
) -> None:
    at = "ijdexytubwl".index(column)
    rows = tuple((*ROWS[0][:at], value, *ROWS[0][at + 1 :]) for value in values)
    ((_, expected, found),) = both(spark, [text], rows)
    assert found == expected


def test_an_average_beyond_64_bits_stops_the_query(spark: SparkSession) -> None:
    text = f"{STREAM}view V = from S |> aggregate a := avg(i);"
    bulk = bulk_program(check(Source("functions.mpl", text)).require().program, "V")
    source = spark.createDataFrame([(10**13, *ROWS[0][1:], 0)], COLUMNS)
    with pytest.raises(PySparkException, match="the average is too large"):
        evaluate_bulk(bulk.load(), bulk.constants, {"S": source}).collect()


def _has_values(text: str) -> bool:
    program = check(Source("functions.mpl", f"{STREAM}view V = from S |> extend r := {text};")).require().program
    node = program.views["V"].relation
    assert isinstance(node, ExtendNode)
    try:
        for row in ROWS:
            evaluate(node.values[0], (*row, 0))
    except EvaluationError:
        return False
    return True


@pytest.mark.parametrize(
    "text",
    [
        *(
            "9223372036854775807 + i",
            "-9223372036854775807 - i - 1",
            "i * 9223372036854775807",
            "i / (i - 7)",
            "i % (i - 7)",
        ),
        *(
            "d / (e - 1.5)",
            "cast(t as int)",
            "cast(t as time)",
            "sqrt(-x)",
            "substring(t, i - 7)",
            "split_part(t, 'a', 0 * i)",
        ),
        *("cast(1000000 * i as decimal(6,2))", "x * 1e308 * 1e10", "parse_time(t, '%Y')", "truncate(w, l - 90 s)"),
        *("cast(t as bool)", "cast(t as text(3))", "e * 999999999.99 * 9999999.99"),
        "4611686018427387904 / (e - 1.0)",  # of the quotient the lower 64 bits are zero
    ],
)
def test_what_has_no_value_stops_the_query(spark: SparkSession, text: str) -> None:
    row = ROWS[0]
    program = check(Source("functions.mpl", f"{STREAM}view V = from S |> extend r := {text};")).require().program
    node = program.views["V"].relation
    assert isinstance(node, ExtendNode)
    with pytest.raises(EvaluationError):
        evaluate(node.values[0], (*row, 0))
    with pytest.raises(PySparkException):
        spark_values(spark, text)


def spark_values(spark: SparkSession, text: str) -> list[object]:
    program = check(Source("functions.mpl", f"{STREAM}view V = from S |> extend r := {text};")).require().program
    bulk = bulk_program(program, "V")
    source = spark.createDataFrame([(*ROWS[0], 0)], COLUMNS)
    return [row[len(KINDS)] for row in evaluate_bulk(bulk.load(), bulk.constants, {"S": source}).collect()]


def test_what_spark_would_do_otherwise_is_refused() -> None:
    program = (
        check(Source("functions.mpl", f"{STREAM}view V = from S |> extend r := cast(x as text);")).require().program
    )
    with pytest.raises(NotInBulk, match="floats as text"):
        bulk_program(program, "V")
