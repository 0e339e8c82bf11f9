"""The function library: every function and operator that an expression may use, in one list.

The expression checker, the evaluator, the monotonic analysis, the documentation and the code generators read it. A new
function is a record in the file of its theme; it needs nothing else.
"""

from mpl.functions.conditional import CONDITIONAL
from mpl.functions.hashing import HASHING
from mpl.functions.numbers import NUMBERS
from mpl.functions.operators import OPERATORS
from mpl.functions.spec import Direction, FunctionSpec
from mpl.functions.text import TEXT_FUNCTIONS
from mpl.functions.time import TIME_FUNCTIONS
from mpl.typed import Apply

FUNCTIONS: tuple[FunctionSpec, ...] = (
    *OPERATORS,
    *NUMBERS,
    *TEXT_FUNCTIONS,
    *TIME_FUNCTIONS,
    *CONDITIONAL,
    *HASHING,
)

BY_NAME: dict[str, FunctionSpec] = {spec.name: spec for spec in FUNCTIONS}
"""By the name in `typed.Apply`."""

BY_CALL: dict[str, FunctionSpec] = {spec.called: spec for spec in FUNCTIONS if spec.called}
"""By the name that users call."""


def directions(expr: Apply) -> tuple[Direction, ...]:
    """How the value moves with each argument, all else equal and nothing null: `up`, `down`, or None for anyhow.

    Decided by the function, and where that is not enough (`*`, `/`, `cast`) by the types and ranges of this call.
    """
    return BY_NAME[expr.function].directions_of(expr.arguments, expr.type)
