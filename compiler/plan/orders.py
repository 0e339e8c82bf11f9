"""Orders in which rows follow each other: by their ticks from left to right, then by key; for latest, first and top."""

from __future__ import annotations

from collections.abc import Iterable

from compiler.plan.layout import Layout
from mpl.typed import Schema
from runtime.operators import row_operator
from runtime.operators.ordering import Order


def by_tick(layout: Layout, schema: Schema, *, descending: bool = False) -> tuple[Order, ...]:
    """By ticks, `descending` or not, then by key, ascending."""
    ticks = [position for position, column in enumerate(schema.columns) if column.is_tick]
    return (*(Order(layout.plain(position), descending) for position in ticks), *by_key(layout, schema))


def by_key(layout: Layout, schema: Schema) -> tuple[Order, ...]:
    """By key; and by what the runtime tells rows apart by, in case that is something else."""
    columns = dict.fromkeys((*layout.flat(schema.key), *range(layout.relation.key_width)))
    return tuple(Order(column) for column in columns)


def is_key_order(layout: Layout, schema: Schema) -> bool:
    """Is the runtime's key the one that the language orders equal rows by?"""
    return layout.flat(schema.key) == tuple(range(layout.relation.key_width))


def are_final(layout: Layout, columns: Iterable[int]) -> bool:
    """Do these physical columns of a row never change?"""
    return row_operator.are_final(layout.relation, tuple(columns))
