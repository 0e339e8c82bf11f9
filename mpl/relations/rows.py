"""Operators that look at one row at a time: where, project, extend, rename, window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mpl import nodes, typed
from mpl.codes import names, relations
from mpl.diagnostic import Note
from mpl.expressions import check_predicate, check_value
from mpl.relations.context import Context, Current, column_at, columns_at
from mpl.relations.keys import moved_schema
from mpl.scope import Scope, ScopeColumn
from mpl.types import ErrorType, TimeType

WINDOW_COPIES_MAX = 10_000
"""A hopping window puts each row into size / every windows; beyond this the user surely mistyped a unit."""


def check_where(current: Current, operator: nodes.Where, context: Context) -> Current | None:
    predicate = check_predicate(operator.predicate, current.scope, context.functions, context.diagnostics)
    if isinstance(predicate.type, ErrorType):
        return None
    node = typed.WhereNode(current.node, predicate, schema=current.schema, span=operator.span)
    return Current(node, current.scope)


def check_project(current: Current, operator: nodes.Project, context: Context) -> Current | None:
    chosen = columns_at(current, operator.columns, context)
    if chosen is None:
        return None
    if operator.all_but:
        left_out = {entry.index for entry in chosen}
        visible = [entry for entry in current.scope.columns if not entry.column.hidden]
        chosen = tuple(entry for entry in visible if entry.index not in left_out)
    if not chosen:
        context.diagnostics.report(
            relations.NOTHING_LEFT,
            operator.span,
            "this projection keeps no column",
            "all columns are left out",
            help="keep at least one column",
        )
        return None
    return project_to(current, chosen, operator)


def project_to(current: Current, chosen: tuple[ScopeColumn, ...], operator: nodes.Node) -> Current:
    """Keeps `chosen` in that order. Ticks stay, hidden where they were not chosen, so that no event is lost."""
    shown = {entry.index for entry in chosen}
    ticks = [entry for entry in current.scope.columns if entry.column.is_tick and entry.index not in shown]
    kept = [*chosen, *ticks]
    columns = tuple(entry.column if entry.index in shown else replace(entry.column, hidden=True) for entry in kept)
    where = {entry.index: position for position, entry in enumerate(kept)}
    schema = moved_schema(current.schema, columns, where)
    drops_key = schema is None
    if schema is None:
        # Without any key left, rows are told apart by their visible values alone: a set.
        kept = list(chosen)
        columns = tuple(entry.column for entry in chosen)
        schema = typed.Schema(columns, tuple(range(len(columns))))
    node = typed.ProjectNode(
        current.node, tuple(entry.index for entry in kept), drops_key, schema=schema, span=operator.span
    )
    scope = Scope(
        [
            ScopeColumn(position, column, entry.bare_name, entry.aliases)
            for position, (entry, column) in enumerate(zip(kept, columns, strict=True))
        ]
    )
    return Current(node, scope)


def check_extend(current: Current, operator: nodes.Extend, context: Context) -> Current | None:
    values: list[typed.Expr] = []
    columns: list[typed.Column] = []
    failed = False
    taken = set(current.scope.names)
    for definition in operator.definitions:
        name = definition.name.text
        failed |= report_taken(definition.name, taken, context, "extend")
        taken.add(name)
        value = check_value(definition.value, current.scope, context.functions, context.diagnostics)
        values.append(value)
        columns.append(typed.Column(name, value.type, value.nullable, value.bounds))
    if failed:
        return None
    return append_columns(
        current,
        tuple(columns),
        lambda schema: typed.ExtendNode(current.node, tuple(values), schema=schema, span=operator.span),
    )


def report_taken(name: nodes.Name, taken: set[str], context: Context, verb: str) -> bool:
    """Reports a new column whose name is taken; True if it was."""
    if name.text not in taken:
        return False
    remedy = "choose another name, or `rename` the other one first"
    if verb == "rename":
        remedy = "choose another name"
    context.diagnostics.report(
        names.DUPLICATE_COLUMN,
        name.span,
        f"there is already a column `{name.text}`",
        "a column of this name exists",
        help=remedy,
    )
    return True


def append_columns(
    current: Current,
    columns: tuple[typed.Column, ...],
    make: Callable[[typed.Schema], typed.RelationTree],
) -> Current:
    """`current` with columns appended; keys and dependencies stay as they are."""
    old = current.schema
    schema = replace(old, columns=(*old.columns, *columns))
    start = len(old.columns)
    added = [ScopeColumn(start + position, column, column.name, ()) for position, column in enumerate(columns)]
    return Current(make(schema), Scope([*current.scope.columns, *added]))


def check_rename(current: Current, operator: nodes.Rename, context: Context) -> Current | None:
    chosen = columns_at(current, [old for old, _ in operator.pairs], context)
    if chosen is None:
        return None
    new_names = {entry.index: new for entry, (_, new) in zip(chosen, operator.pairs, strict=True)}
    taken = {
        entry.column.name for entry in current.scope.columns if entry.index not in new_names and not entry.column.hidden
    }
    failed = False
    for new in new_names.values():
        failed |= report_taken(new, taken, context, "rename")
        taken.add(new.text)
    if failed:
        return None
    entries = [
        ScopeColumn(
            entry.index,
            replace(entry.column, name=new_names[entry.index].text),
            new_names[entry.index].text,
            entry.aliases,
        )
        if entry.index in new_names
        else entry
        for entry in current.scope.columns
    ]
    schema = replace(current.schema, columns=tuple(entry.column for entry in entries))
    return Current(typed.RenameNode(current.node, schema=schema, span=operator.span), Scope(entries))


def check_window(current: Current, operator: nodes.Window, context: Context) -> Current | None:
    time = column_at(current, operator.column, context)
    per = columns_at(current, operator.per, context)
    failed = time is None or per is None
    if time is not None and not isinstance(time.column.type, TimeType | ErrorType):
        failed = True
        context.diagnostics.report(
            relations.WINDOW_NEEDS_TIME,
            operator.column.span,
            f"a window needs a time column, but `{operator.column.text}` is {time.column.type}",
            f"this is {time.column.type}",
            help=_suggest_time(current),
        )
    elif time is not None and time.column.nullable:
        failed = True
        context.diagnostics.report(
            relations.WINDOW_NEEDS_TIME,
            operator.column.span,
            f"`{operator.column.text}` may be null, so some rows would be in no window",
            "may be null",
            help="say what counts instead: `extend t := coalesce(..., ...)`, and take the window over that",
        )
    failed |= _report_bad_durations(operator, context)
    taken = set(current.scope.names)
    names_added = (nodes.Name(name, span=operator.span) for name in ("wstart", "wend"))
    failed |= any(report_taken(name, taken, context, "window") for name in names_added)
    if failed or time is None or per is None:
        return None
    return _windowed(current, operator, time, per)


def _windowed(current: Current, operator: nodes.Window, time: ScopeColumn, per: tuple[ScopeColumn, ...]) -> Current:
    columns = (typed.Column("wstart", TimeType()), typed.Column("wend", TimeType()))
    start = len(current.schema.columns)
    determined = list(current.schema.determined)
    key = current.schema.key
    unique = current.schema.unique
    if operator.shape != "session":
        determined.append(((start,), start + 1))
    if operator.shape == "tumble":
        determined.append(((time.index,), start))
    if operator.shape == "hop":
        # One copy of the row per window: nothing identifies it without the window.
        key = (*key, start)
        unique = tuple((*positions, start) for positions in unique)
    size = operator.size.microseconds
    every = operator.every.microseconds if operator.every else size

    def make(schema: typed.Schema) -> typed.WindowNode:
        return typed.WindowNode(
            current.node,
            operator.shape,
            time.index,
            size,
            every,
            tuple(entry.index for entry in per),
            schema=replace(schema, key=key, unique=unique, determined=tuple(determined)),
            span=operator.span,
        )

    return append_columns(current, columns, make)


def _suggest_time(current: Current) -> str:
    times = [
        entry.column.name
        for entry in current.scope.columns
        if isinstance(entry.column.type, TimeType) and not entry.column.hidden
    ]
    if times:
        return f"use `{times[0]}`"
    return "give the stream a `time` column and declare it with `event time`"


def _report_bad_durations(operator: nodes.Window, context: Context) -> bool:
    size = operator.size.microseconds
    if size <= 0:
        context.diagnostics.report(
            relations.BAD_WINDOW, operator.size.span, "a window must last longer than nothing", "must be above 0"
        )
        return True
    if operator.every is None:
        return False
    every = operator.every.microseconds
    if every <= 0:
        context.diagnostics.report(
            relations.BAD_WINDOW, operator.every.span, "windows must begin at intervals above 0", "must be above 0"
        )
        return True
    if every > size:
        context.diagnostics.report(
            relations.BAD_WINDOW,
            operator.every.span,
            "windows that begin further apart than they last would lose the rows in between",
            "longer than the window",
            note=Note("the window lasts this long", operator.size.span),
            help="make `every` at most as long as the window",
        )
        return True
    if size // every > WINDOW_COPIES_MAX:
        context.diagnostics.report(
            relations.BAD_WINDOW,
            operator.span,
            f"each row would fall into {size // every:,} windows, and {WINDOW_COPIES_MAX:,} is the limit",
            "too many windows overlap",
            help="make `every` longer or the window shorter",
        )
        return True
    return False
