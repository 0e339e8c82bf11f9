"""What checking a pipeline needs to know, and where it stands.

`Context` is the surrounding program; `Current` is the relation that the operators so far have made, with the names by
which the next operator may refer to its columns. When an operator has an error and its columns are unknown, the rest
of the pipeline is left unchecked (None), because every later message would be a consequence. A wrong operator that
changes no column is passed over; a column whose expression is wrong is there with `ErrorType`, about which nobody
complains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mpl import nodes, typed
from mpl.codes import names
from mpl.diagnostic import Diagnostics
from mpl.expressions import FunctionTable
from mpl.scope import Scope, ScopeColumn

CELLS_MAX = 1_000_000
"""Columns of all relations, inner ones included: each costs time in every later analysis."""


class Budget:
    """Counts columns while a program is checked; says once when there are too many."""

    def __init__(self) -> None:
        self.left = CELLS_MAX

    def spend(self, columns: int) -> bool:
        """False when this was too much."""
        self.left -= columns
        return self.left >= 0


@dataclass(frozen=True)
class Context:
    """`relations` holds a scan for every name that may be read; None stands for one with errors of its own.

    `event_views` has the views whose rows are events, and the streams that those come from.
    """

    relations: Mapping[str, typed.RelationTree | None]
    event_views: Mapping[str, frozenset[str]]
    streams: Mapping[str, typed.Stream]
    functions: FunctionTable
    diagnostics: Diagnostics
    budget: Budget


@dataclass(frozen=True)
class Current:
    node: typed.RelationTree
    scope: Scope

    @property
    def schema(self) -> typed.Schema:
        return self.node.schema


def column_at(
    current: Current | Scope, column: nodes.ColumnName, context: Context, place: str = "what is read"
) -> ScopeColumn | None:
    """The column that a written name means; an unknown one is reported with what there is instead."""
    scope = current.scope if isinstance(current, Current) else current
    qualifier = column.qualifier.text if column.qualifier else None
    found = scope.find(qualifier, column.name.text)
    if found is None:
        report_unknown_column(column, scope, context.diagnostics, place)
    return found


def report_unknown_column(column: nodes.ColumnName, scope: Scope, diagnostics: Diagnostics, place: str) -> None:
    qualifier = column.qualifier.text if column.qualifier else None
    diagnostics.report(
        names.UNKNOWN_COLUMN,
        column.span,
        f"there is no column `{column.text}` here",
        f"not a column of {place}" if qualifier is None else f"`{qualifier}` has no such column here",
        help=lambda: scope.suggest(qualifier, column.name.text) or list_columns(scope),
    )


def list_columns(scope: Scope, most: int = 12) -> str:
    """A help line with the columns there are."""
    known = list(scope.names)
    shown = ", ".join(f"`{name}`" for name in known[:most])
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return f"the columns are {shown}{more}" if known else "there are no columns to name"


def columns_at(
    current: Current, written: Iterable[nodes.ColumnName], context: Context
) -> tuple[ScopeColumn, ...] | None:
    """The columns of a written list, each at most once; None after reporting every name that does not fit."""
    found: dict[int, ScopeColumn] = {}
    failed = False
    for column in written:
        entry = column_at(current, column, context)
        if entry is None:
            failed = True
        elif entry.index in found:
            failed = True
            context.diagnostics.report(
                names.DUPLICATE_COLUMN, column.span, f"`{column.text}` is listed twice", "already in the list"
            )
        else:
            found[entry.index] = entry
    return None if failed else tuple(found.values())
