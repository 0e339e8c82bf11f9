"""Operators with a second input whose rows are paired with the left's: join, asof join, matching."""

from __future__ import annotations

from dataclasses import replace

from mpl import nodes, typed
from mpl.codes import names, relations
from mpl.diagnostic import Note
from mpl.expressions import NOT_CONSTANT, assign, check_expression, constant_value, unify
from mpl.relations.conditions import Condition, Sides, check_condition
from mpl.relations.context import Context, Current
from mpl.relations.keys import Determined, Positions, identifies, minimal, move_all, move_determined
from mpl.relations.rows import report_taken
from mpl.scope import Scope, ScopeColumn
from mpl.types import Bounds, ErrorType, TimeType, Value


def name_sides(
    left: Current, right: Current, source: nodes.SourceRef, condition: nodes.JoinCondition, context: Context
) -> Sides | None:
    """Names for the right's columns: their own, or `alias.name` where the left has one of that name already.

    A column named in `using` appears once, so it keeps its name.
    """
    shared = {name.text for name in condition.columns} if isinstance(condition, nodes.Using) else set()
    alias = _alias_of(source)
    if alias is not None and alias in left.scope.aliases:
        context.diagnostics.report(
            names.ALIAS_TWICE,
            source.span,
            f"two relations are called `{alias}` in this pipeline",
            "the second one",
            help="give one of them another name with `as`",
        )
        return None
    taken = set(left.scope.names)
    entries: list[ScopeColumn] = []
    for entry in right.scope.columns:
        column = entry.column
        if not column.hidden and column.name in taken and column.name not in shared:
            if alias is None:
                context.diagnostics.report(
                    relations.SAME_NAME_BOTH_SIDES,
                    source.span,
                    f"both sides have a column `{column.name}`",
                    "this side has no name to tell them apart",
                    help="name it: `( ... ) as <name>`",
                )
                return None
            is_dotted = column.name != entry.bare_name
            column = replace(column, name=f"{alias}.{entry.bare_name}")
            # `B.ts` read as V would become `V.ts`, which must not mean the column `ts` of V as well.
            if column.name in taken or (is_dotted and right.scope.find(None, entry.bare_name) is not None):
                context.diagnostics.report(
                    relations.SAME_NAME_BOTH_SIDES,
                    source.span,
                    f"`{column.name}` would mean two columns",
                    "brings the second one",
                    help="`rename` or `project` one of them before the join",
                )
                return None
        if not column.hidden:
            taken.add(column.name)
        entries.append(ScopeColumn(entry.index, column, entry.bare_name, (alias,) if alias else ()))
    return Sides(left, right, tuple(entries))


def _alias_of(source: nodes.SourceRef) -> str | None:
    if source.alias is not None:
        return source.alias.text
    return source.relation.text if isinstance(source.relation, nodes.Name) else None


def check_join(left: Current, right: Current, operator: nodes.Join, context: Context) -> Current | None:
    if operator.side == "inner" and operator.defaults:
        context.diagnostics.report(
            relations.DEFAULT_MISPLACED,
            operator.defaults[0].span,
            "an inner join has no row without a partner, so it takes no default",
            "would never be used",
            help="write `left join` to keep rows without a partner",
        )
        return None
    sides = name_sides(left, right, operator.source, operator.condition, context)
    condition = check_condition(sides, operator.condition, "join", context) if sides else None
    if sides is None or condition is None:
        return None
    kept = [entry for entry in sides.right_entries if entry.index not in condition.using]
    defaults = _check_defaults(sides, kept, operator, context)
    if defaults is None:
        return None
    left_columns = left.schema.columns
    left_defaults: tuple[typed.Const, ...] = ()
    if operator.side == "full":
        shared = {one: other for one, other in condition.equal if other in condition.using}
        left_defaults = tuple(
            _default_for(entry, defaults, operator, keep=entry.index in shared) for entry in left.scope.columns
        )
        left_columns = tuple(
            _either_side(column, right.schema.columns[shared[position]])
            if position in shared
            else _with_default(column, default)
            for position, (column, default) in enumerate(zip(left_columns, left_defaults, strict=True))
        )
    right_defaults: tuple[typed.Const, ...] = ()
    right_columns = tuple(entry.column for entry in kept)
    if operator.side != "inner":
        right_defaults = tuple(_default_for(entry, defaults, operator, keep=False) for entry in kept)
        right_columns = tuple(map(_with_default, right_columns, right_defaults))
    return _joined(sides, condition, operator, kept, (*left_columns, *right_columns), right_defaults, left_defaults)


def _joined(
    sides: Sides,
    condition: Condition,
    operator: nodes.Join,
    kept: list[ScopeColumn],
    columns: tuple[typed.Column, ...],
    right_defaults: tuple[typed.Const, ...],
    left_defaults: tuple[typed.Const, ...],
) -> Current:
    border = len(sides.left.schema.columns)
    where = {entry.index: border + position for position, entry in enumerate(kept)}
    where |= {other: one for one, other in condition.equal if other in condition.using}
    filled = {
        position for position, default in enumerate((*left_defaults, *right_defaults)) if default.value is not None
    }
    key, unique, determined = _join_keys(sides, condition, operator.side, where, filled)
    node = typed.JoinNode(
        sides.left.node,
        sides.right.node,
        operator.side,
        condition.equal,
        condition.rest_predicate,
        tuple(entry.index for entry in kept),
        right_defaults,
        left_defaults,
        schema=typed.Schema(columns, key, unique, determined),
        span=operator.span,
    )
    return Current(node, _joined_scope(sides, condition, kept, columns))


