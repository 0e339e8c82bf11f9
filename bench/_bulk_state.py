"""States as a bulk computation would give them, made by the operator itself from the log. Also for tests."""

from __future__ import annotations

from pathlib import Path

from runtime.batch import Batch
from runtime.log.reader import LogReader
from runtime.plan import Plan
from runtime.protocol.build import build_component
from runtime.protocol.checkpoint import Checkpoint, bulk_install
from runtime.protocol.events import MessageArrived, Restarted
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Events
from runtime.protocol.state_component import StateComponent
from smile.deploy.bundles import components_of
from smile.deploy.deployment import Deployment
from smile.program import Program


def bulk_of(deployment: Deployment, program: Program, component: str, horizon: int, logs: Path) -> Checkpoint:
    """Of a component that reads one stream."""
    made = build_component(Plan(tuple(components_of(deployment, program).values())), component)
    made.handle(Restarted(1))
    assert isinstance(made, StateComponent)
    (edge,) = made.plan.in_edges
    with LogReader(logs) as reader:
        stream = reader.streams()[edge.sender]
        rows = Batch.concat(list(reader.batches(stream, 0, horizon)))
    made.handle(MessageArrived(edge.name, Events(LineageCoverage.prefix(1, horizon), rows)))
    return bulk_install(component, (1,), horizon, made.operator.export())
