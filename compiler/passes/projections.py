"""Simplifying projections: chains of project, extend and rename become at most `extend`, then `project`.

Needs: nothing. Preserves: rows and knowledge. Works only through transforms that nobody else reads.

    rename a as b                                   ->  (nothing: outputs carry names)
    project a, b, c |> project c, a                 ->  project c, a
    project a, b |> extend c := a + b               ->  extend c := a + b |> project a, b, c
    extend c := a + 1 |> extend d := b + 1          ->  extend c := a + 1, d := b + 1
    extend c := f(a)  |> extend d := c + c              stays: merging would compute f(a) more than once
    project of all columns in their order           ->  (nothing)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from compiler.expressions import columns_in, is_trivial, moved, replaced
from compiler.graph import Draft, Transform, TransformGraph, operator_word
from compiler.graph.transform import references_of, source_of
from mpl.source import Span
from mpl.typed import Expr, ExtendNode, ProjectNode, RelationTree, RenameNode


def simplify_projections(graph: TransformGraph) -> TransformGraph:
    return _Simplifier(graph, Draft(graph.program, graph)).run()


@dataclass
class _Simplifier:
    """`alone`: transforms of the draft that will have one reader, the one now at hand, and are no output."""

    graph: TransformGraph
    draft: Draft
    moved: dict[str, str] = field(default_factory=dict)
    alone: set[str] = field(default_factory=set)

    def run(self) -> TransformGraph:
        for transform in self.graph.nodes.values():
            before = len(self.draft.nodes)
            new_id = self.rebuilt(transform)
            self.moved[transform.id] = new_id
            is_new = len(self.draft.nodes) > before
            if not self.graph.is_private(transform.id):
                # Also what it was bypassed for now has the readers of both.
                self.alone.discard(new_id)
            elif is_new:
                self.alone.add(new_id)
        self.draft.redirect_outputs(self.moved)
        return self.draft.finish()

    def rebuilt(self, transform: Transform) -> str:
        """The id of what now makes the rows of `transform`."""
        inputs = [self.moved.get(source, source) for source in transform.inputs]
        node = self.draft.rewire(transform, inputs)
        match node:
            case RenameNode():
                return self.draft.bypass(transform, inputs[0])
            case ProjectNode():
                return self.project(transform, node)
            case ExtendNode():
                return self.extend(transform, node)
            case _:
                return self.draft.add(replace(transform, node=node))

    def below(self, node: ProjectNode | ExtendNode) -> Transform | None:
        """The transform that `node` reads, if the two may be rewritten together."""
        source = source_of(references_of(node)[0])
        return self.draft.nodes[source] if source in self.alone else None

    def project(self, transform: Transform, node: ProjectNode) -> str:
        inner = self.below(node)
        if inner is not None and isinstance(inner.node, ProjectNode):
            node = replace(
                node,
                input=inner.node.input,
                kept=tuple(inner.node.kept[position] for position in node.kept),
                drops_key=node.drops_key or inner.node.drops_key,
            )
            transform = _with_origins(transform, inner)
        source = references_of(node)[0]
        if not node.drops_key and node.kept == tuple(range(len(source.schema.columns))):
            return self.draft.bypass(transform, source_of(source))
        return self.add(transform, node)

    def extend(self, transform: Transform, node: ExtendNode) -> str:
        inner = self.below(node)
        if inner is not None and isinstance(inner.node, ProjectNode) and not inner.node.drops_key:
            return self.extend_below_project(_with_origins(transform, inner), node, inner.node)
        merged, origins = self.merged(node, transform.origins)
        return self.add(replace(transform, origins=origins), merged)

    def extend_below_project(self, transform: Transform, node: ExtendNode, project: ProjectNode) -> str:
        base = references_of(project)[0]
        columns = base.schema.columns
        where = dict(enumerate(project.kept))
        values = tuple(moved(value, where, columns) for value in node.values)
        added = node.schema.columns[len(project.kept) :]
        schema = replace(base.schema, columns=(*columns, *added))
        extended = ExtendNode(base, values, schema=schema, span=node.span)
        extended, origins = self.merged(extended, transform.origins)
        below = self.draft.add_new(transform.view, "extend", extended, origins)
        self.alone.add(below)
        width = len(extended.schema.columns) - len(added)
        kept = (*project.kept, *range(width, width + len(added)))
        reference = self.draft.reference(below, project.span)
        return self.add(transform, ProjectNode(reference, kept, False, schema=node.schema, span=project.span))

    def merged(self, node: ExtendNode, origins: tuple[Span, ...]) -> tuple[ExtendNode, tuple[Span, ...]]:
        """One extend instead of two, if nothing has to be computed twice for it."""
        inner = self.below(node)
        if inner is None or not isinstance(inner.node, ExtendNode):
            return node, origins
        base = inner.node.input
        width = len(base.schema.columns)
        defined: dict[int, Expr] = dict(enumerate(inner.node.values, width))
        used = frozenset().union(*(columns_in(value) for value in node.values))
        if not all(is_trivial(defined[position]) for position in used if position in defined):
            return node, origins
        values = tuple(replaced(value, defined, base.schema) for value in node.values)
        both = replace(node, input=base, values=(*inner.node.values, *values))
        return both, tuple(dict.fromkeys((*inner.origins, *origins)))

    def add(self, transform: Transform, node: RelationTree) -> str:
        """Under the transform's own id, unless that names another operator."""
        same_word = operator_word(node) == operator_word(transform.node)
        if same_word or transform.id in self.graph.program.views:
            return self.draft.add(replace(transform, node=node))
        return self.draft.add_new(transform.view, operator_word(node), node, transform.origins)


def _with_origins(transform: Transform, inner: Transform) -> Transform:
    return replace(transform, origins=tuple(dict.fromkeys((*inner.origins, *transform.origins))))
