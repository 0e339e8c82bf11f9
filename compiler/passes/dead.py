"""Dropping dead transforms: what no view that can be asked for needs.

Needs: nothing. Preserves: every output, its rows and its knowledge.

    view A = from S |> where x > 1 inline;        A.where is gone, unless somebody reads A
    view B = from S |> where x > 2;               stays: B can be queried
"""

from __future__ import annotations

from compiler.graph import Draft, TransformGraph


def drop_dead(graph: TransformGraph) -> TransformGraph:
    draft = Draft(graph.program, graph)
    for transform in graph.nodes.values():
        draft.add(transform)
    return draft.finish()
