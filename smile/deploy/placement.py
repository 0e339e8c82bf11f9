"""Placement: which broker hosts which component, with the reason for each.

In this order: streams stay where their logs are; pins of `smile.toml`; what the program says (`publish S at b`,
`place V on b`, `with`, `near`, `avoid`); then streams are spread evenly, and every other component goes where most of
what it reads is, counted in the latency of the declared links. The same program and brokers give the same placement.

Called by `smile run` and `smile deploy`. It moves nothing: a placement is a wish about the next deployment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from compiler.plan.build import ProgramPlan
from mpl.diagnostic import did_you_mean
from mpl.typed import Link, Placement, TypedProgram
from runtime.plan import Component
from smile.deploy.deployment import Deployment

LATENCY_US = 1_000
"""Between two brokers when no link says otherwise."""


class PlacementError(Exception):
    """What was asked for cannot be had; says what, why, and the remedy."""


@dataclass(frozen=True)
class Placed:
    """Home and reason of every component, in reading order."""

    homes: Mapping[str, str]
    reasons: Mapping[str, str]

    def explain(self) -> str:
        """One line per component, grouped by broker."""
        lines = []
        for broker in sorted(set(self.homes.values())):
            lines.append(f"{broker}:")
            lines += [f"  {name}: {self.reasons[name]}" for name, home in self.homes.items() if home == broker]
        return "\n".join(lines)


def hosted_components(plan: ProgramPlan) -> tuple[Component, ...]:
    """What some broker has to run: streams, tables, and all that a view needs."""
    relations = (*plan.streams.values(), *plan.tables.values(), *plan.views.values())
    return plan.needed_for({relation.component for relation in relations})


def place(
    program: TypedProgram,
    plan: ProgramPlan,
    brokers: Sequence[str],
    pins: Mapping[str, str] | None = None,
    *,
    previous: Deployment | None = None,
    ignore_absent: bool = False,
) -> Placed:
    """A home for every component.

    `previous` is what runs now: streams stay where their logs are. `ignore_absent`: statements about brokers that are
    not there count as not made.
    """
    if not brokers:
        raise PlacementError("there are no brokers to place anything on; declare one in the program or in smile.toml")
    placer = _Placer(program, plan, tuple(brokers), ignore_absent=ignore_absent)
    if previous is not None:
        placer.keep_streams(previous)
    placer.read_pins(pins or {})
    placer.read_program()
    return placer.place()


class _Placer:
    def __init__(
        self, program: TypedProgram, plan: ProgramPlan, brokers: tuple[str, ...], *, ignore_absent: bool
    ) -> None:
        self.program = program
        self.plan = plan
        self.brokers = brokers
        self.ignore_absent = ignore_absent
        self.components = {component.name: component for component in hosted_components(plan)}
        self.latency = _latencies(brokers, program.links)
        self.edges = {broker.name for broker in program.brokers.values() if broker.edge}
        self.fixed: dict[str, tuple[str, str]] = {}  # component -> broker, reason
        self.pinned: set[str] = set()
        self.avoided: dict[str, set[str]] = {}
        self.drawn: dict[str, list[tuple[str, str]]] = {}  # component -> what it should be with (or near), reason
        self.homes: dict[str, str] = {}
        self.reasons: dict[str, str] = {}

    # What was said

    def component_of(self, relation: str) -> str:
        plan = self.plan
        for found in (plan.views, plan.streams, plan.tables):
            if relation in found:
                return found[relation].component
        known = (*plan.views, *plan.streams, *plan.tables)
        hint = did_you_mean(relation, known) or f"it has {', '.join(known)}"
        raise PlacementError(f"pins.{relation}: the program has no such view, stream or table; {hint}")

    def has(self, broker: str, said: str) -> bool:
        """Is this broker there? If not, the statement is refused or, on request, left aside."""
        if broker in self.brokers:
            return True
        if self.ignore_absent:
            return False
        hint = did_you_mean(broker, self.brokers) or f"add it to smile.toml, which has {', '.join(self.brokers)}"
        raise PlacementError(f"{said}: there is no broker `{broker}`; {hint}")

    def fix(self, component: str, broker: str, reason: str) -> None:
        home, earlier = self.fixed.setdefault(component, (broker, reason))
        if home != broker:
            remedy = (
                "a stream cannot move: keep it there, or begin anew with empty data folders"
                if component in self.plan.streams
                else "views that compute the same are one component: keep one of the two"
            )
            raise PlacementError(f"`{component}` cannot be on {home} ({earlier}) and on {broker} ({reason}); {remedy}")

    def keep_streams(self, previous: Deployment) -> None:
        for stream in self.plan.streams:
            home = previous.placement.get(stream)
            if home is None:
                continue
            if home not in self.brokers:
                raise PlacementError(
                    f"the log of stream `{stream}` is on broker `{home}`, which this deployment lacks; "
                    "keep the broker, or begin anew with empty data folders"
                )
            self.fix(stream, home, "its log is there")

    def read_pins(self, pins: Mapping[str, str]) -> None:
        for relation, broker in pins.items():
            component = self.component_of(relation)
            if self.has(broker, f"pins.{relation}"):
                self.fix(component, broker, f"pinned as {relation}")
            self.pinned.add(component)

    def read_program(self) -> None:
        for said in self.program.placements:
            component = self.component_of(said.relation)
            words = f"`{_words(said)}`"
            match said.how:
                case "at" | "on":
                    # A pin is the operator's later word.
                    if component not in self.pinned and self.has(said.target, words):
                        self.fix(component, said.target, words)
                case "avoid":
                    if self.has(said.target, words):
                        self.avoided.setdefault(component, set()).add(said.target)
                case "with" | "near":
                    self.drawn.setdefault(component, []).append((said.target, words))
        for component, avoided in self.avoided.items():
            home, reason = self.fixed.get(component, (None, ""))
            if avoided >= set(self.brokers) or home in avoided:
                why = f"it is put on {home} ({reason})" if home else "there is no other broker"
                raise PlacementError(f"`{component}` should avoid {', '.join(sorted(avoided))}, but {why}")

    # What follows

    def place(self) -> Placed:
        for name, (broker, reason) in self.fixed.items():
            self.put(name, broker, reason)
        for name in self.plan.streams:
            if name not in self.homes:
                self.put(name, *self.spread(name))
        for name, component in self.components.items():
            if name not in self.homes and name not in self.plan.tables:
                self.put(name, *self.nearest(name, [edge.sender for edge in component.in_edges]))
        for name in self.plan.tables:
            if name not in self.homes:
                readers = [other.name for other in self.components.values() if _reads(other, name)]
                self.put(name, *self.nearest(name, readers))
        return Placed(
            {name: self.homes[name] for name in self.components}, {name: self.reasons[name] for name in self.components}
        )

    def put(self, component: str, broker: str, reason: str) -> None:
        self.homes[component] = broker
        self.reasons[component] = reason

    def allowed(self, component: str) -> list[str]:
        return [broker for broker in self.brokers if broker not in self.avoided.get(component, ())]

    def load(self, broker: str) -> int:
        return sum(home == broker for home in self.homes.values())

    def wish(self, component: str) -> tuple[str, str] | None:
        """Where `with` and `near` draw it, if that is known by now."""
        for target, words in self.drawn.get(component, ()):
            for broker in self._places(target):
                if broker in self.allowed(component):
                    return broker, words
        return None

    def _places(self, target: str) -> Iterator[str]:
        if target in self.brokers:
            yield target
        subscription = self.program.subscriptions.get(target)
        if subscription is not None and subscription.broker is not None:
            yield subscription.broker
        relation = subscription.view if subscription is not None else target
        for found in (self.plan.views, self.plan.streams, self.plan.tables):
            if relation in found and found[relation].component in self.homes:
                yield self.homes[found[relation].component]

    def spread(self, stream: str) -> tuple[str, str]:
        wish = self.wish(stream)
        if wish is not None:
            return wish
        streams = [self.homes[name] for name in self.plan.streams if name in self.homes]
        best = min(self.allowed(stream), key=lambda broker: (streams.count(broker), self.brokers.index(broker)))
        return best, "streams are spread evenly"

    def nearest(self, component: str, neighbours: Collection[str]) -> tuple[str, str]:
        wish = self.wish(component)
        if wish is not None:
            return wish
        # Tables come last, so a reader may be placed before one that it reads.
        homes = [self.homes[name] for name in neighbours if name in self.homes]

        def cost(broker: str) -> tuple[int, bool, int, int]:
            far = sum(self.latency[broker, home] for home in homes)
            return far, broker in self.edges, self.load(broker), self.brokers.index(broker)

        best = min(self.allowed(component), key=cost)
        beside = [name for name in neighbours if self.homes.get(name) == best]
        if beside:
            return best, f"beside {', '.join(dict.fromkeys(beside))}"
        return best, "between what it reads" if homes else "has the least to do"


def _reads(component: Component, name: str) -> bool:
    return any(edge.sender == name for edge in component.in_edges)


def _words(said: Placement) -> str:
    return f"{'publish' if said.how == 'at' else 'place'} {said.relation} {said.how} {said.target}"


def _latencies(brokers: Sequence[str], links: Collection[Link]) -> dict[tuple[str, str], int]:
    """The shortest way between any two brokers over the declared links, in microseconds."""
    known = {*brokers, *(end for link in links for end in (link.left, link.right))}
    declared = {
        way: LATENCY_US if link.latency_us is None else link.latency_us
        for link in links
        for way in ((link.left, link.right), (link.right, link.left))
    }
    # Where links are declared, a pair without one takes the way over others; without any way it is farther than all.
    otherwise = sum(declared.values()) + LATENCY_US
    ways = {(a, b): 0 if a == b else declared.get((a, b), otherwise) for a, b in product(known, known)}
    for middle in sorted(known):
        for a, b in ways:
            ways[a, b] = min(ways[a, b], ways[a, middle] + ways[middle, b])
    return {(a, b): ways[a, b] for a, b in product(brokers, brokers)}
