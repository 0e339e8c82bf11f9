"""Relations as written: sources, pipelines, operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mpl.nodes.base import ColumnName, Name, Node
from mpl.nodes.expressions import DurationLiteral, Expr


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
