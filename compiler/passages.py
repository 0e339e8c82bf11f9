"""Passages: how a condition on the rows that an operator makes can be asked of the rows it reads instead.

Used by `passes/selections.py`, which decides whether it should. Knows nothing of graphs: one operator at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compiler.expressions import columns_in, is_trivial, may_fail, moved, replaced
from mpl.relations.conditions import same_representation
from mpl.typed import (
    AggregateNode,
    AsofNode,
    Column,
    DistinctNode,
    Expr,
    ExtendNode,
    JoinNode,
    LatestNode,
    MatchingNode,
    MergeNode,
    MinusNode,
    ProjectNode,
    RelationTree,
    RenameNode,
    TopNode,
    UnionNode,
    WindowNode,
)

Ways = tuple[tuple[int, Expr], ...]
"""(number of the input, condition on its columns); all of them together replace the condition. Empty: no way."""


def looks_at_one_row(node: RelationTree) -> bool:
    """Does each row of the result depend on one input row only? Then any condition may be asked earlier."""
    match node:
        case ProjectNode():
            return not node.drops_key
        case WindowNode():
            return node.shape != "session"
        case ExtendNode() | RenameNode() | MergeNode():
            return True
        case _:
            return False


def keeps_every_row(node: RelationTree) -> bool:
    """Are the rows on which a passed condition is evaluated, as far as it can see them, the same before and after?"""
    match node:
        case ProjectNode() | ExtendNode() | RenameNode() | MergeNode() | DistinctNode() | UnionNode() | WindowNode():
            return True
        case AggregateNode():
            return True
        case JoinNode():
            return node.side == "left"
        case AsofNode():
            return node.keep_unmatched
        case _:
            return False


def passage(node: RelationTree, condition: Expr) -> Ways:
    """The ways of a condition through an operator."""
    used = columns_in(condition)
    match node:
        case ProjectNode():
            return _unary(condition, dict(enumerate(node.kept)), node.input)
        case ExtendNode():
            return _through_extend(node, condition, used)
        case RenameNode():
            return _unary(condition, {position: position for position in used}, node.input)
        case WindowNode():
            visible = set(node.per) if node.shape == "session" else set(range(len(node.input.schema.columns)))
            return _unary(condition, {position: position for position in visible}, node.input)
        case AggregateNode():
            # Without groups there is one row even if no input row is left.
            return _unary(condition, dict(enumerate(node.group)), node.input) if node.group else ()
        case TopNode() | LatestNode():
            return _unary(condition, {position: position for position in node.per}, node.input)
        case DistinctNode():
            return _unary(condition, dict(enumerate(node.kept)), node.input)
        case MergeNode():
            same = {position: position for position in used}
            return tuple((edge, moved(condition, same, part.schema.columns)) for edge, part in enumerate(node.inputs))
        case UnionNode():
            left = moved(condition, dict(enumerate(node.left_kept)), node.left.schema.columns)
            return (0, left), (1, moved(condition, dict(enumerate(node.right_order)), node.right.schema.columns))
        case MinusNode():
            return _unary(condition, {position: position for position in used}, node.left)
        case JoinNode() | AsofNode() | MatchingNode():
            return _through_pairs(node, condition, used)
        case _:
            return ()


def _unary(condition: Expr, where: Mapping[int, int], source: RelationTree) -> Ways:
    if not columns_in(condition) <= where.keys():
        return ()
    return ((0, moved(condition, where, source.schema.columns)),)


def _through_extend(node: ExtendNode, condition: Expr, used: frozenset[int]) -> Ways:
    """A condition on a new column would compute it twice, unless it is a constant or another column."""
    width = len(node.input.schema.columns)
    defined = dict(enumerate(node.values, width))
    if not all(is_trivial(defined[position]) for position in used if position >= width):
        return ()
    return ((0, replaced(condition, defined, node.input.schema)),)


def _through_pairs(node: JoinNode | AsofNode | MatchingNode, condition: Expr, used: frozenset[int]) -> Ways:
    """To the side it concerns; if that is only columns that both sides must agree on, to both.

    Rows of the side that an outer join fills must not be chosen by what they are filled with.
    """
    border = len(node.left.schema.columns)
    left, right = node.left.schema.columns, node.right.schema.columns
    if isinstance(node, JoinNode) and node.side == "full":
        return ()
    if all(position < border for position in used):
        same = {position: position for position in used}
        return (0, moved(condition, same, left)), *_also(condition, dict(node.equal), left, right, 1)
    if isinstance(node, JoinNode) and node.side == "inner" and all(position >= border for position in used):
        where = {position: node.right_kept[position - border] for position in used}
        here = moved(condition, where, right)
        back = {other: one for one, other in node.equal}
        return (1, here), *_also(here, back, right, left, 0)
    return ()


def _also(
    condition: Expr, partners: Mapping[int, int], mine: Sequence[Column], others: Sequence[Column], edge: int
) -> Ways:
    """The same condition on the partners' columns: no row that fails it there could ever find a partner here."""
    used = columns_in(condition)
    if not used or not used <= partners.keys() or may_fail(condition):
        return ()
    if not all(same_representation(mine[position], others[partners[position]]) for position in used):
        return ()
    translated = moved(condition, partners, others)
    return () if may_fail(translated) else ((edge, translated),)
