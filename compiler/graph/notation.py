"""Typed expressions and operators as text that reads like MPL. For people: nothing parses it again.

Columns are called by the names they have in the operator's input; what the user wrote as a name may be anything, so
everything is made printable and kept on one line.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.graph.transform import Scan, source_of
from mpl.functions import BY_NAME
from mpl.functions.casts import decimal_to_text
from mpl.functions.time_text import time_to_text
from mpl.typed import (
    AggregateItem,
    AggregateNode,
    Apply,
    AsofNode,
    CaseOf,
    Column,
    ColumnRef,
    Const,
    DistinctNode,
    Expr,
    ExtendNode,
    JoinNode,
    LatestNode,
    MatchingNode,
    MergeNode,
    MinusNode,
    ProjectNode,
    PythonCall,
    RelationTree,
    RenameNode,
    TopNode,
    UnionNode,
    WhereNode,
    WindowNode,
)
from mpl.types import BoolType, DecimalType, DurationType, EnumType, TextType, TimeType, Type, Value

Columns = Sequence[Column]

_INFIX = {
    "multiply": ("*", 6),
    "divide": ("/", 6),
    "modulo": ("%", 6),
    "add": ("+", 5),
    "subtract": ("-", 5),
    "equal": ("=", 4),
    "unequal": ("<>", 4),
    "less": ("<", 4),
    "less_equal": ("<=", 4),
    "greater": (">", 4),
    "greater_equal": (">=", 4),
    "like": ("like", 4),
    "and": ("and", 2),
    "or": ("or", 1),
}
_ATOM, _UNARY, _COMPARISON, _NOT = 9, 7, 4, 3

_UNITS = ((86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s"), (1_000, "ms"), (1, "us"))

TEXT_SHOWN_MAX = 60
"""Characters of a text constant; more would hide the operator around it."""


def printable(text: str) -> str:
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def name_of(column: Column) -> str:
    return printable(column.name)


def names_of(positions: Sequence[int], columns: Columns) -> str:
    return ", ".join(name_of(columns[position]) for position in positions)


def duration_text(microseconds: int) -> str:
    size, unit = next((size, unit) for size, unit in _UNITS if microseconds % size == 0)
    return f"{microseconds // size} {unit}"


def value_text(value: Value, type: Type) -> str:
    """A constant as MPL writes it."""
    match type:
        case _ if value is None:
            return "null"
        case BoolType():
            return "true" if value else "false"
        case DecimalType():
            return decimal_to_text(int(value), type.scale)
        case TextType() | EnumType():
            text = printable(str(value)).replace("'", "''")
            return f"'{text}'" if len(text) <= TEXT_SHOWN_MAX else f"'{text[:TEXT_SHOWN_MAX]}...'"
        case TimeType():
            return f"time '{time_to_text(int(value)).removesuffix('.000000')}'"
        case DurationType():
            return duration_text(int(value))
        case _:
            return str(value)


def expression_text(expr: Expr, columns: Columns) -> str:
    """The expression with the names that `columns` have; as deep as the expression, which has a limit."""
    return _text(expr, columns)[0]


def _text(expr: Expr, columns: Columns) -> tuple[str, int]:
    """Text, and how tightly its outermost operator binds."""
    match expr:
        case Const():
            return value_text(expr.value, expr.type), _ATOM
        case ColumnRef():
            return name_of(columns[expr.index]), _ATOM
        case CaseOf():
            branches = " ".join(
                f"when {expression_text(condition, columns)} then {expression_text(value, columns)}"
                for condition, value in expr.branches
            )
            return f"case {branches} else {expression_text(expr.otherwise, columns)} end", _ATOM
        case PythonCall():
            inside = ", ".join(expression_text(part, columns) for part in expr.arguments)
            return f"python {printable(expr.module)}:{printable(expr.function)}({inside})", _ATOM
        case Apply():
            return _applied(expr, columns)


def _applied(expr: Apply, columns: Columns) -> tuple[str, int]:
    arguments = expr.arguments
    if expr.function in _INFIX:
        symbol, level = _INFIX[expr.function]
        first = _at_least(arguments[0], level, columns)
        rest = [_at_least(part, level + 1, columns) for part in arguments[1:]]
        return f" {symbol} ".join((first, *rest)), level
    match expr.function:
        case "negate":
            return f"-{_at_least(arguments[0], _UNARY, columns)}", _UNARY
        case "not":
            return f"not {_at_least(arguments[0], _NOT, columns)}", _NOT
        case "is_null":
            return f"{_at_least(arguments[0], _COMPARISON + 1, columns)} is null", _COMPARISON
        case "in_list":
            items = ", ".join(expression_text(part, columns) for part in arguments[1:])
            return f"{_at_least(arguments[0], _COMPARISON + 1, columns)} in ({items})", _COMPARISON
        case "cast":
            return f"cast({expression_text(arguments[0], columns)} as {expr.type})", _ATOM
        case _:
            called = BY_NAME[expr.function].called or expr.function
            return f"{called}({', '.join(expression_text(part, columns) for part in arguments)})", _ATOM


def _at_least(expr: Expr, level: int, columns: Columns) -> str:
    text, own = _text(expr, columns)
    return text if own >= level else f"({text})"


# --- operators --------------------------------------------------------------------------------------------------------


def operator_text(node: RelationTree) -> str:
    """The operator with its parameters, on one line."""
    match node:
        case MergeNode():
            return "merge"
        case WhereNode():
            return f"where {expression_text(node.predicate, node.input.schema.columns)}"
        case ProjectNode():
            chosen = [
                _renamed(node.input.schema.columns[old], new)
                for old, new in zip(node.kept, node.schema.columns, strict=True)
            ]
            return f"project {', '.join(chosen)}{' as a set' if node.drops_key else ''}"
        case ExtendNode():
            added = node.schema.columns[len(node.input.schema.columns) :]
            return "extend " + _definitions(added, node.values, node.input.schema.columns)
        case RenameNode():
            pairs = zip(node.input.schema.columns, node.schema.columns, strict=True)
            return "rename " + ", ".join(_renamed(old, new) for old, new in pairs if old.name != new.name)
        case WindowNode():
            return _window_text(node)
        case AggregateNode() | TopNode() | LatestNode() | DistinctNode():
            return _group_text(node)
        case JoinNode() | AsofNode() | MatchingNode() | UnionNode() | MinusNode():
            return _pair_text(node)
        case _:
            return "copy"


def _renamed(old: Column, new: Column) -> str:
    return name_of(old) if old.name == new.name else f"{name_of(old)} as {name_of(new)}"


def _definitions(added: Columns, values: Sequence[Expr], columns: Columns) -> str:
    return ", ".join(
        f"{name_of(column)} := {expression_text(value, columns)}" for column, value in zip(added, values, strict=True)
    )


def _window_text(node: WindowNode) -> str:
    columns = node.input.schema.columns
    time = name_of(columns[node.time])
    if node.shape == "session":
        per = f" per {names_of(node.per, columns)}" if node.per else ""
        return f"window session({time}, gap {duration_text(node.size_us)}{per})"
    every = f" every {duration_text(node.every_us)}" if node.shape == "hop" else ""
    return f"window {node.shape}({time}, {duration_text(node.size_us)}{every})"


def _group_text(node: AggregateNode | TopNode | LatestNode | DistinctNode) -> str:
    columns = node.input.schema.columns
    match node:
        case AggregateNode():
            added = node.schema.columns[len(node.group) :]
            items = ", ".join(
                f"{name_of(column)} := {_item_text(item, columns)}"
                for column, item in zip(added, node.items, strict=True)
            )
            group = f"group by {names_of(node.group, columns)}" if node.group else ""
            return " ".join(part for part in ("aggregate", items, group) if part)
        case TopNode():
            per = f" per {names_of(node.per, columns)}" if node.per else ""
            order = ", ".join(
                expression_text(key.value, columns) + (" desc" if key.descending else "") for key in node.ordering
            )
            rank = f" with rank {name_of(node.schema.columns[-1])}" if node.rank else ""
            return f"top {node.count}{per} by {order}{' with ties' if node.ties else ''}{rank}"
        case LatestNode():
            per = f" per {names_of(node.per, columns)}" if node.per else ""
            by = f" by {name_of(columns[node.by])}" if node.by is not None else ""
            return f"{node.which}{per}{by}"
        case DistinctNode():
            return f"distinct {names_of(node.kept, columns)}"


def _item_text(item: AggregateItem, columns: Columns) -> str:
    inside = expression_text(item.argument, columns) if item.argument is not None else ""
    where = f" where {expression_text(item.where, columns)}" if item.where is not None else ""
    return f"{item.function}({'distinct ' if item.distinct else ''}{inside}){where}"


def _pair_text(node: JoinNode | AsofNode | MatchingNode | UnionNode | MinusNode) -> str:
    left, right = node.left.schema.columns, node.right.schema.columns
    name = printable(source_of(node.right)) if isinstance(node.right, Scan) else "right"
    if isinstance(node, UnionNode):
        return f"union of ({names_of(node.left_kept, left)}) and ({names_of(node.right_order, right)})"
    if isinstance(node, MinusNode):
        return f"minus comparing ({names_of(node.left_compared, left)}) and ({names_of(node.right_order, right)})"
    both = [*left, *(Column(f"{name}.{column.name}", column.type) for column in right)]
    parts = [f"{name_of(left[one])} = {name_of(both[len(left) + other])}" for one, other in node.equal]
    match node:
        case JoinNode():
            if node.rest is not None:
                parts.append(expression_text(node.rest, both))
            kind = "join" if node.side == "inner" else f"{node.side} join"
            text = f"{kind} on {' and '.join(parts)}"
            defaults = [
                f"{name_of(column)} := {value_text(default.value, default.type)}"
                for column, default in zip(
                    node.schema.columns, (*(node.left_defaults or (None,) * len(left)), *node.defaults), strict=False
                )
                if default is not None and default.value is not None
            ]
            return f"{text} default {', '.join(defaults)}" if defaults else text
        case AsofNode():
            parts.append(f"{name_of(both[len(left) + node.right_time])} <= {name_of(left[node.left_time])}")
            return f"asof {'left ' if node.keep_unmatched else ''}join on {' and '.join(parts)}"
        case MatchingNode():
            if node.rest is not None:
                parts.append(expression_text(node.rest, both))
            return f"{'not ' if node.negated else ''}matching on {' and '.join(parts)}"
