"""Goal: every function of the library means what its record says.

All records are walked: examples, null behaviour, directions, names. The functions with a meaning of their own are
compared with independent references: Decimal, datetime, Python's `re`, published digests of XXH64.
"""

import math
import re
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpl.failures import EvaluationError, Failure
from mpl.functions import BY_CALL, BY_NAME, FUNCTIONS, directions
from mpl.functions.hashing import xxh64
from mpl.functions.like import like_matches
from mpl.functions.reference import reference
from mpl.functions.regexp import PatternError, compile_pattern
from mpl.functions.spec import FunctionSpec, Kind, Nulls, Signature
from mpl.functions.time_text import format_time, moment_of, parse_time, time_of_literal, time_to_text
from mpl.typed import Apply, ColumnRef
from mpl.types import TIME_MAX, TIME_MIN, DecimalType, FloatType, IntType, TextType, TimeType, Value
from tests.mpl.written import type_of, value_of, written

EXAMPLES = [(spec.name, example.call, example.result) for spec in FUNCTIONS for example in spec.examples]
ROOT = Path(__file__).parent.parent.parent

texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20)
times = st.integers(TIME_MIN, TIME_MAX)

SAMPLES: dict[Kind, tuple[str, Value]] = {
    Kind.ANY: ("int", 3),
    Kind.ORDERED: ("int", 3),
    Kind.NUMBER: ("int", 3),
    Kind.AMOUNT: ("int", 3),
    Kind.INT: ("int", 3),
    Kind.TEXT: ("text", "ab"),
    Kind.BOOL: ("bool", True),
    Kind.TIME: ("time", 0),
    Kind.DURATION: ("duration", 5),
}
LITERALS = {"pattern": "'%Y'", "digits": "1", "group": "0"}
"""For parameters that must be known; `%Y` is a pattern of times and of texts alike."""


# --- every record ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "call", "result"), EXAMPLES, ids=[call for _, call, _ in EXAMPLES])
def test_example(name: str, call: str, result: str) -> None:
    left, right = written(call).typed, written(result).typed
    assert written(call).value() == written(result).value()
    assert type(left.type) is type(right.type)
    if isinstance(left.type, DecimalType) and isinstance(right.type, DecimalType):
        assert left.type.scale == right.type.scale


def test_names_are_unique_and_every_record_is_documented() -> None:
    assert len(BY_NAME) == len(FUNCTIONS)
    assert len(BY_CALL) == sum(spec.called is not None for spec in FUNCTIONS)
    for spec in FUNCTIONS:
        assert spec.examples, spec.name
        assert spec.summary.endswith("."), spec.name
        assert len(spec.monotone) <= len(spec.parameters), spec.name


def test_library_is_complete() -> None:
    promised = """abs sign floor ceil round mod power sqrt least greatest length lower upper trim substring
        replace concat starts_with ends_with contains split_part regexp_match regexp_extract
        date year month day hour minute second
        truncate format parse_time epoch coalesce nullif hash"""
    assert set(promised.split()) <= set(BY_CALL)
    assert "cast" in BY_NAME


def test_reference_page_is_up_to_date(request: pytest.FixtureRequest) -> None:
    page = ROOT / "docs" / "functions.md"
    if request.config.getoption("--update-golden"):
        page.write_text(reference(), encoding="utf-8")
    assert page.read_text(encoding="utf-8") == reference(), "run: python -m mpl.functions > docs/functions.md"


def call_with_columns(spec: FunctionSpec, null_at: int | None) -> tuple[str, str, tuple[Value, ...]]:
    """A call of a function on columns a0, a1, ..., all nullable; the one at `null_at` is null."""
    arguments, columns, row = [], [], []
    for position, parameter in enumerate(spec.parameters):
        kind, value = SAMPLES[parameter.kind]
        columns.append(f"a{position} {kind} null")
        row.append(None if position == null_at else value)
        arguments.append(LITERALS[parameter.name] if parameter.literal else f"a{position}")
    return f"{spec.called}({', '.join(arguments)})", ", ".join(columns), tuple(row)


