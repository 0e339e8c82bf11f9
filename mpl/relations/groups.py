"""Operators that make one row of many: aggregate, top, latest, first, distinct."""

from __future__ import annotations

from dataclasses import replace

from mpl import nodes, typed
from mpl.aggregates import aggregate_type
from mpl.arithmetic import is_ordered
from mpl.codes import relations
from mpl.expressions import check_expression, check_predicate
from mpl.relations.context import Context, Current, column_at, columns_at
from mpl.relations.keys import identifies, minimal, move_determined
from mpl.relations.rows import append_columns, report_taken
from mpl.scope import Scope, ScopeColumn
from mpl.source import Span
from mpl.types import Bounds, EnumType, ErrorType, IntType, Type

TOP_MAX = 1_000_000
"""`top` keeps this many rows per group at the most."""


def check_aggregate(current: Current, operator: nodes.Aggregate, context: Context) -> Current | None:
    group = columns_at(current, operator.group_by or (), context)
    failed = group is None
    items: list[typed.AggregateItem] = []
    added: list[typed.Column] = []
    taken = {entry.column.name for entry in group or ()}
    for definition in operator.definitions:
        failed |= report_taken(definition.name, taken, context, "aggregate")
        taken.add(definition.name.text)
        item, column = _check_item(current, definition, bool(operator.group_by), context)
        items.append(item)
        added.append(column)
    if failed or group is None:
        return None
    where = {entry.index: position for position, entry in enumerate(group)}
    determined = move_determined(current.schema.determined, where)
    key = minimal(range(len(group)), determined)
    columns = (*(entry.column for entry in group), *added)
    schema = typed.Schema(columns, key, (), determined)
    node = typed.AggregateNode(
        current.node, tuple(entry.index for entry in group), tuple(items), schema=schema, span=operator.span
    )
    entries = [ScopeColumn(where[entry.index], entry.column, entry.bare_name, entry.aliases) for entry in group]
    entries += [ScopeColumn(len(group) + position, column, column.name, ()) for position, column in enumerate(added)]
    return Current(node, Scope(entries))


def _check_item(
    current: Current, definition: nodes.AggregateDefinition, grouped: bool, context: Context
) -> tuple[typed.AggregateItem, typed.Column]:
    call = definition.value
    argument = None
    if call.argument is not None:
        argument = check_expression(call.argument, current.scope, context.functions, context.diagnostics)
    where = None
    if call.where is not None:
        where = check_predicate(call.where, current.scope, context.functions, context.diagnostics)
    column = typed.Column(definition.name.text, ErrorType())
    if not any(part is not None and isinstance(part.type, ErrorType) for part in (argument, where)):
        result = aggregate_type(call, argument, grouped=grouped, diagnostics=context.diagnostics)
        if result is not None:
            column = replace(column, type=result.type, nullable=result.nullable, bounds=result.bounds)
    return typed.AggregateItem(call.function, argument, call.distinct, where, span=call.span), column


def check_top(current: Current, operator: nodes.Top, context: Context) -> Current | None:
    failed = False
    if not 1 <= operator.count <= TOP_MAX:
        failed = True
        context.diagnostics.report(
            relations.BAD_COUNT,
            operator.span,
            f"`top` takes 1 to {TOP_MAX:,} rows, not {operator.count:,}",
            "out of range",
        )
    per = columns_at(current, operator.per, context)
    ordering: list[typed.OrderKey] = []
    for item in operator.ordering:
        value = check_expression(item.value, current.scope, context.functions, context.diagnostics)
        failed |= isinstance(value.type, ErrorType)
        failed |= _report_unordered(value.type, item.value.span, "top", context)
        ordering.append(typed.OrderKey(value, item.descending))
    if operator.rank is not None:
        failed |= report_taken(operator.rank, set(current.scope.names), context, "top")
    if failed or per is None:
        return None
    groups = tuple(entry.index for entry in per)

    def make(schema: typed.Schema) -> typed.TopNode:
        if operator.rank is not None and not operator.ties:
            schema = replace(schema, unique=(*schema.unique, (*groups, len(schema.columns) - 1)))
        if operator.count == 1 and not operator.ties:
            schema = replace(schema, unique=(*schema.unique, tuple(sorted(groups))))
        return typed.TopNode(
            current.node,
            operator.count,
            groups,
            tuple(ordering),
            operator.rank is not None,
            operator.ties,
            schema=schema,
            span=operator.span,
        )

    added: tuple[typed.Column, ...] = ()
    if operator.rank is not None:
        added = (typed.Column(operator.rank.text, IntType(), bounds=Bounds(1, operator.count)),)
    return append_columns(current, added, make)


def check_latest(current: Current, operator: nodes.LatestFirst, context: Context) -> Current | None:
    per = columns_at(current, operator.per, context)
    by = column_at(current, operator.by, context) if operator.by else None
    if per is None or (operator.by is not None and by is None):
        return None
    if operator.by and by and _report_unordered(by.column.type, operator.by.span, operator.which, context):
        return None
    ticks = [entry for entry in current.scope.columns if entry.column.is_tick]
    if by is None and len(ticks) != 1:
        context.diagnostics.report(
            relations.ORDER_UNCLEAR,
            operator.span,
            f"`{operator.which}` needs to know by which column",
            "these rows are no events, so they have no tick of their own",
            help=f"write `{operator.which} per ... by <column>`",
        )
        return None
    schema = current.schema
    groups = tuple(entry.index for entry in per)
    key = minimal(groups, schema.determined)
    others = tuple(
        candidate for candidate in dict.fromkeys((schema.key, *schema.unique)) if not set(candidate).issuperset(key)
    )
    result = replace(schema, key=key, unique=others)
    node = typed.LatestNode(
        current.node,
        operator.which,
        groups,
        by.index if by else None,
        schema=result,
        span=operator.span,
    )
    return Current(node, current.scope)


def _report_unordered(type_: Type, span: Span, verb: str, context: Context) -> bool:
    """Reports a type without `<`; True if it is one."""
    if is_ordered(type_) or isinstance(type_, ErrorType):
        return False
    remedy = "order by a number, a text, a time or a duration"
    if isinstance(type_, EnumType):
        remedy = "say which value comes first with `case`, or `cast` it to text"
    context.diagnostics.report(
        relations.ORDER_TYPE, span, f"`{verb}` cannot order by {type_}", f"this is {type_}", help=remedy
    )
    return True


def check_distinct(current: Current, operator: nodes.Distinct) -> Current:
    kept = [entry for entry in current.scope.columns if not entry.column.hidden]
    where = {entry.index: position for position, entry in enumerate(kept)}
    columns = tuple(entry.column for entry in kept)
    determined = move_determined(current.schema.determined, where)
    everything = tuple(range(len(kept)))
    key = minimal(everything, determined)
    if identifies(current.schema, where) and all(position in where for position in current.schema.key):
        key = tuple(sorted(where[position] for position in current.schema.key))
    node = typed.DistinctNode(
        current.node,
        tuple(entry.index for entry in kept),
        schema=typed.Schema(columns, key, (), determined),
        span=operator.span,
    )
    scope = Scope(
        [ScopeColumn(position, entry.column, entry.bare_name, entry.aliases) for position, entry in enumerate(kept)]
    )
    return Current(node, scope)
