"""What the aggregates of a group-by have in common; one file for each kind: totals, extremes, count_distinct,
witness.

`group_by.py` tells each of them which input rows join and leave which groups: `prepare` and `evaluate` do whatever can
fail, `commit` then changes the state. Arguments and filters are functions of all columns of an input row; a null
argument never counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from runtime.operators.row_operator import Row
from runtime.plan import Column
from runtime.values import Key, Value

Function = Callable[..., Value]
Prepared = list[tuple[Key, Any, int, int]]  # group, `part` of the row (its argument), +1 or -1, tick
Result = dict[Key, tuple[tuple[Value, ...], int]]  # new values of a group, and the largest tick that changed them


@dataclass(slots=True)
class Flow:
    """Input rows that join (+1) or leave (-1) groups, as parallel lists."""

    groups: list[Key] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    signs: list[int] = field(default_factory=list)
    ticks: list[int] = field(default_factory=list)

    def add(self, group: Key, row: Row, sign: int, tick: int) -> None:
        self.groups.append(group)
        self.rows.append(row)
        self.signs.append(sign)
        self.ticks.append(tick)


class Aggregate(ABC):
    """One aggregate of all groups."""

    identity: tuple[Value, ...]

    def __init__(self, relation: str, argument: Function | None, where: Function | None) -> None:
        self._relation = relation
        self._argument = argument
        self._where = where

    def prepare(self, flow: Flow) -> Prepared:
        """What of the flow counts here. Nothing has changed if this raises."""
        argument, where = self._argument, self._where
        counted: Prepared = []
        for group, row, sign, tick in zip(flow.groups, flow.rows, flow.signs, flow.ticks, strict=True):
            if where is None or where(*row):
                value = 1 if argument is None else argument(*row)
                if value is not None:
                    counted.append((group, self.part(row, value), sign, tick))
        return counted

    def part(self, row: Row, value: Value) -> Any:
        """What the aggregate needs of a row that counts: its argument."""
        return value

    @abstractmethod
    def evaluate(self, counted: Prepared, before: Callable[[Key], Sequence[Value]]) -> Result:
        """The new values of the groups, where that needs no state beside them; raises before anything changes."""

    def commit(self, counted: Prepared, result: Result) -> Result:
        """Change the state beside the output columns, if there is any, and complete the result."""
        return result

    def export(self) -> object:
        """State beside the output columns, as plain data; for groups of events, which nobody remembers."""
        return None

    def restore(self, data: object) -> None:  # noqa: B027
        """Read `export` back."""


class AggregateSpec(ABC):
    """Parameters of an aggregate: a frozen dataclass."""

    @property
    def width(self) -> int:
        """Number of output columns."""
        return 1

    @property
    def is_extreme(self) -> bool:
        """Is the value that of one witness?"""
        return False

    @abstractmethod
    def build(self, relation: str, columns: Sequence[Column], *, rows_may_leave: bool) -> Aggregate: ...


def group_lists(data: object) -> Iterable[tuple[Key, list[Value]]]:
    """(group, list) pairs of a checkpoint; ValueError if they cannot have been written."""
    if not isinstance(data, list):
        raise ValueError("an aggregate's state is a list of groups")
    for pair in data:
        if not (isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(p, list | tuple) for p in pair)):
            raise ValueError("an aggregate's state has a list for each group")
        yield tuple(pair[0]), list(pair[1])
