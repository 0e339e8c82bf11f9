"""Hosts joined by hand: a network of lists, a clock that only tests move."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count

import smile
from runtime.broker.host import Host
from runtime.broker.hosted import GUESTS, Told, guests_edge
from runtime.broker.publishing import PublishOutcome
from runtime.broker.timers import Clock
from runtime.broker.tuning import BROKER, LEAF
from runtime.log.memory import MemoryLog
from runtime.operators.copy import CopySpec
from runtime.plan import Component, Emit, InEdge, Plan
from runtime.protocol.leaf import Leaf
from runtime.protocol.messages import Message, Upstream
from runtime.protocol.state_component import StateComponent
from runtime.rows import Rows
from runtime.wire.messages import decode_message, encode_message

PROGRAM = """
stream Buys (item int, qty int[0..1000]);
stream Items (item int, name text) unique item;
view Sold = from Buys |> aggregate total := sum(qty), number := count() group by item;
view Big = from Sold |> where total > 10;
view Large = from Buys |> where qty > 5;
"""


@dataclass(frozen=True)
class Letter:
    sender: str
    component: str
    edge: str
    message: Message
    to: bytes | None


class Net:
    """Hosts by name. Letters wait in `letters` until `carry`; `lose` drops those it says yes to."""

    def __init__(self) -> None:
        self.now_us = 1_000_000_000_000
        self.clock = Clock(lambda: self.now_us, lambda: self.now_us)
        self.epochs = count(1)
        self.hosts: dict[str, Host] = {}
        self.homes: dict[str, str] = {}  # component -> host
        self.guests: dict[bytes, tuple[str, str]] = {}  # a leaf's address -> its host and name
        self.letters: deque[Letter] = deque()
        self.outcomes: list[tuple[PublishOutcome, bytes | None]] = []
        self.seen: list[Letter] = []
        self.lose: Callable[[Letter], bool] = lambda _letter: False

    def host(self, name: str) -> Host:
        net = self

        class Link:
            def send(self, component: str, edge: str, message: Message, to: bytes | None) -> None:
                net.letters.append(Letter(name, component, edge, message, to))

        made = Host(
            Link(),
            lambda: next(self.epochs),
            clock=self.clock,
            answer=lambda outcome, source: self.outcomes.append((outcome, source)),
        )
        self.hosts[name] = made
        return made

    def carry(self, rounds: int = 100) -> None:
        """Work everywhere and deliver everything until there is nothing more."""
        for _ in range(rounds):
            for host in self.hosts.values():
                host.work()
            if not self.letters and all(host.next_due_us() > 0 for host in self.hosts.values()):
                return
            while self.letters:
                self._deliver(self.letters.popleft())

    def _deliver(self, letter: Letter) -> None:
        self.seen.append(letter)
        if self.lose(letter):
            return
        edge, message = decode_message(encode_message(letter.edge, letter.message))
        if isinstance(message, Upstream) and edge.startswith("leaf "):  # a guest speaks
            _, component, _ = edge.split(" ")
            source = letter.component.encode()
            self.hosts[self.homes[component]].arrived(component, guests_edge(component), message, source)
        elif edge.startswith(GUESTS):
            component = edge.removeprefix(GUESTS)
            for address, (host, leaf) in self.guests.items():
                if letter.to in (None, address) and f" {component} " in leaf:
                    self.hosts[host].arrived(leaf, leaf, message, None)
        else:
            sender, receiver = self.ends[edge]
            component = sender if isinstance(message, Upstream) else receiver
            home = self.homes[component]
            asker = letter.sender.encode() if isinstance(message, Upstream) else None
            self.hosts[home].arrived(component, edge, message, asker)

    def pass_time(self, us: int, step_us: int = 50_000) -> None:
        for _ in range(us // step_us):
            self.now_us += step_us
            for host in self.hosts.values():
                host.fire()
            self.carry()

    def deploy(self, program: smile.Program, placement: dict[str, str]) -> None:
        """`placement` names the host of each component; components not named are not run."""
        tuned = tuple(replace(c, tuning=BROKER) for c in program.plan.components.values() if c.name in placement)
        self.plan = Plan(tuned)
        self.ends = {edge.name: (edge.sender, c.name) for c in tuned for edge in c.in_edges}
        self.homes = placement
        self.stores: dict[str, MemoryLog] = {}
        for name in dict.fromkeys(placement.values()):
            host = self.hosts.get(name) or self.host(name)
            mine = [component for component, home in placement.items() if home == name]
            for component in mine:
                if self.plan.by_name[component].is_stream:
                    self.stores[component] = MemoryLog(self.plan.by_name[component].relation.width)
            host.start(self.plan, mine, logs=dict(self.stores))
        self.carry()

    def subscribe(self, component: str, told: Callable[[Told], None], number: int = 0) -> Leaf:
        """A leaf in a host of its own."""
        name = f"leaf {component} {number}"
        host = self.host(name)
        relation = replace(self.plan.by_name[component].relation, is_event=False)
        leaf = Component(name, relation, CopySpec(), (InEdge(name, component),), Emit.CHANGES, LEAF)
        self.guests[name.encode()] = (name, name)
        self.hosts[self.homes[component]].attach_guests(component)
        upstream = tuple(c for c in self.plan.components if c.name != name)
        host.start(Plan((*upstream, leaf)), [name], tell=told)
        host.watch(name)
        self.carry()
        made = host.hosted[name].component
        assert isinstance(made, Leaf)
        return made

    def rows_of(self, host: str, component: str) -> Rows:
        made = self.hosts[host].hosted[component].component
        assert isinstance(made, StateComponent)
        return made.operator.rows

    def visible(self, leaf: Leaf) -> list[tuple[object, ...]]:
        rows = leaf.operator.rows
        return sorted(rows.select(rows.visible_slots()).rows())