CALLED = [spec for spec in FUNCTIONS if spec.called]


@pytest.mark.parametrize("spec", CALLED, ids=[spec.name for spec in CALLED])
def test_null_behaviour(spec: FunctionSpec) -> None:
    for position, parameter in enumerate(spec.parameters):
        if parameter.literal:
            continue
        text, columns, row = call_with_columns(spec, position)
        checked = written(text, columns)
        assert checked.typed.nullable
        if spec.nulls is Nulls.PROPAGATE:
            assert checked.value(*row) is None
        elif spec.nulls is Nulls.SKIP:
            assert checked.value(*row) == 3
            assert checked.value(*(None for _ in row)) is None
    if spec.nulls is Nulls.PROPAGATE and spec.called != "parse_time":
        text, columns, row = call_with_columns(spec, None)
        assert not written(text, columns.replace(" null", "")).typed.nullable
        assert written(text, columns).value(*row) is not None


@pytest.mark.parametrize(
    ("text", "row", "expected"),
    [
        ("a and b", (True, None), None),
        ("a and b", (None, False), False),
        ("a or b", (None, True), True),
        ("a or b", (False, None), None),
        ("not a", (None, None), None),
        ("a = b", (None, True), None),
        ("a in (b, true)", (None, True), None),
        ("a in (b, true)", (False, None), None),
        ("a in (b, true)", (True, None), True),
        ("a is null", (None, None), True),
        ("a is not null", (None, None), False),
        ("nullif(a, b)", (True, None), True),
        ("nullif(a, b)", (True, True), None),
        ("coalesce(a, b)", (None, None), None),
        ("case when a then 1 when b then 2 else 3 end", (None, True), 2),
        ("case when a then 1 when b then 2 end", (None, False), None),
    ],
)
def test_three_valued_logic(text: str, row: tuple[Value, ...], expected: Value) -> None:
    value = written(text, "a bool null, b bool null").value(*row)
    assert (value, type(value)) == (expected, type(expected))


@pytest.mark.parametrize(
    "text",
    ["x <> 0 and 10 / x > 1", "x = 0 or 10 / x > 1", "coalesce(x, 10 / x)", "case when x = 0 then 0 else 10 / x end"],
)
def test_what_is_not_needed_is_not_evaluated(text: str) -> None:
    assert written(text, "x int").value(0) in (False, True, 0)


# --- types ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abs(d)", "decimal(10,2)"),
        ("abs(p)", "duration"),
        ("sign(d)", "int"),
        ("floor(d)", "int"),
        ("ceil(f)", "int"),
        ("round(d)", "int"),
        ("round(d, 1)", "decimal(10,1)"),
        ("round(d, 5)", "decimal(10,2)"),
        ("round(f, 1)", "float"),
        ("round(i, 2)", "int"),
        ("power(i, 2)", "float"),
        ("sqrt(d)", "float"),
        ("mod(i, 3)", "int"),
        ("least(i, d)", "decimal(18,2)"),
        ("greatest(t, t)", "time"),
        ("greatest(n, 1)", "int"),
        ("greatest(n, n)", "int null"),
        ("length(e)", "int"),
        ("trim(s5)", "text(5)"),
        ("concat(s5, s5)", "text(10)"),
        ("upper(s5)", "text"),
        ("date(t)", "time"),
        ("epoch(t)", "decimal(18,6)"),
        ("truncate(t, 1 h)", "time"),
        ("format(t, '%Y')", "text"),
        ("coalesce(n, d)", "decimal(18,2)"),
        ("coalesce(d, 0)", "decimal(10,2)"),
        ("coalesce(d, 123456789)", "decimal(11,2)"),
        ("coalesce(n, null)", "int null"),
        ("nullif(i, d)", "int null"),
        ("cast(i as text)", "text"),
        ("cast(null as time)", "time null"),
        ("hash(s)", "int"),
        ("e = 'lo'", "bool"),
        ("case when i > 0 then 1 else 2.50 end", "decimal(3,2)"),
        ("case when i > 0 then e else 'other' end", "text"),
        ("case when i > 0 then 1 end", "int null"),
    ],
)
def test_result_types(text: str, expected: str) -> None:
    columns = "i int, d decimal(10,2), f float, t time, p duration, n int null, s text, s5 text(5), e enum('lo','hi')"
    assert type_of(text, columns) == expected


