"""Typed declarations, and the program that holds them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mpl.source import Span
from mpl.typed.relations import RelationTree, Schema
from mpl.types import Value


@dataclass(frozen=True)
class Stream:
    """`unique`, `event_time`, `closes` name column positions; durations and times in microseconds.

    `defaults` has pairs (position, canonical value): what an event has in this column if it was published without it.
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
    defaults: tuple[tuple[int, Value], ...]
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
