"""Pushing selections down: every part of a `where` moves as close to the streams as it keeps its meaning.

Needs: shared transforms already joined, because nothing is pushed into a transform that others read as well: a
selection of its own per reader would tear apart what they have in common. Preserves: rows and knowledge. Errors may
become fewer, never more: a part that may fail is not moved to where it would be evaluated for more rows.

    join Bids using item |> where price > 5 and amount > 9  ->  (where price > 5) join (Bids |> where amount > 9)
    extend b := a + 1 |> where c = 3                        ->  where c = 3 |> extend b := a + 1
    aggregate n := count() group by k |> where k < 9        ->  where k < 9 |> aggregate n := count() group by k

Through operators that look at several rows, only conditions over fixed columns move: one that may turn would make rows
come and go below, and what is computed from them would no longer be a refinement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from compiler.expressions import columns_in, conjunction, conjuncts, may_fail, moved, simplified
from compiler.graph import Draft, Transform, TransformGraph
from compiler.passages import keeps_every_row, looks_at_one_row, passage
from mpl.source import Span
from mpl.typed import Expr, JoinNode, MatchingNode, WhereNode


@dataclass(frozen=True)
class _Part:
    """One condition on its way down, and where it was written."""

    condition: Expr
    view: str
    origins: tuple[Span, ...]


def push_selections(graph: TransformGraph) -> TransformGraph:
    moves = _Moves(graph)
    for transform in reversed(list(graph.nodes.values())):
        moves.decide(transform)
    return _rebuilt(graph, moves)


class _Moves:
    """Where every condition ends up: in front of an input of a transform, or right behind a transform.

    `arriving`: conditions on the rows of a transform that came down from its only reader. `rest`: what remains of a
    join's own condition. `reader` is of use for transforms with one reader only.
    """

    def __init__(self, graph: TransformGraph) -> None:
        self.graph = graph
        self.arriving: dict[str, list[_Part]] = defaultdict(list)
        self.before: dict[tuple[str, int], list[_Part]] = defaultdict(list)
        self.behind: dict[str, list[_Part]] = defaultdict(list)
        self.rest: dict[str, Expr | None] = {}
        self.reader = {source: one.id for one in graph.nodes.values() for source in one.inputs}

    def decide(self, transform: Transform) -> None:
        if isinstance(transform.node, WhereNode):
            self._join_where(transform, transform.node)
        else:
            self._pass(transform)
            if isinstance(transform.node, JoinNode | MatchingNode):
                self._take_from_condition(transform, transform.node)
        reader = self.reader.get(transform.id, "")
        if self.behind[transform.id] and isinstance(self.graph.nodes[reader].node, WhereNode):
            # Nothing changes for these: they stay in the `where` they came from.
            self.before[reader, 0] += self.behind.pop(transform.id)
        for edge, source in enumerate(transform.inputs):
            if self.graph.is_private(source):
                self.arriving[source] += self.before.pop((transform.id, edge), ())

    def _join_where(self, transform: Transform, node: WhereNode) -> None:
        own = [_Part(part, transform.view, transform.origins) for part in conjuncts(node.predicate)]
        below = self.before[transform.id, 0]
        below += own
        # `and` goes on after a null, a second `where` does not: what may fail must not meet such rows.
        lets_nulls_through = any(part.condition.nullable for part in own)
        for part in self.arriving[transform.id]:
            stays = self.behind[transform.id] or lets_nulls_through
            (self.behind[transform.id] if stays and may_fail(part.condition) else below).append(part)

    def _pass(self, transform: Transform) -> None:
        for part in self.arriving[transform.id]:
            ways = passage(transform.node, part.condition) if self._may_pass(transform, part.condition) else ()
            for edge, condition in ways:
                self.before[transform.id, edge].append(replace(part, condition=simplified(condition)))
            if not ways:
                self.behind[transform.id].append(part)

    def _may_pass(self, transform: Transform, condition: Expr) -> bool:
        if may_fail(condition) and (self.behind[transform.id] or not keeps_every_row(transform.node)):
            # Conditions that stay behind may be what guards this one.
            return False
        return looks_at_one_row(transform.node) or self._is_settled(transform.id, columns_in(condition))

    def _is_settled(self, id: str, columns: Iterable[int]) -> bool:
        known = self.graph.knowledge[id].columns
        return all(known[position].is_stable for position in columns)

    def _take_from_condition(self, transform: Transform, node: JoinNode | MatchingNode) -> None:
        """Parts of a join's own condition that concern one side only."""
        if node.rest is None or (isinstance(node, JoinNode) and node.side == "full"):
            return
        border = len(node.left.schema.columns)
        pairs_only = not node.negated if isinstance(node, MatchingNode) else node.side == "inner"
        staying: list[Expr] = []
        for part in conjuncts(node.rest):
            edge = _side_of(columns_in(part), border)
            if edge is None or (edge == 0 and not pairs_only) or may_fail(part):
                staying.append(part)
                continue
            positions = {position - border * edge for position in columns_in(part)}
            if not self._is_settled(transform.inputs[edge], positions):
                staying.append(part)
                continue
            columns = (node.left, node.right)[edge].schema.columns
            condition = moved(part, {p + border * edge: p for p in positions}, columns)
            self.before[transform.id, edge].append(_Part(condition, transform.view, transform.origins))
        self.rest[transform.id] = conjunction(tuple(staying))


def _side_of(columns: frozenset[int], border: int) -> int | None:
    """The input that all of these columns belong to, if it is one."""
    if not columns:
        return None
    if all(position < border for position in columns):
        return 0
    return 1 if all(position >= border for position in columns) else None


def _rebuilt(graph: TransformGraph, moves: _Moves) -> TransformGraph:
    draft = Draft(graph.program, graph)
    instead: dict[str, str] = {}
    for transform in graph.nodes.values():
        inputs = [instead.get(source, source) for source in transform.inputs]
        if isinstance(transform.node, WhereNode):
            parts = moves.before.get((transform.id, 0), [])
            if parts:
                # Its own schema: a view may have declared another key than its input has.
                selection = replace(_selection(draft, inputs[0], parts), schema=transform.schema)
                new_id = draft.add(replace(transform, node=selection, origins=_origins(parts)))
            else:
                new_id = draft.bypass(transform, inputs[0])
        else:
            for edge, source in enumerate(inputs):
                inputs[edge] = _selected(draft, source, moves.before.get((transform.id, edge), []))
            node = draft.rewire(transform, inputs)
            if transform.id in moves.rest and isinstance(node, JoinNode | MatchingNode):
                node = replace(node, rest=moves.rest[transform.id])
            new_id = draft.add(replace(transform, node=node))
        instead[transform.id] = _selected(draft, new_id, moves.behind.get(transform.id, []))
    draft.redirect_outputs(instead)
    return draft.finish()


def _selected(draft: Draft, source: str, parts: Sequence[_Part]) -> str:
    """`source`, or the rows of it that satisfy all parts."""
    if not parts:
        return source
    return draft.add_new(parts[0].view, "where", _selection(draft, source, parts), _origins(parts))


def _selection(draft: Draft, source: str, parts: Sequence[_Part]) -> WhereNode:
    predicate = conjunction(tuple(part.condition for part in parts))
    assert predicate is not None
    reference = draft.reference(source, parts[0].origins[0])
    return WhereNode(reference, simplified(predicate), schema=reference.schema, span=parts[0].origins[0])


def _origins(parts: Sequence[_Part]) -> tuple[Span, ...]:
    return tuple(dict.fromkeys(span for part in parts for span in part.origins))
