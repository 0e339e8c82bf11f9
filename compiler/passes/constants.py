"""Folding constants: what is the same for every row is computed now, and conditions that decide nothing go.

Needs: nothing. Preserves: rows, knowledge, and errors: an operand that may fail is not removed.
The checker folds what is written as constants; here it is conditions with constant parts, and what other passes leave.

    where true and x > 1            ->  where x > 1
    where 1 = 1                     ->  (nothing)
    where null                      ->  where false: a relation that stays empty; its readers are not touched
    count() where 2 > 1             ->  count()
    case when false then a else b   ->  b
"""

from __future__ import annotations

from dataclasses import replace

from compiler.expressions import conjunction, conjuncts, may_fail, simplified, truth
from compiler.graph import Draft, TransformGraph
from mpl.expressions.build import constant
from mpl.typed import (
    AggregateItem,
    AggregateNode,
    Expr,
    ExtendNode,
    JoinNode,
    MatchingNode,
    RelationTree,
    TopNode,
    WhereNode,
)
from mpl.types import BoolType


def fold_constants(graph: TransformGraph) -> TransformGraph:
    draft = Draft(graph.program, graph)
    moved: dict[str, str] = {}
    for transform in graph.nodes.values():
        node = _folded(draft.rewire(transform, [moved.get(source, source) for source in transform.inputs]))
        if isinstance(node, WhereNode) and truth(node.predicate) is True:
            source = moved.get(transform.inputs[0], transform.inputs[0])
            moved[transform.id] = draft.bypass(transform, source)
        else:
            draft.add(replace(transform, node=node))
    draft.redirect_outputs(moved)
    return draft.finish()


def _folded(node: RelationTree) -> RelationTree:
    match node:
        case WhereNode():
            return replace(node, predicate=_condition(node.predicate))
        case ExtendNode():
            return replace(node, values=tuple(simplified(value) for value in node.values))
        case AggregateNode():
            return replace(node, items=tuple(_item(item) for item in node.items))
        case JoinNode() | MatchingNode():
            return replace(node, rest=_optional(node.rest))
        case TopNode():
            ordering = tuple(replace(key, value=simplified(key.value)) for key in node.ordering)
            return replace(node, ordering=ordering)
        case _:
            return node


def _condition(expr: Expr) -> Expr:
    """Null means the same as false wherever rows are chosen, also as one part of an `and`."""
    parts = conjuncts(simplified(expr))
    if not any(truth(part) is False for part in parts):
        return conjunction(tuple(parts)) or expr
    failing = [part for part in parts if truth(part) is None and may_fail(part)]
    return conjunction((*failing, constant(False, BoolType(), expr.span))) or expr


def _optional(expr: Expr | None) -> Expr | None:
    if expr is None:
        return None
    expr = _condition(expr)
    return None if truth(expr) is True else expr


def _item(item: AggregateItem) -> AggregateItem:
    argument = simplified(item.argument) if item.argument is not None else None
    return replace(item, argument=argument, where=_optional(item.where))
