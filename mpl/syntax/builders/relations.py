"""Builders of relation expressions: sources, pipelines and their operators."""

from __future__ import annotations

from typing import Any, cast

from mpl.codes.syntax import NOT_AN_AGGREGATE
from mpl.diagnostic import Diagnostic
from mpl.nodes import (
    Aggregate,
    AggregateCall,
    AggregateDefinition,
    AsofJoin,
    ColumnName,
    Definition,
    Distinct,
    DurationLiteral,
    Expr,
    Extend,
    Join,
    JoinCondition,
    LatestFirst,
    Matching,
    Minus,
    Name,
    On,
    Operator,
    OrderItem,
    Project,
    Relation,
    Rename,
    SourceRef,
    Top,
    Union,
    Using,
    Where,
    Window,
)
from mpl.syntax.builders.parts import Phrase, Refused, cover, every_second
from mpl.syntax.tokens import Token

AGGREGATES = ("sum", "count", "min", "max", "avg", "first", "last", "any", "all")


def relation(word: Token, sources: SourceRef | tuple[SourceRef, ...], steps: tuple[Operator, ...]) -> Relation:
    all_sources = sources if isinstance(sources, tuple) else (sources,)
    last = steps[-1] if steps else all_sources[-1]
    return Relation(all_sources, word.type == "MERGE", steps, span=cover(word, last))


def sources(*parts: Any) -> tuple[SourceRef, ...]:
    return every_second(parts)


def source(*parts: Any) -> SourceRef:
    *inner, _as, alias = parts
    relation = inner[1] if len(inner) == 3 else inner[0]
    return SourceRef(relation, alias, span=cover(inner[0], inner[-1], alias))


def steps(*parts: Any) -> tuple[Operator, ...]:
    """The place of an operator begins at its word, not at its `|>`."""
    return parts[1::2]


# --- operators -------------------------------------------------------------------------------------------------------


def where(word: Token, predicate: Expr) -> Where:
    return Where(predicate, span=cover(word, predicate))


def project(word: Token, columns: tuple[ColumnName, ...]) -> Project:
    return Project(columns, False, span=cover(word, columns[-1]))


def project_all_but(word: Token, _all_word: Token, _but: Token, columns: tuple[ColumnName, ...]) -> Project:
    return Project(columns, True, span=cover(word, columns[-1]))


def extend(word: Token, definitions: tuple[Definition, ...]) -> Extend:
    return Extend(definitions, span=cover(word, definitions[-1]))


def rename(word: Token, *parts: Any) -> Rename:
    pairs = every_second(parts)
    return Rename(tuple(pair.value for pair in pairs), span=cover(word, pairs[-1]))


def renaming(column: ColumnName, _word: Token, name: Name) -> Phrase[tuple[ColumnName, Name]]:
    return Phrase((column, name), cover(column, name))


def window_step(word: Token, window: Window) -> Window:
    return Window(window.shape, window.column, window.size, window.every, window.per, span=cover(word, window))


def tumble(
    word: Token, _opening: Token, column: ColumnName, _comma: Token, size: DurationLiteral, close: Token
) -> Window:
    return Window("tumble", column, size, span=cover(word, close))


def hop(
    word: Token,
    _opening: Token,
    column: ColumnName,
    _comma: Token,
    size: DurationLiteral,
    _every_word: Token,
    every: DurationLiteral,
    close: Token,
) -> Window:
    return Window("hop", column, size, every, span=cover(word, close))


def session(
    word: Token,
    _opening: Token,
    column: ColumnName,
    _comma: Token,
    _gap_word: Token,
    gap: DurationLiteral,
    _per_word: Token | None,
    per: tuple[ColumnName, ...] | None,
    close: Token,
) -> Window:
    return Window("session", column, gap, None, per or (), span=cover(word, close))


def aggregate(
    word: Token,
    definitions: tuple[AggregateDefinition, ...],
    _group: Token | None,
    _by: Token | None,
    columns: tuple[ColumnName, ...] | None,
) -> Aggregate:
    last = columns[-1] if columns else definitions[-1]
    return Aggregate(definitions, columns, span=cover(word, last))


