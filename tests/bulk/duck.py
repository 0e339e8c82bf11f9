"""Views as SQL for DuckDB: a third opinion that shares no code with the engine or with the Spark programs.

Written against the language reference, in the most obvious way, without any care for speed: exact numbers are HUGEINT,
every operator is a subquery. What DuckDB does not have with the same meaning is `NotInDuck`; such views are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import duckdb

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
    Schema,
    StreamScan,
    TableScan,
    TopNode,
    TypedProgram,
    UnionNode,
    ViewScan,
    WhereNode,
    WindowNode,
)
from mpl.types import BoolType, DecimalType, EnumType, FloatType, IntType, TextType, Type, Value

Row = tuple[Value, ...]


class NotInDuck(Exception):
    pass


def duck_type(type: Type) -> str:
    match type:
        case FloatType():
            return "DOUBLE"
        case BoolType():
            return "BOOLEAN"
        case TextType() | EnumType():
            return "VARCHAR"
        case _:
            return "HUGEINT"


def quoted(text: str) -> str:
    if "\0" in text:
        raise NotInDuck("a null character")
    return "'" + text.replace("'", "''") + "'"


def literal(value: Value, type: Type) -> str:
    if value is None:
        return f"CAST(NULL AS {duck_type(type)})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    text = quoted(value) if isinstance(value, str) else f"'{value!r}'"
    return f"CAST({text} AS {duck_type(type)})"


def scale(type: Type) -> int:
    return type.scale if isinstance(type, DecimalType) else 0


# --- expressions ------------------------------------------------------------------------------------------------------

_INFIX = {"equal": "=", "unequal": "<>", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
_SAME = {
    "lower": "lower({0})",
    "upper": "upper({0})",
    "trim": "trim({0}, ' ')",
    "length": "CAST(length({0}) AS HUGEINT)",
    "starts_with": "starts_with({0}, {1})",
    "ends_with": "ends_with({0}, {1})",
    "contains": "contains({0}, {1})",
    "is_null": "({0} IS NULL)",
    "not": "(NOT {0})",
    "epoch": "{0}",
    "date": "({0} - mod(mod({0}, 86400000000) + 86400000000, 86400000000))",
    "hour": "(mod(mod({0}, 86400000000) + 86400000000, 86400000000) // 3600000000)",
}


class Scalars:
    def __init__(self, column: Callable[[int], str]) -> None:
        self.column = column

    def text(self, expr: Expr) -> str:
        match expr:
            case Const():
                return literal(expr.value, expr.type)
            case ColumnRef():
                return self.column(expr.index)
            case CaseOf():
                branches = " ".join(f"WHEN {self.text(c)} THEN {self.text(v)}" for c, v in expr.branches)
                return f"(CASE {branches} ELSE {self.text(expr.otherwise)} END)"
            case PythonCall():
                raise NotInDuck("Python")
            case Apply():
                return self.apply(expr)

    def apply(self, expr: Apply) -> str:
        name, arguments = expr.function, expr.arguments
        if name in _INFIX:
            one, other = self.alike(*arguments)
            return f"({one} {_INFIX[name]} {other})"
        if name in ("and", "or"):
            return "(" + f" {name.upper()} ".join(map(self.text, arguments)) + ")"
        if name in _SAME:
            return _SAME[name].format(*map(self.text, arguments))
        if name in ("add", "subtract", "multiply", "divide", "modulo"):
            return self.arithmetic(expr)
        match name:
            case "negate":
                return f"(-{self.text(arguments[0])})"
            case "abs":
                return f"abs({self.text(arguments[0])})"
            case "sign":
                return f"CAST(sign({self.text(arguments[0])}) AS HUGEINT)"
            case "in_list":
                pairs = (self.alike(arguments[0], item) for item in arguments[1:])
                return "(" + " OR ".join(f"({one} = {other})" for one, other in pairs) + ")"
            case "coalesce":
                return "coalesce(" + ", ".join(self.as_type(argument, expr.type) for argument in arguments) + ")"
            case "nullif":
                one, other = self.alike(*arguments)
                return f"(CASE WHEN {one} = {other} THEN NULL ELSE {self.text(arguments[0])} END)"
            case "concat":
                return "(" + " || ".join(map(self.text, arguments)) + ")"
            case "cast" if isinstance(arguments[0].type, TextType | EnumType) and isinstance(expr.type, TextType):
                return self.text(arguments[0])
            case "cast" if isinstance(arguments[0].type, IntType | DecimalType) and isinstance(expr.type, DecimalType):
                more = scale(expr.type) - scale(arguments[0].type)
                return rounded(self.raised(self.text(arguments[0]), max(more, 0)), str(10 ** max(-more, 0)))
            case "replace":
                text, old, new = map(self.text, arguments)
                return (
                    f"(CASE WHEN {old} = '' AND {new} IS NOT NULL THEN {text} ELSE replace({text}, {old}, {new}) END)"
                )
            case "split_part":
                text, separator, number = map(self.text, arguments)
                whole = f"CASE WHEN {number} = 1 THEN {text} ELSE '' END"
                return (
                    f"(CASE WHEN {separator} = '' THEN {whole} ELSE split_part({text}, {separator}, {number}::INT) END)"
                )
            case "regexp_extract" if isinstance(arguments[1], Const) and "\\" not in str(arguments[1].value):
                group = arguments[2].value if len(arguments) > 2 and isinstance(arguments[2], Const) else 1
                return f"regexp_extract({self.text(arguments[0])}, {self.text(arguments[1])}, {group})"
            case _:
                raise NotInDuck(name)

    def alike(self, left: Expr, right: Expr) -> tuple[str, str]:
        one, other = self.text(left), self.text(right)
        if isinstance(left.type, FloatType) or isinstance(right.type, FloatType):
            return self.real(left), self.real(right)
        most = max(scale(left.type), scale(right.type))
        return self.raised(one, most - scale(left.type)), self.raised(other, most - scale(right.type))

    @staticmethod
    def raised(text: str, digits: int) -> str:
        return f"({text} * {10**digits})" if digits else text

    def real(self, expr: Expr) -> str:
        text = self.text(expr)
        if isinstance(expr.type, FloatType):
            return text
        return f"(CAST({text} AS DOUBLE) / {10 ** scale(expr.type)})"

    def as_type(self, expr: Expr, wanted: Type) -> str:
        if isinstance(wanted, FloatType):
            return self.real(expr)
        if duck_type(expr.type) != duck_type(wanted) or scale(expr.type) > scale(wanted):
            return f"CAST({self.text(expr)} AS {duck_type(wanted)})"
        return self.raised(self.text(expr), scale(wanted) - scale(expr.type))

    def arithmetic(self, expr: Apply) -> str:
        left, right = expr.arguments
        symbol = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "modulo": "%"}[expr.function]
        if isinstance(expr.type, FloatType):
            if expr.function == "modulo":
                raise NotInDuck("remainders of floats")
            return f"({self.real(left)} {symbol} {self.real(right)})"
        wanted = scale(expr.type)
        one, other = self.text(left), self.text(right)
        if expr.function in ("add", "subtract", "modulo"):
            one, other = self.raised(one, wanted - scale(left.type)), self.raised(other, wanted - scale(right.type))
            return f"({one} {symbol} {other})"
        if expr.function == "multiply":
            return rounded(f"({one} * {other})", str(10 ** (scale(left.type) + scale(right.type) - wanted)))
        if not isinstance(expr.type, DecimalType):
            return f"({one} // {other})"
        shift = wanted + scale(right.type) - scale(left.type)
        return rounded(self.raised(one, max(shift, 0)), self.raised(other, max(-shift, 0)))


def rounded(above: str, below: str) -> str:
    """The nearest whole number, a half away from zero."""
    if below == "1":
        return above
    size = f"((2 * abs({above}) + abs({below})) // (2 * abs({below})))"
    return f"(CASE WHEN ({above} < 0) <> ({below} < 0) THEN -{size} ELSE {size} END)"


# --- relations --------------------------------------------------------------------------------------------------------


class Relations:
    """Every relation is a query whose columns are called c0, c1, ..."""

    def __init__(self, program: TypedProgram) -> None:
        self.program = program
        self.scalars = Scalars(lambda position: f"c{position}")

    def query(self, node: RelationTree) -> str:
        match node:
            case StreamScan():
                return f"SELECT * FROM {table_name(node.stream)}"
            case TableScan():
                return f"SELECT * FROM {table_name(node.table)}"
            case ViewScan():
                return self.query(self.program.views[node.view].relation)
            case RenameNode():
                return self.query(node.input)
            case MergeNode():
                return " UNION ALL ".join(f"({self.query(source)})" for source in node.inputs)
            case WhereNode():
                return f"SELECT * FROM ({self.query(node.input)}) WHERE {self.scalars.text(node.predicate)}"
            case ProjectNode():
                return self.picked(node.input, node.kept, distinct=node.drops_key)
            case DistinctNode():
                return self.picked(node.input, node.kept, distinct=True)
            case ExtendNode():
                start = len(node.input.schema.columns)
                made = ", ".join(f"{self.scalars.text(v)} AS c{start + at}" for at, v in enumerate(node.values))
                return f"SELECT *, {made} FROM ({self.query(node.input)})"
            case AggregateNode():
                return self.aggregate(node)
            case JoinNode():
                return self.join(node)
            case MatchingNode():
                agree = self.agree(len(node.left.schema.columns), node.equal, node.rest)
                word = "NOT EXISTS" if node.negated else "EXISTS"
                return (
                    f"SELECT * FROM ({self.query(node.left)}) l WHERE {word}"
                    f" (SELECT 1 FROM ({self.query(node.right)}) r WHERE {agree})"
                )
            case UnionNode():
                left = self.picked(node.left, node.left_kept, distinct=False)
                return f"({left}) UNION ({self.picked(node.right, node.right_order, distinct=False)})"
            case MinusNode():
                pairs = zip(node.left_compared, node.right_order, strict=True)
                same = " AND ".join(f"l.c{one} IS NOT DISTINCT FROM r.c{other}" for one, other in pairs)
                return (
                    f"SELECT * FROM ({self.query(node.left)}) l WHERE NOT EXISTS"
                    f" (SELECT 1 FROM ({self.query(node.right)}) r WHERE {same})"
                )
            case TopNode():
                return self.top(node)
            case LatestNode():
                schema = node.input.schema
                way = "ASC" if node.which == "first" else "DESC"
                times = [*(() if node.by is None else (node.by,)), *ticks(schema)]
                order = [f"c{position} {way} NULLS LAST" for position in times] + by_key(schema)
                return self.chosen(self.query(node.input), node.per, order, "row_number() {} = 1")
            case AsofNode():
                return self.asof(node)
            case WindowNode():
                raise NotInDuck("windows")

    def picked(self, source: RelationTree, positions: Sequence[int], *, distinct: bool) -> str:
        columns = ", ".join(f"c{position} AS c{at}" for at, position in enumerate(positions))
        return f"SELECT {'DISTINCT ' if distinct else ''}{columns} FROM ({self.query(source)})"

    def chosen(self, source: str, per: Sequence[int], order: Sequence[str], condition: str, more: str = "*") -> str:
        group = f"PARTITION BY {', '.join(f'c{position}' for position in per)} " if per else ""
        over = f"OVER ({group}ORDER BY {', '.join(order)})"
        return f"SELECT {more.format(over)} FROM ({source}) QUALIFY {condition.format(over)}"

    def top(self, node: TopNode) -> str:
        orders = [
            f"{self.scalars.text(key.value)} {'DESC' if key.descending else 'ASC'} NULLS LAST" for key in node.ordering
        ]
        full = [*orders, *by_key(node.input.schema)]
        source = self.query(node.input)
        width = len(node.input.schema.columns)
        more = f"*, CAST(row_number() {{}} AS HUGEINT) AS c{width}" if node.rank else "*"
        if not node.ties:
            return self.chosen(source, node.per, full, f"row_number() {{}} <= {node.count}", more)
        if node.rank:
            raise NotInDuck("ties with rank")
        return self.chosen(source, node.per, orders, f"rank() {{}} <= {node.count}", more)

    def aggregate(self, node: AggregateNode) -> str:
        start = len(node.group)
        keys = [f"c{position} AS c{at}" for at, position in enumerate(node.group)]
        items = [
            f"{self.item(item, node.schema.columns[start + at], node.input.schema)} AS c{start + at}"
            for at, item in enumerate(node.items)
        ]
        group = f" GROUP BY {', '.join(f'c{position}' for position in node.group)}" if node.group else ""
        return f"SELECT {', '.join([*keys, *items])} FROM (SELECT * FROM ({self.query(node.input)})){group}"

    def item(self, item: AggregateItem, column: Column, source: Schema) -> str:
        argument = "1" if item.argument is None else self.scalars.text(item.argument)
        where = f" FILTER (WHERE {self.scalars.text(item.where)})" if item.where is not None else ""
        distinct = "DISTINCT " if item.distinct else ""
        match item.function:
            case "count":
                return f"CAST(count({distinct}{argument}){where} AS HUGEINT)"
            case "sum":
                nothing = "0.0" if isinstance(column.type, FloatType) else literal(0, column.type)
                return f"coalesce(sum({distinct}{argument}){where}, {nothing})"
            case "min" | "max":
                return f"{item.function}({argument}){where}"
            case "any":
                return f"coalesce(bool_or({argument}){where}, FALSE)"
            case "all":
                return f"coalesce(bool_and({argument}){where}, TRUE)"
            case "avg":
                total, count = f"sum({distinct}{argument}){where}", f"count({distinct}{argument}){where}"
                assert item.argument is not None
                if isinstance(column.type, FloatType):
                    return f"(CAST({total} AS DOUBLE) / nullif({count}, 0))"
                digits = scale(column.type) - scale(item.argument.type)
                return rounded(f"({total} * {10**digits})", f"nullif({count}, 0)")
            case "first" | "last":
                way = "ASC" if item.function == "first" else "DESC"
                nulls = "LAST" if way == "ASC" else "FIRST"
                order = ", ".join(f"c{position} {way} NULLS {nulls}" for position in [*ticks(source), *source.key])
                inner = "" if item.where is None else f" AND {self.scalars.text(item.where)}"
                return f"first({argument} ORDER BY {order or 1}) FILTER (WHERE ({argument}) IS NOT NULL{inner})"

    def agree(self, width: int, equal: Sequence[tuple[int, int]], rest: Expr | None) -> str:
        parts = [f"l.c{one} = r.c{other}" for one, other in equal]
        if rest is not None:
            both = Scalars(lambda at: f"l.c{at}" if at < width else f"r.c{at - width}")
            parts.append(both.text(rest))
        return " AND ".join(parts) or "TRUE"

    def join(self, node: JoinNode) -> str:
        left, right = node.left.schema.columns, node.right.schema.columns
        agree = self.agree(len(left), node.equal, node.rest)
        shared = {one: other for one, other in node.equal if other not in node.right_kept}
        made = []
        for at, column in enumerate(left):
            text = f"l.c{at}"
            if node.side == "full":
                other = f"r.c{shared[at]}" if at in shared else literal(node.left_defaults[at].value, column.type)
                text = f"CASE WHEN l.here IS NULL THEN {other} ELSE {text} END"
            made.append(f"{text} AS c{at}")
        for at, position in enumerate(node.right_kept):
            text = f"r.c{position}"
            if node.side != "inner":
                default = literal(node.defaults[at].value, right[position].type)
                text = f"CASE WHEN r.here IS NULL THEN {default} ELSE {text} END"
            made.append(f"{text} AS c{len(left) + at}")
        sides = [f"(SELECT *, TRUE AS here FROM ({self.query(side)}))" for side in (node.left, node.right)]
        return f"SELECT {', '.join(made)} FROM {sides[0]} l {node.side.upper()} JOIN {sides[1]} r ON {agree}"

    def asof(self, node: AsofNode) -> str:
        """Every left row with the first of the right rows that fit it, the latest one first."""
        left, right = node.left.schema, node.right.schema
        agree = " AND ".join(
            [*(f"l.c{one} = r.c{other}" for one, other in node.equal), f"r.c{node.right_time} <= l.c{node.left_time}"]
        )
        order = [f"r.c{position} DESC NULLS LAST" for position in (node.right_time, *ticks(right))]
        order += [f"r.c{position} ASC NULLS LAST" for position in right.key]
        group = ", ".join(f"l.c{position}" for position in left.key)
        over = f"OVER ({f'PARTITION BY {group} ' if group else ''}ORDER BY {', '.join(order)})"
        width = len(left.columns)
        made = [f"l.c{at} AS c{at}" for at in range(width)]
        made += [f"r.c{position} AS c{width + at}" for at, position in enumerate(node.right_kept)]
        side = "LEFT" if node.keep_unmatched else "INNER"
        return (
            f"SELECT {', '.join(made)} FROM ({self.query(node.left)}) l {side} JOIN ({self.query(node.right)}) r"
            f" ON {agree} QUALIFY row_number() {over} = 1"
        )


def ticks(schema: Schema) -> list[int]:
    return [position for position, column in enumerate(schema.columns) if column.is_tick]


def by_key(schema: Schema) -> list[str]:
    return [f"c{position} ASC NULLS LAST" for position in schema.key]


def table_name(name: str) -> str:
    return '"t_' + name.replace('"', '""') + '"'


def duck_rows(
    program: TypedProgram, view: str, rows: Mapping[str, Sequence[Row]], connection: duckdb.DuckDBPyConnection
) -> list[Row]:
    """The view's rows, all columns; NotInDuck if it cannot be said."""
    query = Relations(program).query(program.views[view].relation)
    schemas = {name: stream.schema for name, stream in program.streams.items()}
    schemas |= {name: table.schema for name, table in program.tables.items()}
    for name, schema in schemas.items():
        columns = schema.columns
        kinds = ", ".join(f"c{at} {duck_type(column.type)}" for at, column in enumerate(columns))
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {table_name(name)} ({kinds})")
        if rows[name]:
            marks = ", ".join("?" for _ in columns)
            given = [list(row) for row in rows[name]]
            connection.executemany(f"INSERT INTO {table_name(name)} VALUES ({marks})", given)
    return [tuple(row) for row in connection.execute(query).fetchall()]
