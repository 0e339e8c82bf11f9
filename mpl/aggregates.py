"""Result types of aggregates. In progress: signature."""

from __future__ import annotations

from dataclasses import dataclass

from mpl import nodes, typed
from mpl.diagnostic import Diagnostics
from mpl.types import OPEN, Bounds, Type


@dataclass(frozen=True)
class AggregateResult:
    type: Type
    nullable: bool
    bounds: Bounds = OPEN


def aggregate_type(
    call: nodes.AggregateCall, argument: typed.Expr | None, *, grouped: bool, diagnostics: Diagnostics
) -> AggregateResult | None:
    """Type, nullability and bounds of an aggregate's column; None after a diagnostic (or a poisoned argument).

    `grouped`: there is a non-empty `group by`, so that every group has a row. `call.where` and a nullable argument
    can still leave nothing to aggregate; then min, max, avg, first and last are null.
    """
    raise NotImplementedError
