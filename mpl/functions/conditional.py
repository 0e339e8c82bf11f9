"""Functions about null and about types."""

from __future__ import annotations

from collections.abc import Callable

from mpl.arithmetic import bounds_within, is_number, scaled_ends
from mpl.functions.casts import CAST
from mpl.functions.operators import compare_values
from mpl.functions.spec import (
    Example,
    FunctionSpec,
    Kind,
    Nulls,
    Parameter,
    Signature,
    common_type,
    same_as_first,
)
from mpl.typed import Expr
from mpl.types import OPEN, Bounds, Type, Value


def _coalesce(_: Signature, *operands: Callable[[], Value]) -> Value:
    for operand in operands:
        value = operand()
        if value is not None:
            return value
    return None


def union_of_bounds(arguments: tuple[Expr, ...], result: Type) -> Bounds:
    """A range that holds the values of all arguments, in units of `result`."""
    if not is_number(result) and any(argument.type != result for argument in arguments):
        return OPEN
    ends = [scaled_ends(argument.bounds, argument.type, result) for argument in arguments]
    return bounds_within(result, min(low for low, _ in ends), max(high for _, high in ends))


def _nullif(call: Signature, a: Value, b: Value) -> Value:
    if a is None or b is None:
        return a
    return None if compare_values(a, b, *call.arguments) == 0 else a


CONDITIONAL: tuple[FunctionSpec, ...] = (
    FunctionSpec(
        name="coalesce",
        theme="conditional",
        called="coalesce",
        parameters=(Parameter("a", Kind.ANY), Parameter("b", Kind.ANY)),
        variadic=True,
        common=True,
        lazy=True,
        result=common_type,
        nulls=Nulls.SKIP,
        monotone=("up",),
        bounds=union_of_bounds,
        evaluate=_coalesce,
        summary="The first value that is not null; later ones are not evaluated.",
        examples=(Example("coalesce(nullif(1, 1), 7)", "7"), Example("coalesce(1, 2)", "1")),
    ),
    FunctionSpec(
        name="nullif",
        theme="conditional",
        called="nullif",
        parameters=(Parameter("a", Kind.ANY), Parameter("b", Kind.ANY)),
        result=same_as_first,
        nulls=Nulls.OWN,
        nullable=lambda _: True,
        monotone=(None, None),
        bounds=lambda arguments, _: arguments[0].bounds,
        evaluate=_nullif,
        summary="Null if both are equal, otherwise `a`: `x / nullif(y, 0)` is null where `y` is 0.",
        examples=(Example("nullif(3, 0)", "3"), Example("coalesce(10 / nullif(0, 0), -1)", "-1")),
    ),
    CAST,
)