def _joined_scope(
    sides: Sides, condition: Condition, kept: list[ScopeColumn], columns: tuple[typed.Column, ...]
) -> Scope:
    border = len(sides.left.schema.columns)
    by_left = {left: right for left, right in condition.equal if right in condition.using}
    right_aliases = {entry.index: entry.aliases for entry in sides.right_entries}
    entries = [
        ScopeColumn(
            entry.index,
            columns[entry.index],
            entry.bare_name,
            (*entry.aliases, *right_aliases[by_left[entry.index]]) if entry.index in by_left else entry.aliases,
        )
        for entry in sides.left.scope.columns
    ]
    entries += [
        ScopeColumn(border + position, columns[border + position], entry.bare_name, entry.aliases)
        for position, entry in enumerate(kept)
    ]
    return Scope(entries)


def _join_keys(
    sides: Sides, condition: Condition, side: str, where: dict[int, int], filled: set[int]
) -> tuple[Positions, tuple[Positions, ...], Determined]:
    """The key of the pairs. `filled`: columns of a full join with a default, in rows that have nothing else for them.

    A side whose key is among the columns compared has at most one partner to offer, so the other side's key identifies
    the pair. Rows without a partner have nothing from the other side, so an outer join may rely only on the side that
    it keeps; a full join only on both.
    """
    left, right = sides.left.schema, sides.right.schema
    one_right = identifies(right, [other for _, other in condition.equal])
    one_left = identifies(left, [one for one, _ in condition.equal])
    right_sets = move_all((right.key, *right.unique), where)
    # Filled-in values obey no dependency: those of a side that may be filled in are forgotten.
    determined: Determined = left.determined if side != "full" else ()
    if side == "inner":
        determined = (*left.determined, *move_determined(right.determined, where))
    left_sets = (left.key, *left.unique)
    surviving: tuple[Positions, ...] = ()
    if one_right and side != "full":
        surviving += left_sets
    if one_left and side == "inner":
        surviving += right_sets
    if surviving:
        ordered = tuple(dict.fromkeys(surviving))
        return ordered[0], ordered[1:], determined
    if side == "full":
        return _full_join_key(sides, condition, where, one_left and one_right, filled), (), ()
    equalities: Determined = ()
    if side == "inner":
        equalities = tuple(((one,), where[other]) for one, other in condition.equal if where[other] != one)
    right_key = right_sets[0] if right_sets else ()
    # A `using` column of the right's key is the left's own, so the left's key decides it.
    border = len(left.columns)
    equalities += tuple((left.key, position) for position in right_key if position < border)
    return minimal((*left.key, *right_key), (*determined, *equalities)), (), determined


def _full_join_key(
    sides: Sides, condition: Condition, where: dict[int, int], one_to_one: bool, filled: set[int]
) -> Positions:
    """Rows of a full join come from either side alone or from both, and null equals nothing, not even null.

    Two rows, one from each side alone, may have the same key if the defaults of each side are values of the other's.
    """
    left, right = sides.left.schema, sides.right.schema
    shared = [one for one, other in condition.equal if other in condition.using]
    nullable = [left.columns[one].nullable or right.columns[other].nullable for one, other in condition.equal]
    if one_to_one and shared and not condition.rest and not any(nullable):
        return tuple(sorted(shared))
    key_columns = [*(left.columns[i] for i in left.key), *(right.columns[i] for i in right.key)]
    key = {*left.key, *(where[position] for position in right.key)}
    if left.key and right.key and not any(column.nullable for column in key_columns) and not key - {*shared} <= filled:
        return tuple(sorted(key))
    return tuple(range(len(left.columns) + len(right.columns) - len(condition.using)))


def _check_defaults(
    sides: Sides, kept: list[ScopeColumn], operator: nodes.Join, context: Context
) -> dict[str, typed.Const] | None:
    """Default per column name; None after reporting those that do not fit."""
    fillable = {entry.column.name: entry.column for entry in kept if not entry.column.hidden}
    if operator.side == "full":
        for entry in sides.left.scope.columns:
            if not entry.column.hidden:
                fillable.setdefault(entry.column.name, entry.column)
    defaults: dict[str, typed.Const] = {}
    failed = False
    for definition in operator.defaults:
        name = definition.name.text
        if name not in fillable:
            failed = True
            context.diagnostics.report(
                relations.DEFAULT_MISPLACED,
                definition.name.span,
                f"`{name}` is not a column that this join could leave empty",
                "no such column on the joined side",
                help=f"columns that take a default: {', '.join(f'`{known}`' for known in fillable)}",
            )
            continue
        failed |= report_taken(definition.name, set(defaults), context, "rename")
        constant = _constant_default(definition, fillable[name], context)
        if constant is None:
            failed = True
        else:
            defaults[name] = constant
    return None if failed else defaults


