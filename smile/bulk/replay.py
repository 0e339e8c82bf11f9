"""States that Spark cannot compute, computed by the operators themselves from all events: slow, and always possible.

Spark only reads the events, from archive and logs. They are fed, stream by stream, to a host in this process that runs
what the wanted components need, and nothing else; what a component then has is its state as of that tick (rule C6).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import count

from runtime.batch import Batch
from runtime.broker.host import Host
from runtime.plan import Plan
from runtime.protocol.checkpoint import Checkpoint, bulk_install
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Events, Message
from runtime.protocol.state_component import StateComponent
from smile.errors import SmileError
from smile.program import Program

Read = Callable[[str], Iterable[Batch]]
"""The events of a stream or table up to the tick, in order: column 0 is the tick."""


class _NoLink:
    """What components ask of streams is fed to them anyway."""

    def send(self, component: str, edge: str, message: Message, to: bytes | None) -> None: ...


def replayed_checkpoints(
    program: Program, components: Collection[str], as_of: int, read: Read
) -> dict[str, Checkpoint]:
    """For each of these components a checkpoint as of this tick."""
    needed = program.plan.needed_for(components)
    plan = Plan(needed)
    epochs = count(1)
    host = Host(_NoLink(), lambda: next(epochs))
    host.start(plan, [one.name for one in needed if not one.is_stream])
    for base in (one for one in needed if one.is_stream):
        edges = [(one.name, edge.name) for one in needed for edge in one.in_edges if edge.sender == base.name]
        reached = -1
        for rows in read(base.name):
            last = int(rows.max_ticks[-1])
            _feed(host, edges, Events(LineageCoverage.of_range(reached + 1, last), rows))
            reached = last
        if reached < as_of:
            silence = Batch.empty(base.relation.width, events=True)
            _feed(host, edges, Events(LineageCoverage.of_range(reached + 1, as_of), silence))
    return {name: _checkpoint(host, plan, name, as_of) for name in components}


def _feed(host: Host, edges: Collection[tuple[str, str]], message: Events) -> None:
    for component, edge in edges:
        host.arrived(component, edge, message, None)
    host.work()


def _checkpoint(host: Host, plan: Plan, name: str, as_of: int) -> Checkpoint:
    hosted = host.hosted[name]
    component, lineages = hosted.component, len(plan.lineages[name])
    if hosted.failure is not None:
        raise SmileError(f"`{name}` cannot be computed from all events: {hosted.failure.reason}")
    assert component.coverage() == LineageCoverage.prefix(lineages, as_of), f"{name} has not seen everything"
    counts = tuple(len(plan.lineages[edge.sender]) for edge in plan.by_name[name].in_edges)
    assert isinstance(component, StateComponent), "a relation of events has no state to compute"
    return bulk_install(name, counts, as_of, component.operator.export())