# --- numbers --------------------------------------------------------------------------------------------------------


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**13), max_value=10**13))
def test_rounding_functions_agree_with_decimal(number: Decimal) -> None:
    scaled = int(number.scaleb(4))
    columns = "d decimal(18,4)"
    assert written("floor(d)", columns).value(scaled) == int(number.to_integral_value(ROUND_FLOOR))
    assert written("ceil(d)", columns).value(scaled) == int(number.to_integral_value(ROUND_CEILING))
    assert written("round(d)", columns).value(scaled) == int(number.to_integral_value(ROUND_HALF_UP))
    assert written("round(d, 2)", columns).value(scaled) == int(
        number.quantize(Decimal("0.01"), ROUND_HALF_UP).scaleb(2)
    )
    assert written("cast(d as text)", columns).value(scaled) == f"{number:.4f}".replace("-0.0000", "0.0000")
    assert written("cast(cast(d as text) as decimal(18,4))", columns).value(scaled) == scaled


@given(st.floats(-1e15, 1e15))
def test_float_rounding_goes_by_the_shortest_text(number: float) -> None:
    expected = Decimal(repr(number)).quantize(Decimal("0.01"), ROUND_HALF_UP)
    assert written("round(f, 2)", "f float").value(number) == float(expected) + 0.0
    assert written("cast(f as decimal(18,2))", "f float").value(number) == int(expected.scaleb(2))
    assert written("floor(f)", "f float").value(number) == math.floor(number)


def test_functions_of_numbers_that_have_no_value() -> None:
    for text, row in (("sqrt(f)", -1.0), ("power(f, -1)", 0.0), ("power(f, 0.5)", -8.0)):
        with pytest.raises(EvaluationError) as failure:
            written(text, "f float").value(row)
        assert failure.value.code is Failure.ARGUMENT


# --- casts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "columns", "value", "expected"),
    [
        ("cast(x as int)", "x decimal(10,2)", 250, 3),
        ("cast(x as int)", "x decimal(10,2)", -250, -3),
        ("cast(x as int)", "x float", 2.5, 3),
        ("cast(x as int)", "x text", "+12", 12),
        ("cast(x as decimal(10,2))", "x text", "-0.005", -1),
        ("cast(x as decimal(10,2))", "x int", 7, 700),
        ("cast(x as decimal(10,1))", "x decimal(10,3)", 1250, 13),
        ("cast(x as float)", "x decimal(10,2)", 125, 1.25),
        ("cast(x as float)", "x text", "1e3", 1000.0),
        ("cast(x as text)", "x float", 0.1, "0.1"),
        ("cast(x as text)", "x bool", True, "true"),
        ("cast(x as int)", "x bool", True, 1),
        ("cast(x as bool)", "x text", "false", False),
        ("cast(x as text)", "x time", 1, "1970-01-01 00:00:00.000001"),
        ("cast(x as time)", "x text", "1970-01-01T00:01Z", 60_000_000),
        ("cast(x as enum('a','b'))", "x text", "b", "b"),
        ("cast(x as text)", "x enum('a','b')", "a", "a"),
        ("cast(x as text(2))", "x text", "ab", "ab"),
        ("cast(x as text)", "x int", -5, "-5"),
    ],
)
def test_casts(text: str, columns: str, value: Value, expected: Value) -> None:
    result = written(text, columns).value(value)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("text", "columns", "value"),
    [
        ("cast(x as int)", "x text", "12.5"),
        ("cast(x as int)", "x text", " 12"),
        ("cast(x as int)", "x text", "1_000"),
        ("cast(x as int)", "x text", "\u0661"),
        ("cast(x as decimal(5,2))", "x text", "1e2"),
        ("cast(x as float)", "x text", "nan"),
        ("cast(x as float)", "x text", "inf"),
        ("cast(x as bool)", "x text", "True"),
        ("cast(x as enum('a','b'))", "x text", "c"),
        ("cast(x as text(2))", "x text", "abc"),
    ],
)
def test_texts_that_say_no_value_fail(text: str, columns: str, value: Value) -> None:
    with pytest.raises(EvaluationError) as failure:
        written(text, columns).value(value)
    assert failure.value.code is Failure.CAST


