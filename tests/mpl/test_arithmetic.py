"""Goal: arithmetic gives the exact number or an error, in the declared type, and its ranges hold every result.

References: Python's unbounded integers, Decimal and Fraction, datetime.
"""

import math
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mpl.arithmetic import Operation, result_bounds, result_type, unify
from mpl.evaluate import evaluate
from mpl.failures import EvaluationError, Failure
from mpl.functions import BY_NAME
from mpl.functions.spec import Signature
from mpl.scaled import divide_rounded, divide_truncated, limits_of, remainder, rescale
from mpl.types import (
    INT_MAX,
    INT_MIN,
    TIME_MAX,
    TIME_MIN,
    Bounds,
    DecimalType,
    DurationType,
    EnumType,
    ErrorType,
    FloatType,
    IntType,
    NullType,
    TextType,
    TimeType,
    Type,
)
from tests.mpl.written import type_of, value_of, written

INT, FLOAT, TIME, DURATION = IntType(), FloatType(), TimeType(), DurationType()
OPERATIONS: tuple[Operation, ...] = ("add", "subtract", "multiply", "divide", "modulo")


def run(operation: Operation, left: Type, right: Type, a: int | float, b: int | float) -> int | float:
    result = result_type(operation, left, right, (Bounds(), Bounds()))
    assert result is not None
    value = BY_NAME[operation].evaluate(Signature((left, right), result), a, b)
    assert isinstance(value, int | float)
    return value


def half_away(exact: Fraction, scale: int) -> int:
    """The nearest multiple of 10^-scale, computed with fractions."""
    scaled = exact * int(10**scale)
    down = math.floor(abs(scaled))
    up = down + (1 if abs(scaled) - down >= Fraction(1, 2) else 0)
    return up if scaled >= 0 else -up


@st.composite
def decimals(draw: st.DrawFn) -> tuple[DecimalType, int]:
    precision = draw(st.integers(1, 18))
    shape = DecimalType(precision, draw(st.integers(0, precision)))
    limit = 10**precision - 1
    return shape, draw(st.integers(-limit, limit))


ints = st.one_of(st.integers(INT_MIN, INT_MAX), st.integers(-20, 20), st.sampled_from([INT_MIN, INT_MAX, 0, -1, 1]))


# --- rounding -------------------------------------------------------------------------------------------------------


@given(st.integers(-(10**30), 10**30), st.integers(-(10**12), 10**12).filter(bool))
def test_rounding_division_agrees_with_decimal(numerator: int, denominator: int) -> None:
    with localcontext() as context:
        context.prec = 120
        exact = Decimal(numerator) / Decimal(denominator)
        expected = int(exact.to_integral_value(ROUND_HALF_UP))
    assert divide_rounded(numerator, denominator) == expected


@pytest.mark.parametrize(
    ("numerator", "denominator", "rounded", "truncated", "rest"),
    [(5, 2, 3, 2, 1), (-5, 2, -3, -2, -1), (5, -2, -3, -2, 1), (-5, -2, 3, 2, -1), (4, 3, 1, 1, 1), (0, 7, 0, 0, 0)],
)
def test_signs_of_division(numerator: int, denominator: int, rounded: int, truncated: int, rest: int) -> None:
    assert divide_rounded(numerator, denominator) == rounded
    assert divide_truncated(numerator, denominator) == truncated
    assert remainder(numerator, denominator) == rest


@given(st.integers(), st.integers().filter(bool))
def test_quotient_and_remainder_make_the_whole(a: int, b: int) -> None:
    assert divide_truncated(a, b) * b + remainder(a, b) == a
    assert abs(remainder(a, b)) < abs(b)


@pytest.mark.parametrize(("value", "expected"), [(125, 13), (-125, -13), (124, 12), (-124, -12), (5, 1), (-5, -1)])
def test_losing_a_digit_rounds_half_away_from_zero(value: int, expected: int) -> None:
    assert rescale(value, 2, 1) == expected


# --- values ---------------------------------------------------------------------------------------------------------


