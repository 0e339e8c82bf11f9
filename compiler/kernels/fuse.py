"""What planning calls: the fused component of a view, or why there is none."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from compiler.graph import TransformGraph
from compiler.kernels.module import make_spec
from compiler.kernels.scalars import NotFusable
from compiler.kernels.star import recognise
from compiler.plan.wanted import plan_edge
from runtime.plan import Component

if TYPE_CHECKING:
    from compiler.plan.build import ProgramPlan


def with_kernels(graph: TransformGraph, plan: ProgramPlan) -> ProgramPlan:
    """The plan with the components of views fused where that can be; what they stood for stays for other readers."""
    found = {view: fused_or_reason(graph, plan, view) for view in plan.views}
    fused = {one.name: one for one in found.values() if isinstance(one, Component)}
    reasons = {view: one for view, one in found.items() if isinstance(one, str)}
    return replace(plan, components={**plan.components, **fused}, not_fused=reasons)


def fused_or_reason(graph: TransformGraph, plan: ProgramPlan, view: str) -> Component | str:
    """The component of a view as one kernel that reads streams, under the same name and with the same columns; or why
    there is none."""
    component = plan.components[plan.views[view].component]
    if component.relation.is_event:
        return "it is a relation of events"
    sides = {name: base.side for name, base in (*plan.streams.items(), *plan.tables.items())}
    bases = {name: side.layout for name, side in sides.items()}
    try:
        recognised = recognise(graph, plan.parts, bases, component.name)
        spec = make_spec(recognised, bases)
    except NotFusable as reason:
        return str(reason)
    edges = tuple(
        plan_edge(edge.stream, sides[edge.stream], component.name, edge.number, edge.wanted)
        for edge in recognised.star.edges
    )
    return replace(component, operator=spec, in_edges=edges)
