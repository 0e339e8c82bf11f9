"""Pruning columns: what no view shows and no operator looks at is dropped as early as possible.

Needs: selections in their places (a pushed condition looks at columns below). Preserves: rows of every output, keys,
ticks of events, and knowledge. Values that nobody looks at are not computed any more, so errors may become fewer.

    from S |> extend y := f(x) |> aggregate n := count() group by k     ->  S |> project k |> aggregate ...
    join right side with ten columns of which one is shown              ->  right_kept has one
    aggregate low := min(p), high := max(p) |> project k, high          ->  aggregate high := max(p)

A projection is only added where rows are events: there it costs nothing to hold. A stream is projected once for all its
readers that pass events on, and once more for those that keep rows (joins, top, latest).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from compiler.graph import Draft, Transform, TransformGraph
from compiler.graph.transform import references_of
from compiler.needs import Provided, input_needs, kept_schema, narrowed
from mpl.source import Span
from mpl.typed import (
    AsofNode,
    ExtendNode,
    JoinNode,
    LatestNode,
    MatchingNode,
    MergeNode,
    MinusNode,
    ProjectNode,
    RelationTree,
    Schema,
    TopNode,
)


def prune_columns(graph: TransformGraph) -> TransformGraph:
    return _Pruner(graph).run()


class _Pruner:
    """`needed` is by relation, `edges` by (transform, input), `passing` by relation for those that hold no rows."""

    def __init__(self, graph: TransformGraph) -> None:
        self.graph = graph
        self.draft = Draft(graph.program, graph)
        self.needed: dict[str, set[int]] = defaultdict(set)
        self.edges: dict[tuple[str, int], frozenset[int]] = {}
        self.passing: dict[str, set[int]] = defaultdict(set)
        self.provided: dict[str, Provided] = {}
        self.instead: dict[str, str] = {}
        self.narrow: dict[tuple[str, Provided], str] = {}

    def run(self) -> TransformGraph:
        for output in self.graph.outputs.values():
            self.needed[output.id].update(range(len(output.schema.columns)))
        for transform in reversed(list(self.graph.nodes.values())):
            self.ask(transform)
        for transform in self.graph.nodes.values():
            self.rebuild(transform)
        self.draft.redirect_outputs(self.instead)
        return self.draft.finish()

    def always(self, id: str) -> frozenset[int]:
        """The key, and ticks of events: a relation is not itself without them."""
        schema = self.graph.schema_of(id)
        ticks = _ticks(schema) if id in self.graph.event_ids else ()
        return frozenset((*schema.key, *ticks))

    def ask(self, transform: Transform) -> None:
        self.needed[transform.id] |= self.always(transform.id)
        wanted = input_needs(transform.node, frozenset(self.needed[transform.id]))
        if isinstance(transform.node, MergeNode):
            # All inputs of a merge have the same columns: what one of them cannot do without, all must have.
            common = wanted[0].union(*(self.always(source) for source in transform.inputs))
            wanted = tuple(common for _ in wanted)
        for edge, (source, columns) in enumerate(zip(transform.inputs, wanted, strict=True)):
            need = columns | self.always(source)
            self.edges[transform.id, edge] = need
            self.needed[source] |= need
            if not _holds_rows(transform.node):
                self.passing[source] |= need

    def rebuild(self, transform: Transform) -> None:
        inputs = [self.source_for(transform, edge) for edge in range(len(transform.inputs))]
        references = tuple(
            self.draft.reference(source, scan.span)
            for (source, _), scan in zip(inputs, references_of(transform.node), strict=True)
        )
        provided = tuple(columns for _, columns in inputs)
        node, result = narrowed(transform.node, references, provided, frozenset(self.needed[transform.id]))
        self.provided[transform.id] = result
        if _changes_nothing(node):
            self.instead[transform.id] = self.draft.bypass(replace(transform, node=node), inputs[0][0])
        else:
            self.instead[transform.id] = self.draft.add(replace(transform, node=node))

    def source_for(self, transform: Transform, edge: int) -> tuple[str, Provided]:
        """What an edge reads now, and which of the old columns that has."""
        old = transform.inputs[edge]
        new = self.instead.get(old, old)
        everything = tuple(range(len(self.graph.schema_of(old).columns)))
        provided = self.provided.get(old, everything)
        is_base = old not in self.graph.nodes
        aligned = isinstance(transform.node, MergeNode)
        if old not in self.graph.event_ids and not is_base:
            return new, provided
        if aligned or _holds_rows(transform.node):
            wanted = tuple(sorted(self.edges[transform.id, edge]))
        elif is_base:
            wanted = tuple(sorted(self.passing[old]))
        else:
            return new, provided
        return self.projected(new, provided, wanted, transform), wanted

    def projected(self, id: str, provided: Provided, wanted: Provided, reader: Transform) -> str:
        if wanted == provided:
            return id
        if (id, wanted) not in self.narrow:
            kept = tuple(provided.index(position) for position in wanted)
            span: Span = reader.origins[0]
            reference = self.draft.reference(id, span)
            node = ProjectNode(reference, kept, False, schema=kept_schema(reference.schema, kept), span=span)
            view = self.draft.nodes[id].view if id in self.draft.nodes else id
            self.narrow[id, wanted] = self.draft.add_new(view, "project", node, reader.origins)
        return self.narrow[id, wanted]


def _ticks(schema: Schema) -> tuple[int, ...]:
    return tuple(position for position, column in enumerate(schema.columns) if column.is_tick)


def _holds_rows(node: RelationTree) -> bool:
    return isinstance(node, JoinNode | AsofNode | MatchingNode | TopNode | LatestNode | MinusNode)


def _changes_nothing(node: RelationTree) -> bool:
    match node:
        case ProjectNode():
            return not node.drops_key and node.kept == tuple(range(len(node.input.schema.columns)))
        case ExtendNode():
            return not node.values
        case _:
            return False
