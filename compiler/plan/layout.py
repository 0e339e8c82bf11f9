"""Layouts: the physical columns of a relation.

The runtime wants key columns first, and the tick as column 0 of an event relation. Most columns are one physical
column; an up-down number is a pair (p, n) shown as p - n, an average a pair (sum, count). Whoever needs the value
itself (as a key, to order by) must ask for it as a plain column first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mpl.knowledge import FinalWhen, Kind, Knowledge
from mpl.typed import Column, Schema
from mpl.types import BoolType, DecimalType, DurationType, EnumType, FloatType, TextType, TimeType, Type
from runtime import plan

Form = Literal["plain", "difference", "average"]


@dataclass(frozen=True)
class Cell:
    """Where a column lives: the numbers of its physical columns."""

    form: Form
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """`cells` has one entry for each column of the schema, in its order.

    `front` physical columns come first that no column of the schema names: the tick of a table's rows.
    """

    relation: plan.Relation
    cells: tuple[Cell, ...]
    front: int = 0

    def plain(self, position: int) -> int:
        """The physical column of a column that is known to be one."""
        cell = self.cells[position]
        assert cell.form == "plain", f"column {position} of {self.relation.name} is a pair"
        return cell.columns[0]

    def flat(self, positions: Iterable[int]) -> tuple[int, ...]:
        """The physical columns of several columns, pairs included, in order."""
        return tuple(number for position in positions for number in self.cells[position].columns)


@dataclass(frozen=True)
class Shape:
    """How one column is to be laid out: its form, and the physical columns it consists of."""

    form: Form
    parts: tuple[plan.Column, ...]


def value_type(type: Type) -> plan.ValueType:
    match type:
        case FloatType():
            return plan.ValueType.FLOAT
        case TextType() | EnumType():
            return plan.ValueType.TEXT
        case BoolType():
            return plan.ValueType.BOOL
        case _:
            return plan.ValueType.INT


def unit_of(type: Type) -> plan.Unit | None:
    match type:
        case DecimalType(scale=scale):
            return scale
        case TimeType():
            return "time"
        case DurationType():
            return "duration"
        case _:
            return None


_KINDS = {
    Kind.FINAL: plan.ColumnKind.FINAL,
    Kind.UP: plan.ColumnKind.UP,
    Kind.DOWN: plan.ColumnKind.DOWN,
    Kind.DOM: plan.ColumnKind.DOM,
}


def column_kind(knowledge: Knowledge, position: int) -> plan.ColumnKind:
    """A value that the analysis proves less about than its kind says is only true as of a coverage."""
    column = knowledge.columns[position]
    if column.kind is Kind.FINAL and not column.is_stable:
        return plan.ColumnKind.VERSIONED
    return _KINDS.get(column.kind, plan.ColumnKind.VERSIONED)


def plain_shape(column: Column, knowledge: Knowledge, position: int, contribution_max: int | None = None) -> Shape:
    part = plan.Column(
        column.name,
        value_type(column.type),
        column_kind(knowledge, position),
        column.nullable,
        contribution_max,
        unit_of(column.type),
    )
    return Shape("plain", (part,))


def physical_order(schema: Schema, is_event: bool) -> tuple[int, ...]:
    """The schema's columns in physical order: what identifies a row first."""
    if is_event:
        tick = next(position for position, column in enumerate(schema.columns) if column.is_tick)
        return (tick, *(position for position in range(len(schema.columns)) if position != tick))
    key = schema.key
    return (*key, *(position for position in range(len(schema.columns)) if position not in key))


def lay_out(
    name: str,
    schema: Schema,
    knowledge: Knowledge,
    shapes: Sequence[Shape],
    order: Sequence[int],
    key_width: int,
    *,
    front: int = 0,
    is_event: bool | None = None,
    versioned: bool = False,
) -> Layout:
    """The layout of a relation whose columns have these shapes and are stored in this order.

    `versioned`: rows are replaced, whatever the analysis proves; then none is final as soon as it is visible.
    """
    is_final = knowledge.finality.when is FinalWhen.AT_ONCE and not versioned
    cells: dict[int, Cell] = {}
    columns = [plan.Column("tick") for _ in range(front)]
    shown: list[plan.ShownColumn] = []
    for position in order:
        shape = shapes[position]
        numbers = tuple(range(len(columns), len(columns) + len(shape.parts)))
        cells[position] = Cell(shape.form, numbers)
        columns.extend(shape.parts)
    for position, column in enumerate(schema.columns):
        if not column.hidden:
            shown.append(plan.ShownColumn(column.name, cells[position].form, cells[position].columns))
    relation = plan.Relation(
        name,
        tuple(columns),
        key_width,
        is_event=knowledge.is_event if is_event is None else is_event,
        versioned=knowledge.rows_versioned or versioned,
        finality=plan.Finality.VISIBLE if is_final else plan.Finality.NEVER,
        shown=tuple(shown),
    )
    return Layout(relation, tuple(cells[position] for position in range(len(schema.columns))), front)


def with_nulls(shape: Shape) -> Shape:
    """The same columns, which may be null in rows that are not visible even where the schema says otherwise."""
    return replace(shape, parts=tuple(replace(part, nullable=True) for part in shape.parts))


def passed_on(schema: Schema, knowledge: Knowledge, kept: Sequence[tuple[Layout, int]]) -> list[Shape]:
    """Shapes of columns that are passed on from inputs: `kept` says for each where it comes from.

    Parts keep their kinds, except where the analysis says less of the column here than it did there.
    """
    shapes: list[Shape] = []
    for position, (source, index) in enumerate(kept):
        cell = source.cells[index]
        parts = tuple(source.relation.columns[number] for number in cell.columns)
        if cell.form == "plain":
            shape = plain_shape(schema.columns[position], knowledge, position, parts[0].contribution_max)
            # Grouping by a value that moves makes it fixed. A row that was emptied before it was seen has none to
            # offer, so its tombstone is keyed by null.
            became_fixed = shape.parts[0].kind is plan.ColumnKind.FINAL and parts[0].kind is not plan.ColumnKind.FINAL
            shapes.append(with_nulls(shape) if parts[0].nullable or became_fixed else shape)
        else:
            shapes.append(Shape(cell.form, parts))
    return shapes