# --- text -----------------------------------------------------------------------------------------------------------


@given(texts, texts, st.integers(1, 25), st.integers(0, 25))
def test_text_functions_agree_with_python(s: str, part: str, start: int, n: int) -> None:
    columns = "s text, p text, i int, n int"
    row = (s, part, start, n)

    def run(text: str) -> Value:
        return written(text, columns).value(*row)

    assert run("length(s)") == len(s)
    assert run("substring(s, i, n)") == "".join(list(s)[start - 1 :][:n])
    assert run("concat(s, p, s)") == run("s || p || s") == s + part + s
    assert run("contains(s, p)") == (part in s)
    assert run("starts_with(s, p)") == (s[: len(part)] == part)
    assert run("ends_with(s, p)") == (part == "" or s[-len(part) :] == part)
    if part:
        assert run("replace(s, p, '')") == "".join(s.split(part))
        assert run("split_part(s, p, i)") == (s.split(part) + [""] * 30)[start - 1]
    assert run("s < p") == ([ord(c) for c in s] < [ord(c) for c in part])


@pytest.mark.parametrize("text", ["substring(s, i, 1)", "split_part(s, 's', i)", "substring(s, 1, i - 1)"])
def test_positions_count_from_one(text: str) -> None:
    with pytest.raises(EvaluationError) as failure:
        written(text, "s text, i int").value("abc", 0)
    assert failure.value.code is Failure.ARGUMENT


@given(
    st.text("ab%_\\", max_size=6).filter(lambda p: len(p) - len(p.rstrip("\\")) in (0, 2)),
    st.text("ab%_\\", max_size=8),
)
def test_like_agrees_with_a_regular_expression(pattern: str, text: str) -> None:
    expression, characters = "", iter(pattern)
    for character in characters:
        if character == "\\":
            expression += re.escape(next(characters))
        else:
            expression += {"%": ".*", "_": "."}.get(character, re.escape(character))
    assert like_matches(text, pattern) == bool(re.fullmatch(expression, text, re.DOTALL))


def test_like_takes_no_exponential_time() -> None:
    assert not like_matches("a" * 2000, "%a" * 30 + "b")


# --- regular expressions --------------------------------------------------------------------------------------------


def patterns() -> st.SearchStrategy[str]:
    characters = st.sampled_from(["a", "b", "c", ".", "[ab]", "[^a]", "\\d", "\\w", "[a-c1]", "-", "\\."])

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        repeated = st.tuples(
            st.one_of(characters, inner.map(lambda p: f"({p}a)"), inner.map(lambda p: f"(?:b{p})")),
            st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{1,3}", "*?", "+?", "??"]),
        ).map("".join)
        return st.one_of(
            repeated,
            st.tuples(inner, inner).map("".join),
            st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
            inner.map(lambda p: f"({p})"),
        )

    whole = st.recursive(characters, grow, max_leaves=8)
    return st.tuples(st.sampled_from(["", "^"]), whole, st.sampled_from(["", "$"])).map("".join)


@given(patterns(), st.text("abc1.-\n", max_size=10))
def test_patterns_agree_with_python(pattern: str, text: str) -> None:
    expected = re.compile(pattern.replace("$", "\\Z"), re.ASCII).search(text)
    found = compile_pattern(pattern).search(text)
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert [found.span(group) for group in range(len(expected.regs))] == list(expected.regs)


@pytest.mark.parametrize(
    "pattern",
    [
        "(a)\\1",
        "(?=a)",
        "(?<n>a)",
        "(?i)a",
        "a**",
        "a*+",
        "(a*)*",
        "(a|b?)+",
        "^*",
        "a{3,2}",
        "a{0}",
        "a{101}",
        "a{,3}",
        "((a{50}){50}){50}",
        "[b-a]",
        "[]",
        "[a",
        "[a[b]",
        "[a&&b]",
        "[\\D]",
        "(a",
        "a)",
        "a]",
        "a}",
        "*a",
        "\\b",
        "\\",
        "\\é",
        "(" * 30 + "a" + ")" * 30,
        "a" * 501,
    ],
)
def test_patterns_outside_the_subset_are_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        compile_pattern(pattern)