@given(st.sampled_from(OPERATIONS), ints, ints)
def test_int_arithmetic_is_exact_or_fails(operation: Operation, a: int, b: int) -> None:
    if operation in ("divide", "modulo") and b == 0:
        with pytest.raises(EvaluationError) as failure:
            run(operation, INT, INT, a, b)
        assert failure.value.code is Failure.DIVISION_BY_ZERO
        return
    truncated = int(Fraction(a, b)) if b else 0  # int() of a Fraction truncates
    exact = {"add": a + b, "subtract": a - b, "multiply": a * b, "divide": truncated, "modulo": a - truncated * b}
    if INT_MIN <= exact[operation] <= INT_MAX:
        assert run(operation, INT, INT, a, b) == exact[operation]
    else:
        with pytest.raises(EvaluationError) as failure:
            run(operation, INT, INT, a, b)
        assert failure.value.code is Failure.OVERFLOW


@given(st.sampled_from(OPERATIONS), decimals(), decimals())
def test_decimal_arithmetic_is_the_rounded_exact_number_or_fails(
    operation: Operation, left: tuple[DecimalType, int], right: tuple[DecimalType, int]
) -> None:
    (left_type, a), (right_type, b) = left, right
    x, y = Fraction(a, 10**left_type.scale), Fraction(b, 10**right_type.scale)
    assume(not (operation in ("divide", "modulo") and b == 0))
    result = result_type(operation, left_type, right_type, (Bounds(), Bounds()))
    assert isinstance(result, DecimalType)
    assert 1 <= result.precision <= 18
    assert 0 <= result.scale <= 18
    match operation:
        case "add":
            exact = x + y
        case "subtract":
            exact = x - y
        case "multiply":
            exact = x * y
        case "divide":
            exact = x / y
            assert result.scale >= 6
        case "modulo":
            exact = x - int(x / y) * y
    expected = half_away(exact, result.scale)
    if operation in ("add", "subtract", "modulo"):
        assert exact * 10**result.scale == expected, "never rounds"
    if abs(expected) < 10**result.precision:
        assert run(operation, left_type, right_type, a, b) == expected
    else:
        assert result.precision == 18 or operation == "divide", "a type that was not cut holds every result"
        with pytest.raises(EvaluationError):
            run(operation, left_type, right_type, a, b)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_float_arithmetic_is_ieee_and_never_infinite(a: float, b: float) -> None:
    for operation, exact in (("add", a + b), ("subtract", a - b), ("multiply", a * b)):
        if math.isfinite(exact):
            value = run(operation, FLOAT, FLOAT, a, b)  # type: ignore[arg-type]
            assert value == exact
            assert math.copysign(1, value) == 1 or value != 0, "one zero"
        else:
            with pytest.raises(EvaluationError):
                run(operation, FLOAT, FLOAT, a, b)  # type: ignore[arg-type]


@given(st.datetimes(), st.integers(-(10**15), 10**15))
def test_time_arithmetic_agrees_with_datetime(moment: datetime, microseconds: int) -> None:
    time = (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)  # noqa: DTZ001  the reference has no zone
    try:
        later = moment + timedelta(microseconds=microseconds)
    except OverflowError:
        with pytest.raises(EvaluationError):
            run("add", TIME, DURATION, time, microseconds)
        return
    expected = (later - datetime(1970, 1, 1)) // timedelta(microseconds=1)  # noqa: DTZ001
    assert run("add", TIME, DURATION, time, microseconds) == expected
    assert run("add", DURATION, TIME, microseconds, time) == expected
    assert run("subtract", TIME, TIME, expected, time) == microseconds
    assert run("subtract", TIME, DURATION, expected, microseconds) == time


