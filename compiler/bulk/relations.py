"""Operators as text of Spark DataFrame code: for every transform the lines that make its frame from others.

Frames have columns c0, c1, ... in the order of the schema, with canonical values, hidden ticks included. Every line
assigns one frame. `program.py` names the frames and puts the lines into the template of a view.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.bulk.expressions import Constants, ExpressionWriter
from compiler.bulk.failing import may_fail
from compiler.bulk.writer import NotInBulk
from mpl.scaled import limits_of, scale_of
from mpl.typed import (
    AggregateItem,
    AggregateNode,
    AsofNode,
    Column,
    DistinctNode,
    Expr,
    ExtendNode,
    JoinNode,
    LatestNode,
    MatchingNode,
    MergeNode,
    MinusNode,
    ProjectNode,
    RelationTree,
    RenameNode,
    Schema,
    StreamScan,
    TableScan,
    TopNode,
    UnionNode,
    ViewScan,
    WhereNode,
    WindowNode,
)
from mpl.types import INT_MAX, INT_MIN, FloatType, IntType


class RelationWriter:
    """Writes one operator: `inputs` are the names of the frames it reads, the result is the text of its frame."""

    def __init__(self, constants: Constants) -> None:
        self._out = ExpressionWriter(constants, lambda position: f"c{position}")
        self._constants = constants

    def value(self, expr: Expr) -> str:
        """An expression over the columns of one frame."""
        return self._out.value(expr)

    def frame(self, node: RelationTree, inputs: Sequence[str]) -> list[str]:
        """Steps of a chain: the frame, then method calls on it, one per line."""
        match node:
            case StreamScan() | TableScan() | ViewScan() | RenameNode():
                return [inputs[0]]
            case MergeNode():
                return [inputs[0], *(f".unionAll({name})" for name in inputs[1:])]
            case WhereNode():
                return [*_kept_above(inputs[0], node.predicate), f".where({self._out.value(node.predicate)})"]
            case ProjectNode():
                steps = [inputs[0], _select(node.kept)]
                return [*steps, ".distinct()"] if node.drops_key else steps
            case DistinctNode():
                return [inputs[0], _select(node.kept), ".distinct()"]
            case ExtendNode():
                return [*_kept_above(inputs[0], *node.values), self._extend(node)]
            case AggregateNode():
                return self._aggregate(node, inputs[0])
            case JoinNode():
                return self._join(node, *inputs)
            case MatchingNode():
                return self._matching(node, *inputs)
            case AsofNode():
                return self._asof(node, *inputs)
            case UnionNode():
                right = f".unionAll({inputs[1]}{_select(node.right_order)})"
                return [inputs[0], _select(node.left_kept), right, ".distinct()"]
            case MinusNode():
                return _minus(node, *inputs)
            case TopNode():
                return self._top(node, inputs[0])
            case LatestNode():
                return _latest(node, inputs[0])
            case WindowNode():
                raise NotInBulk("windows are not compiled yet")

    def _extend(self, node: ExtendNode) -> str:
        start = len(node.input.schema.columns)
        made = (f'{self._out.value(value)}.alias("c{start + at}")' for at, value in enumerate(node.values))
        return f'.select("*", {", ".join(made)})'

    # Aggregates

    def _aggregate(self, node: AggregateNode, source: str) -> list[str]:
        keys = ", ".join(_as(position, at) for at, position in enumerate(node.group))
        start = len(node.group)
        items = [
            f'{self.aggregate(item, node.schema.columns[start + at], node.input.schema)}.alias("c{start + at}")'
            for at, item in enumerate(node.items)
        ]
        if not items:
            return [source, f".select({keys})", ".distinct()"]
        return [source, f".groupBy({keys})", f".agg({', '.join(items)})"]

    def argument(self, item: AggregateItem) -> str:
        """What an aggregate counts of each row: null if the row does not count."""
        argument = 'F.lit(1).cast("bigint")' if item.argument is None else self._out.value(item.argument)
        return argument if item.where is None else f"F.when({self._out.value(item.where)}, {argument})"

    def aggregate(self, item: AggregateItem, column: Column, source: Schema) -> str:
        argument = self.argument(item)
        match item.function:
            case "count":
                return f"F.{'count_distinct' if item.distinct else 'count'}({argument})"
            case "min" | "max":
                return f"F.{item.function}({argument})"
            case "any":
                return f"F.coalesce(F.bool_or({argument}), F.lit(False))"
            case "all":
                return f"F.coalesce(F.bool_and({argument}), F.lit(True))"
            case "sum":
                return self._sum(item, argument, column)
            case "avg":
                return self._average(item, argument, column)
            case "first" | "last":
                extreme = "min" if item.function == "first" else "max"
                order = ", ".join(_order_fields(source))
                row = f'F.struct({order}, {argument}.alias("v"))'
                return f'F.{extreme}(F.when({argument}.isNotNull(), {row}))["v"]'

    def _sum(self, item: AggregateItem, argument: str, column: Column) -> str:
        function = "sum_distinct" if item.distinct else "sum"
        nothing = "F.lit(0.0)" if isinstance(column.type, FloatType) else 'F.lit(0).cast("bigint")'
        total = f"F.coalesce(F.{function}({argument}), {nothing})"
        limits = limits_of(column.type)
        if limits is None or isinstance(column.type, IntType):
            return total
        message = self._constants.add(f"the sum is too large for {column.type}")
        return f"X.within({total}, {limits[0]}, {limits[1]}, {message})"

    def _average(self, item: AggregateItem, argument: str, column: Column) -> str:
        total, count = ("sum_distinct", "count_distinct") if item.distinct else ("sum", "count")
        assert item.argument is not None
        if isinstance(column.type, FloatType):
            number = argument if isinstance(item.argument.type, FloatType) else f"X.float_of({argument}, 0)"
            return f"(F.{total}({number}) / F.nullif(F.{count}({argument}), F.lit(0)))"
        digits = scale_of(column.type) - scale_of(item.argument.type)
        above = f"X.rescaled(X.wide(F.{total}({argument})), {digits})"
        below = f"X.wide(F.nullif(F.{count}({argument}), F.lit(0)))"
        message = self._constants.add(f"the average is too large for {column.type}")
        return f"X.narrow(X.rounded({above}, {below}), {INT_MIN}, {INT_MAX}, {message})"

    # Two inputs

    def _agree(self, left_width: int, equal: Sequence[tuple[int, int]], rest: Expr | None) -> str:
        parts = [f'(F.col("c{left}") == F.col("d{right}"))' for left, right in equal]
        if rest is not None:
            both = ExpressionWriter(self._constants, lambda at: f"c{at}" if at < left_width else f"d{at - left_width}")
            parts.append(f"({both.value(rest)} == {_IS_PAIR})" if may_fail(rest) else both.value(rest))
        return " & ".join(parts) if parts else "F.lit(True)"

    def _join(self, node: JoinNode, left: str, right: str) -> list[str]:
        left_columns, right_columns = node.left.schema.columns, node.right.schema.columns
        agree = self._agree(len(left_columns), node.equal, node.rest)
        marks = _pair_marks(node.rest)
        right_marks = [*marks, *(() if node.side == "inner" else (_IS_THERE,))]
        left_marks = [*marks, *((_IS_THERE,) if node.side == "full" else ())]
        return [
            f"{left}{_marked(left_marks)}",
            f'.join({right}{_renamed(len(right_columns), right_marks)}, {agree}, "{node.side}")',
            self._joined(node, left_columns, right_columns),
        ]

    def _joined(self, node: JoinNode, left: Sequence[Column], right: Sequence[Column]) -> str:
        shared = {one: other for one, other in node.equal if other not in node.right_kept}
        made: list[str] = []
        for at, column in enumerate(left):
            text = f'"c{at}"'
            if node.side == "full":
                other = (
                    f'F.col("d{shared[at]}")'
                    if at in shared
                    else self._out.constant(node.left_defaults[at].value, column.type)
                )
                text = f'F.when(F.col("lm").isNotNull(), F.col("c{at}")).otherwise({other}).alias("c{at}")'
            made.append(text)
        for at, position in enumerate(node.right_kept):
            text = f'F.col("d{position}")'
            if node.side != "inner" and node.defaults[at].value is not None:
                default = self._out.constant(node.defaults[at].value, node.schema.columns[len(left) + at].type)
                text = f'F.when(F.col("rm").isNotNull(), {text}).otherwise({default})'
            made.append(f'{text}.alias("c{len(left) + at}")')
        return f".select({', '.join(made)})"

    def _matching(self, node: MatchingNode, left: str, right: str) -> list[str]:
        agree = self._agree(len(node.left.schema.columns), node.equal, node.rest)
        kind = "left_anti" if node.negated else "left_semi"
        marks = _pair_marks(node.rest)
        joined = [
            f"{left}{_marked(marks)}",
            f'.join({right}{_renamed(len(node.right.schema.columns), marks)}, {agree}, "{kind}")',
        ]
        return [*joined, _select(range(len(node.left.schema.columns)))] if marks else joined

    def _asof(self, node: AsofNode, left: str, right: str) -> list[str]:
        """The latest right row that is not later, by a join and a choice: the left's key says which row is meant."""
        width = len(node.left.schema.columns)
        agree = self._agree(width, node.equal, None)
        agree += f' & (F.col("d{node.right_time}") <= F.col("c{node.left_time}"))'
        times = [node.right_time, *_ticks(node.right.schema)]
        order = [f'F.col("d{position}").desc_nulls_last()' for position in times]
        order += [f'F.col("d{position}").asc_nulls_last()' for position in node.right.schema.key]
        key = ", ".join(f'"c{position}"' for position in node.left.schema.key) or "F.lit(1)"
        place = f"F.row_number().over(Window.partitionBy({key}).orderBy({', '.join(order)}))"
        kept = [f'"c{at}"' for at in range(width)]
        kept += [f'F.col("d{position}").alias("c{width + at}")' for at, position in enumerate(node.right_kept)]
        side = "left" if node.keep_unmatched else "inner"
        return [
            left,
            f'.join({right}{_renamed(len(node.right.schema.columns))}, {agree}, "{side}")',
            f'.withColumn("place", {place})',
            '.where(F.col("place") == 1)',
            f".select({', '.join(kept)})",
        ]

    # Choices

    def _top(self, node: TopNode, source: str) -> list[str]:
        orders = [
            f"{self._out.value(key.value)}.{'desc' if key.descending else 'asc'}_nulls_last()" for key in node.ordering
        ]
        by_key = [f'F.col("c{position}").asc_nulls_last()' for position in node.input.schema.key]
        group = ", ".join(f'"c{position}"' for position in node.per) or "F.lit(1)"
        place = f"F.row_number().over(Window.partitionBy({group}).orderBy({', '.join([*orders, *by_key])}))"
        steps = [source, f'.withColumn("place", {place})']
        if node.ties:
            rank = f"F.rank().over(Window.partitionBy({group}).orderBy({', '.join(orders)}))"
            steps += [f'.withColumn("rank", {rank})', f'.where(F.col("rank") <= {node.count})']
        else:
            steps.append(f'.where(F.col("place") <= {node.count})')
        width = len(node.input.schema.columns)
        kept = [f'"c{at}"' for at in range(width)]
        if node.rank:
            kept.append(f'F.col("place").cast("bigint").alias("c{width}")')
        return [*steps, f".select({', '.join(kept)})"]


