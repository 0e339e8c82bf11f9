"""Sharing: transforms that make the same rows become one, across all views and subscriptions.

Needs: nothing; finds most when selections and projections already stand in their canonical places.
Preserves: rows, knowledge and every origin: a shared transform remembers all places it was written.

    A = from S |> where x > 1 |> aggregate n := count()         A.where_1, A
    B = from S |> where x > 1 |> aggregate total := sum(x)  ->  B, which reads A.where_1
    C = from S |> where x > 1 |> aggregate how_many := count()  ->  view C is A under another name

Inputs are shared before those that read them, so one look-up per transform is enough: whole trees are never compared.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from compiler.graph import Draft, Transform, TransformGraph
from compiler.identity import identity
from mpl.typed import ViewScan


def share_common(graph: TransformGraph) -> TransformGraph:
    draft = Draft(graph.program, graph)
    moved: dict[str, str] = {}
    found: dict[Hashable, str] = {}
    for transform in graph.nodes.values():
        node = draft.rewire(transform, [moved.get(source, source) for source in transform.inputs])
        if isinstance(node, ViewScan):
            moved[transform.id] = node.view
            _remember(draft, node.view, transform)
            continue
        first = found.setdefault(identity(node), transform.id)
        if first == transform.id:
            draft.add(replace(transform, node=node))
        else:
            moved[transform.id] = first
            _remember(draft, first, transform)
    draft.redirect_outputs(moved)
    return draft.finish()


def _remember(draft: Draft, id: str, other: Transform) -> None:
    kept = draft.nodes[id]
    draft.nodes[id] = replace(kept, origins=tuple(dict.fromkeys((*kept.origins, *other.origins))))
