"""The simulated system: components on nodes, joined by the network, with their logs and checkpoints.

`simulator.py` makes a world from a schedule and does things to it; `checks.py` looks on after every event that a
component handles. What a broker's shell does is done here: events in, instructions out. Two incarnations of one
component may live at once (a move, a failover); then both hear everything that is sent to the component.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from runtime.plan import Emit
from runtime.protocol.build import build_component
from runtime.protocol.checkpoint import Checkpoint
from runtime.protocol.errors import ProtocolError
from runtime.protocol.events import (
    AcknowledgePublish,
    AppendToLog,
    ArmTimer,
    CheckpointFailed,
    CheckpointWritten,
    Deliver,
    Event,
    Instruction,
    LogFailed,
    LogRead,
    LogWritten,
    MessageArrived,
    PersistCheckpoint,
    Published,
    ReadLog,
    ReceiverAttached,
    RefusePublish,
    ReportFailed,
    ReportTrimmed,
    ReserveSilence,
    Restarted,
    RestartMe,
    Send,
    Stepped,
    Stopped,
    TimerFired,
    TrimLog,
    WatchBegun,
)
from runtime.protocol.messages import Events
from runtime.protocol.standing_quench import StandingQuench, standing_quenches
from runtime.simulation.build import build_plan, bulk_checkpoint
from runtime.simulation.clock import VirtualClock
from runtime.simulation.decisions import Schedule
from runtime.simulation.descriptor import PAYLOAD, Graph
from runtime.simulation.host import Node
from runtime.simulation.network import Network
from runtime.simulation.oracle import Oracle, Row
from runtime.simulation.random_source import RandomSource
from runtime.simulation.stores import CheckpointStore, LogStore, store_form
from runtime.simulation.violation import Violation

LOCAL_US = 20
READ_US = 100
RESTART_US = 500
RETRY_US = 10_000


class Instance:
    """One incarnation of a component on a node."""

    __slots__ = ("alive", "component", "epoch", "name", "node", "timers", "written_number")

    def __init__(self, name: str, component: Any, node: Node, epoch: int) -> None:
        self.name = name
        self.component = component
        self.node = node
        self.epoch = epoch
        self.alive = True
        self.timers: dict[str, int] = {}
        self.written_number = 0  # the newest write to the log that is durable


class Watcher(Protocol):
    """Who looks on: the checks, and the story."""

    def handled(self, instance: Instance, event: Event, instructions: list[Instruction]) -> None: ...

    def trimming(self, stream: str, tick: int) -> None: ...

    def logged(self, stream: str, tick: int, row: Row) -> None: ...


Envelope = tuple[str, str, object]  # component, edge, message; or client name, "", answer


class World:
    """Everything there is in a run."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.graph: Graph = schedule.graph
        self.plan = build_plan(self.graph, schedule.settings)
        self.clock = VirtualClock()
        self.counts: Counter[str] = Counter()
        self.source = RandomSource(schedule.seed)
        self.oracle = Oracle(self.graph)
        self.network: Network[Envelope] = Network(
            self.clock, self.source, schedule.rates, schedule.fates, self._arrive, self.counts
        )
        self.nodes: dict[str, Node] = {}
        self.location: dict[str, str] = dict(schedule.placement)
        self.instances: dict[str, list[Instance]] = {}
        self.logs: dict[str, LogStore] = {}
        self.checkpoints: dict[str, CheckpointStore] = {}
        self.epochs: Counter[str] = Counter()
        self.ends: dict[str, tuple[str, str]] = {}  # edge -> (sender, receiver)
        self.quenches: dict[str, StandingQuench] = {}  # by edge
        self.soft = schedule.settings.soft_components
        self.newcomers: set[str] = set()  # added after the start: logs may have been trimmed without them
        self.clients: dict[str, Callable[[object], None]] = {}
        self.watchers: list[Watcher] = []
        self.trace = 0
        self.messages = 0
        self._carriers: dict[type, Callable[[Instance, Instruction], None]] = self._instruction_carriers()
        for name in self.location.values():
            self.node(name)
        self.learn_edges()

    # Structure

    def node(self, name: str) -> Node:
        """A node, made when it is first named."""
        if name not in self.nodes:
            self.nodes[name] = Node(name, self.clock, self.counts)
        return self.nodes[name]

    def learn_edges(self) -> None:
        """Read the plan's edges, logs and checkpoint stores; called again after a plan change."""
        for component in self.plan.components:
            for edge in component.in_edges:
                self.ends[edge.name] = (edge.sender, component.name)
            self.quenches.update(standing_quenches(self.plan.out_edges[component.name], component.relation))
            self.checkpoints.setdefault(component.name, CheckpointStore())
            self.instances.setdefault(component.name, [])
        for stream in self.graph.streams:
            if stream not in self.logs:
                self.logs[stream] = LogStore(stream, len(PAYLOAD), self._logged)

    def live(self, name: str) -> Instance | None:
        """The newest live incarnation of a component."""
        found = self.instances[name]
        return found[-1] if found else None

    # Lives of components

    def start(self, name: str, wish: str = "newest", keep_old: bool = False) -> None:
        """Begin a new incarnation where the component is placed (rule C2)."""
        node = self.nodes[self.location[name]]
        if not node.up:
            return
        restart = self._checkpoint_for(name, wish)
        if restart is None:
            self.clock.after(RETRY_US, lambda: self._start_if_down(name, wish))
            if not keep_old:
                self.stop(name)
            return
        if not keep_old:
            self.stop(name)
        self.epochs[name] += 1  # durable before the first message of the incarnation
        epoch = self.epochs[name]
        instance = Instance(name, build_component(self.plan, name), node, epoch)
        self.instances[name].append(instance)
        checkpoint, acknowledged = restart
        self.checkpoints[name].fence_epoch = epoch
        log = self.logs[name].open(epoch) if name in self.logs else None
        self.feed(instance, Restarted(epoch, node.now_us(), checkpoint, acknowledged, log))
        for edge in self.plan.out_edges[name]:
            if self.wants_every_change(edge.name):
                self.feed(instance, ReceiverAttached(edge.name, edge.mode, every_change=True))
        if self.is_watched(name):
            self.feed(instance, WatchBegun())

    def wants_every_change(self, edge: str) -> bool:
        """As decided for this edge; subscribers that come later always do, as those of a broker."""
        return edge in self.schedule.settings.every_change or self.ends[edge][1] in self.newcomers

    def is_watched(self, name: str) -> bool:
        """A subscriber that emits changes and wants all of them."""
        component = self.plan.by_name[name]
        return component.emit is Emit.CHANGES and self.wants_every_change(component.in_edges[0].name)

    def _checkpoint_for(self, name: str, wish: str) -> tuple[Checkpoint | None, int] | None:
        """What to restart from, and the highest horizon ever acknowledged; None if it must wait (C4, C6)."""
        if name in self.logs:
            return None, -1
        store = self.checkpoints[name]
        checkpoint, allowed = store.choose(wish)
        acknowledged = max(store.acknowledged_horizons or (-1,))
        if not allowed or wish == "bulk":
            settled = self.settled_tick(name)
            if settled < acknowledged:  # some stream has not yet said all that a checkpoint already promised to keep
                return None
            checkpoint = bulk_checkpoint(self.plan, self.oracle, name, settled)
            self.counts["bulk install"] += 1
        return checkpoint, acknowledged

    def settled_tick(self, name: str) -> int:
        """The tick up to which every stream of a component has said all it will ever say."""
        settled = []
        for stream in self.graph.lineages[name]:
            live = self.live(stream)
            promised = live.component.coverage().horizon() if live is not None else -1
            settled.append(max(self.logs[stream].last_tick, promised))
        return min(settled)

    def stop(self, name: str) -> None:
        """End all incarnations of a component."""
        for instance in self.instances[name]:
            instance.alive = False
        self.instances[name] = []

    def crash(self, node_name: str, disk_outcome: str) -> None:
        """A node dies with all that runs on it."""
        node = self.nodes[node_name]
        node.crash(disk_outcome)
        for name, instances in self.instances.items():
            if any(instance.node is node for instance in instances):
                for instance in instances:
                    if instance.node is node:
                        instance.alive = False
                self.instances[name] = [instance for instance in instances if instance.alive]

    def revive(self, node_name: str, wish: str) -> None:
        """A node comes back and starts what is placed on it."""
        node = self.nodes[node_name]
        if node.up:
            return
        node.up = True
        for component in self.plan.components:
            if self.location[component.name] == node_name:
                self.start(component.name, wish)

    # Events in, instructions out

    def feed(self, instance: Instance, event: Event) -> None:
        """One event for one component: the atomic step of the whole simulation."""
        if not instance.alive:
            return
        try:
            instructions = instance.component.handle(event)
        except ProtocolError as refused:
            raise Violation("refused", instance.name, f"{type(refused).__name__}: {refused}") from refused
        self.trace = zlib.crc32(
            f"{self.clock.now_us} {instance.name} {instance.epoch} {type(event).__name__} {len(instructions)}".encode(),
            self.trace,
        )
        for watcher in self.watchers:
            watcher.handled(instance, event, instructions)
        for instruction in instructions:
            self._carriers[type(instruction)](instance, instruction)

    def _instruction_carriers(self) -> dict[type, Callable[[Instance, Instruction], None]]:
        carriers: Any = {  # each takes exactly the type it is listed under
            Send: self._send,
            ArmTimer: self._arm,
            AppendToLog: self._append,
            ReserveSilence: self._reserve,
            ReadLog: self._read,
            TrimLog: self._trim,
            PersistCheckpoint: self._persist,
            AcknowledgePublish: self._answer_client,
            RefusePublish: self._answer_client,
            Deliver: self._delivered,
            Stepped: self._delivered,
            ReportTrimmed: self._report_trimmed,
            ReportFailed: self._report_failed,
            RestartMe: self._restart_me,
            Stopped: self._stopped,
        }
        return dict(carriers)

    def _send(self, instance: Instance, send: Send) -> None:
        ends = self.ends.get(send.edge)
        if ends is None:  # the edge left with a plan change
            return
        target = ends[1] if instance.name == ends[0] else ends[0]
        self.messages += 1
        envelope = (target, send.edge, send.message)
        receivers = self.instances.get(target, ())
        if len(receivers) == 1:
            self._transfer(instance.node, receivers[0].node, envelope)
            return
        if not receivers:
            self.counts["message to a dead component"] += 1
        for name in sorted({receiver.node.name for receiver in receivers}):
            self._transfer(instance.node, self.nodes[name], envelope)

    def _transfer(self, sender: Node, receiver: Node, envelope: Envelope) -> None:
        if sender is receiver:
            incarnation = receiver.incarnation
            self.clock.after(LOCAL_US, lambda: self._arrive_locally(receiver, incarnation, envelope))
        else:
            self.network.send(sender.name, receiver.name, self._quenched(envelope))

    def _quenched(self, envelope: Envelope) -> Envelope:
        """E4: between nodes, what the receiver would drop anyway stays behind."""
        target, edge, message = envelope
        if edge not in self.quenches or not isinstance(message, Events):
            return envelope
        left = self.quenches[edge].applied(message)
        self.counts["quenched"] += left is not message
        return target, edge, left

    def _arrive_locally(self, node: Node, incarnation: int, envelope: Envelope) -> None:
        if node.incarnation == incarnation:
            self._arrive(node.name, node.name, envelope)

    def _arrive(self, _: str, node_name: str, envelope: Envelope) -> None:
        target, edge, message = envelope
        client = self.clients.get(target)
        if client is not None:
            client(message)
            return
        node = self.nodes[node_name]
        node.receive(lambda: self._hand_over(node, target, edge, message))

    def _hand_over(self, node: Node, target: str, edge: str, message: object) -> None:
        for instance in list(self.instances.get(target, ())):
            if instance.node is not node:
                continue
            if isinstance(message, Published):
                self.feed(instance, Published(message.producer, message.sequence, message.columns, node.now_us()))
            elif edge in self.ends:
                self.feed(instance, MessageArrived(edge, message))  # type: ignore[arg-type]

    def publish(self, client: str, stream: str, published: Published) -> None:
        """A publisher's message to the node of its stream."""
        self.network.send(client, self.location[stream], (stream, "", published))

    def _answer_client(self, instance: Instance, answer: AcknowledgePublish | RefusePublish) -> None:
        self.network.send(instance.node.name, answer.producer, (answer.producer, "", answer))

    def _arm(self, instance: Instance, arm: ArmTimer) -> None:
        generation = instance.timers[arm.name] = instance.timers.get(arm.name, 0) + 1
        self.clock.after(arm.delay_us, lambda: self._fire(instance, arm.name, generation))

    def _fire(self, instance: Instance, name: str, generation: int) -> None:
        if instance.alive and instance.timers[name] == generation:
            instance.node.internal(lambda: self.feed(instance, TimerFired(name, instance.node.now_us())))

    # The log

    def _logged(self, stream: str, tick: int, row: Row) -> None:
        for watcher in self.watchers:
            watcher.logged(stream, tick, row)

    def _append(self, instance: Instance, append: AppendToLog) -> None:
        log = self.logs[instance.name]
        self._write_log(
            instance,
            append.epoch,
            append.number,
            lambda: log.append(append.rows, append.producer, append.sequence, append.forgotten),
        )

    def _reserve(self, instance: Instance, reserve: ReserveSilence) -> None:
        log = self.logs[instance.name]
        self._write_log(instance, reserve.epoch, reserve.number, lambda: log.reserve(reserve.tick))

    def _write_log(self, instance: Instance, epoch: int, number: int, apply: Callable[[], None]) -> None:
        log = self.logs[instance.name]

        def apply_if_newest() -> None:
            if epoch >= log.fence_epoch:
                apply()
                instance.written_number = number

        def done(worked: bool) -> None:
            if not worked:
                event: Event = LogFailed("the disk failed")
            elif epoch < log.fence_epoch:
                event = LogFailed("a newer incarnation has the log", fenced=True)
            elif number < instance.written_number:  # one sync made several durable: they are reported together
                return
            else:
                event = LogWritten(number)
            instance.node.internal(lambda: self.feed(instance, event))

        instance.node.disk.write(apply_if_newest, done)

    def _read(self, instance: Instance, read: ReadLog) -> None:
        def answer() -> None:
            cover, rows, trimmed = self.logs[instance.name].read(read.ticks, read.rows_max)
            self.feed(instance, LogRead(read.edge, cover, rows, trimmed))

        self.clock.after(READ_US, lambda: instance.node.internal(answer) if instance.alive else None)

    def _trim(self, instance: Instance, trim: TrimLog) -> None:
        for watcher in self.watchers:
            watcher.trimming(instance.name, trim.tick)
        self.counts["log trimmed"] += 1
        self.logs[instance.name].trim(trim.tick)

    # Checkpoints

    def _persist(self, instance: Instance, persist: PersistCheckpoint) -> None:
        store = self.checkpoints[instance.name]
        stored = store_form(persist.number, persist.make())

        def apply() -> None:
            if instance.epoch >= store.fence_epoch:
                store.put(stored)

        def done(worked: bool) -> None:
            if not worked or instance.epoch < store.fence_epoch:
                event: Event = CheckpointFailed(persist.number, "the disk failed or a newer incarnation has the store")
            elif instance.name in self.soft:
                event = CheckpointFailed(persist.number, "nobody knows")
            else:
                store.report(stored)
                event = CheckpointWritten(persist.number)
            instance.node.internal(lambda: self.feed(instance, event))

        self.counts["checkpoint"] += 1
        instance.node.disk.write(apply, done)

    # Other instructions

    def _delivered(self, _: Instance, deliver: Deliver | Stepped) -> None:
        """The subscriber has it; the checks have already looked at it."""
        self.counts["rows delivered"] += len(deliver.rows)

    def _report_trimmed(self, instance: Instance, report: ReportTrimmed) -> None:
        if instance.name not in self.newcomers:
            raise Violation("trimmed", instance.name, f"needs ticks that left the log: {report.ranges.show()}")
        self.clock.after(RESTART_US, lambda: self.start(instance.name, "bulk") if instance.alive else None)

    def _report_failed(self, instance: Instance, report: ReportFailed) -> None:
        raise Violation("failed", instance.name, str(report))  # nothing that is drawn here can overflow

    def _restart_me(self, instance: Instance, _: RestartMe) -> None:
        instance.alive = False
        self.instances[instance.name] = [other for other in self.instances[instance.name] if other is not instance]
        if not self.instances[instance.name]:
            self.clock.after(RESTART_US, lambda: self._start_if_down(instance.name))

    def _start_if_down(self, name: str, wish: str = "newest") -> None:
        if name in self.plan.by_name and not self.instances[name]:
            self.start(name, wish)

    def _stopped(self, instance: Instance, _: Stopped) -> None:
        instance.alive = False
        self.instances[instance.name] = [other for other in self.instances[instance.name] if other is not instance]