def test_patterns_take_no_exponential_time() -> None:
    assert compile_pattern("(?:a|a)+(?:a|ab)+[a-z]+.*c$").search("a" * 3000) is None


def test_white_space_is_the_same_everywhere() -> None:
    for character in " \t\n\v\f\r":
        assert compile_pattern("^\\s$").search(character) is not None
        assert compile_pattern("^[a\\s]$").search(character) is not None
        assert compile_pattern("^\\S$").search(character) is None
    assert compile_pattern("^\\s$").search("\u00a0") is None


def test_extract_gives_empty_text_when_absent() -> None:
    assert value_of("regexp_extract('abc', 'x(.)', 1)") == ""
    assert value_of("regexp_extract('abc', 'a(x)?b', 1)") == ""
    assert written("regexp_extract('abc', '(a)', 2)").codes == ["MPL0315"]


# --- time -----------------------------------------------------------------------------------------------------------


@given(times)
def test_parts_of_a_time_agree_with_datetime(time: int) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time)
    for part in ("year", "month", "day", "hour", "minute", "second"):
        assert written(f"{part}(t)", "t time").value(time) == getattr(moment, part)
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    assert moment_of(written("date(t)", "t time").value(time)) == midnight  # type: ignore[arg-type]
    assert written("truncate(t, 1 d)", "t time").value(time) == written("date(t)", "t time").value(time)
    assert written("epoch(t)", "t time").value(time) == time
    assert time_of_literal(time_to_text(time)) == time


@given(times, st.sampled_from(["%Y-%m-%d", "%H:%M:%S.%f", "%j/%Y", "%u", "%%%d%%", "T%H"]))
def test_format_agrees_with_strftime(time: int, pattern: str) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time)
    # The platform's %Y does not fill small years with zeros.
    expected = moment.strftime(pattern.replace("%Y", f"{moment.year:04}"))
    assert format_time(time, pattern) == expected


@given(times)
def test_parsing_undoes_formatting(time: int) -> None:
    for pattern in ("%Y-%m-%d %H:%M:%S.%f", "%f|%S|%M|%H|%d|%m|%Y", "%Y%m%d%H%M%S%f"):
        assert parse_time(format_time(time, pattern), pattern) == time


@pytest.mark.parametrize(
    ("text", "pattern"),
    [("2026-02-30", "%Y-%m-%d"), ("2026-1-30", "%Y-%m-%d"), ("2026-01-30 ", "%Y-%m-%d"), ("0000", "%Y"), ("", "%Y")],
)
def test_texts_that_are_no_times_fail(text: str, pattern: str) -> None:
    with pytest.raises(EvaluationError) as failure:
        parse_time(text, pattern)
    assert failure.value.code is Failure.TIME_TEXT


@pytest.mark.parametrize("text", ["2026", "2026-13-01", "26-01-01", "2026-01-01 25:00", "2026-01-01 1:00", "now", ""])
def test_bad_time_literals(text: str) -> None:
    assert written(f"time '{text}'").codes == ["MPL0317"]


@given(times, st.integers(1, 10**14))
def test_truncate_is_the_window_that_holds_the_time(time: int, step: int) -> None:
    try:
        start = written("truncate(t, d)", "t time, d duration").value(time, step)
    except EvaluationError:
        assert time - step < TIME_MIN
        return
    assert isinstance(start, int)
    assert start % step == 0
    assert start <= time < start + step