def _select(positions: Sequence[int]) -> str:
    return f".select({', '.join(_as(position, at) for at, position in enumerate(positions))})"


def _as(position: int, at: int) -> str:
    return f'"c{at}"' if position == at else f'F.col("c{position}").alias("c{at}")'


_IS_THERE = ("m", "F.lit(True)")
"""A mark of a side of a join: there is a row."""

_PART = ("p", "X.part()")
_IS_PAIR = '((F.col("lp") >= 0) & (F.col("rp") >= 0))'
"""True for every pair of rows, and nothing that Spark could look at on one side of a join alone."""

_Mark = tuple[str, str]


def _pair_marks(rest: Expr | None) -> list[_Mark]:
    """What both sides need so that a condition which may fail is evaluated for pairs that agree only."""
    return [_PART] if rest is not None and may_fail(rest) else []


def _marked(marks: Sequence[_Mark]) -> str:
    """The left side of a join, with marks."""
    made = ", ".join(f'{value}.alias("l{name}")' for name, value in marks)
    return f'.select("*", {made})' if marks else ""


def _renamed(width: int, marks: Sequence[_Mark] = ()) -> str:
    """The right side of a join: its columns called d0, d1, ..., and marks."""
    columns = [f'F.col("c{at}").alias("d{at}")' for at in range(width)]
    columns += [f'{value}.alias("r{name}")' for name, value in marks]
    return f".select({', '.join(columns)})"


