"""Operators that make one row of many: aggregate, top, latest, first, distinct."""

from __future__ import annotations

from dataclasses import replace

from mpl import typed
from mpl.knowledge.aggregates import aggregate_column
from mpl.knowledge.closing import Closing, moved, within
from mpl.knowledge.expressions import infer
from mpl.knowledge.fact import first_cause, movers_of, quoted
from mpl.knowledge.kind import Cause, ColumnKnowledge, Nulls, dominated, falling, final, part_of_key, rising, versioned
from mpl.knowledge.knowledge import Knowledge, Session, Visibility, relation_knowledge
from mpl.knowledge.path import Path, both
from mpl.knowledge.rows import kept_columns
from mpl.knowledge.state import NO_STATE, Growth, StateBound, bound_per_value, domain_size, together
from mpl.relations.keys import closure, identifies


def aggregate_knowledge(node: typed.AggregateNode, source: Knowledge) -> Knowledge:
    session = _session_grouped(node, source)
    unstable = [position for position in node.group if not source.columns[position].is_stable]
    rows = source.path
    path = rows if node.group else Path.FIXED
    cause = source.visibility.cause
    if unstable and session is None:
        names = [node.input.schema.columns[position].name for position in unstable]
        cause = source.columns[unstable[0]].cause or Cause(
            node.span,
            f"rows change their group while {quoted(names)} changes",
            "group by columns that are fixed",
        )
        rows = Path.VERSIONED
        path = Path.VERSIONED
    elif node.group and path is Path.PULSE:
        # Groups empty and fill again as their rows come and go.
        path = Path.VERSIONED
        cause = cause or Cause(
            node.span,
            "a group may lose all of its rows and get others later",
            "aggregate before the operator that makes rows vanish",
        )
    elif session is not None:
        path = both((path, Path.PULSE))
    grouped = replace(source, visibility=Visibility(rows, source.visibility.reason, cause))
    columns = [part_of_key(source.columns[position]) for position in node.group]
    for position, item in enumerate(node.items):
        declared = node.schema.columns[len(node.group) + position]
        columns.append(aggregate_column(item, declared, grouped, rows))
    where = {old: new for new, old in enumerate(node.group)}
    return relation_knowledge(
        node.schema,
        (source,),
        columns=tuple(columns),
        visibility=Visibility(path, _group_reason(node, session), cause if path is Path.VERSIONED else None),
        closings=moved(within(source.closings, node.group), where),
        state=_aggregate_state(node, source, moved(source.closings, where)),
    )


def _group_reason(node: typed.AggregateNode, session: Session | None) -> str:
    if session is not None:
        return "a session is shown until a longer one absorbs it"
    return "a group is shown from its first row on" if node.group else "there is always exactly one row"


def _session_grouped(node: typed.AggregateNode, source: Knowledge) -> Session | None:
    """The sessions, if groups are whole sessions (or parts of them): then rows never leave a group that remains."""
    session = source.session
    group = frozenset(node.group)
    if session is None or not session.per <= group or not session.ends & group:
        return None
    others = group - session.ends
    return session if source.path.stays and all(source.columns[c].is_stable for c in others) else None


def _aggregate_state(node: typed.AggregateNode, source: Knowledge, closings: tuple[Closing, ...]) -> StateBound:
    if not source.streams:
        return NO_STATE
    bounds = [bound_per_value(node.schema, node.schema.key, closings, source.retained, each="one row", on_sight=True)]
    if source.path is Path.PULSE or source.path is Path.VERSIONED:
        bounds.append(replace(source.extent, words=f"the rows of its input: {source.extent.words}"))
    for item in node.items:
        if item.distinct and item.argument is not None:
            bounds.append(_distinct_values(item, bounds[0]))
    return together(bounds)


def _distinct_values(item: typed.AggregateItem, groups: StateBound) -> StateBound:
    assert item.argument is not None
    name = item.argument.name if isinstance(item.argument, typed.ColumnRef) else "value"
    size = domain_size(typed.Column(name, item.argument.type, item.argument.nullable, item.argument.bounds))
    if size is not None and groups.rows_max is not None:
        return StateBound(Growth.BOUNDED, f"the set of `{name}` seen", groups.rows_max * size)
    if groups.growth is Growth.BOUNDED and groups.rows_max is None:
        return StateBound(Growth.BOUNDED, f"with each, the set of `{name}` seen")
    return StateBound(Growth.UNBOUNDED, f"the set of `{name}` seen", grows_with=(*groups.grows_with, name))


