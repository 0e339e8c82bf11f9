"""Statements as written: declarations, subscriptions, deployment."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from mpl.nodes.base import Name, Node
from mpl.nodes.expressions import ColumnDecl, DurationLiteral, Expr, TypeNode
from mpl.nodes.relations import Relation


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
    """`memory` as (amount, unit), the unit in lower case."""

    name: Name
    address: str
    cpu: int | None
    memory: tuple[int, str] | None
    edge: bool


@dataclass(frozen=True)
class LinkDecl(Node):
    """`bandwidth` as (amount, unit), the unit in lower case; `loss` in per cent."""

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
    """`unread` has the names that statements with syntax errors would have declared: not missing, but unknown."""

    statements: tuple[Statement, ...]
    unread: frozenset[str] = frozenset()
