"""The plan as text and as plain data: which runtime operator each component is, with which parameters and columns.

Both forms are stable: the same program gives the same bytes. Functions appear by the name that they have in the
component's generated module.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from compiler.plan.build import ProgramPlan
from compiler.plan.wanted import Wish
from runtime.kernels.spec import KernelSpec
from runtime.plan import Column, Component, OperatorSpec


def plan_data(plan: ProgramPlan) -> dict[str, Any]:
    """Everything a loader needs besides the modules, as JSON-able data."""
    return {
        "components": [component_data(component) for component in plan.components.values()],
        "views": {name: view.component for name, view in plan.views.items()},
        "streams": list(plan.streams),
        "tables": list(plan.tables),
    }


def component_data(component: Component) -> dict[str, Any]:
    return {
        "name": component.name,
        "operator": _data(component.operator),
        "inputs": [edge.sender for edge in component.in_edges],
        # The name of an edge has the digest of what it wants.
        "quenched": [edge.name for edge in component.in_edges if edge.wants is not None],
        "relation": _data(component.relation),
    }


def _data(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        # A kernel's text is a module of its own.
        shown = [field.name for field in fields(value) if field.compare]
        if isinstance(value, KernelSpec):
            shown.remove("text")
        parts = {name: _data(getattr(value, name)) for name in shown}
        return {"is": type(value).__name__, **parts} if isinstance(value, OperatorSpec) else parts
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [_data(item) for item in value]
    if callable(value):
        return {"function": value.__name__}
    return value


def show_plan(plan: ProgramPlan) -> str:
    """For people: one paragraph per component."""
    paragraphs = [_paragraph(component) for component in plan.components.values()]
    views = [f"view {name}: {view.component}, {_way(plan, name)}" for name, view in plan.views.items()]
    return "\n\n".join([*paragraphs, "\n".join(views)]) + "\n"


def _way(plan: ProgramPlan, view: str) -> str:
    if isinstance(plan.components[plan.views[view].component].operator, KernelSpec):
        return "one kernel"
    reason = plan.not_fused.get(view)
    return "operator by operator" + (f": {reason}" if reason else "")


def _paragraph(component: Component) -> str:
    relation = component.relation
    kind = "events" if relation.is_event else "versioned rows" if relation.versioned else "rows"
    lines = [component.name, f"  {_operator(component.operator)}"]
    if component.in_edges:
        lines.append(f"  from     {', '.join(edge.sender for edge in component.in_edges)}")
    lines += [
        f"  wants    only {edge.wants.text} of {edge.sender}: no more leaves the sender's broker"
        for edge in component.in_edges
        if isinstance(edge.wants, Wish)
    ]
    key = relation.columns[: relation.key_width]
    lines.append(f"  key      {', '.join(_column(column) for column in key) or 'none: one row'}")
    others = relation.columns[relation.key_width :]
    if others:
        lines.append(f"  columns  {', '.join(_column(column) for column in others)}")
    lines.append(f"  holds    {kind}")
    return "\n".join(lines)


def _column(column: Column) -> str:
    null = " null" if column.nullable else ""
    return f"{column.name} {column.type.value}{null} {column.kind.value}"


def _operator(spec: OperatorSpec) -> str:
    if isinstance(spec, KernelSpec):
        return f"kernel({spec.digest}), with {len(spec.functions)} loops"
    data = _data(spec)
    parts = ", ".join(f"{name}={_short(value)}" for name, value in data.items() if name != "is" and value is not None)
    return f"{data['is'].removesuffix('Spec').lower()}({parts})"


def _short(value: Any) -> str:
    if isinstance(value, dict):
        if "function" in value:
            return str(value["function"])
        return "(" + ", ".join(f"{name}={_short(part)}" for name, part in value.items() if part is not None) + ")"
    if isinstance(value, list):
        return "(" + ", ".join(_short(part) for part in value) + ")"
    return repr(value)
