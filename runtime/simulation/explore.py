"""Small graphs taken apart completely: every order of messages, every loss, crashes and checkpoints, breadth-first.

A state is what all components hold, which messages are under way and what may still happen. A message may be
delivered at any time, twice if a copy is left, or never: a state is also continued with all its messages lost, and
must then converge. What one component does depends on nothing but its own state and the event, so it is computed
once for each pair and remembered; that is what makes hundreds of thousands of states affordable. Time, clocks,
disks and trimming belong to `simulator.py`.
"""

from __future__ import annotations

import copy
import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

from runtime.plan import Plan, Tuning
from runtime.protocol.build import build_component
from runtime.protocol.checkpoint import Checkpoint
from runtime.protocol.errors import ProtocolError
from runtime.protocol.events import (
    AppendToLog,
    CheckpointDue,
    Event,
    Instruction,
    LogRead,
    LogState,
    LogWritten,
    MessageArrived,
    PersistCheckpoint,
    Published,
    ReadLog,
    Restarted,
    Send,
    TimerFired,
)
from runtime.protocol.messages import Quench
from runtime.simulation.build import build_plan
from runtime.simulation.decisions import Settings
from runtime.simulation.descriptor import PAYLOAD, Graph, Stream
from runtime.simulation.freeze import freeze
from runtime.simulation.oracle import Oracle
from runtime.simulation.row_checks import check_as_of, check_copy, check_rows
from runtime.simulation.small_graphs import SMALL_GRAPHS
from runtime.simulation.stores import LogStore
from runtime.simulation.violation import Violation

IN_FLIGHT_MAX = 7  # states with more messages under way are not continued, only checked
ROUNDS_MAX = 6
DELIVERIES_MAX = 600


@dataclass(frozen=True)
class Space:
    """A graph, some events in the order of their ticks, and how often each kind of thing may happen."""

    graph: Graph
    events: tuple[tuple[str, tuple[int, int, int, int]], ...]
    restarts: int = 1
    checkpoints: int = 1
    questions: int = 1
    acknowledgements: int = 1
    copies: int = 1


@dataclass
class Exploration:
    """How far it went."""

    title: str
    states: int = 0
    transitions: int = 0
    component_states: int = 0
    converged: int = 0
    exhausted: bool = False
    seconds: float = 0.0
    violation: Violation | None = None
    path: list[str] = field(default_factory=list)

    def line(self) -> str:
        """One line for a report."""
        end = "exhausted" if self.exhausted else "cut"
        found = f", {self.violation} after {' / '.join(self.path)}" if self.violation is not None else ""
        return (
            f"{self.title:12} {self.states:8} states, {self.transitions:8} transitions, {self.converged:7} continued "
            f"to convergence, {self.component_states:6} component states, {end} in {self.seconds:.0f} s{found}"
        )


@dataclass(frozen=True, slots=True)
class State:
    """One state of the whole system; all parts are numbers of things seen before."""

    published: int
    components: tuple[int, ...]
    epochs: tuple[int, ...]
    saved: tuple[int, ...]  # number of the saved checkpoint of each component, -1 for none
    flight: tuple[int, ...]  # sorted numbers of the messages under way
    left: tuple[int, int, int, int, int]  # restarts, checkpoints, questions, acknowledgements, copies


