"""Syntax nodes: what the user wrote, with the place where they wrote it.

Built by `mpl/parser.py`, read by the checker and the formatter. No behaviour, no types, no resolved names. Spans do
not take part in equality, so two texts that differ only in layout and comments give equal nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from mpl.source import Span


@dataclass(frozen=True, kw_only=True)
class Node:
    """Anything with a place."""

    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Name(Node):
    """One identifier as written (case kept; names are case-sensitive, keywords are not)."""

    text: str


@dataclass(frozen=True)
class ColumnName(Node):
    """A column, perhaps with the alias of the relation it comes from: `price`, `B.ts`."""

    qualifier: Name | None
    name: Name

    @property
    def text(self) -> str:
        return f"{self.qualifier.text}.{self.name.text}" if self.qualifier else self.name.text


# --- scalar expressions ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class IntLiteral(Node):
    value: int


@dataclass(frozen=True)
class DecimalLiteral(Node):
    """`12.50`; its scale is the number of digits written after the point."""

    value: Decimal


@dataclass(frozen=True)
class FloatLiteral(Node):
    """`1e3`: a number with an exponent is a float."""

    value: float


@dataclass(frozen=True)
class TextLiteral(Node):
    value: str


@dataclass(frozen=True)
class BoolLiteral(Node):
    value: bool


@dataclass(frozen=True)
class NullLiteral(Node):
    pass


@dataclass(frozen=True)
class DurationLiteral(Node):
    """`200 ms`, `4 s`, `1 h`; `unit` as written in lower case, for the formatter."""

    amount: int
    unit: str

    @property
    def microseconds(self) -> int:
        return self.amount * DURATION_UNITS[self.unit]


DURATION_UNITS: dict[str, int] = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
"""How durations are written, in microseconds. `d` is 24 hours: there are no time zones here."""


@dataclass(frozen=True)
class TimeLiteral(Node):
    """`time '2026-01-31 12:00:00'`, UTC; the text is checked later so that the error can point into it."""

    text: str


@dataclass(frozen=True)
class ColumnExpr(Node):
    column: ColumnName


@dataclass(frozen=True)
class Negate(Node):
    operand: Expr


@dataclass(frozen=True)
class Not(Node):
    operand: Expr


ArithmeticOp = Literal["+", "-", "*", "/", "%", "||"]


@dataclass(frozen=True)
class Arithmetic(Node):
    """A chain of operators of equal precedence, left to right: `a + b - c`. Flat, so that long chains do not nest."""

    first: Expr
    rest: tuple[tuple[ArithmeticOp, Expr], ...]


CompareOp = Literal["=", "<>", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Compare(Node):
    """Comparisons do not chain: `a < b < c` is a syntax error."""

    op: CompareOp
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Logical(Node):
    op: Literal["and", "or"]
    operands: tuple[Expr, ...]


@dataclass(frozen=True)
class InList(Node):
    operand: Expr
    items: tuple[Expr, ...]
    negated: bool


@dataclass(frozen=True)
class Between(Node):
    operand: Expr
    low: Expr
    high: Expr
    negated: bool


@dataclass(frozen=True)
class Like(Node):
    """`%` any text, `_` any one character, `\\` escapes."""

    operand: Expr
    pattern: Expr
    negated: bool


@dataclass(frozen=True)
class IsNull(Node):
    operand: Expr
    negated: bool


@dataclass(frozen=True)
class Case(Node):
    """`case when c then x ... else y end`; without `else` the value may be null."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None


@dataclass(frozen=True)
class Cast(Node):
    operand: Expr
    type: TypeNode


@dataclass(frozen=True)
class Call(Node):
    """A library function, a declared function, or (only inside `aggregate`) an aggregate."""

    function: Name
    arguments: tuple[Expr, ...]


Expr = (
    IntLiteral
    | DecimalLiteral
    | FloatLiteral
    | TextLiteral
    | BoolLiteral
    | NullLiteral
    | DurationLiteral
    | TimeLiteral
    | ColumnExpr
    | Negate
    | Not
    | Arithmetic
    | Compare
    | Logical
    | InList
    | Between
    | Like
    | IsNull
    | Case
    | Cast
    | Call
)


# --- types and columns ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TypeNode(Node):
    """`int`, `decimal(10,2)`, `text(40)`, `enum('a','b')`; `name` in lower case."""

    name: Literal["int", "decimal", "float", "bool", "text", "time", "duration", "enum"]
    numbers: tuple[int, ...] = ()
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class RangeNode(Node):
    """`[0..1000]`, `[0..]`: inclusive, either end may be open. The ends are literals, perhaps negated."""

    low: Expr | None
    high: Expr | None


