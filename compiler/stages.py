"""The stages of compiling as text and pictures: what `smile explain --stage ...` prints.

`algebra` is what the checker understood, `graph` the transform graph after all passes, `plan` the components that the
runtime gets, `code` their generated modules.
"""

from __future__ import annotations

from typing import Literal, get_args

from compiler.algebra import show_algebra
from compiler.graph import build_graph, show, validate
from compiler.modules import module_texts
from compiler.passes import optimise
from compiler.pictures import Box, Format, Picture, draw, graph_picture
from compiler.plan.build import ProgramPlan, build_plan
from compiler.plan.show import show_plan
from compiler.unsupported import refuse_unsupported
from mpl.check import Checked
from mpl.diagnostic import MplError

Stage = Literal["algebra", "graph", "plan", "code"]
STAGES: tuple[Stage, ...] = get_args(Stage)


def explain_stage(checked: Checked, stage: Stage, format: Literal["text"] | Format = "text") -> str:
    """One stage of a program without errors (`MplError` otherwise) in one format; code is always text."""
    written = validate(build_graph(checked))
    if stage == "algebra":
        return show_algebra(checked.program) if format == "text" else draw(graph_picture(written), format)
    if stage == "graph":
        graph = optimise(written)
        return show(graph) if format == "text" else draw(graph_picture(graph), format)
    refused = refuse_unsupported(written)
    if refused:
        raise MplError(refused)
    plan = build_plan(optimise(written))
    if stage == "plan":
        return show_plan(plan) if format == "text" else draw(plan_picture(plan), format)
    return "\n\n".join(module_texts(plan).values())


def plan_picture(plan: ProgramPlan) -> Picture:
    """The components and their edges."""
    views = {view.component: name for name, view in plan.views.items()}
    boxes: list[Box] = []
    lines: list[tuple[str, str]] = []
    for component in plan.components.values():
        kind: Literal["stream", "view", "transform"] = "transform"
        if component.is_stream:
            kind = "stream"
        elif component.name in views:
            kind = "view"
        word = type(component.operator).__name__.removesuffix("Spec").lower()
        boxes.append(Box(component.name, kind, views.get(component.name, component.name), (word,)))
        lines += [(edge.sender, component.name) for edge in component.in_edges]
    return Picture(tuple(boxes), tuple(lines))
