"""How rows of a relation look to users: names, values, keys and their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.plan.build import ViewPlan
from compiler.plan.layout import Cell
from mpl.functions.library import AVERAGE, bound_function
from mpl.types import IntType, Type, Value
from runtime.batch import Batch
from runtime.columns import Numbers, numbers
from smile.errors import UnknownName
from smile.frames import FrameField
from smile.values import decoder

Decode = Callable[[Value], object]
Bounds = list[tuple[list[Value], list[Value]]]


@dataclass(frozen=True)
class ShownColumn:
    """One column of a view: where its value is, and how it becomes the user's."""

    name: str
    type: Type
    nullable: bool
    cell: Cell
    average: Callable[..., Value] | None
    decode: Decode | None

    def canonical(self, columns: Sequence[Sequence[Value]]) -> Sequence[Value]:
        first = columns[self.cell.columns[0]]
        if self.cell.form == "plain":
            return first
        second = columns[self.cell.columns[1]]
        if self.cell.form == "difference":
            if isinstance(first, Numbers) and isinstance(second, Numbers):
                # Both are not negative: the difference cannot overflow.
                return numbers(first.view(np.ndarray) - second.view(np.ndarray))
            return list(map(_difference, first, second))
        assert self.average is not None
        return [self.average(total, count) for total, count in zip(first, second, strict=True)]

    def values(self, columns: Sequence[Sequence[Value]]) -> Sequence[object]:
        found = self.canonical(columns)
        return found if self.decode is None else list(map(self.decode, found))

    def decoded(self, values: Sequence[Value]) -> list[object]:
        return list(values) if self.decode is None else list(map(self.decode, values))


def _difference(first: Any, second: Any) -> Value:
    """Of a row that is gone a part may never have been known."""
    return None if first is None or second is None else first - second


class ViewReader:
    """`columns` are those that users see. `key` sorts rows. `identity` says which row a change is about: the key too,
    unless columns of it can change; then it is what the engine knows the row by."""

    def __init__(self, plan: ViewPlan) -> None:
        self.name = plan.name
        made = [_shown(plan, position) for position in range(len(plan.schema.columns))]
        self.columns = tuple(
            shown for shown, column in zip(made, plan.schema.columns, strict=True) if not column.hidden
        )
        self._by_name = {column.name: column for column in self.columns}
        self.key = tuple(made[position] for position in plan.schema.key)
        self.identity = self.key
        relation = plan.side.layout.relation
        held = range(relation.key_width)
        # Events never change, so any key will do for them.
        if not relation.is_event and {n for shown in self.key for n in shown.cell.columns} != set(held):
            by_number = {shown.cell.columns: shown for shown in made}
            self.identity = tuple(by_number.get((number,)) or _unnamed(number) for number in held)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def fields(self) -> tuple[FrameField, ...]:
        return tuple(FrameField(column.name, column.type, column.nullable) for column in self.columns)

    def column(self, name: str) -> ShownColumn:
        found = self._by_name.get(name)
        if found is not None:
            return found
        raise UnknownName(f"`{self.name}` has no column `{name}`; it has {', '.join(self.names)}")

    def ordered(self, batch: Batch) -> Batch:
        """The same rows in the order of their keys, nulls last."""
        parts: list[list[Any]] = [list(column.canonical(batch.columns)) for column in self.key]
        if not parts:
            return batch
        for at, part in enumerate(parts):
            if None in part:
                parts[at] = [(value is None, value) for value in part]
        keys = parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))
        return batch.take(sorted(range(len(keys)), key=keys.__getitem__))

    def values(self, batch: Batch) -> list[Sequence[object]]:
        """The user's values, column by column."""
        return [column.values(batch.columns) for column in self.columns]

    def canonical(self, batch: Batch) -> list[Sequence[Value]]:
        return [column.canonical(batch.columns) for column in self.columns]

    def bounds(self, batch: Batch, low: Sequence[Sequence[Value]], high: Sequence[Sequence[Value]]) -> Bounds:
        """Column by column, canonical, from bounds row by row. An average is known where both of its parts are: then it
        is the row's own, rounded as averages are."""
        made: list[tuple[list[Value], list[Value]]] = []
        for at, column in enumerate(self.columns):
            lows, highs = [row[at] for row in low], [row[at] for row in high]
            if column.average is not None:
                own = column.canonical(batch.columns)
                lows = [None if bound is None else value for bound, value in zip(lows, own, strict=True)]
                highs = list(lows)
            made.append((lows, highs))
        return made

    def rows(self, batch: Batch) -> list[dict[str, object]]:
        names = self.names
        if not names:
            return [{} for _ in range(len(batch))]
        return [dict(zip(names, row, strict=True)) for row in zip(*self.values(batch), strict=True)]

    def keys(self, batch: Batch) -> list[tuple[object, ...]]:
        """What identifies each row."""
        if not self.identity:
            return [()] * len(batch)
        return list(zip(*(column.values(batch.columns) for column in self.identity), strict=True))


def _unnamed(number: int) -> ShownColumn:
    """A physical column that no column of the schema shows: the tick of a table's row."""
    return ShownColumn("", IntType(), False, Cell("plain", (number,)), None, None)


def _shown(plan: ViewPlan, position: int) -> ShownColumn:
    column = plan.schema.columns[position]
    cell = plan.side.layout.cells[position]
    average = None
    if cell.form == "average":
        average = bound_function(AVERAGE, (plan.side.averages[position], IntType()), column.type)
    return ShownColumn(column.name, column.type, column.nullable, cell, average, decoder(column.type))
