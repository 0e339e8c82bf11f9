"""Library functions bound to the types of one call, for generated code.

Generated modules name a function and its types as text (types may contain a user's words, so they are data); this file
turns that into a callable of canonical values.
"""

from __future__ import annotations

from collections.abc import Callable

from mpl.functions import BY_NAME
from mpl.functions.spec import Signature
from mpl.scaled import divide_rounded, power_of_ten, scale_of
from mpl.types import FloatType, Type, Value

BoundFunction = Callable[..., Value]


def bound_function(name: str, arguments: tuple[Type, ...], result: Type) -> BoundFunction:
    """The function `name` for these types. Nulls are the caller's business where the function propagates them."""
    if name == AVERAGE:
        return _average(arguments[0], result)
    evaluate = BY_NAME[name].evaluate
    signature = Signature(arguments, result)
    return lambda *values: evaluate(signature, *values)


AVERAGE = "average"
"""The value that a (sum, count) pair shows; not a function that users can call."""


def _average(total: Type, result: Type) -> BoundFunction:
    if isinstance(result, FloatType):
        return lambda sum_, count: sum_ / count if count else None
    factor = power_of_ten(scale_of(result) - scale_of(total))
    return lambda sum_, count: divide_rounded(sum_ * factor, count) if count else None
