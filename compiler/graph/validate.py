"""The invariants of a transform graph, checked after every pass. A violation is a mistake of the compiler.

Inputs exist and come first; references say what they refer to really is; positions are in range; every expression
fits the columns it is evaluated on; every operator's columns follow from its inputs. That keys identify rows cannot be
seen here: the reference interpreter of the tests checks it on data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn

from compiler.expressions import parts_of
from compiler.graph.transform import Transform, TransformGraph, references_of, source_of
from mpl.relations.conditions import same_representation
from mpl.typed import (
    AggregateNode,
    AsofNode,
    Column,
    ColumnRef,
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
    Schema,
    TopNode,
    UnionNode,
    WhereNode,
    WindowNode,
)
from mpl.types import BoolType


class GraphError(AssertionError):
    """The graph contradicts itself: a bug in the compiler, never the user's fault."""


def validate(graph: TransformGraph) -> TransformGraph:
    """The graph itself, or `GraphError`."""
    seen: set[str] = {*graph.program.streams, *graph.program.tables}
    for name, transform in graph.nodes.items():
        check = _Check(transform)
        check.that(name == transform.id, f"is filed under {name}")
        check.that(name not in seen, "has the name of another relation")
        for scan in references_of(transform.node):
            source = source_of(scan)
            check.that(source in seen, f"reads {source}, which does not come before it")
            check.that(scan.schema == graph.schema_of(source), f"has a wrong idea of the columns of {source}")
        check.that(bool(transform.origins), "comes from nowhere")
        check.schema(transform.schema)
        check.node(transform.node)
        seen.add(name)
    for view, output in graph.outputs.items():
        if output.id not in seen:
            raise GraphError(f"output {view}: there is no {output.id}")
        actual = graph.schema_of(output.id)
        if len(actual.columns) != len(output.schema.columns) or actual.key != output.schema.key:
            raise GraphError(f"output {view}: {output.id} has other columns or another key")
        for position, (shown, column) in enumerate(zip(output.schema.columns, actual.columns, strict=True)):
            if not _admits(shown, column):
                raise GraphError(f"output {view}: column {position} is not what {output.id} has")
    return graph


def _admits(wide: Column, narrow: Column) -> bool:
    """May every value of `narrow` stand in `wide`?"""
    low = wide.bounds.low is None or (narrow.bounds.low is not None and narrow.bounds.low >= wide.bounds.low)
    high = wide.bounds.high is None or (narrow.bounds.high is not None and narrow.bounds.high <= wide.bounds.high)
    alike = wide.type == narrow.type or same_representation(wide, narrow)
    return alike and (wide.nullable or not narrow.nullable) and low and high


