"""When two transforms are the same: equal operators on equal inputs, whatever their columns are called.

Names, spans and what is hidden do not matter for the rows: outputs carry the names that users see. Keys matter, for
they are what subscribers are told rows by.
"""

from __future__ import annotations

from collections.abc import Hashable

from compiler.graph.transform import references_of, source_of
from mpl.typed import (
    AggregateItem,
    AggregateNode,
    Apply,
    AsofNode,
    CaseOf,
    ColumnRef,
    Const,
    DistinctNode,
    Expr,
    ExtendNode,
    JoinNode,
    LatestNode,
    MatchingNode,
    MinusNode,
    ProjectNode,
    PythonCall,
    RelationTree,
    Schema,
    TopNode,
    UnionNode,
    WhereNode,
    WindowNode,
)


def identity(node: RelationTree) -> Hashable:
    """Equal for nodes in normal form that make the same rows."""
    inputs = tuple(source_of(scan) for scan in references_of(node))
    return type(node).__name__, inputs, _parameters(node), _shape(node.schema)


def _shape(schema: Schema) -> Hashable:
    columns = tuple(
        (column.type, column.nullable, column.bounds, column.is_tick, column.is_event_time) for column in schema.columns
    )
    return columns, schema.key


def _parameters(node: RelationTree) -> Hashable:
    match node:
        case WhereNode():
            return expression_identity(node.predicate)
        case ProjectNode():
            return node.kept, node.drops_key
        case ExtendNode():
            return tuple(expression_identity(value) for value in node.values)
        case WindowNode():
            return node.shape, node.time, node.size_us, node.every_us, node.per
        case AggregateNode():
            return node.group, tuple(_item(item) for item in node.items)
        case JoinNode():
            defaults = tuple(expression_identity(value) for value in (*node.defaults, *node.left_defaults))
            return node.side, node.equal, _optional(node.rest), node.right_kept, defaults
        case AsofNode():
            return node.keep_unmatched, node.equal, node.left_time, node.right_time, node.right_kept
        case MatchingNode():
            return node.negated, node.equal, _optional(node.rest)
        case TopNode():
            ordering = tuple((expression_identity(key.value), key.descending) for key in node.ordering)
            return node.count, node.per, ordering, node.rank, node.ties
        case LatestNode():
            return node.which, node.per, node.by
        case DistinctNode():
            return node.kept
        case UnionNode():
            return node.left_kept, node.right_order
        case MinusNode():
            return node.left_compared, node.right_order
        case _:
            return None


def _item(item: AggregateItem) -> Hashable:
    return item.function, _optional(item.argument), item.distinct, _optional(item.where)


def _optional(expr: Expr | None) -> Hashable:
    return None if expr is None else expression_identity(expr)


def expression_identity(expr: Expr) -> Hashable:
    """Equal for expressions with the same value on every row. The type tells 1, 1.0 and true apart."""
    match expr:
        case Const():
            return "constant", expr.type, expr.value
        case ColumnRef():
            return expr.index
        case Apply():
            return expr.function, expr.type, tuple(expression_identity(part) for part in expr.arguments)
        case PythonCall():
            called = (expr.module, expr.function)
            return "python", called, expr.type, tuple(expression_identity(part) for part in expr.arguments)
        case CaseOf():
            branches = tuple(tuple(expression_identity(part) for part in branch) for branch in expr.branches)
            return "case", expr.type, branches, expression_identity(expr.otherwise)