def _constant_default(definition: nodes.Definition, column: typed.Column, context: Context) -> typed.Const | None:
    value = check_expression(definition.value, Scope([]), context.functions, context.diagnostics)
    if isinstance(value.type, ErrorType):
        return None
    converted = assign(value, column.type, f"column `{definition.name.text}`", context.diagnostics)
    if isinstance(converted.type, ErrorType):
        return None
    # The scope is empty, so whatever is not an error is a constant.
    constant = constant_value(converted)
    assert constant is not NOT_CONSTANT
    return typed.Const(constant, type=column.type, nullable=constant is None, span=definition.value.span)


def _default_for(
    entry: ScopeColumn, defaults: dict[str, typed.Const], operator: nodes.Join, *, keep: bool
) -> typed.Const:
    given = defaults.get(entry.column.name)
    if given is not None and not keep:
        return given
    return typed.Const(None, type=entry.column.type, nullable=True, span=operator.span)


def _either_side(left: typed.Column, right: typed.Column) -> typed.Column:
    """A column that a full join takes from whichever side has the row."""
    low = None if left.bounds.low is None or right.bounds.low is None else min(left.bounds.low, right.bounds.low)
    high = None if left.bounds.high is None or right.bounds.high is None else max(left.bounds.high, right.bounds.high)
    return replace(
        left,
        type=unify(left.type, right.type) or left.type,
        nullable=left.nullable or right.nullable,
        bounds=Bounds(low, high),
    )


def _with_default(column: typed.Column, default: typed.Const) -> typed.Column:
    """A column that may be filled from `default` where a row has no partner."""
    nullable = column.nullable or default.value is None
    bounds = column.bounds
    value: Value = default.value
    if isinstance(value, int | float) and not isinstance(value, bool):
        low = None if bounds.low is None else min(bounds.low, value)
        high = None if bounds.high is None else max(bounds.high, value)
        bounds = replace(bounds, low=low, high=high)
    return replace(column, nullable=nullable, bounds=bounds)


def check_matching(left: Current, right: Current, operator: nodes.Matching, context: Context) -> Current | None:
    sides = name_sides(left, right, operator.source, operator.condition, context)
    verb = "not matching" if operator.negated else "matching"
    condition = check_condition(sides, operator.condition, verb, context) if sides else None
    if condition is None:
        return None
    node = typed.MatchingNode(
        left.node,
        right.node,
        operator.negated,
        condition.equal,
        condition.rest_predicate,
        schema=left.schema,
        span=operator.span,
    )
    return Current(node, left.scope)


def check_asof(left: Current, right: Current, operator: nodes.AsofJoin, context: Context) -> Current | None:
    sides = name_sides(left, right, operator.source, operator.condition, context)
    condition = check_condition(sides, operator.condition, "asof join", context) if sides else None
    if sides is None or condition is None:
        return None
    times = _asof_times(sides, condition, operator, context)
    if times is None:
        return None
    kept = [entry for entry in sides.right_entries if entry.index not in condition.using and not entry.column.hidden]
    right_columns = [
        replace(entry.column, nullable=entry.column.nullable or operator.left, is_event_time=False) for entry in kept
    ]
    columns = (*left.schema.columns, *right_columns)
    node = typed.AsofNode(
        left.node,
        right.node,
        operator.left,
        condition.equal,
        times[0],
        times[1],
        tuple(entry.index for entry in kept),
        schema=replace(left.schema, columns=columns),
        span=operator.span,
    )
    return Current(node, _joined_scope(sides, condition, kept, columns))


def _asof_times(
    sides: Sides, condition: Condition, operator: nodes.AsofJoin, context: Context
) -> tuple[int, int] | None:
    """The time columns compared: those of `right <= left` in the condition, or else both sides' event times."""
    border = len(sides.left.schema.columns)
    match condition.rest:
        case (
            typed.Apply(function="less_equal", arguments=(typed.ColumnRef() as early, typed.ColumnRef() as late)),
        ) | (typed.Apply(function="greater_equal", arguments=(typed.ColumnRef() as late, typed.ColumnRef() as early)),):
            if isinstance(early.type, TimeType) and late.index < border <= early.index:
                return late.index, early.index - border
        case _:
            pass
    if not condition.rest:
        left_times = [i for i, column in enumerate(sides.left.schema.columns) if column.is_event_time]
        right_times = [i for i, column in enumerate(sides.right.schema.columns) if column.is_event_time]
        if len(left_times) == 1 and len(right_times) == 1:
            return left_times[0], right_times[0]
    context.diagnostics.report(
        relations.ASOF_NEEDS_TIMES,
        operator.condition.span,
        "this asof join does not say which times to compare",
        "besides equalities it takes exactly one `right time <= left time`",
        note=Note("without it, both sides must have exactly one `event time` column"),
        help="write `on <key> = R.<key> and R.<time> <= <time>`",
    )
    return None
