"""What must hold after every event that a component handles; a broken promise is raised as a Violation.

The names I1-I6 are those of the protocol's invariants. Everything is compared with the oracle, which recomputes
views from the durable events; `delivery.py` checks what subscribers are told. Only the component that has just
handled an event is looked at, and only if the event may have changed its state: the others are as they were when
they were checked.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from runtime.protocol.coverage import Coverage
from runtime.protocol.events import Deliver, Event, Instruction, Restarted, Send, Stepped
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Knowledge, Part
from runtime.simulation.delivery import DeliveryChecks
from runtime.simulation.oracle import Masks, Oracle, Row
from runtime.simulation.row_checks import check_as_of, check_copy, check_rows, difference
from runtime.simulation.violation import Violation
from runtime.simulation.world import Instance, World

LOOKING_AGAIN_US = -1  # marks the last look at everything, which no incarnation begins with


class Checks:
    """A watcher that knows the truth."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.delivery = DeliveryChecks(world)
        self._coverages: dict[
            tuple[str, int], LineageCoverage
        ] = {}  # by incarnation: what it covered when last seen (I4)
        # Keys an in-edge was ever told to leave out: a checkpoint keeps what was known of them until then (T4).
        self._quenched: dict[tuple[str, int], set[Any]] = {}
        self._steps: dict[tuple[str, int], int] = {}
        self._history: dict[
            tuple[str, int, int], LineageCoverage
        ] = {}  # (component, epoch, step) -> coverage then (I2)

    @property
    def oracle(self) -> Oracle:
        return self.world.oracle

    def logged(self, stream: str, tick: int, row: Row) -> None:
        """An event became durable: ticks only grow, and no publish is logged twice."""
        ticks = self.oracle.ticks[stream]
        if ticks and tick <= ticks[-1]:
            raise Violation("E3", stream, f"logs tick {tick} after tick {ticks[-1]}")
        self.oracle.record(stream, tick, row)

    def trimming(self, stream: str, tick: int) -> None:
        """C5: never above what every direct receiver has in a durable checkpoint."""
        self._check_trim(stream, tick)

    def handled(self, instance: Instance, event: Event, instructions: list[Instruction]) -> None:
        """Look at the component that has just handled an event."""
        name, component = instance.name, instance.component
        if name in self.world.logs:
            if self.world.logs[name].repeats:
                raise Violation("E3", name, f"publish {self.world.logs[name].repeats[0]} was logged twice")
            self._check_coverage(instance, component.coverage())
            return
        is_event = self.world.plan.by_name[name].relation.is_event
        unchanged = not is_event and component.step == self._steps.get((name, instance.epoch))
        if unchanged and not isinstance(event, Restarted):
            return  # S1: state changes in steps only
        coverage = component.coverage()
        masks = self._check_coverage(instance, coverage)
        if is_event:
            self._check_held(instance, masks)
        else:
            self._check_step(instance, coverage, instructions)
            rows = component.operator.rows
            check_rows(self.oracle, name, rows, coverage, masks)
            check_as_of(self.oracle, name, rows, component.in_floor, coverage.horizon(), masks)
            self._check_copies(instance, masks)
        delivers = [instruction for instruction in instructions if isinstance(instruction, Deliver | Stepped)]
        if delivers or name in self.world.graph.leaves:
            self.delivery.check(instance, event, delivers, masks)

    def converged(self) -> None:
        """After the end: look at everything once more, whether or not it has just handled something."""
        for instances in self.world.instances.values():
            for instance in instances:
                self.handled(instance, Restarted(instance.epoch, now_us=LOOKING_AGAIN_US), [])

    # Coverage

    def _check_coverage(self, instance: Instance, coverage: LineageCoverage) -> Masks:
        """I3: nothing is covered that is not durable. I4: while an incarnation lives, its coverage only grows."""
        streams = self.world.graph.lineages[instance.name]
        if len(coverage) != len(streams):
            raise Violation("I1", instance.name, f"{len(coverage)} lineages instead of {len(streams)}")
        masks = []
        for stream, part in zip(streams, coverage, strict=True):
            if part.highest() > self.world.logs[stream].durable_tick():
                raise Violation(
                    "I3",
                    instance.name,
                    f"covers {part.show_briefly()} of {stream}, durable is {self.world.logs[stream].durable_tick()}",
                )
            masks.append(
                self.oracle.mask(stream, part) if part.highest() > part.horizon() else self._prefix(stream, part)
            )
        before = self._coverages.get((instance.name, instance.epoch))
        if before is not None and not coverage.contains(before):
            raise Violation("I4", instance.name, f"coverage shrinks from {before.show()} to {coverage.show()}")
        self._coverages[(instance.name, instance.epoch)] = coverage  # a copy: `coverage()` makes one
        return tuple(masks)

    def _prefix(self, stream: str, part: Coverage) -> int:
        """The mask of a coverage without gaps, which nearly all are."""
        return (1 << bisect_right(self.oracle.ticks[stream], part.horizon())) - 1

    def _check_step(self, instance: Instance, coverage: LineageCoverage, instructions: list[Instruction]) -> None:
        """I5: within a step nothing changes. The coverage at each step is remembered for I2."""
        step = instance.component.step
        before = self._steps.get((instance.name, instance.epoch), step)
        if step > before + 1:  # held messages were released: the steps between are seen only in what was sent
            for instruction in instructions:
                if isinstance(instruction, Send):
                    sent = instruction.message.message if isinstance(instruction.message, Part) else instruction.message
                    if isinstance(sent, Knowledge):
                        self._history.setdefault((instance.name, instance.epoch, sent.to_step), sent.coverage)
        self._steps[(instance.name, instance.epoch)] = step
        known = self._history.setdefault((instance.name, instance.epoch, step), coverage)
        if known != coverage:
            raise Violation("I5", instance.name, f"coverage changes within step {step}")

    # Rows

    def _check_copies(self, instance: Instance, masks: Masks) -> None:
        """I2: the copy of a state in-edge is the sender's state at the adopted epoch and step."""
        component: Any = instance.component
        first = 0
        node = self.world.graph.by_name[instance.name]
        for index, (sender, edge) in enumerate(zip(node.inputs, component.in_edges.values(), strict=True)):
            count = len(self.world.graph.lineages[sender])
            part = masks[first : first + count]
            first += count
            if self.world.plan.by_name[sender].relation.is_event or edge.adopted_epoch == 0:
                continue
            known = self._history.get((sender, edge.adopted_epoch, edge.applied_step))
            if known != edge.coverage:
                raise Violation(
                    "I2",
                    instance.name,
                    f"covers {edge.coverage.show()} of {sender} as of epoch {edge.adopted_epoch} "
                    f"step {edge.applied_step}, which covered {known.show() if known is not None else 'nothing'}",
                )
            quenched = self._quenched.setdefault((instance.name, index), set())
            quenched |= edge.quenched
            if component.operator.inputs[index] is component.operator.rows:
                continue  # a copy, already checked
            check_copy(self.oracle, instance.name, sender, component.operator.inputs[index], quenched, part)

    def _check_held(self, instance: Instance, masks: Masks) -> None:
        """I1 for event relations: what was not trimmed is exactly the surviving events of the covered ticks."""
        component: Any = instance.component
        trimmed = component.trimmed_tick
        held = {row for columns in component.held.columns for row in zip(*columns, strict=True) if row[0] > trimmed}
        wanted = {row for row in self.oracle.flat(instance.name, masks) if row[0] > trimmed}
        if held != wanted:
            raise Violation("I1", instance.name, difference(held, wanted, component.coverage()))
        if trimmed >= 0:
            self._check_trim(instance.name, trimmed)

    def _check_trim(self, name: str, tick: int) -> None:
        for receiver, edge in self.world.graph.consumers[name]:
            if receiver in self.world.newcomers:
                continue
            horizons = self.world.checkpoints[receiver].acknowledged_horizons
            if horizons is None or horizons[edge] < tick:
                raise Violation("C5", name, f"trims up to {tick}, durable at {receiver}: {horizons}")
