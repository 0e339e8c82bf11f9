"""Needs: which columns of its inputs an operator has to see, and the operator over fewer columns.

Used by `passes/columns.py`, one operator at a time. Two functions that must agree: `input_needs` says what is asked of
the inputs, `narrowed` rebuilds the operator over whatever they provide, at least that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from compiler.expressions import columns_in, moved
from compiler.graph.transform import Scan, with_inputs
from mpl.relations.keys import move, move_all, move_determined
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
    Schema,
    StreamScan,
    TableScan,
    TopNode,
    UnionNode,
    ViewScan,
    WhereNode,
    WindowNode,
)

Provided = tuple[int, ...]
"""Old positions that a relation still has, ascending: the columns are in this order."""
Needed = frozenset[int]


def kept_schema(schema: Schema, kept: Sequence[int]) -> Schema:
    """The schema with only the columns at `kept`, the key among them, in that order."""
    where = {old: new for new, old in enumerate(kept)}
    key = move(schema.key, where)
    assert key is not None, "the key is always kept"
    columns = tuple(schema.columns[position] for position in kept)
    unique = tuple(positions for positions in move_all(schema.unique, where) if positions != key)
    return Schema(columns, key, unique, move_determined(schema.determined, where))


def _ticks(source: RelationTree) -> Needed:
    return frozenset(position for position, column in enumerate(source.schema.columns) if column.is_tick)


def input_needs(node: RelationTree, needed: Needed) -> tuple[Needed, ...]:
    """For each input the columns that the operator needs so that it can provide `needed`."""
    match node:
        case StreamScan() | TableScan() | ViewScan() | RenameNode():
            return (needed,)
        case MergeNode():
            return tuple(needed for _ in node.inputs)
        case JoinNode() | AsofNode() | MatchingNode() | UnionNode() | MinusNode():
            return _pair_needs(node, needed)
        case AggregateNode() | TopNode() | LatestNode() | DistinctNode():
            return (_group_needs(node, needed),)
        case WhereNode():
            return (needed | columns_in(node.predicate),)
        case ProjectNode():
            return (frozenset(node.kept[position] for position in needed),)
        case ExtendNode():
            width = len(node.input.schema.columns)
            values = [node.values[position - width] for position in needed if position >= width]
            return (_below(needed, width).union(*map(columns_in, values)),)
        case WindowNode():
            return (_below(needed, len(node.input.schema.columns)) | {node.time, *node.per},)


def _below(positions: Needed, border: int) -> Needed:
    return frozenset(position for position in positions if position < border)


def _group_needs(node: AggregateNode | TopNode | LatestNode | DistinctNode, needed: Needed) -> Needed:
    width = len(node.input.schema.columns)
    match node:
        case AggregateNode():
            found = set(node.group)
            for position in _kept_items(node, needed):
                item = node.items[position]
                found |= columns_in(item.argument) | columns_in(item.where)
                if item.function in ("first", "last"):
                    found |= _ticks(node.input)
            return frozenset(found)
        case TopNode():
            order = frozenset().union(*(columns_in(key.value) for key in node.ordering))
            return _below(needed, width) | order | frozenset(node.per)
        case LatestNode():
            by = () if node.by is None else (node.by,)
            return needed | {*node.per, *by} | _ticks(node.input)
        case DistinctNode():
            return frozenset(node.kept)


def _kept_items(node: AggregateNode, needed: Needed) -> tuple[int, ...]:
    """The aggregates that stay; never none, so that an aggregate remains one."""
    start = len(node.group)
    return tuple(position - start for position in sorted(needed) if position >= start) or (0,)


def _pair_needs(
    node: JoinNode | AsofNode | MatchingNode | UnionNode | MinusNode, needed: Needed
) -> tuple[Needed, Needed]:
    border = len(node.left.schema.columns)
    if isinstance(node, UnionNode):
        return frozenset(node.left_kept), frozenset(node.right_order)
    if isinstance(node, MinusNode):
        return needed | frozenset(node.left_compared), frozenset(node.right_order)
    left = _below(needed, border) | {one for one, _ in node.equal}
    right = frozenset(other for _, other in node.equal)
    if isinstance(node, AsofNode):
        # Of two right rows at the same time the later tick counts.
        left |= {node.left_time}
        right |= {node.right_time} | _ticks(node.right)
    else:
        rest = columns_in(node.rest)
        left |= _below(rest, border)
        right |= {position - border for position in rest if position >= border}
    if isinstance(node, JoinNode | AsofNode):
        right |= {node.right_kept[position - border] for position in needed if position >= border}
    return left, right


# --- rebuilding -------------------------------------------------------------------------------------------------------


def narrowed(
    node: RelationTree, inputs: tuple[Scan, ...], provided: tuple[Provided, ...], needed: Needed
) -> tuple[RelationTree, Provided]:
    """The operator over inputs that have only the columns in `provided`, and the columns that it has itself."""
    match node:
        case StreamScan() | TableScan() | ViewScan():
            return with_inputs(node, inputs), provided[0]
        case MergeNode() | RenameNode():
            result = provided[0]
            return replace(with_inputs(node, inputs), schema=kept_schema(node.schema, result)), result
        case JoinNode() | AsofNode() | MatchingNode() | UnionNode() | MinusNode():
            return _narrowed_pair(node, inputs, provided, needed)
        case AggregateNode() | TopNode() | LatestNode() | DistinctNode():
            return _narrowed_group(node, inputs[0], provided[0], needed)
        case WhereNode() | ProjectNode() | ExtendNode() | WindowNode():
            return _narrowed_rows(node, inputs[0], provided[0], needed)


class _Mover:
    """Positions and expressions of one input, or of two side by side, over fewer columns."""

    def __init__(self, provided: Sequence[int], columns: Sequence[Column]) -> None:
        self.where: Mapping[int, int] = {old: new for new, old in enumerate(provided)}
        self.columns = columns

    def all(self, positions: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.where[position] for position in positions)

    def expr(self, expr: Expr) -> Expr:
        return moved(expr, self.where, self.columns)

    def optional(self, expr: Expr | None) -> Expr | None:
        return None if expr is None else self.expr(expr)


def _narrowed_rows(
    node: WhereNode | ProjectNode | ExtendNode | WindowNode, source: Scan, provided: Provided, needed: Needed
) -> tuple[RelationTree, Provided]:
    to = _Mover(provided, source.schema.columns)
    width = len(node.input.schema.columns)
    match node:
        case WhereNode():
            schema = kept_schema(node.schema, provided)
            return replace(node, input=source, predicate=to.expr(node.predicate), schema=schema), provided
        case ProjectNode():
            result = tuple(sorted(needed))
            kept = to.all([node.kept[position] for position in result])
            return replace(node, input=source, kept=kept, schema=kept_schema(node.schema, result)), result
        case ExtendNode():
            added = tuple(sorted(position for position in needed if position >= width))
            result = (*provided, *added)
            values = tuple(to.expr(node.values[position - width]) for position in added)
            return replace(node, input=source, values=values, schema=kept_schema(node.schema, result)), result
        case WindowNode():
            result = (*provided, width, width + 1)
            schema = kept_schema(node.schema, result)
            time, per = to.where[node.time], to.all(node.per)
            return replace(node, input=source, time=time, per=per, schema=schema), result


def _narrowed_group(
    node: AggregateNode | TopNode | LatestNode | DistinctNode, source: Scan, provided: Provided, needed: Needed
) -> tuple[RelationTree, Provided]:
    to = _Mover(provided, source.schema.columns)
    width = len(node.input.schema.columns)
    match node:
        case AggregateNode():
            positions = _kept_items(node, needed)
            result = (*range(len(node.group)), *(len(node.group) + position for position in positions))
            items = tuple(
                replace(item, argument=to.optional(item.argument), where=to.optional(item.where))
                for item in (node.items[position] for position in positions)
            )
            schema = kept_schema(node.schema, result)
            return replace(node, input=source, group=to.all(node.group), items=items, schema=schema), result
        case TopNode():
            result = (*provided, *((width,) if node.rank else ()))
            ordering = tuple(replace(key, value=to.expr(key.value)) for key in node.ordering)
            schema = kept_schema(node.schema, result)
            return replace(node, input=source, per=to.all(node.per), ordering=ordering, schema=schema), result
        case LatestNode():
            by = None if node.by is None else to.where[node.by]
            schema = kept_schema(node.schema, provided)
            return replace(node, input=source, per=to.all(node.per), by=by, schema=schema), provided
        case DistinctNode():
            return replace(node, input=source, kept=to.all(node.kept)), tuple(range(len(node.kept)))


def _told_apart(node: JoinNode | AsofNode) -> Needed:
    """The right columns that a full join compares and shows. Without one, its left partner would be taken for a `using`
    column, which a row from the right alone fills."""
    if not isinstance(node, JoinNode) or node.side != "full":
        return frozenset()
    compared = {right for _, right in node.equal}
    border = len(node.left.schema.columns)
    return frozenset(border + at for at, right in enumerate(node.right_kept) if right in compared)


def _narrowed_pair(
    node: JoinNode | AsofNode | MatchingNode | UnionNode | MinusNode,
    inputs: tuple[Scan, ...],
    provided: tuple[Provided, ...],
    needed: Needed,
) -> tuple[RelationTree, Provided]:
    left, right = inputs
    border = len(node.left.schema.columns)
    to_left = _Mover(provided[0], left.schema.columns)
    to_right = _Mover(provided[1], right.schema.columns)
    both = _Mover(
        (*provided[0], *(border + position for position in provided[1])),
        (*left.schema.columns, *right.schema.columns),
    )
    if isinstance(node, UnionNode):
        kept, order = to_left.all(node.left_kept), to_right.all(node.right_order)
        united = replace(node, left=left, right=right, left_kept=kept, right_order=order)
        return united, tuple(range(len(node.left_kept)))
    if isinstance(node, MinusNode):
        compared, order = to_left.all(node.left_compared), to_right.all(node.right_order)
        schema = kept_schema(node.schema, provided[0])
        rest = replace(node, left=left, right=right, left_compared=compared, right_order=order, schema=schema)
        return rest, provided[0]
    equal = tuple((to_left.where[one], to_right.where[other]) for one, other in node.equal)
    if isinstance(node, MatchingNode):
        schema = kept_schema(node.schema, provided[0])
        matched = replace(node, left=left, right=right, equal=equal, rest=both.optional(node.rest), schema=schema)
        return matched, provided[0]
    shown = tuple(position for position in sorted(needed | _told_apart(node)) if position >= border)
    result = (*provided[0], *shown)
    kept = to_right.all([node.right_kept[position - border] for position in shown])
    schema = kept_schema(node.schema, result)
    if isinstance(node, AsofNode):
        times = (to_left.where[node.left_time], to_right.where[node.right_time])
        latest = replace(node, left=left, right=right, equal=equal, right_kept=kept, schema=schema)
        return replace(latest, left_time=times[0], right_time=times[1]), result
    joined = replace(node, left=left, right=right, equal=equal, rest=both.optional(node.rest), right_kept=kept)
    defaults = tuple(node.defaults[position - border] for position in shown) if node.defaults else ()
    left_defaults = tuple(node.left_defaults[position] for position in provided[0]) if node.left_defaults else ()
    return replace(joined, defaults=defaults, left_defaults=left_defaults, schema=schema), result