def top_knowledge(node: typed.TopNode, source: Knowledge) -> Knowledge:
    facts = tuple(infer(key.value, source.columns) for key in node.ordering)
    steady_groups = all(source.columns[position].is_stable for position in node.per)
    steady = source.path.stays and steady_groups and all(fact.is_stable for fact in facts)
    cause = source.visibility.cause
    path = source.path
    if not steady:
        path = Path.VERSIONED
        cause = (
            cause
            or first_cause(facts)
            or Cause(
                node.span,
                f"which rows are on top can change back and forth while {quoted(movers_of(facts)) or 'rows'} changes",
                "order by columns that are fixed, or subscribe with `emit final` if groups close",
            )
        )
    elif path is not Path.FIXED:
        path = both((path, Path.PULSE))
    columns = source.columns
    if node.rank:
        columns = (*columns, _rank_column(source, cause if not steady else None))
    per = within(source.closings, closure(node.per, node.input.schema.determined))
    return relation_knowledge(
        node.schema,
        (source,),
        columns=columns,
        visibility=Visibility(path, _top_reason(node, steady=steady), cause),
        closings=per,
        state=_top_state(node, source, steady=steady),
        versioned=path is not Path.FIXED,
    )


def _top_reason(node: typed.TopNode, *, steady: bool) -> str:
    better = "no better row is" if node.count == 1 else f"fewer than {node.count:,} better rows are"
    return f"shown while {better} in its group" + (", and better rows only come" if steady else "")


def _rank_column(source: Knowledge, cause: Cause | None) -> ColumnKnowledge:
    if cause is not None:
        return versioned(cause)
    if source.path is Path.FIXED:
        return final("the place among rows that never change")
    return rising("better rows only push it down the list")


def _top_state(node: typed.TopNode, source: Knowledge, *, steady: bool) -> StateBound:
    if not source.streams:
        return NO_STATE
    if not steady:
        # A row matters as long as its group is open, even when it is final itself.
        open_groups = within(source.closings, closure(node.per, node.input.schema.determined))
        schema = node.input.schema
        return bound_per_value(schema, schema.key, open_groups, source.retained, each="every row: one", on_sight=True)
    each = "the best row" if node.count == 1 else f"the best {node.count:,} rows"
    if node.ties:
        each += " and ties"
    return bound_per_value(node.input.schema, node.per, source.closings, source.retained, each=each, on_sight=True)


def latest_knowledge(node: typed.LatestNode, source: Knowledge) -> Knowledge:
    schema = node.input.schema
    by = source.columns[node.by] if node.by is not None else None
    decided = closure(node.per, schema.determined)
    cause = source.visibility.cause
    steady = source.path.stays and all(source.columns[position].is_stable for position in node.per)
    steady = steady and (by is None or by.is_stable)
    if not steady:
        cause = (
            cause
            or (by.cause if by else None)
            or Cause(
                node.span,
                f"the {node.which} row may change back and forth while its columns change or rows vanish",
                f"take the {node.which} of events",
            )
        )
    columns: list[ColumnKnowledge] = []
    for position, column in enumerate(source.columns):
        if position in node.per:
            columns.append(part_of_key(column))
        elif not steady:
            columns.append(versioned(cause) if cause else column)
        elif identifies(schema, node.per) or source.path is Path.FIXED or position in decided:
            columns.append(column)
        else:
            columns.append(_taken_column(node, position, column))
    closings = list(within(source.closings, decided))
    if node.which == "first" and steady and _order_is_certain(node, source):
        closings.append(Closing(frozenset(node.per), "no earlier event can arrive any more", on_sight=True))
    return relation_knowledge(
        node.schema,
        (source,),
        columns=tuple(columns),
        visibility=Visibility(
            source.path if steady else Path.VERSIONED,
            "a group is shown from its first row on",
            None if steady else cause,
        ),
        closings=closings,
        state=bound_per_value(schema, node.per, source.closings, source.retained, on_sight=True)
        if source.streams
        else NO_STATE,
    )


def _taken_column(node: typed.LatestNode, position: int, column: ColumnKnowledge) -> ColumnKnowledge:
    """A column of whichever row is the latest (or first) so far."""
    declared = node.schema.columns[position]
    if not column.is_stable:
        return versioned(
            column.cause
            or Cause(node.span, f"`{declared.name}` changes within a row, and rows replace each other", None)
        )
    orders = position == node.by or (node.by is None and declared.is_tick)
    if orders and not declared.nullable:
        if node.which == "latest":
            return rising("later rows replace earlier ones")
        return falling("earlier rows replace later ones")
    # The row that takes over may have null here.
    nulls = Nulls.NEVER if column.nulls is Nulls.NEVER else Nulls.MIXED
    return dominated(node.which, f"the value of the {node.which} row so far", nulls)


def _order_is_certain(node: typed.LatestNode, source: Knowledge) -> bool:
    """Can it be known that nothing earlier will come: by the horizon of ticks, or by event time?"""
    if node.by is None:
        return True
    return any(closing.is_time and closing.columns == frozenset((node.by,)) for closing in source.closings)


def distinct_knowledge(node: typed.DistinctNode, source: Knowledge) -> Knowledge:
    return kept_columns(node, node.kept, node.input.schema, source)
