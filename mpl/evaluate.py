"""The meaning of typed expressions: evaluates one on one row of canonical values.

Slow and obvious. Used to fold constants, to test the documentation, and as what generated code is compared with.
Arguments are evaluated from the left; only `and`, `or`, `coalesce` and `case` leave out what they do not need. An
expression that has no value raises `EvaluationError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mpl.failures import EvaluationError, Failure
from mpl.functions import BY_NAME
from mpl.functions.spec import Nulls, Signature
from mpl.scaled import limits_of
from mpl.typed import Apply, CaseOf, ColumnRef, Const, Expr, PythonCall
from mpl.types import BoolType, EnumType, FloatType, TextType, Type, Value

PythonFunctions = Mapping[tuple[str, str], Callable[..., Value]]
"""Functions by (module, name) that a program may call; they take and give canonical values."""

NO_PYTHON: PythonFunctions = {}


def evaluate(expr: Expr, row: Sequence[Value], python: PythonFunctions = NO_PYTHON) -> Value:
    """The value of `expr` where column i has the value `row[i]`."""
    match expr:
        case Const():
            return expr.value
        case ColumnRef():
            return row[expr.index]
        case CaseOf():
            for condition, value in expr.branches:
                if evaluate(condition, row, python) is True:
                    return evaluate(value, row, python)
            return evaluate(expr.otherwise, row, python)
        case Apply():
            return _apply(expr, row, python)
        case PythonCall():
            return _call_python(expr, row, python)


def _apply(expr: Apply, row: Sequence[Value], python: PythonFunctions) -> Value:
    spec = BY_NAME[expr.function]
    signature = Signature(tuple(argument.type for argument in expr.arguments), expr.type)
    if spec.lazy:
        return spec.evaluate(signature, *(_later(argument, row, python) for argument in expr.arguments))
    values = [evaluate(argument, row, python) for argument in expr.arguments]
    if spec.nulls is Nulls.PROPAGATE and None in values:
        return None
    return spec.evaluate(signature, *values)


def _later(expr: Expr, row: Sequence[Value], python: PythonFunctions) -> Callable[[], Value]:
    return lambda: evaluate(expr, row, python)


def _call_python(expr: PythonCall, row: Sequence[Value], python: PythonFunctions) -> Value:
    name = f"{expr.module}:{expr.function}"
    function = python.get((expr.module, expr.function))
    if function is None:
        raise EvaluationError(Failure.PYTHON, f"the Python function {name} is not allowed here")
    values = [evaluate(argument, row, python) for argument in expr.arguments]
    try:
        result = function(*values)
    except Exception as error:
        raise EvaluationError(Failure.PYTHON, f"{name} raised {type(error).__name__}: {error}") from error
    if not (expr.nullable if result is None else is_value_of(result, expr.type)):
        raise EvaluationError(Failure.PYTHON, f"{name} did not return {expr.type}")
    return result


def is_value_of(value: Value, wanted: Type) -> bool:
    """Whether `value` is a canonical value of the type, in its range and length."""
    match wanted:
        case BoolType():
            return isinstance(value, bool)
        case FloatType():
            return isinstance(value, float) and value - value == 0
        case TextType():
            return isinstance(value, str) and (wanted.length_max is None or len(value) <= wanted.length_max)
        case EnumType():
            return value in wanted.values
        case _:
            limits = limits_of(wanted)
            whole = isinstance(value, int) and not isinstance(value, bool)
            return whole and limits is not None and limits[0] <= value <= limits[1]  # type: ignore[operator]
