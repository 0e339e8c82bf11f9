"""A soft checkpoint: one consistent cut of a component between two steps (C1), and the bulk form of it (C6).

Components make and read them; the shell stores `to_wire()` and gives back `from_wire()`. The epoch's number is not in
it: that must survive the loss of every checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass

from runtime.protocol.coverage import Coverage
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import NO_EPOCH

CHECKPOINT_VERSION = 1
RANGES_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class EdgeCheckpoint:
    """What an in-edge has applied. Event edges leave epoch and step 0."""

    adopted_epoch: int
    applied_step: int
    coverage: LineageCoverage


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`state` is the operator's export (rows, input state) or the held events: plain msgpack-able data."""

    component: str
    edges: tuple[EdgeCheckpoint, ...]
    drop_floor: int
    in_floor: int
    state: dict[str, object]
    bulk_horizon: int | None = None

    def to_wire(self) -> dict[str, object]:
        return {
            "version": CHECKPOINT_VERSION,
            "component": self.component,
            "edges": [[edge.adopted_epoch, edge.applied_step, edge.coverage.to_wire()] for edge in self.edges],
            "drop_floor": self.drop_floor,
            "in_floor": self.in_floor,
            "state": self.state,
            "bulk_horizon": self.bulk_horizon,
        }

    @staticmethod
    def from_wire(value: object) -> Checkpoint:
        """What `to_wire` wrote; ValueError otherwise. A damaged checkpoint is the same as none."""
        if not isinstance(value, dict) or value.get("version") != CHECKPOINT_VERSION:
            raise ValueError(f"not a checkpoint of version {CHECKPOINT_VERSION}")
        state, bulk = value.get("state"), value.get("bulk_horizon")
        if not isinstance(state, dict) or not (bulk is None or isinstance(bulk, int)):
            raise ValueError("a checkpoint has a state, and perhaps a bulk horizon")
        try:
            edges = tuple(
                EdgeCheckpoint(
                    int(epoch), int(step), LineageCoverage(Coverage.from_wire(part, RANGES_MAX) for part in parts)
                )
                for epoch, step, parts in value["edges"]
            )
            floors = int(value["drop_floor"]), int(value["in_floor"])
            return Checkpoint(str(value["component"]), edges, *floors, state, bulk)
        except (KeyError, TypeError, ValueError) as broken:
            raise ValueError(f"a damaged checkpoint: {broken!r}") from broken


def bulk_install(
    component: str, lineages_counts: tuple[int, ...], horizon: int, state: dict[str, object]
) -> Checkpoint:
    """A component's state computed outside from all ticks <= horizon (C6). Loading it is a restart like any other.

    `lineages_counts` has the number of lineages of each in-edge. The operator sets every row's max_tick to the horizon
    when it reads `state`, and the floors say that nothing is known about tombstones below it.
    """
    edges = tuple(EdgeCheckpoint(NO_EPOCH, 0, LineageCoverage.prefix(n, horizon)) for n in lineages_counts)
    return Checkpoint(component, edges, drop_floor=horizon, in_floor=horizon, state=state, bulk_horizon=horizon)
