"""Which events can be behind a row: the columns of the view that are columns of its streams, path by path.

Walks the graph as the user wrote it from the view to its streams. A column is followed as long as an operator passes
it on as it is, or demands that it equals another; what is computed is not followed. So the events found by it are all
that can have to do with a row, and perhaps more: conditions other than equality are not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.graph.build import graph_of
from mpl.typed import (
    AggregateNode,
    AsofNode,
    ColumnRef,
    DistinctNode,
    ExtendNode,
    JoinNode,
    LatestNode,
    MatchingNode,
    MergeNode,
    MinusNode,
    ProjectNode,
    RelationTree,
    RenameNode,
    StreamScan,
    TableScan,
    TopNode,
    TypedProgram,
    UnionNode,
    ViewScan,
    WhereNode,
    WindowNode,
)

PATHS_MAX = 256
"""Views that read one stream along more paths than this get no more of them: the first ones say enough."""

Followed = tuple[tuple[int, int], ...]
"""Position in the view, and where that column is now."""

Places = tuple[int | None, ...]
"""For each input the position of a column there, None where it has none."""


@dataclass(frozen=True)
class Origin:
    """One path to a stream. `columns`: (position in the view, in the stream), of those that can be followed."""

    stream: str
    columns: Followed


def origins_of(program: TypedProgram, view: str, columns: tuple[int, ...]) -> tuple[Origin, ...]:
    """The paths from a view to its streams, with those of the view's columns that lead there; each once."""
    graph = graph_of(program)
    found: dict[Origin, None] = {}
    waiting: list[tuple[str, Followed]] = [(graph.outputs[view].id, tuple((at, at) for at in sorted(columns)))]
    seen = set(waiting)
    while waiting and len(found) < PATHS_MAX:
        relation, followed = waiting.pop()
        transform = graph.nodes.get(relation)
        if transform is None:
            if relation in program.streams:
                found[Origin(relation, followed)] = None
            continue
        places = [(at, _places(transform.node, position)) for at, position in followed]
        for number, source in reversed(list(enumerate(transform.inputs))):
            there = tuple((at, place) for at, each in places if (place := each[number]) is not None)
            if (source, there) not in seen:
                seen.add((source, there))
                waiting.append((source, there))
    return tuple(found)


def _places(node: RelationTree, position: int) -> Places:
    match node:
        case StreamScan() | TableScan() | ViewScan() | WhereNode() | RenameNode() | LatestNode():
            return (position,)
        case MergeNode():
            return (position,) * len(node.inputs)
        case TopNode() | WindowNode():
            return (position if position < len(node.input.schema.columns) else None,)
        case ExtendNode():
            width = len(node.input.schema.columns)
            if position < width:
                return (position,)
            value = node.values[position - width]
            return (value.index if isinstance(value, ColumnRef) else None,)
        case ProjectNode() | DistinctNode():
            return (node.kept[position],)
        case AggregateNode():
            return (node.group[position] if position < len(node.group) else None,)
        case UnionNode():
            return (node.left_kept[position], node.right_order[position])
        case MinusNode():
            pairs = dict(zip(node.left_compared, node.right_order, strict=True))
            return (position, pairs.get(position))
        case MatchingNode():
            return (position, dict(node.equal).get(position))
        case JoinNode() | AsofNode():
            width = len(node.left.schema.columns)
            if position < width:
                return (position, dict(node.equal).get(position))
            right = node.right_kept[position - width]
            return ({other: one for one, other in node.equal}.get(right), right)
