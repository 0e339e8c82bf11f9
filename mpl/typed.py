"""The checked program: every name resolved, every expression typed, every relation with columns and a key.

Built by the checker (`mpl/expressions.py` for scalars, `mpl/relations/` for relations), annotated by the monotonic
analysis (`mpl/knowledge/`), and what the compiler starts from. Frozen facts only; spans do not take part in equality.

Scalar expressions refer to columns by position in the columns of the node's input; a node with two inputs (joins)
counts the left input's columns first, then the right's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mpl.source import Span
from mpl.types import OPEN, Bounds, Type, Value

# --- scalar expressions ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TypedExpr:
    """`nullable` = the value may be null; `bounds` = a range the value is known to stay in (numbers only)."""

    type: Type
    nullable: bool = False
    bounds: Bounds = OPEN
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Const(TypedExpr):
    """A canonical value (see `mpl/types.py`)."""

    value: Value


@dataclass(frozen=True)
class ColumnRef(TypedExpr):
    """Column at `index` of the input; `name` is for people."""

    index: int
    name: str


@dataclass(frozen=True)
class Apply(TypedExpr):
    """A library function or operator on arguments; see `mpl/functions/` for the list of names.

    Operators are functions here: add subtract multiply divide modulo negate concat, equal unequal less less_equal
    greater greater_equal, and or not, in_list like is_null coalesce cast ... `between` has become `and`, `not in` has
    become `not`. `cast` converts to this node's own type.
    """

    function: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True)
class CaseOf(TypedExpr):
    """`otherwise` is always there: a missing `else` has become a null constant."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr


@dataclass(frozen=True)
class PythonCall(TypedExpr):
    """A declared function whose body is Python. `monotone` has one direction per argument or is empty."""

    module: str
    function: str
    arguments: tuple[Expr, ...]
    monotone: tuple[Literal["up", "down"], ...]


Expr = Const | ColumnRef | Apply | CaseOf | PythonCall


# --- relations ------------------------------------------------------------------------------------------------------


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


# --- declarations ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stream:
    """`unique`, `event_time`, `closes` name column positions; durations and times in microseconds.

    `phase` is (which, of how many): the residue of ticks this stream owns among streams that are merged with it.
    """

    name: str
    schema: Schema
    tick_name: str | None
    tick_every_us: int | None
    phase: tuple[int, int] | None
    unique: tuple[tuple[int, ...], ...]
    event_time: int | None
    late_us: int
    live: bool
    closes: tuple[tuple[int, int], ...]
    until_us: int | None
    retain_us: int | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Table:
    name: str
    schema: Schema
    path: str | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class View:
    """`inline` views have no component of their own; `materialize` forces one; None leaves it to the compiler."""

    name: str
    relation: RelationTree
    storage: Literal["materialize", "inline"] | None
    span: Span = field(compare=False, repr=False)

    @property
    def schema(self) -> Schema:
        return self.relation.schema


@dataclass(frozen=True)
class Subscription:
    """A subscription to `view`; one written over a relation of its own gets a view named after it."""

    name: str
    view: str
    emit: Literal["changes", "bounds", "final", "as of horizon"]
    broker: str | None
    every_us: int | None
    within_us: int | None
    snapshot: bool
    durable: bool
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Broker:
    name: str
    address: str
    cpu: int | None
    memory_bytes: int | None
    edge: bool
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Link:
    """`bandwidth_bps` in bits per second; `loss_ppm` in parts per million."""

    left: str
    right: str
    latency_us: int | None
    bandwidth_bps: int | None
    loss_ppm: int | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Placement:
    relation: str
    how: Literal["at", "on", "near", "with", "avoid"]
    target: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Protection:
    """`relation` is None for all views."""

    relation: str | None
    scheme: Literal["upstream", "passive", "active", "semiactive"]
    duration_us: int | None
    broker: str | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Tuning:
    """`relation` is None for everything; a field that is None was not said."""

    relation: str | None
    gap_us: int | None
    idle_us: int | None
    liveness: Literal["pull", "push"] | None
    quench: bool | None
    checkpoint_us: int | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Drop:
    """Something deployed earlier that this program takes away."""

    what: Literal["view", "subscribe", "stream"]
    name: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class TypedProgram:
    """Everything that a file declares. Views come in an order in which each follows those that it reads."""

    streams: dict[str, Stream]
    tables: dict[str, Table]
    views: dict[str, View]
    subscriptions: dict[str, Subscription]
    brokers: dict[str, Broker]
    links: tuple[Link, ...]
    placements: tuple[Placement, ...]
    protections: tuple[Protection, ...]
    tunings: tuple[Tuning, ...]
    drops: tuple[Drop, ...]