@dataclass(frozen=True)
class ColumnDecl(Node):
    name: Name
    type: TypeNode
    range: RangeNode | None
    nullable: bool


# --- relations ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SourceRef(Node):
    """What a pipeline or a join reads: a named relation or one in parentheses, perhaps with an alias."""

    relation: Name | Relation
    alias: Name | None


@dataclass(frozen=True)
class Relation(Node):
    """`from X |> ...` (one source) or `merge X, Y |> ...` (`is_merge`, two or more)."""

    sources: tuple[SourceRef, ...]
    is_merge: bool
    operators: tuple[Operator, ...]


@dataclass(frozen=True)
class Definition(Node):
    """`name := expr`."""

    name: Name
    value: Expr


@dataclass(frozen=True)
class Using(Node):
    columns: tuple[Name, ...]


@dataclass(frozen=True)
class On(Node):
    predicate: Expr


JoinCondition = Using | On


@dataclass(frozen=True)
class Where(Node):
    predicate: Expr


@dataclass(frozen=True)
class Project(Node):
    """`project a, B.ts` or, with `all_but`, everything else."""

    columns: tuple[ColumnName, ...]
    all_but: bool


@dataclass(frozen=True)
class Extend(Node):
    definitions: tuple[Definition, ...]


@dataclass(frozen=True)
class Rename(Node):
    pairs: tuple[tuple[ColumnName, Name], ...]


@dataclass(frozen=True)
class Window(Node):
    """`tumble(c, size)`, `hop(c, size every step)`, `session(c, gap d per k)`. For session `size` is the gap."""

    shape: Literal["tumble", "hop", "session"]
    column: ColumnName
    size: DurationLiteral
    every: DurationLiteral | None = None
    per: tuple[ColumnName, ...] = ()


@dataclass(frozen=True)
class AggregateCall(Node):
    function: Literal["sum", "count", "min", "max", "avg", "first", "last", "any", "all"]
    argument: Expr | None
    distinct: bool
    where: Expr | None


@dataclass(frozen=True)
class AggregateDefinition(Node):
    name: Name
    value: AggregateCall


@dataclass(frozen=True)
class Aggregate(Node):
    definitions: tuple[AggregateDefinition, ...]
    group_by: tuple[ColumnName, ...] | None


@dataclass(frozen=True)
class Join(Node):
    side: Literal["inner", "left", "full"]
    source: SourceRef
    condition: JoinCondition
    defaults: tuple[Definition, ...]


@dataclass(frozen=True)
class AsofJoin(Node):
    left: bool
    source: SourceRef
    condition: JoinCondition


@dataclass(frozen=True)
class Matching(Node):
    negated: bool
    source: SourceRef
    condition: JoinCondition


@dataclass(frozen=True)
class OrderItem(Node):
    value: Expr
    descending: bool


@dataclass(frozen=True)
class Top(Node):
    count: int
    per: tuple[ColumnName, ...]
    ordering: tuple[OrderItem, ...]
    rank: Name | None
    ties: bool


@dataclass(frozen=True)
class LatestFirst(Node):
    which: Literal["latest", "first"]
    per: tuple[ColumnName, ...]
    by: ColumnName | None


@dataclass(frozen=True)
class Distinct(Node):
    pass


@dataclass(frozen=True)
class Union(Node):
    source: SourceRef


@dataclass(frozen=True)
class Minus(Node):
    source: SourceRef


Operator = (
    Where
    | Project
    | Extend
    | Rename
    | Window
    | Aggregate
    | Join
    | AsofJoin
    | Matching
    | Top
    | LatestFirst
    | Distinct
    | Union
    | Minus
)


# --- statements -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TickOption(Node):
    """`tick offer_id every 1 ms phase 0 of 2`: names the key; phase says which residue this stream owns."""

    name: Name
    every: DurationLiteral | None
    phase: tuple[int, int] | None


@dataclass(frozen=True)
class UniqueOption(Node):
    columns: tuple[Name, ...]


@dataclass(frozen=True)
class EventTimeOption(Node):
    column: Name
    late: DurationLiteral | None
    live: bool


@dataclass(frozen=True)
class ClosesOption(Node):
    """`closes id at expires`: after event time `expires` nothing more concerns this value of `id`."""

    column: Name
    at: Name


@dataclass(frozen=True)
class UntilOption(Node):
    """`until time '...'`: the stream ends at this event time."""

    value: Expr


