"""A pipeline, operator by operator: `from X |> ... |> ...` to a typed tree."""

from __future__ import annotations

from typing import assert_never

from mpl import nodes
from mpl.codes import names, relations
from mpl.codes.syntax import TOO_MANY
from mpl.diagnostic import did_you_mean
from mpl.relations import groups, joins, rows, sets
from mpl.relations.context import CELLS_MAX, Context, Current
from mpl.scope import Scope
from mpl.types import ErrorType

PIPELINE_OPERATORS_MAX = 200
"""Longer pipelines are refused: they would be trees too deep to walk, and too long to read."""


def check_relation(relation: nodes.Relation, context: Context) -> Current | None:
    """The typed relation, or None when something in it was reported."""
    if len(relation.operators) > PIPELINE_OPERATORS_MAX:
        context.diagnostics.report(
            relations.PIPELINE_TOO_LONG,
            relation.operators[PIPELINE_OPERATORS_MAX].span,
            f"a pipeline has at most {PIPELINE_OPERATORS_MAX} operators, this one has {len(relation.operators):,}",
            "one too many",
            help="name a part of it as a view of its own",
        )
        return None
    current = _check_sources(relation, context)
    is_sound = True
    for operator in relation.operators:
        if current is None:
            _check_remaining_sources(operator, context)
            continue
        found = _check_operator(current, operator, context)
        is_sound = is_sound and found is not None and not _has_unknown_types(found, context)
        if found is not None or not _keeps_columns(operator):
            current = _within_budget(found, operator, context)
    return current if is_sound else None


def _has_unknown_types(current: Current, context: Context) -> bool:
    """Only what was reported leaves them behind."""
    return context.diagnostics.has_errors and any(isinstance(one.type, ErrorType) for one in current.schema.columns)


def _keeps_columns(operator: nodes.Operator) -> bool:
    """Are its columns those before it, whatever it says? Then what follows can be checked also if it is wrong."""
    match operator:
        case nodes.Where() | nodes.LatestFirst() | nodes.Matching():
            return True
        case nodes.Top():
            return operator.rank is None
        case _:
            return False


def _within_budget(current: Current | None, operator: nodes.Operator, context: Context) -> Current | None:
    if current is None or context.budget.spend(len(current.schema.columns)):
        return current
    if context.budget.left + len(current.schema.columns) >= 0:
        context.diagnostics.report(
            TOO_MANY,
            operator.span,
            f"the relations of this program have more than {CELLS_MAX:,} columns in all",
            "one step too many",
            help="`project` wide relations to what is needed before the other steps",
        )
    return None


def _check_sources(relation: nodes.Relation, context: Context) -> Current | None:
    inputs = [check_source(source, context) for source in relation.sources]
    if not relation.is_merge:
        return inputs[0]
    complete = [current for current in inputs if current is not None]
    if len(complete) < len(inputs):
        return None
    return sets.check_merge(complete, relation, context)


def check_source(source: nodes.SourceRef, context: Context) -> Current | None:
    """What a source names, with the alias by which its columns may be qualified."""
    alias = source.alias.text if source.alias else None
    if isinstance(source.relation, nodes.Relation):
        inner = check_relation(source.relation, context)
        if inner is None or alias is None:
            return inner
        return Current(inner.node, Scope.of_schema(inner.schema, alias))
    name = source.relation.text
    if name not in context.relations:
        context.diagnostics.report(
            names.UNKNOWN_RELATION,
            source.relation.span,
            f"there is no stream, table or view called `{name}`",
            "not declared",
            help=lambda: did_you_mean(name, context.relations) or "declare it, or check the spelling",
        )
        return None
    node = context.relations[name]
    return Current(node, Scope.of_schema(node.schema, alias or name)) if node is not None else None


def _check_remaining_sources(operator: nodes.Operator, context: Context) -> None:
    """After an error the columns are unknown, but the relations that later operators read can still be checked."""
    match operator:
        case nodes.Join() | nodes.AsofJoin() | nodes.Matching() | nodes.Union() | nodes.Minus():
            check_source(operator.source, context)
        case _:
            pass


def _check_operator(current: Current, operator: nodes.Operator, context: Context) -> Current | None:
    match operator:
        case nodes.Where():
            return rows.check_where(current, operator, context)
        case nodes.Project():
            return rows.check_project(current, operator, context)
        case nodes.Extend():
            return rows.check_extend(current, operator, context)
        case nodes.Rename():
            return rows.check_rename(current, operator, context)
        case nodes.Window():
            return rows.check_window(current, operator, context)
        case nodes.Aggregate():
            return groups.check_aggregate(current, operator, context)
        case nodes.Top():
            return groups.check_top(current, operator, context)
        case nodes.LatestFirst():
            return groups.check_latest(current, operator, context)
        case nodes.Distinct():
            return groups.check_distinct(current, operator)
        case nodes.Join() | nodes.AsofJoin() | nodes.Matching() | nodes.Union() | nodes.Minus():
            return _check_binary(current, operator, context)
        case _:
            assert_never(operator)


def _check_binary(
    left: Current,
    operator: nodes.Join | nodes.AsofJoin | nodes.Matching | nodes.Union | nodes.Minus,
    context: Context,
) -> Current | None:
    right = check_source(operator.source, context)
    if right is None:
        return None
    match operator:
        case nodes.Join():
            return joins.check_join(left, right, operator, context)
        case nodes.AsofJoin():
            return joins.check_asof(left, right, operator, context)
        case nodes.Matching():
            return joins.check_matching(left, right, operator, context)
        case nodes.Union():
            return sets.check_union(left, right, operator, context)
        case nodes.Minus():
            return sets.check_minus(left, right, operator, context)
        case _:
            assert_never(operator)