def _kept_above(source: str, *values: Expr) -> list[str]:
    """Rows for which these may fail; what Spark evaluates earlier than it is written, it evaluates for others too."""
    return [source, ".where(X.here())"] if any(map(may_fail, values)) else [source]


def _minus(node: MinusNode, left: str, right: str) -> list[str]:
    """Nulls are values like others here, unlike in joins."""
    pairs = zip(node.left_compared, node.right_order, strict=True)
    same = " & ".join(f'F.col("c{one}").eqNullSafe(F.col("d{other}"))' for one, other in pairs)
    return [left, f'.join({right}{_renamed(len(node.right.schema.columns))}, {same}, "left_anti")']


def _latest(node: LatestNode, source: str) -> list[str]:
    schema = node.input.schema
    way = "asc" if node.which == "first" else "desc"
    times = [*(() if node.by is None else (node.by,)), *_ticks(schema)]
    order = [f'F.col("c{position}").{way}_nulls_last()' for position in times]
    order += [f'F.col("c{position}").asc_nulls_last()' for position in schema.key]
    group = ", ".join(f'"c{position}"' for position in node.per) or "F.lit(1)"
    place = f"F.row_number().over(Window.partitionBy({group}).orderBy({', '.join(order)}))"
    kept = ", ".join(f'"c{at}"' for at in range(len(schema.columns)))
    return [source, f'.withColumn("place", {place})', '.where(F.col("place") == 1)', f".select({kept})"]


def _ticks(schema: Schema) -> list[int]:
    return [position for position, column in enumerate(schema.columns) if column.is_tick]


def _order_fields(schema: Schema) -> list[str]:
    """Fields of a struct that sorts rows by tick, then by key, nulls last."""
    fields: list[str] = []
    for position in [*_ticks(schema), *schema.key]:
        if schema.columns[position].nullable:
            fields.append(f'F.col("c{position}").isNull()')
        fields.append(f'F.col("c{position}")')
    return [f'{text}.alias("o{at}")' for at, text in enumerate(fields)]
