"""The stages of compiling as text and pictures: what `smile explain --stage ...` prints.

`algebra` is what the checker understood, `graph` the transform graph after all passes. Later stages, the plan and its
code, are not made here.
"""

from __future__ import annotations

from typing import Literal

from compiler.algebra import show_algebra
from compiler.graph import build_graph, show, validate
from compiler.passes import optimise
from compiler.pictures import Format, draw, graph_picture
from mpl.check import Checked

Stage = Literal["algebra", "graph"]


def explain_stage(checked: Checked, stage: Stage, format: Literal["text"] | Format = "text") -> str:
    """One stage of a program without errors (`MplError` otherwise) in one format."""
    written = validate(build_graph(checked))
    if stage == "algebra":
        return show_algebra(checked.program) if format == "text" else draw(graph_picture(written), format)
    graph = optimise(written)
    return show(graph) if format == "text" else draw(graph_picture(graph), format)