@pytest.mark.parametrize(
    ("text", "columns", "row"),
    [
        ("a + 1", "a int", (INT_MAX,)),
        ("a - 1", "a int", (INT_MIN,)),
        ("-a", "a int", (INT_MIN,)),
        ("abs(a)", "a int", (INT_MIN,)),
        ("a * 2", "a int", (2**62,)),
        ("a / -1", "a int", (INT_MIN,)),
        ("t + 1 us", "t time", (TIME_MAX,)),
        ("t - 1 us", "t time", (TIME_MIN,)),
        ("d * 3", "d duration", (INT_MAX // 2,)),
        ("b + b", "b decimal(18,2)", (10**18 - 1,)),
        ("f * 10e0", "f float", (1.7e308,)),
        ("power(f, 2)", "f float", (1e200,)),
        ("cast(f as int)", "f float", (1e19,)),
        ("floor(f)", "f float", (-1e19,)),
        ("cast(a as decimal(5,2))", "a int", (1000,)),
    ],
)
def test_beyond_the_border_is_an_overflow(text: str, columns: str, row: tuple[int | float, ...]) -> None:
    with pytest.raises(EvaluationError) as failure:
        written(text, columns).value(*row)
    assert failure.value.code is Failure.OVERFLOW


@pytest.mark.parametrize(
    ("text", "columns", "row", "expected"),
    [
        ("a + 1", "a int", (INT_MAX - 1,), INT_MAX),
        ("a - 1", "a int", (INT_MIN + 1,), INT_MIN),
        ("a * 1", "a int", (INT_MIN,), INT_MIN),
        ("a / 1", "a int", (INT_MIN,), INT_MIN),
        ("a % -1", "a int", (INT_MIN,), 0),
        ("t + 0 s", "t time", (TIME_MAX,), TIME_MAX),
        ("b + b", "b decimal(18,2)", (5 * 10**17 - 1,), 10**18 - 2),
        ("cast(a as decimal(5,2))", "a int", (999,), 99900),
    ],
)
def test_up_to_the_border_is_exact(text: str, columns: str, row: tuple[int, ...], expected: int) -> None:
    assert written(text, columns).value(*row) == expected


def test_smallest_int_can_be_written() -> None:
    assert value_of("-9223372036854775808") == INT_MIN
    assert value_of("-9223372036854775808 + 1") == INT_MIN + 1


def test_decimal_with_too_many_places_is_refused() -> None:
    assert written("0.000000000000000001").codes == []
    assert written("0.0000000000000000001").codes == ["MPL0316"]


# --- types ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i + i", "int"),
        ("i / i", "int"),
        ("i + d", "decimal(18,2)"),
        ("q * d", "decimal(14,2)"),
        ("3 * d", "decimal(11,2)"),
        ("d + d", "decimal(11,2)"),
        ("d * d", "decimal(18,4)"),
        ("d / d", "decimal(16,6)"),
        ("d / i", "decimal(14,6)"),
        ("i / d", "decimal(18,6)"),
        ("d % 7", "decimal(3,2)"),
        ("w * w", "decimal(18,6)"),
        ("w / w", "decimal(18,6)"),
        ("f + i", "float"),
        ("d * f", "float"),
        ("t - t", "duration"),
        ("t + 4 s", "time"),
        ("4 s + t", "time"),
        ("p * 2", "duration"),
        ("2 * p", "duration"),
        ("p / 2", "duration"),
        ("p / p", "decimal(18,6)"),
        ("p % 1 min", "duration"),
        ("-p", "duration"),
        ("n + 1", "int null"),
        ("s || 'x'", "text"),
    ],
)
def test_result_types(text: str, expected: str) -> None:
    columns = "i int, q int[0..1000], d decimal(10,2), w decimal(18,6), f float, t time, p duration, n int null, s text"
    assert type_of(text, columns) == expected


