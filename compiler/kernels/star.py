"""Recognising a keyed star below a view: relations of state that all have its key, fed by events only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compiler.graph import TransformGraph
from compiler.kernels.edges import write_edges
from compiler.kernels.model import Computed, Part, Star
from compiler.kernels.output import Output
from compiler.kernels.scalars import Constants, NotFusable
from compiler.plan.layout import Layout
from compiler.plan.planner import PlannedPart
from runtime.kernels.spec import OutputColumn, Where
from runtime.plan import ColumnKind, Relation, ValueType


@dataclass(frozen=True)
class Recognised:
    """A star, and what the runtime needs to know of it beside the generated text."""

    star: Star
    parts: tuple[Part, ...]
    constants: Constants
    outputs: tuple[OutputColumn, ...]
    computed: tuple[ValueType, ...]
    keys: tuple[ValueType, ...]


def recognise(
    graph: TransformGraph, planned: Mapping[str, PlannedPart], bases: Mapping[str, Layout], id: str
) -> Recognised:
    """The star that computes transform `id`; `NotFusable` if there is none. `bases`: layouts of streams and tables."""
    if id not in graph.nodes or id in graph.event_ids:
        raise NotFusable("it is a relation of events")
    if id not in planned or f"{id}.sums" in planned or f"{id}.rows" in planned:
        raise NotFusable("it is computed in several steps")
    layout = planned[id].layout
    relation = layout.relation
    if layout.front:
        raise NotFusable("its rows are told apart by a tick that no column names")
    key = tuple(_position_of(layout, number) for number in range(relation.key_width))
    if not key:
        raise NotFusable("it has one row only")
    constants = Constants()
    output = Output(graph, planned, bases, constants)
    inner = output.relation(id, key)
    locals_ = _locals_of(layout, {position: inner.cells[position].locals for position in range(len(layout.cells))})
    rows = {n for part in output.parts if part.is_row for columns in part.columns.values() for n in columns}
    settled = {n for part in output.parts if part.number in inner.required for c in part.columns.values() for n in c}
    outputs, computed, recorded = _outputs(relation, locals_, rows & settled)
    edges = write_edges(output.parts, output.state, bases, graph.schema_of, constants)
    star = Star(
        edges,
        tuple(part.flag for part in output.parts),
        tuple(output.state),
        tuple(output.block.lines),
        inner.present,
        inner.shown,
        tuple(Computed(local, local in output.final_locals) for local in computed),
        tuple(sorted({column.number for column in outputs if column.where is Where.STATE})),
        recorded,
        output.can_die,
        relation.versioned,
        relation.versioned or any(c.kind in (ColumnKind.DOM, ColumnKind.VERSIONED) for c in relation.columns),
    )
    return Recognised(
        star,
        tuple(output.parts),
        constants,
        outputs,
        tuple(computed.values()),
        tuple(column.type for column in relation.columns[: relation.key_width]),
    )


def _position_of(layout: Layout, number: int) -> int:
    return next(position for position, cell in enumerate(layout.cells) if number in cell.columns)


def _locals_of(layout: Layout, cells: Mapping[int, tuple[str, ...]]) -> list[str]:
    """The local that holds each physical column."""
    found: dict[int, str] = {}
    for position, cell in enumerate(layout.cells):
        found.update(zip(cell.columns, cells[position], strict=True))
    return [found[number] for number in range(layout.relation.width)]


def _outputs(
    relation: Relation, locals_: list[str], settled: set[int]
) -> tuple[tuple[OutputColumn, ...], dict[str, ValueType], tuple[str, ...]]:
    """Where each physical column is found, the locals that must be stored, and those that each change records.

    `settled`: state columns that are the same in all changes of a row.
    """
    outputs: list[OutputColumn] = []
    computed: dict[str, ValueType] = {}
    recorded: dict[str, int] = {}
    for column, local in zip(relation.columns, locals_, strict=True):
        if local.startswith("q"):
            outputs.append(OutputColumn(Where.KEY, int(local[1:]), column.type))
            continue
        if local.startswith("s"):
            where, number = Where.STATE, int(local[1:])
        else:
            computed.setdefault(local, column.type)
            where, number = Where.COMPUTED, list(computed).index(local)
        record = None
        if where is Where.COMPUTED or number not in settled:
            record = recorded.setdefault(local, len(recorded))
        outputs.append(OutputColumn(where, number, column.type, record))
    return tuple(outputs), computed, tuple(recorded)
