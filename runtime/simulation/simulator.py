"""One run: a world, a schedule that is done to it, the checks that look on, and the end that must be the whole truth.

`run_schedule` is what everything else calls. A run ends in one of three ways: it converges after the faults have
stopped, it breaks a promise (a Violation, reported with the schedule that can be replayed and shrunk), or the
engine raises an error, which counts as a violation too.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from runtime.protocol.events import CheckpointDue, ReceiverAttached, ReceiverDetached
from runtime.simulation.build import build_plan, edge_name
from runtime.simulation.checks import Checks
from runtime.simulation.clients import Publisher, rows_of
from runtime.simulation.decisions import Decision, Schedule
from runtime.simulation.descriptor import Aggregate, Graph, Group, Leaf, Node
from runtime.simulation.oracle import Oracle
from runtime.simulation.violation import Violation
from runtime.simulation.world import Watcher, World

CONVERGENCE_US_MAX = 4_000_000
LOOK_EVERY_US = 20_000
CALM_MESSAGES_PER_EDGE_MAX = 600
STEPS_MAX = 30_000


@dataclass(frozen=True)
class Result:
    """How a run ended."""

    schedule: Schedule  # with the fates as they were, so that it can be replayed
    violation: Violation | None
    trace_hash: str
    counts: Counter[str]
    messages: int
    converged_us: int  # after the faults stopped


def run_schedule(schedule: Schedule, watchers: tuple[Watcher, ...] = ()) -> Result:
    """Carry out a schedule and judge it."""
    simulator = Simulator(schedule, watchers)
    violation: Violation | None = None
    try:
        simulator.run()
    except Violation as found:
        violation = found
    except (AssertionError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as broken:
        violation = Violation("error", type(broken).__name__, str(broken))
        violation.__cause__ = broken
    world = simulator.world
    return Result(
        replace(schedule, fates=dict(world.network.recorded)),
        violation,
        simulator.trace_hash(),
        world.counts,
        world.messages,
        max(0, world.clock.now_us - schedule.faults_end_us),
    )


class Simulator:
    """The loop, and what each kind of decision does."""

    def __init__(self, schedule: Schedule, watchers: tuple[Watcher, ...] = ()) -> None:
        self.schedule = schedule
        self.world = World(schedule)
        self.checks = Checks(self.world)
        self.world.watchers = [*watchers, self.checks]
        self.publishers = {stream: Publisher(self.world, stream) for stream in schedule.graph.streams}
        self._calm = False
        self._actions = {
            "publish": self._publish,
            "checkpoint": self._checkpoint,
            "crash": self._crash,
            "restart": self._restart,
            "partition": self._partition,
            "pause": self._pause,
            "slow": self._slow,
            "disk_full": self._disk_full,
            "fail_sync": self._fail_sync,
            "slow_disk": self._slow_disk,
            "rot": self._rot,
            "clock_jump": self._clock_jump,
            "move": self._move,
            "add_leaf": self._add_leaf,
            "remove_leaf": self._remove_leaf,
        }

    def run(self) -> None:
        """Start everything, let the schedule happen, stop the faults, and wait for the whole truth."""
        world = self.world
        for component in world.plan.components:
            world.start(component.name)
        for decision in self.schedule.decisions:
            world.clock.at(decision.at_us, self._doing(decision))
        self._run_until(self.schedule.faults_end_us)
        self._stop_faults()
        self._converge()

    def _doing(self, decision: Decision) -> Callable[[], None]:
        return lambda: self._actions[decision.kind](decision) if not self._calm or decision.kind == "publish" else None

    def _run_until(self, end_us: int) -> None:
        clock = self.world.clock
        steps = 0
        while True:
            next_us = clock.next_us()
            if next_us is None or next_us > end_us:
                clock.now_us = max(clock.now_us, end_us)
                return
            clock.step()
            steps += 1
            if steps > STEPS_MAX:
                raise Violation("storm", "system", f"{steps} events before {end_us} us")

    # The end

    def _stop_faults(self) -> None:
        """Everything works from now on; whatever is down comes back."""
        self._calm = True
        world = self.world
        world.network.calm()
        for node in world.nodes.values():
            node.disk.full, node.disk.failing_syncs, node.disk.slow_us, node.slow_us = False, 0, 0, 0
            while node.pauses:
                node.resume()
        for node in list(world.nodes.values()):
            world.revive(node.name, "newest")
        for component in world.plan.components:
            instances = world.instances[component.name]
            for old in instances[:-1]:
                old.alive = False
            world.instances[component.name] = instances[-1:]
            if not instances:
                world.start(component.name)

    def _converge(self) -> None:
        """I7: exactly the view of everything logged, in bounded time and with a bounded number of messages."""
        world = self.world
        messages_before = world.messages
        end_us = world.clock.now_us + CONVERGENCE_US_MAX
        while True:
            self._run_until(world.clock.now_us + LOOK_EVERY_US)
            missing = self._missing()
            if missing is None:
                break
            if world.clock.now_us >= end_us:
                raise Violation("I7", missing[0], f"has not converged: {missing[1]}")
        edges = len(world.ends)
        if world.messages - messages_before > CALM_MESSAGES_PER_EDGE_MAX * edges:
            raise Violation("I7", "system", f"{world.messages - messages_before} messages on {edges} edges to converge")
        self.checks.converged()

    def _missing(self) -> tuple[str, str] | None:
        """The first component that does not have everything."""
        world = self.world
        for stream, publisher in self.publishers.items():
            if publisher.outstanding:
                return stream, f"publishes {sorted(publisher.outstanding)} are not acknowledged"
        for component in world.plan.components:
            live = world.live(component.name)
            if live is None:
                return component.name, "is not running"
            for stream, part in zip(world.graph.lineages[component.name], live.component.coverage(), strict=True):
                if part.horizon() < world.logs[stream].last_tick:
                    return (
                        component.name,
                        f"covers {part.show_briefly()} of {stream}, {world.logs[stream].last_tick} is logged",
                    )
        return None

    def trace_hash(self) -> str:
        """The same for the same schedule and code, whatever else is different."""
        digest = hashlib.sha256(f"{self.world.trace} {self.world.messages} {self.world.clock.now_us}".encode())
        digest.update(repr(sorted(self.world.counts.items())).encode())
        for stream in self.world.graph.streams:
            digest.update(repr(self.world.oracle.ticks[stream]).encode())
        return digest.hexdigest()[:16]

    # Decisions

    def _publish(self, decision: Decision) -> None:
        sequence, rows = rows_of(decision)
        self.publishers[decision.target].publish(sequence, rows)

    def _checkpoint(self, decision: Decision) -> None:
        live = self.world.live(decision.target) if decision.target in self.world.instances else None
        if live is not None:
            live.node.internal(lambda: self.world.feed(live, CheckpointDue()))

    def _crash(self, decision: Decision) -> None:
        down_us, outcome, wish = decision.arguments
        node = self.world.nodes[decision.target]
        if not node.up:
            return
        self.world.counts["crash" if wish != "none" else "crash without disk"] += 1
        self.world.crash(decision.target, str(outcome))
        self.world.clock.after(int(down_us), lambda: self.world.revive(decision.target, str(wish)))

    def _restart(self, decision: Decision) -> None:
        wish = str(decision.arguments[0])
        if decision.target in self.world.plan.by_name and self.world.nodes[self.world.location[decision.target]].up:
            self.world.counts["component restart"] += 1
            self.world.start(decision.target, wish)

    def _partition(self, decision: Decision) -> None:
        other, duration_us, ways = decision.arguments
        pairs = [(decision.target, str(other)), (str(other), decision.target)][: int(ways)]
        self.world.counts["partition"] += 1
        for sender, receiver in pairs:
            self.world.network.stop(sender, receiver)

        def heal() -> None:
            for sender, receiver in pairs:
                self.world.network.heal(sender, receiver)

        self.world.clock.after(int(duration_us), lambda: heal() if not self._calm else None)

    def _pause(self, decision: Decision) -> None:
        node = self.world.nodes[decision.target]
        self.world.counts["pause"] += 1
        node.pause()
        self.world.clock.after(int(decision.arguments[0]), lambda: node.resume() if node.pauses else None)

    def _slow(self, decision: Decision) -> None:
        node = self.world.nodes[decision.target]
        duration_us, node.slow_us = (int(argument) for argument in decision.arguments)
        self.world.counts["slow node"] += 1
        self.world.clock.after(duration_us, lambda: setattr(node, "slow_us", 0))

    def _disk_full(self, decision: Decision) -> None:
        disk = self.world.nodes[decision.target].disk
        disk.full = True
        self.world.clock.after(int(decision.arguments[0]), lambda: setattr(disk, "full", False))

    def _fail_sync(self, decision: Decision) -> None:
        self.world.nodes[decision.target].disk.failing_syncs += int(decision.arguments[0])

    def _slow_disk(self, decision: Decision) -> None:
        disk = self.world.nodes[decision.target].disk
        duration_us, disk.slow_us = (int(argument) for argument in decision.arguments)
        self.world.counts["slow disk"] += 1
        self.world.clock.after(duration_us, lambda: setattr(disk, "slow_us", 0))

    def _rot(self, decision: Decision) -> None:
        if decision.target in self.world.checkpoints and self.world.checkpoints[decision.target].rot():
            self.world.counts["bit rot"] += 1

    def _clock_jump(self, decision: Decision) -> None:
        self.world.nodes[decision.target].clock_offset_us += int(decision.arguments[0])
        self.world.counts["clock jump"] += 1

    def _move(self, decision: Decision) -> None:
        """C2: a move is a restart elsewhere; the old incarnation may not know for a while."""
        target, overlap_us, wish = decision.arguments
        world, name = self.world, decision.target
        if name not in world.plan.by_name or not world.nodes[str(target)].up:
            return
        world.counts["move"] += 1
        old = list(world.instances[name])
        world.location[name] = str(target)
        world.start(name, str(wish), keep_old=int(overlap_us) > 0)

        def end_overlap() -> None:
            for instance in old:
                instance.alive = False
            world.instances[name] = [instance for instance in world.instances.get(name, []) if instance not in old]

        world.clock.after(int(overlap_us), end_overlap)

    # Plan changes

    def _add_leaf(self, decision: Decision) -> None:
        """A new subscriber, of a relation that exists or of a new count over it."""
        sender, node, view = (str(argument) for argument in decision.arguments)
        world = self.world
        if decision.target in world.plan.by_name or sender not in world.plan.by_name:
            return
        world.counts["plan change"] += 1
        added = [Node(decision.target, Leaf(), (sender,))]
        if view == "count":
            counted = Node(f"{decision.target}_count", Group((), (Aggregate("count", "", "n"),)), (sender,))
            added = [counted, Node(decision.target, Leaf(), (counted.name,))]
        for new in added:
            world.location[new.name] = node
            world.newcomers.add(new.name)
        self._install(Graph(world.graph.title, (*world.graph.nodes, *added)))
        edge = edge_name(sender, added[0].name, 0)
        for instance in world.instances[sender]:
            mode = world.plan.by_name[added[0].name].in_edges[0].mode
            world.feed(instance, ReceiverAttached(edge, mode, every_change=world.wants_every_change(edge)))
        for new in added:
            world.start(new.name)

    def _remove_leaf(self, decision: Decision) -> None:
        world = self.world
        if decision.target not in world.plan.by_name or world.graph.consumers[decision.target]:
            return
        world.counts["plan change"] += 1
        node = world.graph.by_name[decision.target]
        world.stop(decision.target)
        edge = edge_name(node.inputs[0], decision.target, 0)
        del world.ends[edge]
        self._install(Graph(world.graph.title, tuple(n for n in world.graph.nodes if n.name != decision.target)))
        for instance in world.instances[node.inputs[0]]:
            world.feed(instance, ReceiverDetached(edge))

    def _install(self, graph: Graph) -> None:
        world = self.world
        world.graph = graph
        world.plan = build_plan(graph, self.schedule.settings)
        oracle = Oracle(graph)
        for stream in graph.streams:
            for tick, row in zip(world.oracle.ticks[stream], world.oracle.rows[stream], strict=True):
                oracle.record(stream, tick, row)
        world.oracle = oracle
        world.learn_edges()
