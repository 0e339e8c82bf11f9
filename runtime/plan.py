"""The plan: what the runtime is told about a transform graph.

The compiler (or the simulator) makes one; `runtime.protocol.build` turns its components into state machines. It is
data plus each operator's parameters (`OperatorSpec`, one subclass per file of `runtime/operators`). It contains no
placement, no addresses, and no MPL.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from runtime.loops.code import Code
    from runtime.operators.operator import EventOperator, Operator


class PlanError(ValueError):
    """A plan that contradicts itself: our compiler's mistake, found before anything runs."""


class ValueType(Enum):
    INT = "int"  # also scaled decimals and times
    FLOAT = "float"
    TEXT = "text"
    BOOL = "bool"


Unit = Literal["time", "duration"] | int
"""What whole numbers stand for: microseconds since 1970, microseconds, or decimals with so many digits."""


class ColumnKind(Enum):
    """How a physical column may move. Compound domains are several columns, tied together by `ShownColumn`."""

    FINAL = "final"
    UP = "up"
    DOWN = "down"
    DOM = "dom"  # dominated by the larger order key that precedes it in the row
    VERSIONED = "versioned"  # true as of a coverage, not a refinement


class Finality(Enum):
    """When a row that a subscriber sees can no longer change. `emit final` delivers nothing else."""

    VISIBLE = "visible"  # as soon as it is visible: events, pairs of events, first witnesses
    HORIZON = "horizon"  # once the horizon has passed its max_tick: first by key
    NEVER = "never"  # sums and the like, until somebody closes the group


class Mode(Enum):
    """Who keeps an edge alive when a message may have been lost without leaving a gap."""

    PULL = "pull"  # the receiver polls after an idle time
    PUSH = "push"  # the sender repeats until it is quenched by an acknowledgement


class Emit(Enum):
    CHANGES = "changes"
    BOUNDS = "bounds"
    FINAL = "final"
    AS_OF_HORIZON = "as of horizon"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: ValueType = ValueType.INT
    kind: ColumnKind = ColumnKind.FINAL
    nullable: bool = False
    contribution_max: int | None = None  # Q: the most that one tick can add; None = unbounded
    unit: Unit | None = field(default=None, compare=False)  # for messages; what is computed does not depend on it


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """What a subscriber sees of one or two physical columns: as is, p - n, or sum / count."""

    name: str
    form: str  # "plain" | "difference" | "average"
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """Columns (key first), and what the checker proved about the rows."""

    name: str
    columns: tuple[Column, ...]
    key_width: int
    is_event: bool = False  # then column 0 is the tick, key_width is 1, every column FINAL
    versioned: bool = False  # rows, visibility included, are true as of K only
    finality: Finality = Finality.NEVER
    shown: tuple[ShownColumn, ...] = ()  # empty: every column as it is

    @property
    def width(self) -> int:
        return len(self.columns)


class OperatorSpec(ABC):
    """Parameters of one operator instance: a frozen dataclass in the operator's file."""

    @abstractmethod
    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator | EventOperator:
        """A fresh operator with empty state."""

    def code(self, inputs: tuple[Relation, ...], output: Relation) -> Code | None:
        """The operator's generated loop, if it has one: what `build` loads."""
        return None


@dataclass(frozen=True, slots=True)
class StreamSpec(OperatorSpec):
    """A base relation. Its ticks are those with tick % modulus == residue."""

    residue: int
    modulus: int = 1024
    ticks_per_us: int = 1024

    def build(self, inputs: tuple[Relation, ...], output: Relation) -> Operator | EventOperator:
        raise PlanError(f"{output.name} is a stream: it has a log, not an operator")


@dataclass(frozen=True, slots=True)
class Tuning:
    """Delays and bounds of one component. Every bound says what happens at it."""

    ask_delay_us: int = 20_000  # first wait for an answer to curiosity; doubles with each attempt
    ask_delay_us_max: int = 1_280_000
    idle_us: int = 200_000  # pull: a quiet in-edge is polled this often
    heartbeat_us: int = 100_000  # a state sender that sent nothing for so long says where it stands
    push_us: int = 50_000  # push: first wait before repeating what is not acknowledged; doubles up to ask_delay_us_max
    ack_us: int = 50_000  # acknowledgements are gathered for so long
    gather_us: int = 0  # steps are gathered into one message for so long; 0 = one message per step
    silence_us: int = 50_000  # an idle stream promises silence this often
    reserve_us: int = 1_000_000  # ... and reserves so much ahead with one durable write
    checkpoint_us: int = 0  # a soft checkpoint this often if anything changed; 0 = only when CheckpointDue arrives
    quench_keys: bool = True
    trusts_peers: bool = False  # all peers are of this process: the shape of what they send is not checked
    message_rows_max: int = 4_096  # larger messages travel in parts (state) or as several messages (events)
    answer_rows_max: int = 65_536  # an event answer stops there; the receiver asks again for the rest
    held_messages_max: int = 64  # state messages that arrived too early; at the bound the newest is dropped
    assembly_rows_max: int = 16_000_000  # a message in parts that says it is larger is refused
    curiosity_ranges_max: int = 1_024  # a question names the lowest ranges only; the rest is asked for later
    quenched_keys_max: int = 65_536  # further keys are simply not filtered
    appends_max: int = 1_024  # publishes waiting for the log; beyond that a publish is refused as busy
    publish_rows_max: int = 65_536
    producer_window: int = 1_024  # publishes per producer whose ticks are remembered; older repeats are refused
    producers_max: int = 65_536  # then a new one takes the place of the one idle longest, or is refused
    producer_idle_us: int = 3_600_000_000  # ... which must have published nothing for so long
    producer_lasts_us: int = 7 * 24 * 3_600_000_000  # one that was silent for so long goes when a new one comes


