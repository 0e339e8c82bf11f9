"""Operators that combine relations with the same columns: merge, union, minus."""

from __future__ import annotations

from dataclasses import replace

from mpl import nodes, typed
from mpl.codes import relations
from mpl.diagnostic import Note
from mpl.expressions import unify
from mpl.relations.conditions import same_representation
from mpl.relations.context import Context, Current
from mpl.relations.rows import project_to
from mpl.scope import Scope, ScopeColumn
from mpl.types import Bounds


def check_merge(inputs: list[Current], relation: nodes.Relation, context: Context) -> Current | None:
    failed = False
    for current, source in zip(inputs, relation.sources, strict=True):
        if not is_event_relation(current.node, context):
            failed = True
            context.diagnostics.report(
                relations.MERGE_NEEDS_EVENTS,
                source.span,
                "only streams, and selections of streams, can be merged",
                "its rows are computed, so they have no tick of their own",
                help="use `union` for views, or merge the streams first",
            )
    failed = failed or _report_same_phase(inputs, relation, context)
    if failed:
        return None
    first = inputs[0]
    orders = [
        match_columns(first, current, source, "merge", context)
        for current, source in zip(inputs, relation.sources, strict=True)
    ]
    aligned = [
        _reordered(current, order, source)
        for current, order, source in zip(inputs, orders, relation.sources, strict=True)
        if order is not None
    ]
    if len(aligned) < len(inputs):
        return None
    columns = tuple(_widest(row) for row in zip(*(current.schema.columns for current in aligned), strict=True))
    tick = next(position for position, column in enumerate(columns) if column.is_tick)
    node = typed.MergeNode(
        tuple(current.node for current in aligned),
        schema=typed.Schema(columns, (tick,), (), first.schema.determined),
        span=relation.sources[0].span.to(relation.sources[-1].span),
    )
    return Current(node, Scope.of_schema(node.schema, None))


def is_event_relation(node: typed.RelationTree, context: Context) -> bool:
    """Are its rows events, final and keyed by their own tick? Iterates, since pipelines may be long."""
    while True:
        match node:
            case typed.StreamScan() | typed.MergeNode():
                return True
            case typed.ViewScan():
                return node.view in context.event_relations
            case typed.WhereNode() | typed.ExtendNode() | typed.RenameNode() | typed.ProjectNode():
                node = node.input
            case typed.WindowNode(shape="tumble"):
                node = node.input
            case _:
                return False


def match_columns(
    left: Current, right: Current, source: nodes.SourceRef, verb: str, context: Context
) -> tuple[int, ...] | None:
    """Position in the right of every visible left column, matched by name; None after saying what differs."""
    right_by_name = {entry.column.name: entry for entry in right.scope.columns if not entry.column.hidden}
    order: list[int] = []
    differences: list[str] = []
    for entry in left.scope.columns:
        column = entry.column
        if column.hidden:
            continue
        other = right_by_name.pop(column.name, None)
        if other is None:
            differences.append(f"`{column.name}` is missing")
        elif column.is_tick != other.column.is_tick:
            differences.append(f"`{column.name}` is a tick on one side only")
        elif unify(column.type, other.column.type) is None or not same_representation(column, other.column):
            differences.append(f"`{column.name}` is {other.column.type}, not {column.type}")
        else:
            order.append(other.index)
    differences += [f"`{name}` is not on the left" for name in right_by_name]
    if not differences:
        return tuple(order)
    shown = "; ".join(differences[:4]) + ("; ..." if len(differences) > 4 else "")
    context.diagnostics.report(
        relations.COLUMNS_DIFFER,
        source.span,
        f"`{verb}` needs relations with the same columns",
        shown,
        help="bring both sides to the same columns with `project`, `rename` or `extend`",
    )
    return None


def _reordered(current: Current, order: tuple[int, ...], source: nodes.SourceRef) -> Current:
    """The columns in the common order, a hidden tick last."""
    if order == tuple(range(len(order))):
        return current
    entries = {entry.index: entry for entry in current.scope.columns}
    return project_to(current, tuple(entries[index] for index in order), source)


def _widest(columns: tuple[typed.Column, ...]) -> typed.Column:
    """One column that admits what any of the inputs may hold."""
    result = columns[0]
    for column in columns[1:]:
        common = unify(result.type, column.type)
        assert common is not None, "checked by match_columns"
        result = replace(
            result,
            type=common,
            nullable=result.nullable or column.nullable,
            bounds=_hull(result.bounds, column.bounds),
            hidden=result.hidden or column.hidden,
            is_event_time=result.is_event_time and column.is_event_time,
        )
    return result


def _hull(one: Bounds, other: Bounds) -> Bounds:
    low = None if one.low is None or other.low is None else min(one.low, other.low)
    high = None if one.high is None or other.high is None else max(one.high, other.high)
    return Bounds(low, high)


def _report_same_phase(inputs: list[Current], relation: nodes.Relation, context: Context) -> bool:
    """Two streams that declare the same phase would both claim the same ticks."""
    owners: dict[tuple[int, int], nodes.SourceRef] = {}
    found = False
    for current, source in zip(inputs, relation.sources, strict=True):
        stream = _single_stream(current.node)
        phase = context.streams[stream].phase if stream else None
        if phase is None:
            continue
        if phase in owners:
            found = True
            context.diagnostics.report(
                relations.SAME_PHASE,
                source.span,
                f"two merged streams own the same ticks: phase {phase[0]} of {phase[1]}",
                "the second owner",
                note=Note("the first owner is here", owners[phase].span),
                help="give each stream of a merge a phase of its own",
            )
        owners.setdefault(phase, source)
    return found


def _single_stream(node: typed.RelationTree) -> str | None:
    while True:
        match node:
            case typed.StreamScan():
                return node.stream
            case typed.WhereNode() | typed.ExtendNode() | typed.RenameNode() | typed.ProjectNode():
                node = node.input
            case _:
                return None


def check_union(left: Current, right: Current, operator: nodes.Union, context: Context) -> Current | None:
    order = match_columns(left, right, operator.source, "union", context)
    if order is None:
        return None
    kept = [entry for entry in left.scope.columns if not entry.column.hidden]
    right_columns = right.schema.columns
    columns = tuple(
        replace(_widest((entry.column, right_columns[position])), is_tick=False)
        for entry, position in zip(kept, order, strict=True)
    )
    node = typed.UnionNode(
        left.node,
        right.node,
        tuple(entry.index for entry in kept),
        order,
        schema=typed.Schema(columns, tuple(range(len(columns)))),
        span=operator.span,
    )
    scope = Scope(
        [
            ScopeColumn(position, column, entry.bare_name, entry.aliases)
            for position, (entry, column) in enumerate(zip(kept, columns, strict=True))
        ]
    )
    return Current(node, scope)


def check_minus(left: Current, right: Current, operator: nodes.Minus, context: Context) -> Current | None:
    order = match_columns(left, right, operator.source, "minus", context)
    if order is None:
        return None
    compared = tuple(entry.index for entry in left.scope.columns if not entry.column.hidden)
    node = typed.MinusNode(left.node, right.node, compared, order, schema=left.schema, span=operator.span)
    return Current(node, left.scope)
