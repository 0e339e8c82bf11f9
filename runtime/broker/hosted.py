"""One component as a host has it: the state machine of its present incarnation, and what outlives incarnations.

Only `host.py` changes these. `status.py` reads them.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from runtime.log.stream_log import StreamLog
from runtime.plan import Plan
from runtime.protocol.build import AnyComponent
from runtime.protocol.events import Deliver, Stepped

Told = Deliver | Stepped
"""What a leaf says: deliveries, and (to whoever watches it) what each step changed."""

RUNNING = "running"
WAITING = "waiting to start again"
STOPPED = "stopped"

GUESTS = "guests:"
"""The edge on which all guests of a component listen is called so, with the component's name after it."""

GUEST_EPOCH = 1
"""Guests share one edge and speak with one voice: what each of them knows is in its questions."""


SECOND = "second:"
"""A component that is to take another one's place is hosted under the other one's name with this before it, and so are
its in-edges called as long as both run."""


def guests_edge(component: str) -> str:
    return GUESTS + component


def second_name(name: str) -> str:
    """Of a component, or of an edge."""
    return SECOND + name


@dataclass(frozen=True, slots=True)
class Failure:
    """A message that could not be computed. The component stays where it was, true, and asks again, slowly."""

    edge: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Position:
    """Where a component stood at some time: what guests are taken to have when that is long enough ago."""

    at_us: int
    epoch: int
    step: int
    horizon: int


@dataclass(slots=True)
class Hosted:
    """`rows_since_checkpoint` counts rows that arrived: silence alone is not worth a checkpoint. `second_edges`: who
    else listens, besides plan and guests. `stands_by`: it speaks upstream only, on edges of its own (`successors.py`).
    """

    plan: Plan
    name: str
    component: AnyComponent
    digest: str
    log: StreamLog | None
    tell: Callable[[Told], None] | None
    state: str = WAITING
    reason: str = ""
    failure: Failure | None = None
    began_with: str = ""  # its log, a checkpoint, or nothing
    restarts: int = 0
    failed_starts: int = 0
    lost_ticks: bool = False
    has_guests: bool = False
    is_watched: bool = False
    rows_since_checkpoint: int = 0
    checkpoint_us: int | None = None  # when the newest was durable, by the wall clock
    refused: Counter[str] = field(default_factory=Counter)
    stands_by: bool = False
    is_held: bool = False  # another state for it is being computed
    second_edges: set[str] = field(default_factory=set)
    positions: deque[Position] = field(default_factory=deque)  # of the guests' edge, oldest first

    @property
    def is_running(self) -> bool:
        return self.state == RUNNING
