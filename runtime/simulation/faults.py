"""What can go wrong, drawn from a seed: rates for the network, and a dozen decisions about nodes, disks, links and
plans.

Every kind is listed in `KINDS` with its weight. Drawing one only names it; `simulator.py` carries it out and counts
it when it takes effect (a rotten checkpoint counts only if there was one). Faults with a duration are one decision,
so that shrinking cannot take away the end and keep the beginning.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from runtime.simulation.decisions import Decision, Rates
from runtime.simulation.descriptor import Graph, Leaf, Stream
from runtime.simulation.kinds import kinds_of

LOSS_MAX = 0.30


def draw_rates(generator: random.Random) -> Rates:
    """Some runs have a perfect network, some a terrible one; each kind is off in half of them."""

    def some(highest: float) -> float:
        return generator.random() * highest if generator.random() < 0.5 else 0.0

    return Rates(
        loss=some(LOSS_MAX),
        duplication=some(0.2),
        delay=some(0.3),
        delay_us_max=generator.choice((3_000, 20_000, 100_000)),
        corruption=some(0.05),
    )


class _Drawing:
    """What faults may be aimed at."""

    def __init__(self, generator: random.Random, graph: Graph, placement: dict[str, str], end_us: int) -> None:
        self.random = generator
        self.graph = graph
        self.placement = placement
        self.end_us = end_us
        self.nodes = sorted(set(placement.values()))
        self.decisions: list[Decision] = []
        self.added = 0

    def instant_us(self) -> int:
        return int(self.random.random() * self.end_us)

    def duration_us(self, longest_us: int = 150_000) -> int:
        return 500 + int(self.random.random() ** 2 * longest_us)

    def node(self) -> str:
        return self.random.choice(self.nodes)

    def component(self, streams: bool = True) -> str:
        names = [n.name for n in self.graph.nodes if streams or not isinstance(n.operator, Stream)]
        return self.random.choice(names)

    def wish(self) -> str:
        return self.random.choice(("newest", "newest", "older", "none"))

    def outcome(self) -> str:
        return self.random.choice(("lost", "torn", "kept"))

    def add(self, at_us: int, kind: str, target: str, *arguments: int | str) -> None:
        self.decisions.append(Decision(at_us, kind, target, arguments))


def draw_faults(
    generator: random.Random, graph: Graph, placement: dict[str, str], count: int, end_us: int
) -> list[Decision]:
    """About `count` decisions, and checkpoints all along."""
    drawing = _Drawing(generator, graph, placement, end_us)
    for _ in range(generator.randint(0, 2 * len(graph.nodes))):
        drawing.add(drawing.instant_us(), "checkpoint", drawing.component(streams=False))
    kinds = [kind for kind, _ in KINDS]
    weights = [weight if generator.random() < 0.7 else 0 for _, weight in KINDS]  # each run knows only some kinds
    if not any(weights):
        return drawing.decisions
    while count > 0:
        before = len(drawing.decisions)
        generator.choices(kinds, weights)[0](drawing)
        count -= max(1, len(drawing.decisions) - before)
    return drawing.decisions


def _crash(drawing: _Drawing) -> None:
    drawing.add(
        drawing.instant_us(), "crash", drawing.node(), drawing.duration_us(60_000), drawing.outcome(), drawing.wish()
    )


def _crash_again(drawing: _Drawing) -> None:
    """Once more while it recovers from the first."""
    at_us, node, down_us = drawing.instant_us(), drawing.node(), drawing.duration_us(20_000)
    drawing.add(at_us, "crash", node, down_us, drawing.outcome(), drawing.wish())
    soon_us = at_us + down_us + int(drawing.random.random() * 30_000)
    drawing.add(soon_us, "crash", node, drawing.duration_us(20_000), drawing.outcome(), drawing.wish())


def _crash_several(drawing: _Drawing) -> None:
    at_us = drawing.instant_us()
    for node in drawing.nodes:
        if drawing.random.random() < 0.6:
            drawing.add(at_us, "crash", node, drawing.duration_us(40_000), drawing.outcome(), drawing.wish())


def _restart(drawing: _Drawing) -> None:
    drawing.add(drawing.instant_us(), "restart", drawing.component(), drawing.wish())


def _partition(drawing: _Drawing) -> None:
    a, b = drawing.node(), drawing.node()
    if a != b:
        drawing.add(drawing.instant_us(), "partition", a, b, drawing.duration_us(), drawing.random.choice((1, 2)))


def _isolate(drawing: _Drawing) -> None:
    """All links of a node stop one by one and heal in another order."""
    node, at_us = drawing.node(), drawing.instant_us()
    for other in drawing.nodes:
        if other != node:
            later_us = int(drawing.random.random() * 30_000)
            drawing.add(at_us + later_us, "partition", node, other, drawing.duration_us(), 2)


def _pause(drawing: _Drawing) -> None:
    drawing.add(drawing.instant_us(), "pause", drawing.node(), drawing.duration_us(100_000))


def _slow(drawing: _Drawing) -> None:
    slow_us = drawing.random.choice((1_000, 5_000, 20_000))
    drawing.add(drawing.instant_us(), "slow", drawing.node(), drawing.duration_us(), slow_us)


def _disk(drawing: _Drawing) -> None:
    node = drawing.node()
    match drawing.random.randrange(3):
        case 0:
            drawing.add(drawing.instant_us(), "disk_full", node, drawing.duration_us(60_000))
        case 1:
            drawing.add(drawing.instant_us(), "fail_sync", node, drawing.random.randint(1, 2))
        case _:
            drawing.add(drawing.instant_us(), "slow_disk", node, drawing.duration_us(), 10_000)


def _rot(drawing: _Drawing) -> None:
    """A checkpoint, its decay, and the restart that finds out."""
    component, at_us = drawing.component(streams=False), drawing.instant_us()
    drawing.add(at_us, "checkpoint", component)
    drawing.add(at_us + 5_000, "rot", component)
    drawing.add(at_us + 5_001, "restart", component, "newest")


def _clock(drawing: _Drawing) -> None:
    drawing.add(drawing.instant_us(), "clock_jump", drawing.node(), drawing.random.randint(-200_000, 200_000))


def _disconnect(drawing: _Drawing) -> None:
    """A subscriber, or a publisher, cannot be reached for a while."""
    if drawing.random.random() < 0.5:
        stream = drawing.random.choice(drawing.graph.streams)
        drawing.add(
            drawing.instant_us(), "partition", f"pub_{stream}", drawing.placement[stream], drawing.duration_us(), 2
        )
        return
    leaf = drawing.random.choice(drawing.graph.leaves)
    sender = drawing.graph.by_name[leaf].inputs[0]
    if drawing.placement[leaf] != drawing.placement[sender]:
        drawing.add(
            drawing.instant_us(),
            "partition",
            drawing.placement[leaf],
            drawing.placement[sender],
            drawing.duration_us(),
            2,
        )


def _bulk(drawing: _Drawing) -> None:
    names = [name for name, kinds in kinds_of(drawing.graph).items() if not kinds.is_event]
    drawing.add(drawing.instant_us(), "restart", drawing.random.choice(names), "bulk")


def _fall_back(drawing: _Drawing) -> None:
    """A component starts anew, and one that it feeds returns to an old checkpoint in the same moment."""
    component = drawing.component(streams=False)
    consumers = drawing.graph.consumers[component]
    if not consumers:
        return
    consumer, _ = drawing.random.choice(consumers)
    early_us, late_us = sorted((drawing.instant_us(), drawing.instant_us()))
    drawing.add(early_us, "checkpoint", consumer)
    drawing.add(late_us - 4_000, "checkpoint", component)
    drawing.add(late_us, "restart", component, drawing.random.choice(("bulk", "none", "newest")))
    drawing.add(late_us + int(drawing.random.random() * 3_000), "restart", consumer, "newest")


def _move(drawing: _Drawing) -> None:
    """Another node takes over; the old incarnation may go on for a while, not knowing."""
    overlap_us = 0 if drawing.random.random() < 0.5 else drawing.duration_us(60_000)
    drawing.add(drawing.instant_us(), "move", drawing.component(), drawing.node(), overlap_us, drawing.wish())


def _change_plan(drawing: _Drawing) -> None:
    """A subscriber comes, perhaps with a view of its own, or one goes."""
    if drawing.random.random() < 0.5:
        names = [n.name for n in drawing.graph.nodes if not isinstance(n.operator, Leaf)]
        drawing.added += 1
        sender, view = drawing.random.choice(names), drawing.random.choice(("copy", "count"))
        drawing.add(drawing.instant_us(), "add_leaf", f"new{drawing.added}", sender, drawing.node(), view)
    else:
        drawing.add(drawing.instant_us(), "remove_leaf", drawing.random.choice(drawing.graph.leaves))


KINDS: tuple[tuple[Callable[[_Drawing], None], int], ...] = (
    (_crash, 4),
    (_crash_again, 2),
    (_crash_several, 1),
    (_restart, 6),
    (_partition, 3),
    (_isolate, 1),
    (_pause, 1),
    (_slow, 1),
    (_disk, 2),
    (_rot, 1),
    (_clock, 1),
    (_disconnect, 2),
    (_bulk, 1),
    (_fall_back, 2),
    (_move, 2),
    (_change_plan, 2),
)
