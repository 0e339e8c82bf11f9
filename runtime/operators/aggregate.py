"""What the aggregates of a group-by have in common; one file for each kind: totals, extremes, count_distinct,
witness.

Sums, counts and extremes of rows that never leave stand in the generated loop (`Form`). The others have state of their
own: the loop lists for them which rows join and leave which groups, `evaluate` does whatever can fail, and then
`commit` changes the state. Arguments and filters are functions of all columns of an input row; null never counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from runtime.plan import Column, Relation
from runtime.values import Key, Value

Function = Callable[..., Value]
Counted = list[tuple[Key, Any, int, int]]  # group, what the aggregate needs of the row, +1 or -1, tick
Result = dict[Key, tuple[tuple[Value, ...], int]]  # new values of a group, and the largest tick that changed them
FormName = Literal["sum", "signed", "average", "count", "min", "max"]


@dataclass(frozen=True)
class Form:
    """An aggregate without state of its own: which one, and its values for no rows."""

    name: FormName
    identity: tuple[Value, ...]


class Aggregate(ABC):
    """One aggregate of all groups."""

    identity: tuple[Value, ...]

    def __init__(self, relation: Relation) -> None:
        self._relation = relation

    @abstractmethod
    def evaluate(self, counted: Counted, before: Callable[[Key], Sequence[Value]]) -> Result:
        """The new values of the groups, where that needs no state beside them; raises before anything changes."""

    def commit(self, counted: Counted, result: Result) -> Result:
        """Change the state beside the output columns, if there is any, and complete the result."""
        return result

    def export(self) -> object:
        """State beside the output columns, as plain data; for groups of events, which nobody remembers."""
        return None

    def restore(self, data: object) -> None:  # noqa: B027
        """Read `export` back."""


class AggregateSpec(ABC):
    """Parameters of an aggregate: a frozen dataclass."""

    argument: Function | None
    where: Function | None

    @property
    def width(self) -> int:
        """Number of output columns."""
        return 1

    @property
    def is_extreme(self) -> bool:
        """Is the value that of one witness?"""
        return False

    @property
    def needs(self) -> tuple[int, ...] | None:
        """Input columns that the aggregate wants to see besides its argument: then it gets (these, argument)."""
        return None

    @abstractmethod
    def form(self, columns: Sequence[Column], *, rows_may_leave: bool) -> Form | None:
        """How it stands in the loop; None if it has state of its own, and `build` makes it."""

    @abstractmethod
    def build(self, relation: Relation, columns: Sequence[Column], *, rows_may_leave: bool) -> Aggregate: ...


def group_lists(data: object) -> Iterable[tuple[Key, list[Value]]]:
    """(group, list) pairs of a checkpoint; ValueError if they cannot have been written."""
    if not isinstance(data, list):
        raise ValueError("an aggregate's state is a list of groups")
    for pair in data:
        if not (isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(p, list | tuple) for p in pair)):
            raise ValueError("an aggregate's state has a list for each group")
        yield tuple(pair[0]), list(pair[1])