class _Check:
    """Checks one transform; every complaint names it."""

    def __init__(self, transform: Transform) -> None:
        self.id = transform.id
        self.columns = transform.schema.columns

    def that(self, holds: bool, complaint: str) -> None:
        if not holds:
            self.fail(complaint)

    def fail(self, complaint: str) -> NoReturn:
        raise GraphError(f"{self.id} {complaint}")

    def schema(self, schema: Schema) -> None:
        width = len(schema.columns)
        self.positions(schema.key, width, "key")
        self.that(schema.key == tuple(sorted(set(schema.key))), "has a key out of order")
        for positions in schema.unique:
            self.positions(positions, width, "unique columns")
        for deciding, decided in schema.determined:
            self.positions((*deciding, decided), width, "determined columns")

    def positions(self, positions: Iterable[int], width: int, what: str) -> None:
        self.that(all(0 <= position < width for position in positions), f"has {what} beyond its columns")

    def expression(self, expr: Expr, columns: Sequence[Column]) -> None:
        for part in parts_of(expr):
            if isinstance(part, ColumnRef):
                self.that(0 <= part.index < len(columns), f"refers to column {part.index} of {len(columns)}")
                claimed = Column(part.name, part.type, part.nullable, part.bounds)
                self.that(_admits(claimed, columns[part.index]), f"misjudges column `{part.name}`")

    def predicate(self, expr: Expr | None, columns: Sequence[Column]) -> None:
        if expr is not None:
            self.that(isinstance(expr.type, BoolType), "has a predicate that is no condition")
            self.expression(expr, columns)

    def made_of(self, sources: Sequence[Column], start: int = 0) -> None:
        """The columns from `start` on hold the values of `sources`."""
        mine = self.columns[start : start + len(sources)]
        self.that(len(mine) == len(sources), f"has {len(self.columns)} columns, too few for its inputs")
        for column, source in zip(mine, sources, strict=True):
            self.that(_admits(column, source), f"has a column `{column.name}` that is not its input's `{source.name}`")

    def width(self, width: int) -> None:
        self.that(len(self.columns) == width, f"has {len(self.columns)} columns instead of {width}")

    def node(self, node: RelationTree) -> None:
        match node:
            case JoinNode() | AsofNode() | MatchingNode() | UnionNode() | MinusNode():
                self.two_inputs(node, node.left.schema.columns, node.right.schema.columns)
            case MergeNode():
                for source in node.inputs:
                    self.made_of(source.schema.columns)
                    self.width(len(source.schema.columns))
            case AggregateNode() | TopNode() | LatestNode() | DistinctNode():
                self.groups(node, node.input.schema.columns)
            case WhereNode() | ProjectNode() | ExtendNode() | WindowNode():
                self.rows(node, node.input.schema.columns)
            case _:
                self.width(len(references_of(node)[0].schema.columns))

    def rows(self, node: WhereNode | ProjectNode | ExtendNode | WindowNode, source: tuple[Column, ...]) -> None:
        match node:
            case WhereNode():
                self.predicate(node.predicate, source)
                self.made_of(source)
                self.width(len(source))
            case ProjectNode():
                self.positions(node.kept, len(source), "kept columns")
                self.made_of([source[position] for position in node.kept])
                self.width(len(node.kept))
            case ExtendNode():
                values = []
                for value in node.values:
                    self.expression(value, source)
                    values.append(Column("", value.type, value.nullable, value.bounds))
                self.made_of([*source, *values])
                self.width(len(source) + len(values))
            case WindowNode():
                self.positions((node.time, *node.per), len(source), "window columns")
                self.made_of(source)
                self.width(len(source) + 2)

    def groups(self, node: AggregateNode | TopNode | LatestNode | DistinctNode, source: tuple[Column, ...]) -> None:
        match node:
            case AggregateNode():
                self.positions(node.group, len(source), "group columns")
                self.made_of([source[position] for position in node.group])
                self.width(len(node.group) + len(node.items))
                for item in node.items:
                    self.predicate(item.where, source)
                    if item.argument is not None:
                        self.expression(item.argument, source)
            case TopNode():
                self.positions(node.per, len(source), "group columns")
                for key in node.ordering:
                    self.expression(key.value, source)
                self.made_of(source)
                self.width(len(source) + node.rank)
            case LatestNode():
                self.positions((*node.per, *(() if node.by is None else (node.by,))), len(source), "group columns")
                self.made_of(source)
                self.width(len(source))
            case DistinctNode():
                self.positions(node.kept, len(source), "kept columns")
                self.made_of([source[position] for position in node.kept])
                self.width(len(node.kept))

    def two_inputs(
        self,
        node: JoinNode | AsofNode | MatchingNode | UnionNode | MinusNode,
        left: tuple[Column, ...],
        right: tuple[Column, ...],
    ) -> None:
        if isinstance(node, JoinNode | AsofNode | MatchingNode):
            self.positions((one for one, _ in node.equal), len(left), "compared columns")
            self.positions((other for _, other in node.equal), len(right), "compared columns")
            for one, other in node.equal:
                self.that(same_representation(left[one], right[other]), "compares columns of different types")
        match node:
            case JoinNode():
                self.positions(node.right_kept, len(right), "kept columns")
                self.predicate(node.rest, (*left, *right))
                self.made_of(left)
                self.made_of([right[position] for position in node.right_kept], len(left))
                self.width(len(left) + len(node.right_kept))
                self.that(len(node.defaults) in (0, len(node.right_kept)), "has defaults for other columns")
                self.that(len(node.left_defaults) in (0, len(left)), "has defaults for other columns")
            case AsofNode():
                self.positions((node.left_time,), len(left), "times")
                self.positions((node.right_time, *node.right_kept), len(right), "times or kept columns")
                self.made_of(left)
                self.made_of([right[position] for position in node.right_kept], len(left))
                self.width(len(left) + len(node.right_kept))
            case MatchingNode():
                self.predicate(node.rest, (*left, *right))
                self.made_of(left)
                self.width(len(left))
            case UnionNode():
                self.positions(node.left_kept, len(left), "kept columns")
                self.positions(node.right_order, len(right), "kept columns")
                self.made_of([left[position] for position in node.left_kept])
                self.made_of([right[position] for position in node.right_order])
                self.width(len(node.left_kept))
            case MinusNode():
                self.positions(node.left_compared, len(left), "compared columns")
                self.positions(node.right_order, len(right), "compared columns")
                self.that(len(node.left_compared) == len(node.right_order), "compares unequal numbers of columns")
                self.made_of(left)
                self.width(len(left))
