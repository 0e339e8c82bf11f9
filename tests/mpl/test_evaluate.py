"""Goal: the reference evaluator runs what the records cannot: columns, cases, Python functions, and their failures."""

import pytest

from mpl.evaluate import evaluate, is_value_of
from mpl.failures import EvaluationError, Failure
from mpl.types import (
    INT_MAX,
    BoolType,
    DecimalType,
    EnumType,
    FloatType,
    IntType,
    TextType,
    TimeType,
    Type,
    Value,
)
from tests.mpl.written import written

RISK = 'function risk(x int null) returns int python "shop:risk";'


def test_columns_are_taken_by_position() -> None:
    assert written("b - a", "a int, b int").value(2, 5) == 3


def test_case_takes_the_first_true_branch_only() -> None:
    text = "case when a > 10 then 1 / (a - 11) when a > 5 then 2 else 3 end"
    assert [written(text, "a int").value(value) for value in (12, 6, 0)] == [1, 2, 3]
    with pytest.raises(EvaluationError) as failure:
        written(text, "a int").value(11)
    assert failure.value.code is Failure.DIVISION_BY_ZERO


def test_python_functions_are_called_with_canonical_values() -> None:
    expr = written("risk(a) + 1", "a int null", RISK).typed
    functions = {("shop", "risk"): lambda x: 0 if x is None else x * 10}
    assert evaluate(expr, (4,), functions) == 41
    assert evaluate(expr, (None,), functions) == 1


@pytest.mark.parametrize("bad", [None, "x", 1.5, True, INT_MAX + 1])
def test_python_results_are_checked(bad: Value) -> None:
    expr = written("risk(a)", "a int null", RISK).typed
    with pytest.raises(EvaluationError) as failure:
        evaluate(expr, (4,), {("shop", "risk"): lambda _: bad})
    assert failure.value.code is Failure.PYTHON


def test_python_functions_that_raise_or_are_not_allowed_fail() -> None:
    expr = written("risk(a)", "a int null", RISK).typed
    with pytest.raises(EvaluationError, match="ZeroDivisionError") as failure:
        evaluate(expr, (4,), {("shop", "risk"): lambda _: 1 // 0})
    assert failure.value.code is Failure.PYTHON
    with pytest.raises(EvaluationError, match="not allowed"):
        evaluate(expr, (4,))


@pytest.mark.parametrize(
    ("value", "type", "expected"),
    [
        (5, IntType(), True),
        (2**63, IntType(), False),
        (True, IntType(), False),
        (999, DecimalType(3, 2), True),
        (1000, DecimalType(3, 2), False),
        (1.0, FloatType(), True),
        (float("nan"), FloatType(), False),
        (float("inf"), FloatType(), False),
        (1, FloatType(), False),
        (True, BoolType(), True),
        (1, BoolType(), False),
        ("ab", TextType(2), True),
        ("abc", TextType(2), False),
        ("a", EnumType(("a",)), True),
        ("b", EnumType(("a",)), False),
        (0, TimeType(), True),
        (INT_MAX, TimeType(), False),
    ],
)
def test_canonical_values(value: Value, type: Type, expected: bool) -> None:
    assert is_value_of(value, type) is expected
