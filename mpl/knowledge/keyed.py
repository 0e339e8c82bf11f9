"""Views that declare a key of their own: rows told apart by other columns than the operator's.

`view V key (group, rank) = ... top 3 per group ... with rank rank` is legal, since no two rows agree on these columns.
But then the row of a place is replaced when another row takes the place, so its other columns are no longer refined.
The same goes for a key with a column that moves: with every change the row becomes another one.
"""

from __future__ import annotations

from dataclasses import replace

from mpl import typed
from mpl.knowledge.finality import derive_finality
from mpl.knowledge.kind import Cause, part_of_key, versioned
from mpl.knowledge.knowledge import Knowledge, Visibility
from mpl.knowledge.path import Path
from mpl.knowledge.rows import keeps_identity
from mpl.relations.keys import closure


def as_keyed(node: typed.RelationTree, known: Knowledge) -> Knowledge:
    """`known`, or something weaker where the key of `node` may mean one row now and another later."""
    key = node.schema.key
    fixed = all(known.columns[position].is_stable for position in key)
    natural = _natural_key(node)
    if fixed and (natural is None or closure(key, node.schema.determined).issuperset(natural)):
        return known
    if fixed and natural is not None and keeps_identity(replace(node.schema, key=natural), key, known):
        return known
    cause = known.visibility.cause or Cause(
        node.span,
        "another row may take the place that this key means",
        "leave the key to be derived, so that every row stays itself",
    )
    columns = tuple(
        part_of_key(known.columns[position]) if position in key else versioned(cause)
        for position in range(len(known.columns))
    )
    return replace(
        known,
        columns=columns,
        visibility=Visibility(Path.VERSIONED, known.visibility.reason, cause),
        rows_versioned=True,
        finality=derive_finality(node.schema, columns, Path.VERSIONED, known.closings),
    )


def _natural_key(node: typed.RelationTree) -> tuple[int, ...] | None:
    """The key by which the operator itself tells rows apart; None where its rule has looked at the key already."""
    match node:
        case typed.WhereNode() | typed.ExtendNode() | typed.RenameNode() | typed.TopNode() | typed.WindowNode():
            return node.input.schema.key
        case typed.MatchingNode() | typed.MinusNode() | typed.AsofNode():
            return node.left.schema.key
        case typed.LatestNode():
            return node.per
        case typed.AggregateNode():
            return tuple(range(len(node.group)))
        case _:
            return None