@dataclass(frozen=True, slots=True)
class InEdge:
    """One operand of a transform. The name is unique in the graph and means the same edge at both ends.

    `wants`: of the sender's events only those for which it is true, a function of all columns that never fails; the
    receiver drops all others itself, so that they need not travel (E4). Edges that differ in it differ in their names.
    """

    name: str
    sender: str
    mode: Mode = Mode.PULL
    wants: Callable[..., bool] | None = None


@dataclass(frozen=True, slots=True)
class Component:
    """One transform and the relation it feeds."""

    name: str
    relation: Relation
    operator: OperatorSpec
    in_edges: tuple[InEdge, ...] = ()
    emit: Emit | None = None  # set: a subscriber's leaf, which delivers in this mode
    tuning: Tuning = Tuning()

    @property
    def is_stream(self) -> bool:
        return isinstance(self.operator, StreamSpec)


@dataclass(frozen=True)
class Plan:
    """Components in an order in which every sender comes before its receivers."""

    components: tuple[Component, ...]
    origins: Mapping[str, str] = field(default_factory=dict)  # component -> place in the source, for messages

    def __post_init__(self) -> None:
        _check(self)

    @cached_property
    def by_name(self) -> dict[str, Component]:
        return {component.name: component for component in self.components}

    @cached_property
    def lineages(self) -> dict[str, tuple[str, ...]]:
        """For every component the stream of each lineage: those of edge 0, then those of edge 1, ..."""
        found: dict[str, tuple[str, ...]] = {}
        for component in self.components:
            if component.is_stream:
                found[component.name] = (component.name,)
            else:
                found[component.name] = tuple(s for edge in component.in_edges for s in found[edge.sender])
        return found

    @cached_property
    def out_edges(self) -> dict[str, tuple[InEdge, ...]]:
        """For every component the edges on which it is the sender."""
        found: dict[str, list[InEdge]] = {component.name: [] for component in self.components}
        for component in self.components:
            for edge in component.in_edges:
                found[edge.sender].append(edge)
        return {name: tuple(edges) for name, edges in found.items()}


def _check(plan: Plan) -> None:
    seen: dict[str, Component] = {}
    edges: set[str] = set()
    residues: set[tuple[int, int]] = set()
    for component in plan.components:
        relation = component.relation
        if component.name in seen:
            raise PlanError(f"two components are called {component.name}")
        if not 0 <= relation.key_width <= relation.width:
            raise PlanError(f"{component.name}: key of {relation.key_width} columns in a row of {relation.width}")
        if relation.is_event and relation.key_width != 1:
            raise PlanError(f"{component.name}: an event relation is keyed by its tick alone")
        if component.is_stream != (not component.in_edges):
            raise PlanError(f"{component.name}: streams, and only streams, have no in-edge")
        for edge in component.in_edges:
            if edge.name in edges:
                raise PlanError(f"two edges are called {edge.name}")
            if edge.sender not in seen:
                raise PlanError(f"{edge.name}: sender {edge.sender} must come before {component.name}")
            if relation.is_event and not seen[edge.sender].relation.is_event:
                raise PlanError(f"{component.name}: events cannot come from the state relation {edge.sender}")
            if edge.wants is not None and not seen[edge.sender].relation.is_event:
                raise PlanError(f"{edge.name}: only events can be left out, {edge.sender} is a state relation")
            edges.add(edge.name)
        if isinstance(component.operator, StreamSpec):
            _check_stream(component, component.operator, residues)
        seen[component.name] = component
    for component in plan.components:
        streams = plan.lineages[component.name]
        if component.relation.is_event and len(set(streams)) != len(streams):
            raise PlanError(f"{component.name}: one stream merged with itself would repeat its ticks; use a union")


def _check_stream(component: Component, spec: StreamSpec, residues: set[tuple[int, int]]) -> None:
    if not component.relation.is_event:
        raise PlanError(f"{component.name}: a stream is an event relation")
    if spec.modulus < 1 or not 0 <= spec.residue < spec.modulus or spec.ticks_per_us < 1:
        raise PlanError(f"{component.name}: residue {spec.residue} of modulus {spec.modulus}")
    if any(modulus != spec.modulus for _, modulus in residues):
        raise PlanError(f"{component.name}: all streams share one modulus")
    if (spec.residue, spec.modulus) in residues:
        raise PlanError(f"{component.name}: another stream owns residue {spec.residue}")
    residues.add((spec.residue, spec.modulus))
