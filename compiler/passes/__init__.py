"""The passes that improve a transform graph, in one list; each is a function from a graph to a new one.

The order is the point of this file: the comment at a pass says why it stands where it stands. `optimise` checks the
invariants after every one of them.
"""

from __future__ import annotations

from collections.abc import Callable

from compiler.graph import TransformGraph, validate
from compiler.passes.columns import prune_columns
from compiler.passes.constants import fold_constants
from compiler.passes.dead import drop_dead
from compiler.passes.keeping import annotate_keeping
from compiler.passes.projections import simplify_projections
from compiler.passes.selections import push_selections
from compiler.passes.sharing import share_common

Pass = Callable[[TransformGraph], TransformGraph]

PASSES: tuple[Pass, ...] = (
    drop_dead,  # first: nothing is spent on what nobody reads, and dead readers do not count as readers
    fold_constants,  # before sharing: `where true and p` and `where p` are then the same
    share_common,  # before anything moves: later passes leave alone what several views have in common
    push_selections,  # before projections: it moves through them, and they close up behind it
    simplify_projections,  # before pruning: pruning puts projections at the streams, this would lift them again
    prune_columns,  # after selections: a condition that moved down needs its columns there
    share_common,  # again: what was written differently may now look the same
    annotate_keeping,  # last: notes about transforms that would be rewritten would be lost
)


def optimise(graph: TransformGraph) -> TransformGraph:
    """All passes, in order."""
    for each in PASSES:
        graph = validate(each(graph))
    return graph


__all__ = [
    "PASSES",
    "Pass",
    "annotate_keeping",
    "drop_dead",
    "fold_constants",
    "optimise",
    "prune_columns",
    "push_selections",
    "share_common",
    "simplify_projections",
]