class Machines:
    """All components of a graph as one table of transitions."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.graph = space.graph
        self.plan: Plan = build_plan(space.graph, Settings(tuning=Tuning(gather_us=0)))
        self.names = [node.name for node in space.graph.nodes]
        self.at = {name: i for i, name in enumerate(self.names)}
        self.is_stream = [isinstance(node.operator, Stream) for node in space.graph.nodes]
        self.ends = {edge.name: (edge.sender, c.name) for c in self.plan.components for edge in c.in_edges}
        self.oracle = Oracle(space.graph)
        self.logs = {name: LogStore(name, len(PAYLOAD), self.oracle.record) for name in space.graph.streams}
        self.ticks: list[int] = []
        self.objects: list[Any] = []
        self.messages: list[tuple[int, Event]] = []  # receiving component, what arrives there
        self.checkpoints: list[Checkpoint] = []
        # Keys that any incarnation ever quenched, by edge: a checkpoint keeps what was known of them until then (T4).
        self.quenched: dict[str, set[Any]] = {}
        self._numbers: dict[Any, int] = {}
        self._message_numbers: dict[Any, int] = {}
        self._table: dict[tuple[int, Any], tuple[int, tuple[int, ...], int]] = {}
        self._shared = self._shared_parts()

    def _shared_parts(self) -> dict[int, Any]:
        """Parts of the plan, which copies of a component have in common."""
        shared: dict[int, Any] = {id(self.plan): self.plan}
        for component in self.plan.components:
            for part in (component, component.relation, component.operator, component.tuning, component.in_edges):
                shared[id(part)] = part
        for edges in self.plan.out_edges.values():
            shared[id(edges)] = edges
        return shared

    def begin(self) -> State:
        """All components started and introduced to each other: the first questions are answered, nothing is under way.

        Restarts bring every order of those messages back; beginning with them would only put that off.
        """
        flight: deque[int] = deque()
        components = []
        for index, name in enumerate(self.names):
            number = self._intern(index, build_component(self.plan, name))
            number, sent, _ = self.step(index, number, ("start", 1), self.restarted(index, 1, -1))
            components.append(number)
            flight.extend(sent)
        while flight:
            message = flight.popleft()
            index, event = self.messages[message]
            components[index], sent, _ = self.step(index, components[index], ("message", message), event)
            flight.extend(sent)
        space = self.space
        left = (space.restarts, space.checkpoints, space.questions, space.acknowledgements, space.copies)
        count = len(components)
        return State(0, tuple(components), (1,) * count, (-1,) * count, (), left)

    def restarted(self, index: int, epoch: int, saved: int) -> Restarted:
        log = LogState(-1, -1, -1) if self.is_stream[index] else None
        return Restarted(epoch, 0, self.checkpoints[saved] if saved >= 0 else None, -1, log)

    def step(self, index: int, number: int, label: Any, event: Event) -> tuple[int, tuple[int, ...], int]:
        """One event for one component: its new state, the messages it sent, a checkpoint it wrote (or -1)."""
        key = (number, label)
        found = self._table.get(key)
        if found is None:
            found = self._table[key] = self._compute(index, number, event)
        return found

    def _compute(self, index: int, number: int, event: Event) -> tuple[int, tuple[int, ...], int]:
        component = copy.deepcopy(self.objects[number], dict(self._shared))
        before = component.coverage() if not isinstance(event, Restarted) else None
        sent: list[int] = []
        saved = -1
        todo: deque[Event] = deque([event])
        while todo:
            try:
                instructions: list[Instruction] = component.handle(todo.popleft())
            except ProtocolError as refused:
                raise Violation("refused", self.names[index], str(refused)) from refused
            for instruction in instructions:
                if isinstance(instruction, Send):
                    sent.append(self._message(index, instruction))
                elif isinstance(instruction, AppendToLog):
                    if instruction.rows.max_ticks[-1] not in self.ticks:
                        self.logs[self.names[index]].append(
                            instruction.rows, instruction.producer, instruction.sequence, instruction.forgotten
                        )
                        self.ticks.append(instruction.rows.max_ticks[-1])
                    todo.append(LogWritten(instruction.number))
                elif isinstance(instruction, ReadLog):
                    cover, rows, trimmed = self.logs[self.names[index]].read(instruction.ticks, instruction.rows_max)
                    todo.append(LogRead(instruction.edge, cover, rows, trimmed))
                elif isinstance(instruction, PersistCheckpoint):
                    self.checkpoints.append(instruction.make())
                    saved = len(self.checkpoints) - 1
        if before is not None and not component.coverage().contains(before):
            raise Violation("I4", self.names[index], "coverage shrinks")
        return self._intern(index, component), tuple(sent), saved

    def _message(self, index: int, send: Send) -> int:
        sender, receiver = self.ends[send.edge]
        target = self.at[receiver if self.names[index] == sender else sender]
        if isinstance(send.message, Quench):
            self.quenched.setdefault(send.edge, set()).update(send.message.keys)
        key = (target, send.edge, freeze(send.message))
        number = self._message_numbers.get(key)
        if number is None:
            number = self._message_numbers[key] = len(self.messages)
            self.messages.append((target, MessageArrived(send.edge, send.message)))
        return number

    def _intern(self, index: int, component: Any) -> int:
        key = (index, freeze(component))
        number = self._numbers.get(key)
        if number is None:
            if component.epoch and not self.is_stream[index]:
                self._check(self.names[index], component)
            number = self._numbers[key] = len(self.objects)
            self.objects.append(component)
        return number

    def _check(self, name: str, component: Any) -> None:
        """I1, I2, I6 for a state that was never seen before."""
        coverage = component.coverage()
        streams = self.graph.lineages[name]
        masks = tuple(self.oracle.mask(stream, part) for stream, part in zip(streams, coverage, strict=True))
        if self.plan.by_name[name].relation.is_event:
            return
        rows = component.operator.rows
        check_rows(self.oracle, name, rows, coverage, masks)
        check_as_of(self.oracle, name, rows, component.in_floor, coverage.horizon(), masks)
        first = 0
        for i, edge in enumerate(component.in_edges.values()):
            sender = self.ends[edge.name][0]
            count = len(self.graph.lineages[sender])
            table = component.operator.inputs[i]
            if not self.plan.by_name[sender].relation.is_event and table is not rows and not edge.quenched:
                keys = self.quenched.get(edge.name, set())
                check_copy(self.oracle, name, sender, table, keys, masks[first : first + count])
            first += count


class Explorer:
    """Breadth-first over the states of one space."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.machines = Machines(space)
        self.result = Exploration(space.graph.title)
        self._good: set[tuple[int, tuple[int, ...]]] = set()
        self._parents: dict[State, tuple[State | None, str]] = {}

    def run(self, seconds: float, states_max: int) -> Exploration:
        began = time.process_time()
        state: State | None = None
        try:
            start = self.machines.begin()
            self._parents[start] = (None, "start")
            queue = deque([start])
            while queue and self.result.converged < states_max and time.process_time() - began < seconds:
                state = queue.popleft()
                self._converges(state)
                self.result.converged += 1
                if len(state.flight) > IN_FLIGHT_MAX:
                    continue
                for label, successor in self._successors(state):
                    self.result.transitions += 1
                    if successor not in self._parents:
                        self._parents[successor] = (state, label)
                        queue.append(successor)
            self.result.exhausted = not queue
        except Violation as violation:
            self.result.violation = violation
            self.result.path = self._path(state)
        self.result.states = len(self._parents)
        self.result.component_states = len(self.machines.objects)
        self.result.seconds = time.process_time() - began
        return self.result

    def _path(self, state: State | None) -> list[str]:
        path: list[str] = []
        while state is not None:
            state, label = self._parents[state]
            path.append(label)
        return path[::-1]

    @staticmethod
    def _with(state: State, **changes: Any) -> State:
        parts = {name: getattr(state, name) for name in State.__slots__}
        return State(**{**parts, **changes})

    def _after(
        self, state: State, index: int, label: Any, event: Event, without: int | None = None, use: int | None = None
    ) -> State:
        """The state after one component handled an event; `without`: a message that is gone, `use`: a budget."""
        number, sent, saved = self.machines.step(index, state.components[index], label, event)
        flight = set(state.flight)
        if without is not None:
            flight.discard(without)
        flight.update(sent)
        return self._with(
            state,
            components=_replaced(state.components, index, number),
            saved=_replaced(state.saved, index, saved) if saved >= 0 else state.saved,
            flight=tuple(sorted(flight)),
            left=state.left if use is None else _replaced(state.left, use, state.left[use] - 1),
        )

    def _successors(self, state: State) -> list[tuple[str, State]]:
        machines = self.machines
        found: list[tuple[str, State]] = []
        if state.published < len(self.space.events):
            found.append(self._publish(state))
        for number in state.flight:
            index, event = machines.messages[number]
            text = f"deliver {number} to {machines.names[index]}"
            found.append((text, self._after(state, index, ("message", number), event, without=number)))
            if state.left[4]:
                found.append((f"{text}, keep a copy", self._after(state, index, ("message", number), event, use=4)))
        for index, name in enumerate(machines.names):
            if not machines.is_stream[index]:
                found += self._own_actions(state, index, name)
        return found

    def _publish(self, state: State) -> tuple[str, State]:
        stream, row = self.space.events[state.published]
        columns = tuple((value,) for value in row)
        published = Published("p", state.published, columns, (state.published + 1) * 10)
        index = self.machines.at[stream]
        after = self._after(state, index, ("publish", state.published), published)
        return f"publish {stream} {row}", self._with(after, published=state.published + 1)

    def _own_actions(self, state: State, index: int, name: str) -> list[tuple[str, State]]:
        found: list[tuple[str, State]] = []
        restarts, checkpoints, questions, acknowledgements, _ = state.left
        if restarts:
            for saved in {-1, state.saved[index]}:
                epoch = state.epochs[index] + 1
                event = self.machines.restarted(index, epoch, saved)
                after = self._after(state, index, ("start", epoch, saved), event, use=0)
                text = f"restart {name} {'empty' if saved < 0 else 'from its checkpoint'}"
                found.append((text, self._with(after, epochs=_replaced(state.epochs, index, epoch))))
        if checkpoints:
            found.append((f"checkpoint {name}", self._after(state, index, "checkpoint", CheckpointDue(), use=1)))
        for edge in self.machines.plan.by_name[name].in_edges:
            if questions:
                asked = self._after(state, index, ("ask", edge.name), TimerFired(f"ask:{edge.name}", 0), use=2)
                polled = self._after(asked, index, ("idle", edge.name), TimerFired(f"idle:{edge.name}", 0))
                found.append((f"{name} asks on {edge.name}", polled))
            if acknowledgements:
                acked = self._after(state, index, ("ack", edge.name), TimerFired(f"ack:{edge.name}", 0), use=3)
                found.append((f"{name} acknowledges on {edge.name}", acked))
        return found

    def _converges(self, state: State) -> None:
        """I7: with everything under way lost, a few rounds of questions bring the whole truth."""
        key = (state.published, state.components)
        if key in self._good:
            return
        machines = self.machines
        components = list(state.components)
        for _ in range(ROUNDS_MAX):
            flight: deque[int] = deque()
            for index, name in enumerate(machines.names):
                for edge in machines.plan.by_name[name].in_edges:
                    for kind in ("ask", "idle"):
                        fired = TimerFired(f"{kind}:{edge.name}", 0)
                        components[index], sent, _ = machines.step(index, components[index], (kind, edge.name), fired)
                        flight.extend(sent)
            for _ in range(DELIVERIES_MAX):
                if not flight:
                    break
                number = flight.popleft()
                index, event = machines.messages[number]
                components[index], sent, _ = machines.step(index, components[index], ("message", number), event)
                flight.extend(sent)
            if (state.published, tuple(components)) in self._good or self._is_complete(state.published, components):
                self._good.add(key)
                return
        raise Violation("I7", "system", f"not complete after {ROUNDS_MAX} rounds of questions without loss")

    def _is_complete(self, published: int, components: list[int]) -> bool:
        machines = self.machines
        lasts: dict[str, int] = {}
        for at, (stream, _) in enumerate(self.space.events[:published]):
            lasts[stream] = machines.ticks[at]
        for index, name in enumerate(machines.names):
            coverage = machines.objects[components[index]].coverage()
            for stream, part in zip(machines.graph.lineages[name], coverage, strict=True):
                if part.horizon() < lasts.get(stream, -1):
                    return False
        return True


