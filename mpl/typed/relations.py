"""Typed relations: columns, keys, and one node per operator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mpl.source import Span
from mpl.typed.expressions import Const, Expr
from mpl.types import OPEN, Bounds, Type


@dataclass(frozen=True)
class Column:
    """One column of a relation. `name` may be dotted (`B.ts`) where a join brought a second column of that name.

    `hidden` columns (the tick of a stream that did not name it) are part of keys but cannot be named by the user.
    `is_tick` marks the tick of an event, hidden or not; `is_event_time` the column that a stream declares as such.
    """

    name: str
    type: Type
    nullable: bool = False
    bounds: Bounds = OPEN
    hidden: bool = False
    is_tick: bool = False
    is_event_time: bool = False


@dataclass(frozen=True)
class Schema:
    """Columns by position, the key, other unique column sets, and columns that others determine.

    `key` is a tuple of positions, in column order; empty means that the relation has exactly one row.
    `determined` has pairs (positions, position): the first decide the second, e.g. wstart decides wend.
    """

    columns: tuple[Column, ...]
    key: tuple[int, ...]
    unique: tuple[tuple[int, ...], ...] = ()
    determined: tuple[tuple[tuple[int, ...], int], ...] = ()

    def index(self, name: str) -> int:
        return next(position for position, column in enumerate(self.columns) if column.name == name)

    @property
    def visible(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if not column.hidden)


@dataclass(frozen=True, kw_only=True)
class RelationNode:
    schema: Schema
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class StreamScan(RelationNode):
    """All events of a stream: its declared columns and its tick, which is the last column and part of `unique`."""

    stream: str


@dataclass(frozen=True)
class TableScan(RelationNode):
    table: str


@dataclass(frozen=True)
class ViewScan(RelationNode):
    """The rows of another view of the program."""

    view: str


@dataclass(frozen=True)
class MergeNode(RelationNode):
    """Event relations with equal columns, by tick."""

    inputs: tuple[RelationTree, ...]


@dataclass(frozen=True)
class WhereNode(RelationNode):
    input: RelationTree
    predicate: Expr


@dataclass(frozen=True)
class ProjectNode(RelationNode):
    """Keeps the columns at `kept`. With a key among them rows map one to one; with `drops_key`, to a set of rows.

    Ticks are never dropped, only hidden: projecting events keeps every event.
    """

    input: RelationTree
    kept: tuple[int, ...]
    drops_key: bool


@dataclass(frozen=True)
class ExtendNode(RelationNode):
    """Appends columns; each definition sees the input's columns only (not the other definitions)."""

    input: RelationTree
    values: tuple[Expr, ...]


@dataclass(frozen=True)
class RenameNode(RelationNode):
    """Same columns under other names."""

    input: RelationTree


@dataclass(frozen=True)
class WindowNode(RelationNode):
    """Appends wstart and wend. `time` is the position of the time column; durations in microseconds.

    tumble: size = every. hop: each row appears once per window that holds it. session: `size` is the gap, `per` the
    columns whose rows share sessions.
    """

    input: RelationTree
    shape: Literal["tumble", "hop", "session"]
    time: int
    size_us: int
    every_us: int
    per: tuple[int, ...]


@dataclass(frozen=True)
class AggregateItem:
    """One aggregate of an `aggregate`; result type, bounds and nullability are those of the output column."""

    function: Literal["sum", "count", "min", "max", "avg", "first", "last", "any", "all"]
    argument: Expr | None
    distinct: bool
    where: Expr | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class AggregateNode(RelationNode):
    """Columns: the group columns (positions in the input), then one per item."""

    input: RelationTree
    group: tuple[int, ...]
    items: tuple[AggregateItem, ...]


@dataclass(frozen=True)
class JoinNode(RelationNode):
    """Pairs of rows that agree on `equal` (position in left, position in right) and satisfy `rest`.

    Columns: the left's, then the right's that are in `right_kept` (a `using` column appears once, from the left; for
    a full join it is whichever side has it). `defaults` fill the kept right columns of left rows without partner
    (left and full joins), one constant (perhaps null) per kept right column; `left_defaults` likewise for the left
    columns of right rows without partner (full joins only, else empty).
    """

    left: RelationTree
    right: RelationTree
    side: Literal["inner", "left", "full"]
    equal: tuple[tuple[int, int], ...]
    rest: Expr | None
    right_kept: tuple[int, ...]
    defaults: tuple[Const, ...]
    left_defaults: tuple[Const, ...] = ()


@dataclass(frozen=True)
class AsofNode(RelationNode):
    """For each left row the latest right row, by time, that agrees on `equal` and is not later than it.

    `left_time`, `right_time`: the event-time columns compared.
    """

    left: RelationTree
    right: RelationTree
    keep_unmatched: bool
    equal: tuple[tuple[int, int], ...]
    left_time: int
    right_time: int
    right_kept: tuple[int, ...]


@dataclass(frozen=True)
class MatchingNode(RelationNode):
    """Left rows that have (or, negated, do not have) a right row with `equal` and `rest`; the left's columns."""

    left: RelationTree
    right: RelationTree
    negated: bool
    equal: tuple[tuple[int, int], ...]
    rest: Expr | None


@dataclass(frozen=True)
class OrderKey:
    value: Expr
    descending: bool


@dataclass(frozen=True)
class TopNode(RelationNode):
    """The best `count` rows per group; with `rank`, the last column says which place (from 1)."""

    input: RelationTree
    count: int
    per: tuple[int, ...]
    ordering: tuple[OrderKey, ...]
    rank: bool
    ties: bool


@dataclass(frozen=True)
class LatestNode(RelationNode):
    """One row per group: the one with the largest (`latest`) or smallest (`first`) `by`, ties by tick."""

    input: RelationTree
    which: Literal["latest", "first"]
    per: tuple[int, ...]
    by: int | None


@dataclass(frozen=True)
class DistinctNode(RelationNode):
    """The set of rows; hidden columns are dropped, all others (positions in `kept`) are the key."""

    input: RelationTree
    kept: tuple[int, ...]


@dataclass(frozen=True)
class UnionNode(RelationNode):
    """Rows of either side, as a set; right columns in the left's order (`right_order`: position in the right)."""

    left: RelationTree
    right: RelationTree
    left_kept: tuple[int, ...]
    right_order: tuple[int, ...]


@dataclass(frozen=True)
class MinusNode(RelationNode):
    """Left rows whose visible columns equal no right row's."""

    left: RelationTree
    right: RelationTree
    left_compared: tuple[int, ...]
    right_order: tuple[int, ...]


RelationTree = (
    StreamScan
    | TableScan
    | ViewScan
    | MergeNode
    | WhereNode
    | ProjectNode
    | ExtendNode
    | RenameNode
    | WindowNode
    | AggregateNode
    | JoinNode
    | AsofNode
    | MatchingNode
    | TopNode
    | LatestNode
    | DistinctNode
    | UnionNode
    | MinusNode
)


def inputs_of(node: RelationTree) -> tuple[RelationTree, ...]:
    """The relations a node reads, left to right."""
    match node:
        case StreamScan() | TableScan() | ViewScan():
            return ()
        case MergeNode():
            return node.inputs
        case JoinNode() | AsofNode() | MatchingNode() | UnionNode() | MinusNode():
            return (node.left, node.right)
        case _:
            return (node.input,)
