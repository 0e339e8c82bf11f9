"""Operators as functions: arithmetic, comparison, logic.

Types and ranges of arithmetic are in `mpl/arithmetic.py`; here are the values and the records. Comparisons take
operands of different number types: exact ones are compared exactly, whatever their scales; next to a float both are
compared as floats. Logic is three-valued as in SQL: `null and false` is false, `null or true` is true, otherwise null
stays null.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from mpl.arithmetic import (
    Operation,
    exact_quotient,
    is_number,
    negated_bounds,
    result_bounds,
    result_type,
)
from mpl.failures import EvaluationError, Failure
from mpl.functions.like import like_matches, like_problem
from mpl.functions.spec import (
    Direction,
    Example,
    FunctionSpec,
    Kind,
    Nulls,
    Parameter,
    Signature,
    fixed,
    same_as_first,
)
from mpl.scaled import Number, checked, remainder, rescale, scale_of, to_float
from mpl.typed import Const, Expr
from mpl.types import BoolType, Bounds, FloatType, Type, Value

BOOL = BoolType()
Thunk = Callable[[], Value]


# --- arithmetic -----------------------------------------------------------------------------------------------------


def _operands(call: Signature, a: Number, b: Number) -> tuple[Number, Number]:
    """Both operands in units of the result, for operations that need them alike."""
    left, right = call.arguments
    if isinstance(call.result, FloatType):
        return to_float(a, left), to_float(b, right)
    scale = scale_of(call.result)
    return rescale(int(a), scale_of(left), scale), rescale(int(b), scale_of(right), scale)


def _add(call: Signature, a: Number, b: Number) -> Value:
    left, right = _operands(call, a, b)
    return checked(left + right, call.result)


def _subtract(call: Signature, a: Number, b: Number) -> Value:
    left, right = _operands(call, a, b)
    return checked(left - right, call.result)


def _multiply(call: Signature, a: Number, b: Number) -> Value:
    left, right = call.arguments
    if isinstance(call.result, FloatType):
        return checked(to_float(a, left) * to_float(b, right), call.result)
    exact = rescale(int(a) * int(b), scale_of(left) + scale_of(right), scale_of(call.result))
    return checked(exact, call.result)


def _divide(call: Signature, a: Number, b: Number) -> Value:
    if b == 0:
        raise EvaluationError(Failure.DIVISION_BY_ZERO, "division by zero")
    left, right = call.arguments
    if isinstance(call.result, FloatType):
        return checked(to_float(a, left) / to_float(b, right), call.result)
    return checked(exact_quotient(int(a), left, int(b), right, call.result), call.result)


def _modulo(call: Signature, a: Number, b: Number) -> Value:
    if b == 0:
        raise EvaluationError(Failure.DIVISION_BY_ZERO, "division by zero")
    left, right = _operands(call, a, b)
    if isinstance(call.result, FloatType):
        return checked(math.fmod(left, right), call.result)
    return checked(remainder(int(left), int(right)), call.result)


def _zero_problem(arguments: tuple[Expr, ...]) -> tuple[Failure, str] | None:
    divisor = arguments[1]
    if isinstance(divisor, Const) and divisor.value == 0:
        return Failure.DIVISION_BY_ZERO, "division by zero"
    return None


def _negate(call: Signature, a: Number) -> Value:
    return checked(-a, call.result)


def _binary(
    operation: Operation,
    symbol: str,
    evaluate: Callable[..., Value],
    monotone: tuple[Direction, Direction],
    summary: str,
    examples: tuple[Example, ...],
    called: str | None = None,
) -> FunctionSpec:
    def result(arguments: tuple[Expr, ...]) -> Type | None:
        left, right = arguments
        return result_type(operation, left.type, right.type, (left.bounds, right.bounds))

    def bounds(arguments: tuple[Expr, ...], type: Type) -> Bounds:
        left, right = arguments
        return result_bounds(operation, (left.type, left.bounds), (right.type, right.bounds), type)

    return FunctionSpec(
        name=operation,
        theme="operators",
        called=called,
        written=f"a {symbol} b" + (f", {called}(a, b)" if called else ""),
        parameters=(Parameter("a", Kind.ANY), Parameter("b", Kind.ANY)),
        result=result,
        nulls=Nulls.PROPAGATE,
        monotone=monotone,
        directions=_SIGN_RULES.get(operation),
        problem=_zero_problem if operation in ("divide", "modulo") else None,
        bounds=bounds,
        evaluate=evaluate,
        summary=summary,
        examples=examples,
    )


def _by_sign(other: Expr) -> Direction:
    if other.bounds.non_negative:
        return "up"
    return "down" if other.bounds.non_positive else None


def _multiply_directions(arguments: tuple[Expr, ...], _: Type) -> tuple[Direction, ...]:
    left, right = arguments
    return _by_sign(right), _by_sign(left)


def _divide_directions(arguments: tuple[Expr, ...], _: Type) -> tuple[Direction, ...]:
    """In the divisor a quotient is monotone only where the divisor keeps its sign."""
    left, right = arguments
    low, high = right.bounds.low, right.bounds.high
    if not ((low is not None and low > 0) or (high is not None and high < 0)):
        return _by_sign(right), None
    turned: dict[Direction, Direction] = {"up": "down", "down": "up", None: None}
    return _by_sign(right), turned[_by_sign(left)]


_SIGN_RULES: dict[str, Callable[[tuple[Expr, ...], Type], tuple[Direction, ...]]] = {
    "multiply": _multiply_directions,
    "divide": _divide_directions,
}

ARITHMETIC: tuple[FunctionSpec, ...] = (
    _binary(
        "add",
        "+",
        _add,
        ("up", "up"),
        "The sum. Decimals keep the larger scale and never round; `time + duration` is a time.",
        (Example("2 + 3", "5"), Example("1.5 + 2.25", "3.75"), Example("4 s + 500 ms", "4500 ms")),
    ),
    _binary(
        "subtract",
        "-",
        _subtract,
        ("up", "down"),
        "The difference. `time - time` is a duration, `time - duration` a time.",
        (Example("2 - 3", "-1"), Example("time '2026-01-02' - time '2026-01-01'", "1 d")),
    ),
    _binary(
        "multiply",
        "*",
        _multiply,
        (None, None),
        "The product. Scales of decimals add up; beyond 18 digits the result is rounded to 6 or more after the point.",
        (Example("6 * 7", "42"), Example("1.5 * 1.5", "2.25"), Example("3 * 10 s", "30 s")),
    ),
    _binary(
        "divide",
        "/",
        _divide,
        (None, None),
        "The quotient. int / int drops the fraction; decimals keep at least 6 digits; dividing by zero is an error.",
        (Example("-7 / 2", "-3"), Example("1.0 / 3", "0.333333"), Example("90 s / 1 min", "1.500000")),
    ),
    _binary(
        "modulo",
        "%",
        _modulo,
        (None, None),
        "What a division leaves, with the sign of `a`. By zero it is an error.",
        (Example("7 % 3", "1"), Example("-7 % 3", "-1"), Example("mod(7.5, 2)", "1.5")),
        called="mod",
    ),
    FunctionSpec(
        name="negate",
        theme="operators",
        called=None,
        written="-a",
        parameters=(Parameter("a", Kind.AMOUNT),),
        result=same_as_first,
        nulls=Nulls.PROPAGATE,
        monotone=("down",),
        bounds=lambda arguments, result: negated_bounds(arguments[0].bounds, result),
        evaluate=_negate,
        summary="The number or duration with the other sign.",
        examples=(Example("-(2 + 3)", "-5"),),
    ),
)


# --- comparison -----------------------------------------------------------------------------------------------------


def compare_values(a: Value, b: Value, left: Type, right: Type) -> int:
    """-1, 0 or 1: how two values that are not null stand to each other. Text by code point."""
    if left != right and is_number(left) and is_number(right):
        assert isinstance(a, int | float)
        assert isinstance(b, int | float)
        if isinstance(left, FloatType) or isinstance(right, FloatType):
            a, b = to_float(a, left), to_float(b, right)
        else:
            scale = max(scale_of(left), scale_of(right))
            a, b = rescale(int(a), scale_of(left), scale), rescale(int(b), scale_of(right), scale)
    if a == b:
        return 0
    return -1 if a < b else 1  # type: ignore[operator]


def _comparison(
    name: str,
    symbol: str,
    holds: Callable[[int], bool],
    monotone: tuple[Direction, Direction],
    summary: str,
    example: Example,
) -> FunctionSpec:
    kind = Kind.ANY if name in ("equal", "unequal") else Kind.ORDERED
    return FunctionSpec(
        name=name,
        theme="operators",
        called=None,
        written=f"a {symbol} b",
        parameters=(Parameter("a", kind), Parameter("b", kind)),
        result=fixed(BOOL),
        nulls=Nulls.PROPAGATE,
        monotone=monotone,
        evaluate=lambda call, a, b: holds(compare_values(a, b, *call.arguments)),
        summary=summary,
        examples=(example,),
    )


def _in_list(call: Signature, a: Value, *items: Value) -> Value:
    if a is None:
        return None
    first, *others = call.arguments
    found: Value = False
    for other, item in zip(others, items, strict=True):
        if item is None:
            found = None
        elif compare_values(a, item, first, other) == 0:
            return True
    return found


COMPARISON: tuple[FunctionSpec, ...] = (
    _comparison(
        "equal", "=", lambda sign: sign == 0, (None, None), "Whether both are the same.", Example("2 = 2.00", "true")
    ),
    _comparison(
        "unequal", "<>", lambda sign: sign != 0, (None, None), "Whether they differ.", Example("'a' <> 'A'", "true")
    ),
    _comparison(
        "less",
        "<",
        lambda sign: sign < 0,
        ("down", "up"),
        "Whether `a` comes before `b`; text by code point.",
        Example("'Z' < 'a'", "true"),
    ),
    _comparison("less_equal", "<=", lambda sign: sign <= 0, ("down", "up"), "Not after.", Example("1.5 <= 1", "false")),
    _comparison("greater", ">", lambda sign: sign > 0, ("up", "down"), "After.", Example("2 s > 1500 ms", "true")),
    _comparison(
        "greater_equal", ">=", lambda sign: sign >= 0, ("up", "down"), "Not before.", Example("2 >= 2", "true")
    ),
    FunctionSpec(
        name="in_list",
        theme="operators",
        called=None,
        written="a in (b, ...)",
        parameters=(Parameter("a", Kind.ANY), Parameter("b", Kind.ANY)),
        variadic=True,
        result=fixed(BOOL),
        nulls=Nulls.OWN,
        monotone=(None,),
        evaluate=_in_list,
        summary="Whether `a` equals one of the values. If none equals and one is null, the answer is null.",
        examples=(Example("'OR' in ('OR', 'ID', 'CA')", "true"), Example("3 not in (1, 2)", "true")),
    ),
    FunctionSpec(
        name="like",
        theme="operators",
        called=None,
        written="s like 'pattern'",
        parameters=(Parameter("s", Kind.TEXT), Parameter("pattern", Kind.TEXT, literal=True, problem=like_problem)),
        result=fixed(BOOL),
        nulls=Nulls.PROPAGATE,
        monotone=(None,),
        evaluate=lambda _, text, pattern: like_matches(text, pattern),
        summary="Whether the whole text fits: `%` any text, `_` any one character, `\\` makes the next one ordinary.",
        examples=(Example("'channel-7' like 'channel-_'", "true"), Example("'50%' like '%\\%'", "true")),
    ),
    FunctionSpec(
        name="is_null",
        theme="operators",
        called=None,
        written="a is null",
        parameters=(Parameter("a", Kind.ANY),),
        result=fixed(BOOL),
        nulls=Nulls.OWN,
        nullable=lambda _: False,
        monotone=(None,),
        evaluate=lambda _, a: a is None,
        summary="Whether there is no value; never null itself.",
        examples=(Example("5 is null", "false"), Example("nullif(5, 5) is not null", "false")),
    ),
)


# --- logic ----------------------------------------------------------------------------------------------------------


def _and(_: Signature, *operands: Thunk) -> Value:
    result: Value = True
    for operand in operands:
        value = operand()
        if value is False:
            return False
        if value is None:
            result = None
    return result


def _or(_: Signature, *operands: Thunk) -> Value:
    result: Value = False
    for operand in operands:
        value = operand()
        if value is True:
            return True
        if value is None:
            result = None
    return result


LOGIC: tuple[FunctionSpec, ...] = (
    FunctionSpec(
        name="and",
        theme="operators",
        called=None,
        written="a and b",
        parameters=(Parameter("a", Kind.BOOL), Parameter("b", Kind.BOOL)),
        variadic=True,
        lazy=True,
        result=fixed(BOOL),
        nulls=Nulls.OWN,
        monotone=("up",),
        evaluate=_and,
        summary="False if one is false, else null if one is null. From the left, and only as far as needed.",
        examples=(Example("true and 1 > 2", "false"), Example("false and nullif(true, true)", "false")),
    ),
    FunctionSpec(
        name="or",
        theme="operators",
        called=None,
        written="a or b",
        parameters=(Parameter("a", Kind.BOOL), Parameter("b", Kind.BOOL)),
        variadic=True,
        lazy=True,
        result=fixed(BOOL),
        nulls=Nulls.OWN,
        monotone=("up",),
        evaluate=_or,
        summary="True if one is true, else null if one is null. From the left, and only as far as needed.",
        examples=(Example("false or 1 < 2", "true"), Example("nullif(true, true) or true", "true")),
    ),
    FunctionSpec(
        name="not",
        theme="operators",
        called=None,
        written="not a",
        parameters=(Parameter("a", Kind.BOOL),),
        result=fixed(BOOL),
        nulls=Nulls.PROPAGATE,
        monotone=("down",),
        evaluate=lambda _, a: not a,
        summary="The opposite.",
        examples=(Example("not 1 = 2", "true"),),
    ),
)

OPERATORS: tuple[FunctionSpec, ...] = (*ARITHMETIC, *COMPARISON, *LOGIC)
