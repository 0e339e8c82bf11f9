"""Keeping: what each transform may forget, and what it never wants to hear of. Annotates, rewrites nothing.

Needs: the final shape of the graph; anything that is rewritten later would lose its notes.
Preserves: everything.

    where avail > 0     over a falling avail      rejected for good: drop the row, quench its key upstream
    where state = 'CA'  over events               wants only state = 'CA' of its input: a standing quench
    aggregate ... group by auction, wstart        final once event time has passed the window: compact, drop

A standing quench is only a wish: a sender may follow it when all of its receivers agree (`wanted_from`), and a quenched
tick still counts as covered. Conditions that may fail are not offered: a sender must not stop for a receiver's mistake.
"""

from __future__ import annotations

from dataclasses import replace

from compiler.expressions import columns_in, may_fail, simplified
from compiler.graph import Draft, Keeping, Transform, TransformGraph
from mpl.knowledge import Path
from mpl.knowledge.expressions import infer
from mpl.typed import Apply, Expr, WhereNode
from mpl.types import BoolType


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
        if all(columns[position].is_stable for position in columns_in(predicate)) and not may_fail(predicate):
            wanted = (predicate,)
    return Keeping(
        vanished_for_good=known.path in (Path.FALLING, Path.PULSE),
        rejected_for_good=rejected_for_good,
        final=known.finality.when,
        final_words=known.finality.words,
        wanted=wanted,
    )


def wanted_from(graph: TransformGraph) -> dict[str, Expr]:
    """Conditions on the rows that somebody wants, for each stream, table and transform of which nobody wants all."""
    wishes: dict[str, list[Expr | None]] = {}
    for transform in graph.nodes.values():
        assert transform.keeping is not None, "annotate_keeping has to run first"
        for source, wanted in zip(transform.inputs, transform.keeping.wanted, strict=True):
            wishes.setdefault(source, []).append(wanted)
    # Who asks for a relation itself wants all of it.
    subscribed = {subscription.view for subscription in graph.subscriptions.values()}
    found: dict[str, Expr] = {}
    for source, wished in wishes.items():
        known = [wish for wish in wished if wish is not None]
        if len(known) == len(wished) and source not in graph.output_ids and source not in subscribed:
            found[source] = _either(known)
    return found


def _either(conditions: list[Expr]) -> Expr:
    if len(conditions) == 1:
        return conditions[0]
    nullable = any(condition.nullable for condition in conditions)
    union = Apply("or", tuple(conditions), type=BoolType(), nullable=nullable, span=conditions[0].span)
    return simplified(union)
