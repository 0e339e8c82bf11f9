"""A run as data: everything that was chosen, so that it can be replayed with choices taken away.

`faults.py` and `clients.py` draw decisions from a seed, `simulator.py` carries them out, `shrink.py` removes them.
A decision stands for one thing that happens to the system from outside (a publish, a crash, a partition with its
end). What happened to each message is a fate, named by its link and its number on that link; a message without a
recorded fate in a replay simply arrives.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from runtime.plan import Emit, Tuning
from runtime.simulation.descriptor import Graph

LinkName = tuple[str, str]  # sending node, receiving node
FateName = tuple[str, str, int]  # sending node, receiving node, number of the message on this link


@dataclass(frozen=True)
class Decision:
    """One thing done to the system from outside."""

    at_us: int
    kind: str
    target: str
    arguments: tuple[int | str, ...] = ()

    def describe(self) -> str:
        arguments = " ".join(str(argument) for argument in self.arguments)
        return f"{self.at_us / 1000:9.3f} ms  {self.kind} {self.target} {arguments}".rstrip()


@dataclass(frozen=True, slots=True)
class Fate:
    """What the network does to one message: a delay for every copy that arrives (none: it is lost)."""

    delays_us: tuple[int, ...]
    corrupt: bool = False


USUAL_DELAY_US = 1_000
USUAL_FATE = Fate((USUAL_DELAY_US,))


@dataclass(frozen=True)
class Rates:
    """How often the network misbehaves; drawn for each seed."""

    loss: float = 0.0
    duplication: float = 0.0
    delay: float = 0.0  # share of messages that are late, hence out of order
    delay_us_max: int = 0
    corruption: float = 0.0


@dataclass(frozen=True)
class Settings:
    """How the components are set up; drawn for each seed."""

    tuning: Tuning = field(default_factory=Tuning)
    push_edges: tuple[str, ...] = ()
    every_change: tuple[str, ...] = ()  # edges whose receivers want to see what happens within a step
    soft_components: tuple[str, ...] = ()  # their checkpoints are never reported durable, so any or none may be loaded
    emits: dict[str, Emit] = field(default_factory=dict)
    columnar: bool = False  # subscribers keep their rows in arrays


@dataclass(frozen=True)
class Schedule:
    """All that a run depends on, apart from the code."""

    seed: int
    graph: Graph
    placement: dict[str, str]  # component -> node
    decisions: tuple[Decision, ...]
    faults_end_us: int
    rates: Rates = Rates()
    settings: Settings = field(default_factory=Settings)
    fates: dict[FateName, Fate] | None = field(default=None)  # None: drawn from the seed by `rates`
