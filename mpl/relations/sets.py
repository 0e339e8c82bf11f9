"""Operators that combine relations with the same columns: merge, union, minus."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

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
    streams: list[frozenset[str]] = []
    for current, source in zip(inputs, relation.sources, strict=True):
        found = streams_of_events(current.node, context)
        streams.append(found or frozenset())
        if found is None:
            failed = True
            context.diagnostics.report(
                relations.MERGE_NEEDS_EVENTS,
                source.span,
                "only streams, and selections of streams, can be merged",
                "its rows are computed, so they have no tick of their own",
                help="use `union` for views, or merge the streams first",
            )
    failed = failed or _report_same_ticks(streams, relation, context)
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


def streams_of_events(node: typed.RelationTree, context: Context) -> frozenset[str] | None:
    """The streams whose events these rows are, each under its own tick; None if some rows are computed.

    Iterates, since pipelines may be long.
    """
    found: set[str] = set()
    waiting = [node]
    while waiting:
        node = waiting.pop()
        match node:
            case typed.StreamScan():
                found.add(node.stream)
            case typed.MergeNode():
                waiting.extend(node.inputs)
            case typed.ViewScan() if node.view in context.event_views:
                found |= context.event_views[node.view]
            case typed.WhereNode() | typed.ExtendNode() | typed.RenameNode() | typed.ProjectNode():
                waiting.append(node.input)
            case typed.WindowNode(shape="tumble"):
                waiting.append(node.input)
            case _:
                return None
    return frozenset(found)


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


def _report_same_ticks(streams: list[frozenset[str]], relation: nodes.Relation, context: Context) -> bool:
    """A merge tells events apart by their ticks, so no two of its inputs may bring the same ones."""
    owners: dict[str, nodes.SourceRef] = {}
    found = False
    for names, source in zip(streams, relation.sources, strict=True):
        for name in sorted(names):
            other = next((known for known in owners if _share_ticks(known, name, context)), None)
            if other is None:
                continue
            found = True
            message, remedy = f"the events of `{name}` are merged twice", "merge each stream once"
            if other != name:
                message = (
                    f"`{other}` and `{name}` own the same ticks: {_phase(other, context)}, {_phase(name, context)}"
                )
                remedy = "give each stream of a merge a phase of its own"
            context.diagnostics.report(
                relations.SAME_PHASE,
                source.span,
                message,
                "brings them a second time",
                note=Note("the first one is here", owners[other].span),
                help=remedy,
            )
        for name in names:
            owners.setdefault(name, source)
    return found


def _phase(stream: str, context: Context) -> str:
    phase = context.streams[stream].phase
    assert phase is not None, "without a phase there is nothing to clash"
    return f"phase {phase[0]} of {phase[1]}"


def _share_ticks(one: str, other: str, context: Context) -> bool:
    """Is it the same stream, or are there ticks in both of the phases that they declare?"""
    if one == other:
        return True
    left, right = context.streams[one].phase, context.streams[other].phase
    if left is None or right is None:
        return False
    return (left[0] - right[0]) % gcd(left[1], right[1]) == 0


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
