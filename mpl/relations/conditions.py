"""Join conditions: which columns of both sides must agree, and what else must hold.

`using a, b` and `on x = R.y and ...` come out alike: pairs of positions that must be equal, and the rest as one
predicate over the columns of both sides (the left's first).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mpl import nodes, typed
from mpl.codes import names, relations
from mpl.expressions import check_predicate, unify
from mpl.relations.context import Context, Current, column_at
from mpl.scope import Scope, ScopeColumn
from mpl.source import Span
from mpl.types import BoolType, ErrorType


@dataclass(frozen=True)
class Condition:
    """`using` holds the right columns that merge into the left's of the same name."""

    equal: tuple[tuple[int, int], ...]
    rest: tuple[typed.Expr, ...]
    using: frozenset[int]

    @property
    def rest_predicate(self) -> typed.Expr | None:
        return conjunction(self.rest)


def conjunction(parts: tuple[typed.Expr, ...]) -> typed.Expr | None:
    if len(parts) <= 1:
        return parts[0] if parts else None
    nullable = any(part.nullable for part in parts)
    return typed.Apply("and", parts, type=BoolType(), nullable=nullable, span=parts[0].span.to(parts[-1].span))


@dataclass(frozen=True)
class Sides:
    """Both inputs of a join and the names that its condition may use.

    `right` entries carry the names that the right's columns will have in the result; their indexes count from 0.
    """

    left: Current
    right: Current
    right_entries: tuple[ScopeColumn, ...]

    @property
    def both(self) -> Scope:
        offset = len(self.left.schema.columns)
        shifted = [replace(entry, index=entry.index + offset) for entry in self.right_entries]
        return Scope([*self.left.scope.columns, *shifted])


def check_condition(sides: Sides, condition: nodes.JoinCondition, verb: str, context: Context) -> Condition | None:
    match condition:
        case nodes.Using():
            return _check_using(sides, condition, context)
        case nodes.On():
            return _check_on(sides, condition, verb, context)


def _check_using(sides: Sides, condition: nodes.Using, context: Context) -> Condition | None:
    pairs: dict[int, int] = {}
    failed = False
    for name in condition.columns:
        column = nodes.ColumnName(None, name, span=name.span)
        left = column_at(sides.left, column, context, "the left side")
        right = column_at(sides.right, column, context, "the right side") if left else None
        if left is None or right is None:
            failed = True
        elif left.index in pairs:
            failed = True
            context.diagnostics.report(
                names.DUPLICATE_COLUMN, name.span, f"`{name.text}` is listed twice", "already in the list"
            )
        elif not _comparable(left.column, right.column):
            failed = True
            types = f"{left.column.type} on the left and {right.column.type} on the right"
            _report_unlike(name.span, f"`{name.text}` is {types}", context)
        else:
            pairs[left.index] = right.index
    if failed:
        return None
    return Condition(tuple(pairs.items()), (), frozenset(pairs.values()))


def _report_unlike(span: Span, what: str, context: Context) -> None:
    context.diagnostics.report(
        relations.COLUMNS_DIFFER,
        span,
        what,
        "types differ",
        help="convert one side first: `extend ... := cast(... as ...)`",
    )


def _comparable(left: typed.Column, right: typed.Column) -> bool:
    """Equal values must look equal: the same type, text of any length, decimals of the same scale."""
    common = unify(left.type, right.type)
    return common is not None and same_representation(left, right)


def same_representation(left: typed.Column, right: typed.Column) -> bool:
    """Do the same canonical values mean the same in both columns? Of a type that is not known nothing is said."""
    if isinstance(left.type, ErrorType) or isinstance(right.type, ErrorType):
        return True
    return representation(left) == representation(right)


def representation(column: typed.Column) -> str:
    """The type without what does not change how a value is stored: text length, decimal precision."""
    text = str(column.type)
    if text.startswith("text"):
        return "text"
    if text.startswith("decimal"):
        return "decimal," + text.rpartition(",")[2]
    return text


def _check_on(sides: Sides, condition: nodes.On, verb: str, context: Context) -> Condition | None:
    predicate = check_predicate(condition.predicate, sides.both, context.functions, context.diagnostics)
    if isinstance(predicate.type, ErrorType):
        return None
    border = len(sides.left.schema.columns)
    equal: dict[tuple[int, int], None] = {}
    rest: list[typed.Expr] = []
    unlike: tuple[Span, typed.Column, typed.Column] | None = None
    columns = (*sides.left.schema.columns, *sides.right.schema.columns)
    for part in conjuncts(predicate):
        pair = _equal_columns(part, border)
        if pair is None:
            rest.append(part)
        elif same_representation(columns[pair[0]], columns[border + pair[1]]):
            equal[pair] = None
        else:
            rest.append(part)  # values that are equal look different there: they are compared one by one
            unlike = unlike or (part.span, columns[pair[0]], columns[border + pair[1]])
    if not equal and unlike is not None:
        span, left, right = unlike
        types = f"{left.type} on the left and `{right.name}` {right.type} on the right"
        _report_unlike(span, f"`{left.name}` is {types}", context)
        return None
    if not equal:
        context.diagnostics.report(
            relations.JOIN_NEEDS_EQUALITY,
            condition.predicate.span,
            f"`{verb}` needs at least one equality between a column of each side",
            "no `left column = right column` in this condition",
            help="compare columns of the same type with `=`; compute them first with `extend` where needed",
        )
        return None
    return Condition(tuple(equal), tuple(rest), frozenset())


def conjuncts(predicate: typed.Expr) -> list[typed.Expr]:
    """The parts that must all hold, in order; nested `and`s are flattened."""
    flat: list[typed.Expr] = []
    waiting = [predicate]
    while waiting:
        part = waiting.pop()
        if isinstance(part, typed.Apply) and part.function == "and":
            waiting.extend(reversed(part.arguments))
        else:
            flat.append(part)
    return flat


def _equal_columns(part: typed.Expr, border: int) -> tuple[int, int] | None:
    match part:
        case typed.Apply(function="equal", arguments=(typed.ColumnRef(index=one), typed.ColumnRef(index=other))) if (
            one < border
        ) != (other < border):
            return (min(one, other), max(one, other) - border)
        case _:
            return None
