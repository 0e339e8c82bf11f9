"""Operators that look at one row at a time: where, project, extend, rename, window."""

from __future__ import annotations

from collections.abc import Sequence

from mpl import typed
from mpl.knowledge.closing import Closing, moved, passing
from mpl.knowledge.expressions import infer, rising_column
from mpl.knowledge.fact import quoted, source_text
from mpl.knowledge.kind import Cause, ColumnKnowledge, Nulls, directed, falling, final, part_of_key, rising, versioned
from mpl.knowledge.knowledge import Knowledge, Session, Visibility, relation_knowledge
from mpl.knowledge.path import Path, both, exists
from mpl.knowledge.state import COPY_WORDS, NO_STATE, Growth, StateBound, bound_per_value

_MOVES = {
    Path.FIXED: "is decided with the row",
    Path.RISING: "is false at first and, once true, stays true",
    Path.FALLING: "is true at first and, once false, stays false",
    Path.PULSE: "is false at first, then true, and once false again stays false",
    Path.VERSIONED: "may become true and false again",
}


def copied_state(source: Knowledge) -> StateBound:
    """An operator holds computed rows as it received them, as long as they may change."""
    if source.is_final_at_once or not source.streams:
        return NO_STATE
    words = f"{COPY_WORDS}: {source.extent.words}"
    return StateBound(source.extent.growth, words, source.extent.rows_max, source.extent.grows_with)


def where_knowledge(node: typed.WhereNode, source: Knowledge) -> Knowledge:
    fact = infer(node.predicate, source.columns)
    path = both((source.path, fact.when_true))
    text = source_text(node.predicate)
    cause = source.visibility.cause
    if path is Path.VERSIONED and cause is None:
        inner = fact.column.cause
        cause = Cause(
            node.predicate.span,
            f"`{text}` may become true and false again while {quoted(fact.movers) or 'a row'} changes",
            (inner.help if inner else None) or "compare a column that only rises or only falls with one that is fixed",
        )
    reason = source.visibility.reason
    if fact.when_true is not Path.FIXED:
        reason = f"`{text}` {_MOVES[fact.when_true]}"
    return relation_knowledge(
        node.schema,
        (source,),
        columns=source.columns,
        visibility=Visibility(path, reason, cause),
        closings=source.closings,
        state=copied_state(source),
        is_event=source.is_event,
        session=source.session,
        condition=fact.when_true,
    )


def extend_knowledge(node: typed.ExtendNode, source: Knowledge) -> Knowledge:
    facts = [infer(value, source.columns) for value in node.values]
    closings = list(source.closings)
    start = len(source.columns)
    for position, value in enumerate(node.values):
        clock = _clock_of(value, source.closings)
        if clock is not None:
            closings.append(passing(clock, start + position, node.schema.columns[start + position].name))
    return relation_knowledge(
        node.schema,
        (source,),
        columns=(*source.columns, *(fact.column for fact in facts)),
        visibility=source.visibility,
        closings=closings,
        state=copied_state(source),
        is_event=source.is_event,
        session=source.session,
    )


def _clock_of(expr: typed.Expr, closings: Sequence[Closing]) -> str | None:
    """What passes the values of `expr` in order, if it rises with one time column and depends on nothing else.

    After event time has passed t, every later row has `expr` at or above its value at t.
    """
    position = rising_column(expr)
    if position is None:
        return None
    return next((c.clock for c in closings if c.is_time and c.columns == frozenset((position,))), None)


def rename_knowledge(node: typed.RenameNode, source: Knowledge) -> Knowledge:
    return relation_knowledge(
        node.schema,
        (source,),
        columns=source.columns,
        visibility=source.visibility,
        closings=source.closings,
        state=copied_state(source),
        is_event=source.is_event,
        session=source.session,
    )


def project_knowledge(node: typed.ProjectNode, source: Knowledge) -> Knowledge:
    return kept_columns(node, node.kept, node.input.schema, source)


def keeps_identity(schema: typed.Schema, key: Sequence[int], source: Knowledge) -> bool:
    """Does a new key (positions in `schema`, that of the input) always mean the same row of the input?

    Another unique column set does only if rows never make room for others and its columns never change.
    """
    if set(schema.key) <= set(key):
        return True
    return source.path.stays and all(source.columns[position].is_stable for position in key)


def kept_columns(
    node: typed.ProjectNode | typed.DistinctNode, kept: Sequence[int], schema: typed.Schema, source: Knowledge
) -> Knowledge:
    """Some of the columns, one row for each row (identity kept) or one for each combination of values (a set)."""
    where = {old: new for new, old in enumerate(kept)}
    key = [kept[position] for position in node.schema.key]
    if isinstance(node, typed.DistinctNode):
        is_set = not set(schema.key) <= set(key)
        one_to_one = not is_set
    else:
        is_set = node.drops_key
        one_to_one = not is_set and keeps_identity(schema, key, source)
    session = _moved_session(source.session, where)
    if one_to_one:
        return relation_knowledge(
            node.schema,
            (source,),
            columns=tuple(source.columns[position] for position in kept),
            visibility=source.visibility,
            closings=moved(source.closings, where),
            state=copied_state(source),
            is_event=source.is_event,
            session=session,
        )
    return _regrouped(node, kept, source, moved(source.closings, where), is_set=is_set)


