"""Goal: tables of Arrow, pandas and polars mean the same as rows of Python values, both ways, or are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import smile
from smile.errors import PublishError
from smile.streams import StreamInput
from tests.measures import least_cpu_s

PROGRAM = """
stream Facts (
    item int, price decimal(12,2), weight float, ok bool, name text(20), size enum('s','m','l'), at time, took duration,
    item0 int null, price0 decimal(12,2) null, weight0 float null, ok0 bool null, name0 text(20) null, at0 time null,
    took0 duration null
) unique item;
view Kept = from Facts |> project item, price, weight, ok, name, size, at, took, item0, price0, weight0, ok0, name0,
    at0, took0;
view Empty = from Kept |> where item < 0 and item > 0;
"""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENT = datetime(2026, 5, 4, 3, 2, 1, 999_999, tzinfo=UTC)
ROW: dict[str, Any] = {
    "item": 2**53 + 1,
    "price": Decimal("-1234567.89"),
    "weight": 0.1,
    "ok": True,
    "name": "naïve",
    "size": "m",
    "at": MOMENT,
    "took": timedelta(seconds=1, microseconds=1),
}
FULL = {
    **ROW,
    "item0": -(2**63),
    "price0": Decimal("0.01"),
    "weight0": -2.5,
    "ok0": False,
    "name0": "",
    "at0": datetime(1969, 12, 31, tzinfo=UTC),
    "took0": timedelta(days=-1),
}
NULLS = {**ROW, **dict.fromkeys([name for name in FULL if name not in ROW]), "item": 1}
ROWS = [NULLS, FULL]  # in the order of their key

ARROW_SCHEMA = pa.schema(
    [
        pa.field("item", pa.int64(), nullable=False),
        pa.field("price", pa.decimal128(38, 2), nullable=False),
        pa.field("weight", pa.float64(), nullable=False),
        pa.field("ok", pa.bool_(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("size", pa.string(), nullable=False),
        pa.field("at", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("took", pa.duration("us"), nullable=False),
        pa.field("item0", pa.int64()),
        pa.field("price0", pa.decimal128(38, 2)),
        pa.field("weight0", pa.float64()),
        pa.field("ok0", pa.bool_()),
        pa.field("name0", pa.string()),
        pa.field("at0", pa.timestamp("us", "UTC")),
        pa.field("took0", pa.duration("us")),
    ]
)


@cache
def compiled() -> smile.Program:
    return smile.compile(PROGRAM)


@pytest.fixture
def system() -> Iterator[smile.System]:
    with smile.run(compiled()) as made:
        yield made


def test_a_column_that_the_stream_does_not_have(system: smile.System) -> None:
    for table in (
        pd.DataFrame({"itme": [1]}),
        pl.DataFrame({"itme": [1]}),
        pa.table({"itme": [1]}),
        pd.DataFrame([[1]]),
    ):
        with pytest.raises(PublishError, match="which it does not have"):
            system.publish_many("Facts", table)


def arrow_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=ARROW_SCHEMA)


def other() -> pa.Table:
    """Two rows that a slice leaves out: nothing in them is as in the others."""
    values = (4, Decimal("7.77"), 9.5, False, "x", "l", EPOCH, timedelta(9))
    nullable = (5, Decimal("8.88"), 8.5, True, "y", MOMENT, timedelta(8))
    row = dict(zip(FULL, (*values, *nullable), strict=True))
    return arrow_of([row, row])


# --- whole tables -----------------------------------------------------------------------------------------------------

_NULLABLE = {
    pa.int64(): pd.Int64Dtype(),
    pa.float64(): pd.Float64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
    pa.string(): pd.StringDtype(),
}

TABLES: dict[str, Callable[[pa.Table], Any]] = {
    "arrow table": lambda table: table,
    "record batch": lambda table: table.combine_chunks().to_batches()[0],
    "two chunks": lambda table: pa.concat_tables([table.slice(0, 1), table.slice(1)]),
    "slice of a longer table": lambda table: pa.concat_tables([other(), table]).combine_chunks().slice(2),
    "slice of a longer batch": lambda table: (
        pa.concat_tables([other(), table]).combine_chunks().to_batches()[0].slice(2)
    ),
    "chunked arrays by name": lambda table: dict(zip(table.column_names, table.columns, strict=True)),
    "dictionary-encoded text": lambda table: table.set_column(4, "name", table["name"].dictionary_encode()).set_column(
        12, "name0", table["name0"].dictionary_encode()
    ),
    "large text": lambda table: table.set_column(4, "name", table["name"].cast(pa.large_string())),
    "text views": lambda table: table.set_column(4, "name", table["name"].cast(pa.string_view())),
    "times in another zone": lambda table: table.set_column(
        6, "at", table["at"].cast(pa.timestamp("us", "Asia/Tokyo"))
    ),
    "times without a zone": lambda table: table.set_column(6, "at", table["at"].cast(pa.timestamp("us"))),
    "times in nanoseconds": lambda table: table.set_column(6, "at", table["at"].cast(pa.timestamp("ns"))),
    "narrow decimals": lambda table: table.set_column(1, "price", table["price"].cast(pa.decimal128(9, 2))),
    "decimals with more digits": lambda table: table.set_column(1, "price", table["price"].cast(pa.decimal128(30, 9))),
    "decimals of 256 bits": lambda table: table.set_column(1, "price", table["price"].cast(pa.decimal256(50, 2))),
    "pandas": lambda table: table.to_pandas(),
    "pandas, nullable types": lambda table: table.to_pandas(types_mapper=_NULLABLE.get),
    "pandas on Arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas, categories": lambda table: table.to_pandas().astype({"name": "category", "size": "category"}),
    "pandas, other index": lambda table: table.to_pandas().set_axis([7, 7], axis=0),
    "pandas, slice": lambda table: pa.concat_tables([other(), table]).to_pandas(types_mapper=_NULLABLE.get).iloc[2:],
    "pandas, objects": lambda table: pd.DataFrame(table.to_pylist(), dtype=object),
    "polars": pl.DataFrame,
    "polars, slice": lambda table: pl.DataFrame(pa.concat_tables([other(), table]))[2:],
    "polars, categories": lambda table: pl.DataFrame(table).with_columns(
        pl.col("name").cast(pl.Categorical), pl.col("size").cast(pl.Enum(["s", "m", "l"]))
    ),
    "polars, narrow and without a zone": lambda table: pl.DataFrame(table).with_columns(
        pl.col("price").cast(pl.Decimal(9, 2)), pl.col("at").dt.replace_time_zone(None).dt.cast_time_unit("ns")
    ),
    "polars series by name": lambda table: {series.name: series for series in pl.DataFrame(table)},
    "pandas series by name": lambda table: dict(table.to_pandas(types_mapper=_NULLABLE.get).items()),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_is_taken_as_it_is_and_given_back(system: smile.System, kind: str) -> None:
    rows = ROWS
    if kind in ("pandas", "pandas, categories", "pandas, other index"):
        # Whole numbers are floats where some are missing, so -(2**63) would be refused: it could be another.
        rows = [NULLS, {**FULL, "item0": -7}]
    assert len(system.publish_many("Facts", TABLES[kind](arrow_of(rows)))) == 2
    assert system.rows("Kept") == rows
    given_back = system.arrow("Kept")
    assert given_back.schema == ARROW_SCHEMA
    assert given_back.to_pylist() == rows
    given_back.validate(full=True)


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_without_rows(system: smile.System, kind: str) -> None:
    table = TABLES[kind](arrow_of(ROWS))
    empty = {name: column[:0] for name, column in table.items()} if isinstance(table, dict) else table[:0]
    assert system.publish_many("Facts", empty) == ()
    assert system.rows("Kept") == []


def test_tables_of_a_view_without_rows_have_its_types(system: smile.System) -> None:
    system.publish_many("Facts", ROWS)
    assert system.arrow("Empty").schema == ARROW_SCHEMA
    assert len(system.arrow("Empty")) == 0
    assert system.pandas("Empty").dtypes.to_dict() == system.pandas("Kept").dtypes.to_dict()
    assert len(system.pandas("Empty")) == 0


def test_pandas_frames_keep_types_and_values(system: smile.System) -> None:
    system.publish_many("Facts", ROWS)
    frame = system.pandas("Kept")
    assert {name: str(kind) for name, kind in frame.dtypes.items()} == {
        "item": "int64",
        "price": "object",
        "weight": "float64",
        "ok": "bool",
        "name": "object",
        "size": "object",
        "at": "datetime64[us, UTC]",
        "took": "timedelta64[us]",
        "item0": "Int64",
        "price0": "object",
        "weight0": "float64",
        "ok0": "boolean",
        "name0": "object",
        "at0": "datetime64[us, UTC]",
        "took0": "timedelta64[us]",
    }
    assert frame["item"].tolist() == [1, 2**53 + 1]
    assert frame["item0"][1] == -(2**63)
    assert frame["price0"].tolist() == [None, Decimal("0.01")]
    assert frame["at"][0] == MOMENT
    assert frame["took0"][1] == timedelta(days=-1)
    assert frame.isna().sum().sum() == 7
    assert frame.isna().loc[0].sum() == 7


def test_pandas_frames_come_back_as_the_same_rows(system: smile.System) -> None:
    system.publish_many("Facts", ROWS)
    with smile.run(compiled()) as other:
        other.publish_many("Facts", system.pandas("Kept"))
        assert other.rows("Kept") == ROWS


# --- values that are refused ------------------------------------------------------------------------------------------

REFUSED: list[tuple[str, Any, str, str]] = [
    ("item", pa.array([1.5, 2.0]), "1.5", "is float, not a whole number"),
    ("item", pa.array([1, None]), "None", "not declared `null`"),
    ("item", pa.array([1, 2**63], pa.uint64()), str(2**63), "does not fit int"),
    ("item", pa.array([True, False]), "True", "is bool"),
    ("item", pa.array(["1", "2"]), "'1'", "is str"),
    ("item", pa.array([MOMENT] * 2), "2026", "not int"),
    ("item0", pa.array([None, 0.5]), "0.5", "is float"),
    ("item", pa.array([[1], [2]]), "[1]", "is list"),
    ("item", pl.Series([1, None]), "None", "not declared `null`"),
    ("item", pl.Series([2**70, 1], dtype=pl.Int128), str(2**70), "does not fit int"),
    ("item", pd.Series([1, None], dtype="Int64"), "None", "not declared `null`"),
    ("item", pd.Series([2.0, 3.0]), "2.0", "is float"),
    ("item0", pd.Series([2.0**53 + 2, None]), "9007199254740994.0", "is float"),
    ("price", pa.array([Decimal("0.001"), Decimal("0.01")]), "Decimal('0.001')", "more than 2 digits"),
    ("price", pa.array([Decimal(10**20), Decimal(1)]), "Decimal('100000000000000000000')", "does not fit decimal"),
    ("price", pa.array([Decimal(2**64 + 5), Decimal(1)]), "Decimal('18446744073709551621')", "does not fit decimal"),
    ("price", pl.Series([Decimal(2**64 + 5), Decimal(1)]), "Decimal('18446744073709551621", "does not fit decimal"),
    ("price", pa.array([10**17, 1]), "100000000000000000", "does not fit decimal"),
    ("price", pa.array([0.5, 1.0]), "0.5", "an exact number"),
    ("price", pl.Series([Decimal("0.125"), Decimal("0.25")]), "Decimal('0.125')", "more than 2 digits"),
    ("price", pl.Series([Decimal(10**20), Decimal(1)]), "Decimal('100000000000000000000", "does not fit decimal"),
    ("price", pd.Series([0.5, 1.0]), "0.5", "an exact number"),
    ("weight", pa.array([float("nan"), 1.0]), "nan", "not a finite number"),
    ("weight", pl.Series([1.0, float("inf")]), "inf", "not a finite number"),
    ("weight", pd.Series([1.0, float("nan")]), "None", "not declared `null`"),
    ("weight", pa.array([Decimal("0.5"), Decimal(1)]), "Decimal('0.5')", "a number (float)"),
    ("ok", pa.array([0, 1]), "0", "true or false"),
    ("ok", pd.Series([True, None], dtype="boolean"), "None", "not declared `null`"),
    ("name", pa.array([b"x", b"y"]), "b'x'", "is bytes"),
    ("name", pa.array(["x" * 21, "y"]), "'xxx", "takes 20"),
    ("name", pl.Series(["x", None]), "None", "not declared `null`"),
    ("size", pa.array(["s", "xl"]).dictionary_encode(), "'xl'", "is not one of s, m, l"),
    ("size", pd.Series(["s", "xl"], dtype="category"), "'xl'", "is not one of s, m, l"),
    ("at", pa.array([1, 2], pa.date32()), "datetime.date", "datetime, ISO text"),
    ("at", pa.array([1, 2_000], pa.timestamp("ns")), "00.000000001", "not a whole number of microseconds"),
    ("at", pa.array([2**62, 1], pa.timestamp("s")), "T", "does not fit time"),
    ("at", pl.Series([1, 2_000]).cast(pl.Datetime("ns")), "00.000000001", "not a whole number of microseconds"),
    ("at", pd.Series(pd.to_datetime([1, 2_000], utc=True)), "00.000000001", "not a whole number of microseconds"),
    ("at", pd.Series(pd.to_datetime(["2026-01-01", None])), "None", "not declared `null`"),
    ("at", pa.array([1, 2], pa.duration("us")), "timedelta64", "not time"),
    ("took", pa.array([1, 2], pa.duration("ns")), "timedelta64", "not a whole number of microseconds"),
    ("took", pa.array([1, 2], pa.timestamp("us")), "datetime64", "not duration"),
    ("took", pl.Series([1, 2]).cast(pl.Duration("ns")), "timedelta64", "not a whole number of microseconds"),
]


@pytest.mark.parametrize(("column", "values", "value", "rule"), REFUSED)
def test_what_a_column_does_not_take_is_named(
    system: smile.System, column: str, values: Any, value: str, rule: str
) -> None:
    columns: dict[str, Any] = {name: [row[name] for row in ROWS] for name in FULL}
    columns[column] = values
    with pytest.raises(PublishError) as caught:
        system.publish_many("Facts", columns)
    assert f"column `{column}`: " in str(caught.value)
    assert value in str(caught.value)
    assert rule in str(caught.value)
    assert caught.value.problems[0].row in (0, 1)
    assert system.rows("Kept") == []


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (pl.DataFrame({"item": [1]}).lazy(), "LazyFrame"),
        (pd.Series([1]), "Series"),
        (pa.array([1]), "Array"),
        (pa.table([pa.array([1]), pa.array([2])], names=["item", "item"]), "two columns are called `item`"),
        (pd.DataFrame([[1, 2]], columns=["item", "item"]), "two columns are called `item`"),
        (pd.DataFrame({"item": [1], "colour": ["red"]}), "colour"),
        (pl.DataFrame({"item": [1]}), "column `price` is missing"),
    ],
)
def test_what_is_no_table_of_this_stream(system: smile.System, table: Any, reason: str) -> None:
    with pytest.raises(PublishError, match="Facts") as caught:
        system.publish_many("Facts", table)
    assert reason in str(caught.value)


# --- single values that come out of such tables -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("at", pd.Timestamp("2026-01-01 00:00:00.5"), datetime(2026, 1, 1, microsecond=500_000, tzinfo=UTC)),
        ("at", pd.Timestamp("2026-01-01", tz="Asia/Tokyo"), datetime(2025, 12, 31, 15, tzinfo=UTC)),
        ("at", np.datetime64("2026-01-01T00:00:00.000001000"), datetime(2026, 1, 1, microsecond=1, tzinfo=UTC)),
        ("at", np.datetime64("2026-01-01"), datetime(2026, 1, 1, tzinfo=UTC)),
        ("at", datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=2))), datetime(2025, 12, 31, 22, tzinfo=UTC)),
        ("at0", pd.NaT, None),
        ("at0", np.datetime64("NaT"), None),
        ("item0", pd.NA, None),
        ("took", pd.Timedelta("1s"), timedelta(seconds=1)),
        ("took", np.timedelta64(3, "m"), timedelta(minutes=3)),
    ],
)
def test_scalars_of_pandas_and_numpy(system: smile.System, column: str, value: Any, expected: Any) -> None:
    system.publish("Facts", {**FULL, column: value})
    assert system.rows("Kept")[0][column] == expected


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("at", pd.Timestamp("2026-01-01 00:00:00.000000001")),
        ("at", np.datetime64("2026-01-01T00:00:00.000000001")),
        ("at", pd.NaT),
        ("took", pd.Timedelta(1, "ns")),
        ("took", np.timedelta64(1, "ns")),
        ("took", np.timedelta64(1, "Y")),
        ("item", np.datetime64(1, "us")),
        ("item", pd.NA),
    ],
)
def test_scalars_that_are_refused(system: smile.System, column: str, value: Any) -> None:
    with pytest.raises(PublishError, match=f"column `{column}`"):
        system.publish("Facts", {**FULL, column: value})


# --- no value is looked at one by one ---------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.none() | st.integers(-(10**12) + 1, 10**12 - 1),
            st.none() | st.floats(allow_nan=False, allow_infinity=False),
            st.none() | st.booleans(),
            st.none() | st.integers(-(10**15), 10**15),
        ),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from(["arrow", "polars", "nullable pandas"]),
)
def test_any_numbers_arrive_and_return_exactly(rows: list[tuple[Any, ...]], kind: str) -> None:
    given_rows = [
        {
            **ROW,
            "item": number,
            "item0": whole,
            "price0": None if cents is None else Decimal(cents).scaleb(-2),
            "weight0": None if weight is None else weight + 0.0,
            "ok0": ok,
            "name0": None,
            "at0": None if moment is None else MOMENT + timedelta(microseconds=moment),
            "took0": None,
        }
        for number, (whole, cents, weight, ok, moment) in enumerate(rows)
    ]
    table = arrow_of(given_rows)
    frames: dict[str, Callable[[], Any]] = {
        "arrow": lambda: table,
        "polars": lambda: pl.DataFrame(table),
        "nullable pandas": lambda: table.to_pandas(types_mapper=_NULLABLE.get),
    }
    with smile.run(compiled()) as system:
        system.publish_many("Facts", frames[kind]())
        assert system.rows("Kept") == given_rows
        assert system.arrow("Kept").to_pylist() == given_rows


@pytest.mark.parametrize(
    "kind", ["arrow", "arrow with nulls", "polars", "polars with nulls", "pandas", "nullable pandas"]
)
def test_numbers_cost_far_less_than_one_by_one(kind: str) -> None:
    """The bound is far above what it takes, so that no timer's whim decides."""
    program = smile.compile("stream S (a int null, b decimal(12,2) null, c time null, d float null); view V = from S;")
    taker = StreamInput(program.checked.program.streams["S"], program.streams["S"])
    count = 10_000
    whole = pa.array(np.arange(count))
    mask = pa.array(np.arange(count) % 7 == 0) if "null" in kind else pa.array(np.zeros(count, bool))
    missing = pa.scalar(None, pa.int64())
    base = pc.if_else(mask, missing, whole)
    table = pa.table(
        {
            "a": base,
            "b": base if kind.endswith("pandas") else base.cast(pa.decimal128(19, 0)).cast(pa.decimal128(30, 4)),
            "c": base.cast(pa.timestamp("us", "UTC")),
            "d": base.cast(pa.float64()),
        }
    )
    frames: dict[str, Callable[[], Any]] = {
        "arrow": lambda: table,
        "polars": lambda: pl.DataFrame(table),
        "pandas": table.to_pandas,
        "nullable pandas": lambda: table.to_pandas(types_mapper=_NULLABLE.get),
    }
    frame = frames[kind.removesuffix(" with nulls")]()
    slow = table.to_pylist()
    slow_s = least_cpu_s(lambda: taker.encode_many(slow), times=3)
    fast_s = least_cpu_s(lambda: taker.encode_many(frame), within=slow_s / 3)
    assert [list(column) for column in taker.encode_many(frame)[0]] == [list(c) for c in taker.encode_many(slow)[0]]
    assert fast_s < slow_s / 3, (fast_s, slow_s)