@pytest.mark.parametrize(("operation", "left", "right"), [
    ("add", TIME, TIME),
    ("multiply", TIME, INT),
    ("multiply", DURATION, DecimalType(5, 2)),
    ("multiply", DURATION, FLOAT),
    ("add", INT, DURATION),
    ("subtract", DURATION, TIME),
    ("add", TextType(), TextType()),
    ("divide", INT, DURATION),
])  # fmt: skip
def test_operations_that_do_not_exist(operation: Operation, left: Type, right: Type) -> None:
    assert result_type(operation, left, right, (Bounds(), Bounds())) is None


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ((INT, INT), INT),
        ((INT, DecimalType(10, 2)), DecimalType(18, 2)),
        ((DecimalType(10, 2), DecimalType(8, 4)), DecimalType(12, 4)),
        ((DecimalType(18, 0), DecimalType(18, 18)), DecimalType(18, 18)),
        ((INT, FLOAT, DecimalType(3, 1)), FLOAT),
        ((NullType(), INT), INT),
        ((INT, NullType()), INT),
        ((NullType(),), NullType()),
        ((TextType(3), TextType(5)), TextType(5)),
        ((TextType(3), TextType()), TextType()),
        ((EnumType(("a", "bcd")), TextType(2)), TextType(3)),
        ((EnumType(("a",)), EnumType(("a",))), EnumType(("a",))),
        ((ErrorType(), INT, TIME), ErrorType()),
        ((INT, TextType()), None),
        ((TIME, DURATION), None),
        ((TIME, INT), None),
    ],
)
def test_one_type_for_several(types: tuple[Type, ...], expected: Type | None) -> None:
    assert unify(*types) == expected
    if not any(isinstance(each, ErrorType) for each in types):
        assert unify(*reversed(types)) == expected


# --- ranges ---------------------------------------------------------------------------------------------------------


@st.composite
def ranged(draw: st.DrawFn) -> tuple[Type, Bounds, int]:
    """A type, a range with perhaps open ends, and a value in it."""
    shapes: list[Type] = [INT, DecimalType(6, 2), DecimalType(9, 0), DecimalType(18, 9)]
    shape = draw(st.sampled_from(shapes))
    limits = limits_of(shape)
    assert limits is not None
    spread = st.one_of(st.integers(-30, 30), st.integers(*limits))
    low, value, high = sorted(
        draw(st.tuples(spread, spread, spread).filter(lambda v: all(limits[0] <= x <= limits[1] for x in v)))
    )
    return shape, Bounds(draw(st.sampled_from([low, None])), draw(st.sampled_from([high, None]))), value


@given(st.sampled_from(OPERATIONS), ranged(), ranged())
def test_ranges_hold_every_result(
    operation: Operation, left: tuple[Type, Bounds, int], right: tuple[Type, Bounds, int]
) -> None:
    result = result_type(operation, left[0], right[0], (left[1], right[1]))
    assert result is not None
    bounds = result_bounds(operation, left[:2], right[:2], result)
    try:
        value = BY_NAME[operation].evaluate(Signature((left[0], right[0]), result), left[2], right[2])
    except EvaluationError:
        return
    assert isinstance(value, int)
    assert bounds.low is None or bounds.low <= value
    assert bounds.high is None or value <= bounds.high


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("q - 1", -1, 999),
        ("q + q", 0, 2000),
        ("q * q", 0, 1_000_000),
        ("q * -1", -1000, 0),
        ("q / 3", 0, 333),
        ("q % 7", 0, 6),
        ("up % 7", 0, 6),
        ("i % 7", -6, 6),
        ("i / (q - 1)", None, None),
        ("up + 1", 1, None),
        ("-up", None, 0),
        ("up - q", -1000, None),
        ("i + 1", None, None),
        ("abs(i)", 0, None),
        ("abs(q - 500)", 0, 500),
        ("greatest(q, 5)", 5, 1000),
        ("least(i, 5)", None, 5),
        ("coalesce(n, 5)", None, None),
        ("case when q > 3 then q else -1 end", -1, 1000),
        ("round(m)", 0, 101),
        ("cast(q as decimal(10,2))", 0, 100_000),
        ("hour(t)", 0, 23),
        ("length(short)", 0, 5),
        ("q * 1.5", 0, 15_000),
    ],
)
def test_ranges_of_expressions(text: str, low: int | None, high: int | None) -> None:
    columns = "q int[0..1000], up int[0..], i int, n int null, m decimal(5,2)[0..100], t time, short text(5)"
    assert written(text, columns).typed.bounds == Bounds(low, high)


def test_evaluation_of_a_folded_constant_is_the_constant() -> None:
    folded = written("2 * 3 + 4").typed
    assert type(folded).__name__ == "Const"
    assert evaluate(folded, ()) == 10