def _regrouped(
    node: typed.ProjectNode | typed.DistinctNode,
    kept: Sequence[int],
    source: Knowledge,
    closings: Sequence[Closing],
    *,
    is_set: bool,
) -> Knowledge:
    """Rows that stand for several of the input, at once (a set) or one after the other (another unique key)."""
    stable = all(source.columns[position].is_stable for position in kept)
    path = exists(source.path, at_most_one=False) if stable else Path.VERSIONED
    cause = source.visibility.cause
    if path is Path.VERSIONED and cause is None:
        cause = Cause(
            node.span,
            "a row here vanishes when the last row that it stands for changes or vanishes",
            "keep the key columns, so that every row stays itself",
        )
    key = set(node.schema.key)
    replaced = cause or Cause(node.span, "replaced when another row takes this key", "keep the key columns")
    columns = tuple(
        part_of_key(source.columns[kept[new]]) if new in key or (is_set and stable) else versioned(replaced)
        for new in range(len(kept))
    )
    state = bound_per_value(node.schema, node.schema.key, closings, source.retained, on_sight=True)
    return relation_knowledge(
        node.schema,
        (source,),
        columns=columns,
        visibility=Visibility(path, "shown while some row has these values", cause),
        closings=closings,
        state=state if source.streams else NO_STATE,
    )


def _moved_session(session: Session | None, where: dict[int, int]) -> Session | None:
    if session is None or not session.per <= set(where):
        return None
    ends = frozenset(where[column] for column in session.ends if column in where)
    return Session(frozenset(where[column] for column in session.per), ends) if ends else None


def window_knowledge(node: typed.WindowNode, source: Knowledge) -> Knowledge:
    start = len(source.columns)
    if node.shape == "session":
        return _session_knowledge(node, source)
    time = source.columns[node.time]
    path = source.path
    cause = source.visibility.cause
    column: ColumnKnowledge
    if time.is_stable:
        column = final(f"the window that holds `{node.input.schema.columns[node.time].name}`")
    elif time.motion.has_direction and time.nulls is Nulls.NEVER:
        column = directed(time.motion, "the window moves with its time column")
        if node.shape == "hop":
            # One row per window, told apart by it: a row leaves its window for good when its time moves on.
            column = final("part of the key")
            path = both((path, Path.PULSE))
    else:
        cause = cause or time.cause or Cause(node.span, "rows change their window", "use a time that is fixed")
        column = final("part of the key") if node.shape == "hop" else versioned(cause)
        path = Path.VERSIONED if node.shape == "hop" else path
    clock = next((c.clock for c in source.closings if c.is_time and c.columns == frozenset((node.time,))), None)
    closings = list(source.closings)
    if clock is not None:
        closings += [passing(clock, start, "wstart"), passing(clock, start + 1, "wend")]
        # A window is complete only when event time has passed its end, also for those who look at its start.
        closings[-2] = Closing(frozenset((start,)), f"{clock} has passed `wend`", clock=clock)
    return relation_knowledge(
        node.schema,
        (source,),
        columns=(*source.columns, column, column),
        visibility=Visibility(path, source.visibility.reason, cause if path is Path.VERSIONED else None),
        closings=closings,
        state=copied_state(source),
        is_event=source.is_event and node.shape == "tumble",
    )


def _session_knowledge(node: typed.WindowNode, source: Knowledge) -> Knowledge:
    """More events only extend and merge sessions: the start falls, the end rises, an absorbed session never returns."""
    start = len(source.columns)
    per = frozenset(node.per)
    steady = source.path.stays and all(source.columns[position].is_stable for position in (node.time, *node.per))
    closings = [closing for closing in source.closings if not closing.columns]
    clock = next((c.clock for c in source.closings if c.is_time and c.columns == frozenset((node.time,))), None)
    if steady:
        first: ColumnKnowledge = falling("sessions only grow and merge, so the start only moves back")
        last: ColumnKnowledge = rising("sessions only grow and merge, so the end only moves on")
        if clock is not None:
            closings.append(passing(clock, start + 1, "wend"))
    else:
        cause = source.visibility.cause or Cause(
            node.span, "sessions of rows that change or vanish can fall apart again", "take sessions of events"
        )
        first = last = versioned(cause)
    state = bound_per_value(
        node.schema, (*node.per, start), closings, source.retained, each="one open session", on_sight=True
    )
    if steady and clock is not None:
        names = [node.schema.columns[position].name for position in node.per]
        each = f"one open session per `{'`, `'.join(names)}`" if names else "one open session"
        state = StateBound(Growth.BOUNDED, f"{each} and its events, dropped once {clock} has passed its end")
    return relation_knowledge(
        node.schema,
        (source,),
        columns=(*source.columns, first, last),
        visibility=source.visibility,
        closings=closings,
        state=state if source.streams else NO_STATE,
        session=Session(per, frozenset((start, start + 1))) if steady else None,
    )
