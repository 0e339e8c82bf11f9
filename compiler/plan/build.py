"""The whole plan: streams, tables and every transform that some view needs, as components of the runtime."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from compiler.codegen.module import NO_PYTHON, Function
from compiler.graph import Transform, TransformGraph
from compiler.kernels.fuse import with_kernels
from compiler.plan.functions import Side
from compiler.plan.layout import Layout, lay_out, physical_order, plain_shape
from compiler.plan.operators import OperatorPlanner
from compiler.plan.pairs import plain_columns
from compiler.plan.planner import Input, PlannedPart
from compiler.plan.wanted import edge_name, plan_edge
from mpl.typed import Schema
from runtime.operators.select import SelectSpec
from runtime.plan import Component, InEdge, Plan, ShownColumn, StreamSpec, Tuning

TICK_MODULUS = 1024
"""Ticks are shared out among streams by their residue; so many streams and tables can a system have."""


@dataclass(frozen=True)
class ViewPlan:
    """Where a view's rows are: the component that has them, and how its columns are laid out, with the user's names."""

    name: str
    component: str
    side: Side
    schema: Schema


@dataclass(frozen=True)
class ProgramPlan:
    """All components that the program could need, in reading order, and what users can ask for."""

    components: Mapping[str, Component]
    parts: Mapping[str, PlannedPart]
    views: Mapping[str, ViewPlan]
    streams: Mapping[str, ViewPlan]
    tables: Mapping[str, ViewPlan]
    not_fused: Mapping[str, str] = field(default_factory=dict)
    """Why views are computed operator by operator; those that are not here are one kernel each, if that was asked."""

    def needed_for(self, components: Collection[str]) -> tuple[Component, ...]:
        """These components and all that they read, in reading order."""
        wanted = set(components)
        for component in reversed(tuple(self.components.values())):
            if component.name in wanted:
                wanted.update(edge.sender for edge in component.in_edges)
        return tuple(component for name, component in self.components.items() if name in wanted)

    def plan_for(self, views: Collection[str]) -> Plan:
        """A plan with just what these views (or streams) need."""
        known = {**self.streams, **self.tables, **self.views}
        return Plan(self.needed_for({known[view].component for view in views}))


def build_plan(
    graph: TransformGraph,
    tuning: Tuning | None = None,
    python: Mapping[tuple[str, str], Function] = NO_PYTHON,
    *,
    kernels: bool = True,
) -> ProgramPlan:
    """The plan of a graph; `kernels`: views whose relations share one key become one component each."""
    plan = _Builder(graph, tuning or Tuning(), python).build()
    return with_kernels(graph, plan) if kernels else plan


class _Builder:
    def __init__(self, graph: TransformGraph, tuning: Tuning, python: Mapping[tuple[str, str], Function]) -> None:
        self.graph = graph
        self.tuning = tuning
        self.python = python
        self.inputs: dict[str, Input] = {}
        self.components: dict[str, Component] = {}
        self.parts: dict[str, PlannedPart] = {}

    def build(self) -> ProgramPlan:
        program = self.graph.program
        streams = {name: self._base(name, stream.schema) for name, stream in program.streams.items()}
        tables = {name: self._base(name, table.schema) for name, table in program.tables.items()}
        plain = plain_columns(self.graph)
        for transform in self.graph.nodes.values():
            planner = OperatorPlanner(
                transform,
                self.graph.knowledge[transform.id],
                [self.inputs[source] for source in transform.inputs],
                plain.get(transform.id, frozenset()),
                self.python,
            )
            planned = planner.plan()
            for part in planned.parts:
                self._add(part, self._edges(part, transform))
            self.inputs[transform.id] = Input(planned.component, planned.side)
        views = {name: self._view(name) for name in self.graph.outputs}
        return ProgramPlan(self.components, self.parts, views, streams, tables)

    def _base(self, name: str, schema: Schema) -> ViewPlan:
        """A stream, or a table as a stream that is filled once: its rows get ticks that no column names."""
        knowledge = self.graph.knowledge[name]
        has_tick = any(column.is_tick for column in schema.columns)
        shapes = [plain_shape(column, knowledge, position) for position, column in enumerate(schema.columns)]
        order = physical_order(schema, True) if has_tick else range(len(schema.columns))
        layout = lay_out(name, schema, knowledge, shapes, order, 1, front=0 if has_tick else 1, is_event=True)
        residue = len(self.components)
        assert residue < TICK_MODULUS, "the checker limits the number of streams"
        spec = StreamSpec(residue, TICK_MODULUS)
        self.components[name] = Component(name, layout.relation, spec, (), None, self.tuning)
        side = Side(layout, schema, {})
        self.inputs[name] = Input(name, side)
        return ViewPlan(name, name, side, schema)

    def _edges(self, part: PlannedPart, transform: Transform) -> tuple[InEdge, ...]:
        """A selection of events wants what it selects; whatever else reads events wants them all."""
        keeping = transform.keeping
        if keeping is not None and isinstance(part.operator, SelectSpec) and part.layout.relation.is_event:
            (source,), (wanted,) = transform.inputs, keeping.wanted
            return (plan_edge(part.inputs[0], self.inputs[source].side, part.name, 0, wanted),)
        return tuple(InEdge(edge_name(sender, part.name, n), sender) for n, sender in enumerate(part.inputs))

    def _add(self, part: PlannedPart, edges: tuple[InEdge, ...]) -> None:
        self.parts[part.name] = part
        self.components[part.name] = Component(part.name, part.layout.relation, part.operator, edges, None, self.tuning)

    def _view(self, name: str) -> ViewPlan:
        output = self.graph.outputs[name]
        source = self.inputs[output.id]
        side = replace(source.side, layout=_shown_as(source.layout, output.schema), schema=output.schema)
        return ViewPlan(name, source.component, side, output.schema)


def _shown_as(layout: Layout, schema: Schema) -> Layout:
    """The same columns under the names that the view gives them."""
    shown = tuple(
        ShownColumn(column.name, layout.cells[position].form, layout.cells[position].columns)
        for position, column in enumerate(schema.columns)
        if not column.hidden
    )
    return replace(layout, relation=replace(layout.relation, shown=shown))