@dataclass(frozen=True)
class RetainOption(Node):
    duration: DurationLiteral


StreamOption = TickOption | UniqueOption | EventTimeOption | ClosesOption | UntilOption | RetainOption


@dataclass(frozen=True)
class StreamDecl(Node):
    name: Name
    columns: tuple[ColumnDecl, ...]
    options: tuple[StreamOption, ...]


@dataclass(frozen=True)
class TableDecl(Node):
    """A bounded side input that never changes: `table side (key int, value text) key key from "side.csv"`."""

    name: Name
    columns: tuple[ColumnDecl, ...]
    key: tuple[Name, ...]
    path: str | None


@dataclass(frozen=True)
class ViewDecl(Node):
    name: Name
    key: tuple[Name, ...] | None
    relation: Relation
    storage: Literal["materialize", "inline"] | None


@dataclass(frozen=True)
class EmitOption(Node):
    mode: Literal["changes", "bounds", "final", "as of horizon"]


@dataclass(frozen=True)
class AtOption(Node):
    broker: Name


@dataclass(frozen=True)
class EveryOption(Node):
    duration: DurationLiteral


@dataclass(frozen=True)
class WithinOption(Node):
    duration: DurationLiteral


@dataclass(frozen=True)
class SnapshotOption(Node):
    on: bool


@dataclass(frozen=True)
class DurableOption(Node):
    pass


SubscribeOption = EmitOption | AtOption | EveryOption | WithinOption | SnapshotOption | DurableOption


@dataclass(frozen=True)
class SubscribeDecl(Node):
    name: Name
    target: Name | Relation
    options: tuple[SubscribeOption, ...]


@dataclass(frozen=True)
class Parameter(Node):
    name: Name
    type: TypeNode
    nullable: bool


@dataclass(frozen=True)
class FunctionDecl(Node):
    """The body is MPL, or `python "module:name"`. `monotone` has a direction per parameter; None where not stated."""

    name: Name
    parameters: tuple[Parameter, ...]
    result: TypeNode
    result_nullable: bool
    body: Expr | None
    python: str | None
    monotone: tuple[Literal["up", "down"], ...]


@dataclass(frozen=True)
class BrokerDecl(Node):
    """`memory` in bytes with the unit as written kept for the formatter."""

    name: Name
    address: str
    cpu: int | None
    memory: tuple[int, str] | None
    edge: bool


@dataclass(frozen=True)
class LinkDecl(Node):
    """`bandwidth` as (amount, unit); `loss` in per cent."""

    left: Name
    right: Name
    latency: DurationLiteral | None
    bandwidth: tuple[int, str] | None
    loss: Decimal | None


@dataclass(frozen=True)
class PublishDecl(Node):
    """`publish BuyersWest at west`."""

    stream: Name
    broker: Name


@dataclass(frozen=True)
class PlaceDecl(Node):
    relation: Name
    how: Literal["on", "near", "with", "avoid"]
    target: Name


@dataclass(frozen=True)
class ProtectDecl(Node):
    """`relation` is None for `all`; `duration` is the `every` of passive or the `lag` of semiactive."""

    relation: Name | None
    scheme: Literal["upstream", "passive", "active", "semiactive"]
    duration: DurationLiteral | None
    broker: Name | None


@dataclass(frozen=True)
class TuneGap(Node):
    duration: DurationLiteral


@dataclass(frozen=True)
class TuneIdle(Node):
    duration: DurationLiteral


@dataclass(frozen=True)
class TuneLiveness(Node):
    mode: Literal["pull", "push"]


@dataclass(frozen=True)
class TuneQuench(Node):
    on: bool


@dataclass(frozen=True)
class TuneCheckpoint(Node):
    every: DurationLiteral


TuneOption = TuneGap | TuneIdle | TuneLiveness | TuneQuench | TuneCheckpoint


@dataclass(frozen=True)
class TuneDecl(Node):
    relation: Name | None
    options: tuple[TuneOption, ...]


@dataclass(frozen=True)
class DropDecl(Node):
    what: Literal["view", "subscribe", "stream"]
    name: Name


Statement = (
    StreamDecl
    | TableDecl
    | ViewDecl
    | SubscribeDecl
    | FunctionDecl
    | BrokerDecl
    | LinkDecl
    | PublishDecl
    | PlaceDecl
    | ProtectDecl
    | TuneDecl
    | DropDecl
)


@dataclass(frozen=True)
class Program(Node):
    statements: tuple[Statement, ...]
