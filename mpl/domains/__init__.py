"""Monotonic domains: the states through which a value may move, with the order in which it may do so.

One class per domain; `DOMAINS` lists them all, and the laws of order, merge, bottom and finality are tested for each.
The analysis in `mpl/knowledge/` says by `name` which domain a column is kept in. Nothing here depends on the engine,
which has its own fast forms of the same merges.
"""

from typing import Any

from mpl.domains.domain import Contradiction, Domain
from mpl.domains.dominated import Dominated
from mpl.domains.event_value import EventValue
from mpl.domains.grow_only_set import GrowOnlySet
from mpl.domains.interval import Interval
from mpl.domains.number import FallingNumber, RisingNumber
from mpl.domains.rising_parts import average, up_down_number
from mpl.domains.top_k import TopK
from mpl.domains.versioned import Versioned
from mpl.domains.visibility import Visibility

DOMAINS: tuple[Domain[Any], ...] = (
    EventValue(),
    RisingNumber(),
    FallingNumber(),
    up_down_number(),
    average(),
    Dominated("latest"),
    Dominated("first"),
    GrowOnlySet(),
    TopK(3),
    Visibility(),
    Interval(),
    Versioned(),
)

__all__ = ["DOMAINS", "Contradiction", "Domain"]