# --- hash -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "seed", "digest"),
    [
        (b"", 0, 0xEF46DB3751D8E999),
        (b"", 42, 0x98B1582B0977E704),
        (b"a", 0, 0xD24EC4F1A98C6E5B),
        (b"Spark", 42, 0xC466FC0DFA0FF5B7),
        (b"abcdefghijklmnopqrstuvwxyz0123456789", 42, 0x25CE6FFE7DBD8389),
        (bytes(range(100)), 42, 0x819D2B726001D507),
        (bytes(range(100)), 0, 0x6AC1E58032166597),
    ],
)
def test_xxh64_gives_the_published_digests(data: bytes, seed: int, digest: int) -> None:
    assert xxh64(data, seed) == digest


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", -5252525462095825812),
        ("1", -7001672635703045582),
        ("-1", 3858142552250413010),
        ("0.01", -7001672635703045582),
        ("true", -7001672635703045582),
        ("1 us", -7001672635703045582),
        ("time '1970-01-01 00:00:00.000001'", -7001672635703045582),
        ("15e-1", 7738255526519901366),
        ("-0e0", -5252525462095825812),
        ("'Spark'", -4294468057691064905),
        ("''", -7444071767201028348),
    ],
)
def test_hash_of_values(text: str, expected: int) -> None:
    assert value_of(f"hash({text})") == expected


# --- directions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i + i", ("up", "up")),
        ("i - i", ("up", "down")),
        ("-i", ("down",)),
        ("i * i", (None, None)),
        ("i * q", ("up", None)),
        ("q * m", ("down", "up")),
        ("i / 3", ("up", None)),
        ("i / -3", ("down", None)),
        ("i / i", (None, None)),
        ("i > 3", ("up", "down")),
        ("i < 3", ("down", "up")),
        ("i = 3", (None, None)),
        ("greatest(i, q, 3)", ("up", "up", "up")),
        ("cast(i as decimal(18,2))", ("up",)),
        ("cast(i as text)", (None,)),
        ("round(d, 1)", ("up", None)),
        ("date(t)", ("up",)),
        ("hour(t)", (None,)),
        ("abs(i)", (None,)),
    ],
)
def test_directions(text: str, expected: tuple[str | None, ...]) -> None:
    expr = written(text, "i int, q int[0..9], m int[..0], d decimal(5,2), t time").typed
    assert isinstance(expr, Apply)
    assert directions(expr) == expected


SMOOTH = [
    ("floor(x)", "x decimal(6,2)"),
    ("ceil(x)", "x decimal(6,2)"),
    ("round(x, 1)", "x decimal(6,2)"),
    ("sign(x)", "x decimal(6,2)"),
    ("cast(x as int)", "x decimal(6,2)"),
    ("least(x, 5)", "x decimal(6,2)"),
    ("x / 7", "x decimal(6,2)"),
    ("x / -7", "x decimal(6,2)"),
    ("x * 2.5", "x decimal(6,2)"),
    ("5 - x", "x decimal(6,2)"),
    ("x > 5", "x decimal(6,2)"),
    ("x <= 5", "x decimal(6,2)"),
    ("truncate(x, 7 us)", "x time"),
    ("date(x)", "x time"),
    ("year(x)", "x time"),
    ("epoch(x)", "x time"),
]


@pytest.mark.parametrize(("text", "columns"), SMOOTH)
@given(a=st.integers(-99999, 99999), b=st.integers(-99999, 99999))
def test_directions_are_true(text: str, columns: str, a: int, b: int) -> None:
    checked = written(text, columns)
    assert isinstance(checked.typed, Apply)
    at = next(i for i, argument in enumerate(checked.typed.arguments) if isinstance(argument, ColumnRef))
    direction = directions(checked.typed)[at]
    low, high = checked.value(min(a, b)), checked.value(max(a, b))
    assert isinstance(low, int)
    assert isinstance(high, int)
    assert low <= high if direction == "up" else low >= high
    assert direction is not None


def test_signature_is_what_evaluation_sees() -> None:
    spec = BY_NAME["divide"]
    assert spec.evaluate(Signature((IntType(), IntType()), IntType()), -7, 2) == -3
    assert spec.evaluate(Signature((IntType(), FloatType()), FloatType()), -7, 2.0) == -3.5
    assert Kind.TEXT.accepts(TextType(3))
    assert not Kind.TEXT.accepts(TimeType())
