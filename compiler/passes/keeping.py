"""Keeping: what each transform may forget, and what it never wants to hear of. Annotates, rewrites nothing.

Needs: the final shape of the graph; anything that is rewritten later would lose its notes.
Preserves: everything.

    where avail > 0     over a falling avail      rejected for good: drop the row, quench its key upstream
    where state = 'CA'  over events               wants only state = 'CA' of its input: a standing quench
    aggregate ... group by auction, wstart        final once event time has passed the window: compact, drop

Rows that are rejected for good are quenched by key at run time (`SelectState`), and kernels skip them. What is not
wanted of events does not leave the sender's broker (`compiler/plan/wanted.py`, rule E4 of the protocol); an edge within
a broker carries everything, for the receiver selects anyway. Conditions that may fail are no such wish, nor is anything
after them: a sender must not stop for a receiver's mistake, and the receiver has to see it.
"""

from __future__ import annotations

from dataclasses import replace

from compiler.expressions import certain_part, columns_in
from compiler.graph import Draft, Keeping, Transform, TransformGraph
from mpl.knowledge import Path
from mpl.knowledge.expressions import infer
from mpl.typed import Expr, WhereNode


def annotate_keeping(graph: TransformGraph) -> TransformGraph:
    draft = Draft(graph.program, graph)
    for transform in graph.nodes.values():
        draft.add(replace(transform, keeping=_keeping(transform, graph)))
    return draft.finish()


def _keeping(transform: Transform, graph: TransformGraph) -> Keeping:
    known = graph.knowledge[transform.id]
    wanted: tuple[Expr | None, ...] = tuple(None for _ in transform.inputs)
    rejected_for_good = False
    if isinstance(transform.node, WhereNode):
        predicate = transform.node.predicate
        columns = graph.knowledge[transform.inputs[0]].columns
        settles = infer(predicate, columns).when_true in (Path.FIXED, Path.FALLING)
        # Events have no key to quench: what is rejected there is silence, and `wanted` says it beforehand.
        rejected_for_good = settles and transform.id not in graph.event_ids
        certain = certain_part(predicate)
        if all(columns[position].is_stable for position in columns_in(certain)):
            wanted = (certain,)
    return Keeping(
        vanished_for_good=known.path in (Path.FALLING, Path.PULSE),
        rejected_for_good=rejected_for_good,
        final=known.finality.when,
        final_words=known.finality.words,
        wanted=wanted,
    )