def join(
    side: Token | None,
    word: Token,
    source: SourceRef,
    condition: JoinCondition,
    _default: Token | None,
    defaults: tuple[Definition, ...] | None,
) -> Join:
    last = defaults[-1] if defaults else condition
    which = side.text.lower() if side else "inner"
    return Join(cast(Any, which), source, condition, defaults or (), span=cover(side or word, last))


def side(word: Token) -> Token:
    return word


def asof_join(asof: Token, left: Token | None, _word: Token, source: SourceRef, condition: JoinCondition) -> AsofJoin:
    return AsofJoin(left is not None, source, condition, span=cover(asof, condition))


def matching(negated: Token | None, word: Token, source: SourceRef, condition: JoinCondition) -> Matching:
    return Matching(negated is not None, source, condition, span=cover(negated or word, condition))


def using(word: Token, names: tuple[Name, ...]) -> Using:
    return Using(names, span=cover(word, names[-1]))


def on(word: Token, predicate: Expr) -> On:
    return On(predicate, span=cover(word, predicate))


def top(
    word: Token,
    count: Token,
    _per_word: Token | None,
    per: tuple[ColumnName, ...] | None,
    _by: Token,
    ordering: tuple[OrderItem, ...],
    _with_word: Token | None,
    tie_rule: Phrase[Name | None] | None,
) -> Top:
    rank = tie_rule.value if tie_rule else None
    ties = tie_rule is not None and rank is None
    return Top(int(count.text), per or (), ordering, rank, ties, span=cover(word, ordering[-1], tie_rule))


def tie_rule(word: Token, rank: Name | None = None) -> Phrase[Name | None]:
    return Phrase(rank, cover(word, rank))


def ordering(*parts: Any) -> tuple[OrderItem, ...]:
    return every_second(parts)


def order_item(value: Expr, direction: Token | None) -> OrderItem:
    descending = direction is not None and direction.type == "DESC"
    return OrderItem(value, descending, span=cover(value, direction))


def order_direction(word: Token) -> Token:
    return word


def latest_first(
    word: Token, _per_word: Token, per: tuple[ColumnName, ...], _by_word: Token | None, by: ColumnName | None
) -> LatestFirst:
    return LatestFirst(cast(Any, word.text.lower()), per, by, span=cover(word, per[-1], by))


def latest_or_first(word: Token) -> Token:
    return word


def distinct(word: Token) -> Distinct:
    return Distinct(span=word.span)


def union(word: Token, source: SourceRef) -> Union:
    return Union(source, span=cover(word, source))


def minus(word: Token, source: SourceRef) -> Minus:
    return Minus(source, span=cover(word, source))


# --- definitions -----------------------------------------------------------------------------------------------------


def definitions(*parts: Any) -> tuple[Definition, ...]:
    return every_second(parts)


def definition(name: Name, _sign: Token, value: Expr) -> Definition:
    return Definition(name, value, span=cover(name, value))


def aggregate_definitions(*parts: Any) -> tuple[AggregateDefinition, ...]:
    return every_second(parts)


def aggregate_definition(name: Name, _sign: Token, value: AggregateCall) -> AggregateDefinition:
    return AggregateDefinition(name, value, span=cover(name, value))


def aggregate_call(
    function: Name,
    _opening: Token,
    distinct: Token | None,
    argument: Expr | None,
    close: Token,
    _where: Token | None,
    condition: Expr | None,
) -> AggregateCall:
    which = function.text.lower()
    if which not in AGGREGATES:
        raise Refused(
            Diagnostic(
                NOT_AN_AGGREGATE,
                function.span,
                f"`{function.text}` is not an aggregate",
                "expected `sum`, `count` or the like",
                help=f"aggregates are {', '.join(AGGREGATES)}",
            )
        )
    return AggregateCall(
        cast(Any, which), argument, distinct is not None, condition, span=cover(function, close, condition)
    )
