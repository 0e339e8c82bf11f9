"""Which columns must be plain values, because somebody orders, groups, joins or compares whole rows by them.

All others may be kept as pairs (p, n) or (sum, count), which say more to a subscriber who asks for bounds. Decided once
for the whole graph, from the readers back to what they read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from compiler.graph import Transform, TransformGraph
from compiler.plan.aggregates import is_ordered
from mpl.typed import (
    AggregateNode,
    AsofNode,
    DistinctNode,
    ExtendNode,
    JoinNode,
    LatestNode,
    MatchingNode,
    MinusNode,
    ProjectNode,
    StreamScan,
    TableScan,
    TopNode,
    UnionNode,
    ViewScan,
    WhereNode,
)


def plain_columns(graph: TransformGraph) -> dict[str, frozenset[int]]:
    """For each relation the positions of the columns that must be one plain physical column."""
    wanted: defaultdict[str, set[int]] = defaultdict(set)
    for transform in reversed(tuple(graph.nodes.values())):
        sources = transform.inputs
        wanted[transform.id].update(transform.schema.key)
        for edge, position in _asked_of_inputs(transform, wanted[transform.id]):
            wanted[sources[edge]].add(position)
    return {relation: frozenset(positions) for relation, positions in wanted.items()}


def _asked_of_inputs(transform: Transform, here: set[int]) -> Iterator[tuple[int, int]]:
    """(in-edge, position) of the input columns that this operator needs plain; `here` are its own such columns."""
    node = transform.node
    match node:
        case StreamScan() | TableScan() | ViewScan() | WhereNode():
            yield from ((0, position) for position in here)
        case ExtendNode():
            width = len(node.input.schema.columns)
            yield from ((0, position) for position in here if position < width)
        case ProjectNode():
            kept = enumerate(node.kept)
            yield from ((0, old) for position, old in kept if node.drops_key or position in here)
        case AggregateNode():
            ordered = node.input.schema.key if is_ordered(node) else ()
            yield from ((0, position) for position in (*node.group, *ordered))
        case JoinNode() | AsofNode():
            yield from _asked_by_join(node, here)
        case MatchingNode():
            yield from ((0, position) for position in here)
            yield from (pair for one, other in node.equal for pair in ((0, one), (1, other)))
        case TopNode():
            width = len(node.input.schema.columns)
            key = node.input.schema.key
            yield from ((0, position) for position in (*node.per, *key, *here) if position < width)
        case LatestNode() | DistinctNode():
            yield from ((0, position) for position in range(len(node.input.schema.columns)))
        case UnionNode() | MinusNode():
            yield from ((0, position) for position in range(len(node.left.schema.columns)))
            yield from ((1, position) for position in range(len(node.right.schema.columns)))
        case _:
            yield from ((edge, position) for edge in range(len(transform.inputs)) for position in here)


def _asked_by_join(node: JoinNode | AsofNode, here: set[int]) -> Iterator[tuple[int, int]]:
    border = len(node.left.schema.columns)
    for one, other in node.equal:
        yield 0, one
        yield 1, other
    # Defaults are single values, so an outer join fills in single columns.
    is_outer = isinstance(node, AsofNode) or node.side != "inner"
    for position, other in enumerate(node.right_kept):
        if is_outer or border + position in here:
            yield 1, other
    is_full = isinstance(node, JoinNode) and node.side == "full"
    yield from ((0, position) for position in range(border) if is_full or position in here)
    if isinstance(node, AsofNode):
        yield 0, node.left_time
        yield from ((1, position) for position in (node.right_time, *node.right.schema.key))
