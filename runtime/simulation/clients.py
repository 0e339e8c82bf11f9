"""Publishers: clients that number their publishes and repeat them until they are acknowledged.

Each stream has one, on a node of its own, so that its messages are lost, repeated and delayed like all others. A
publisher also holds the system to its word: what was acknowledged is in the log, once, at the ticks it was told.
What they publish is drawn by `draw_workload`: a skewed choice of keys, bursts and silent stretches. Subscribers
need no file: they are leaf components, and a disconnected one is a stopped link.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from runtime.protocol.events import AcknowledgePublish, Published
from runtime.simulation.decisions import Decision
from runtime.simulation.descriptor import PAYLOAD, QUANTITY_MAX, Graph
from runtime.simulation.violation import Violation

if TYPE_CHECKING:
    from runtime.simulation.world import World

RETRY_US = 30_000
RETRY_US_MAX = 240_000
KEYS = (0, 0, 0, 0, 1, 1, 2, 3)  # skewed: half of the events share one key


class Publisher:
    """The client of one stream."""

    def __init__(self, world: World, stream: str) -> None:
        self.name = f"pub_{stream}"
        self.outstanding: dict[int, tuple[tuple[int, ...], ...]] = {}
        self._world = world
        self._stream = stream
        self._acknowledged: dict[int, tuple[int, ...]] = {}
        world.clients[self.name] = self._answered

    def publish(self, sequence: int, rows: tuple[tuple[int, ...], ...]) -> None:
        """Send some rows under a number, now and until they are acknowledged."""
        self.outstanding[sequence] = tuple(zip(*rows, strict=True))
        self._send(sequence, RETRY_US)

    def _send(self, sequence: int, retry_us: int) -> None:
        columns = self.outstanding.get(sequence)
        if columns is None:
            return
        self._world.publish(self.name, self._stream, Published(self.name, sequence, columns, 0))
        later_us = min(2 * retry_us, RETRY_US_MAX)
        self._world.clock.after(retry_us, lambda: self._send(sequence, later_us))

    def _answered(self, answer: object) -> None:
        if not isinstance(answer, AcknowledgePublish):
            return  # refused: the next repetition asks again
        logged = self._world.logs[self._stream].publishes.get((self.name, answer.sequence))
        ticks = tuple(answer.ticks)
        if logged != ticks:
            raise Violation("acknowledged", self._stream, f"publish {answer.sequence} at {ticks}, the log has {logged}")
        before = self._acknowledged.setdefault(answer.sequence, ticks)
        if before != ticks:
            raise Violation("acknowledged", self._stream, f"publish {answer.sequence}: first {before}, now {ticks}")
        self.outstanding.pop(answer.sequence, None)


def draw_workload(generator: random.Random, graph: Graph, events: int, end_us: int) -> list[Decision]:
    """Publishes of one to three rows; one stream may be silent for long, one may send in bursts."""
    decisions: list[Decision] = []
    weights = [generator.choice((1, 1, 3, 0.2)) for _ in graph.streams]
    sequences = dict.fromkeys(graph.streams, 0)
    flood_us = int(generator.random() * end_us) if generator.random() < 0.2 else None
    published = 0
    while published < events:
        stream = generator.choices(graph.streams, weights)[0]
        rows = generator.choice((1, 1, 1, 2, 3))
        in_flood = flood_us is not None and generator.random() < 0.5
        at_us = flood_us if in_flood and flood_us is not None else int(generator.random() * end_us)
        sequences[stream] += 1
        payload: list[int] = []
        for _ in range(rows):
            payload += draw_row(generator)
        decisions.append(Decision(at_us, "publish", stream, (sequences[stream], *payload)))
        published += rows
    return decisions


def draw_row(generator: random.Random) -> tuple[int, int, int, int]:
    """k, g, v, w."""
    return (
        generator.choice(KEYS),
        generator.randrange(2),
        generator.randint(0, QUANTITY_MAX),
        generator.randint(-5, 5),
    )


def rows_of(decision: Decision) -> tuple[int, tuple[tuple[int, ...], ...]]:
    """The number and the rows of a publish decision."""
    sequence, *flat = [int(argument) for argument in decision.arguments]
    width = len(PAYLOAD)
    return sequence, tuple(tuple(flat[i : i + width]) for i in range(0, len(flat), width))