def _replaced(values: tuple[int, ...], index: int, value: int) -> Any:
    return (*values[:index], value, *values[index + 1 :])


def explore(space: Space, seconds: float, states_max: int = 10**9) -> Exploration:
    """Take one space apart, for at most so many seconds, continuing at most so many states."""
    return Explorer(space).run(seconds, states_max)


def _space(title: str, *events: tuple[str, tuple[int, int, int, int]], **budgets: int) -> Space:
    graph = next(graph for graph in SMALL_GRAPHS if graph.title == title)
    return Space(graph, events, **budgets)


WIDE: tuple[Space, ...] = (
    _space("sum", ("s", (0, 0, 2, 0)), ("s", (1, 0, 3, 0)), ("s", (0, 0, 4, 0)), restarts=2),
    _space("tombstones", ("s", (0, 0, 5, 0)), ("s", (0, 0, 5, 0)), restarts=2),
    _space("join", ("a", (0, 0, 2, 0)), ("b", (0, 0, 3, 0))),
    _space("anti-join", ("a", (0, 0, 2, 0)), ("b", (0, 0, 3, 0)), restarts=2),
    _space("diamond", ("s", (0, 0, 2, 0)), ("s", (0, 0, 3, 0))),
    _space("fan-out", ("s", (0, 0, 5, 0)), ("s", (0, 0, 5, 0))),
    _space("top-1", ("s", (0, 0, 5, 0)), ("s", (1, 0, 7, 0)), ("s", (1, 0, 6, 0))),
    _space("left join", ("a", (0, 0, 2, 0)), ("b", (0, 0, 5, 0)), ("b", (0, 0, 5, 0))),
)
# Two events and one crash: small enough to be exhausted, or nearly.
NARROW: tuple[Space, ...] = tuple(
    replace(space, events=space.events[:2], restarts=1, checkpoints=0, questions=0, acknowledgements=0, copies=0)
    for space in WIDE
)
SPACES: tuple[Space, ...] = (*NARROW, *WIDE)
