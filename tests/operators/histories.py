"""Random histories for operators: a network of operators without a protocol, in which everything that may happen does.

`Network.run` delivers input in random order: events one by one or together, state rows coalesced over any number of
steps. Stages lose their state and begin a new epoch, are saved and restored, and forget tombstones that every receiver
knows. After every delivery the visible rows must be the naive view of what is covered (I1), a follower that was told of
touched rows only must hold the same (I2), every row that a receiver with less coverage would not be sent must be as
that receiver has it (S5), and a row that depends on nothing above the horizon must be that of the horizon (I6). The
views are computed by functions written in the tests.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgpack

from runtime.batch import Batch
from runtime.operators.operator import Operator
from runtime.plan import Column, ColumnKind, OperatorSpec, Relation

Row = tuple[Any, ...]
View = dict[Row, Row]  # key -> values, visible rows only
Ticks = frozenset[int]
Compute = Callable[..., View]

FINAL, UP, DOWN, DOM, VERSIONED = (
    ColumnKind.FINAL,
    ColumnKind.UP,
    ColumnKind.DOWN,
    ColumnKind.DOM,
    ColumnKind.VERSIONED,
)


def relation(
    name: str, keys: int, kinds: Sequence[ColumnKind] = (), *, versioned: bool = False, is_event: bool = False
) -> Relation:
    """`keys` key columns and a value column of each kind."""
    columns = [Column(f"{name}_{i}") for i in range(keys)]
    columns += [Column(f"{name}_{keys + i}", kind=kind) for i, kind in enumerate(kinds)]
    return Relation(name, tuple(columns), keys, is_event=is_event, versioned=versioned)


EVENTS = relation("events", 1, (FINAL,) * 4, is_event=True)  # tick, k, g, v (0..4), w (-3..3)


@dataclass
class Source:
    """A stream: all its events, by tick."""

    events: dict[int, Row] = field(default_factory=dict)

    relation = EVENTS

    @property
    def lineages(self) -> list[Source]:
        return [self]

    def view(self, covered: Sequence[Ticks]) -> View:
        return {(tick,): row for tick, row in self.events.items() if tick in covered[0]}


@dataclass
class Edge:
    """What a stage has of one input."""

    sender: Source | Stage
    coverage: list[Ticks]
    epoch: int = 0
    step: int = 0

    def is_behind(self, sender: Stage) -> bool:
        return self.epoch != sender.epoch or self.step < sender.step


class Stage:
    """One operator, fed by sources and other stages."""

    def __init__(self, spec: OperatorSpec, output: Relation, compute: Compute, *senders: Source | Stage) -> None:
        self.spec, self.relation, self.compute, self.senders = spec, output, compute, senders
        self.epoch = 0
        self._views: dict[tuple[Ticks, ...], View] = {}
        self.restart()

    def restart(self) -> None:
        """All state is lost."""
        self.epoch += 1
        self.step = 0
        self.floor = self.in_floor = self.told = self.forgotten = -1
        self.operator = self._build()
        self.edges = [Edge(sender, [frozenset()] * len(sender.lineages)) for sender in self.senders]
        self.followed = self._held()

    def _build(self) -> Operator:
        operator = self.spec.build(tuple(sender.relation for sender in self.senders), self.relation)
        assert isinstance(operator, Operator)
        return operator

    def reload(self) -> None:
        """Saved and restored: a new epoch with the same state."""
        data = msgpack.unpackb(msgpack.packb(self.operator.export()), strict_map_key=False)
        self.operator = self._build()
        self.operator.in_floor = self.in_floor
        self.operator.restore(data)
        self.epoch += 1
        self.step = 0
        self.told = self.forgotten = -1

    @property
    def lineages(self) -> list[Source]:
        return [source for sender in self.senders for source in sender.lineages]

    @property
    def coverage(self) -> list[Ticks]:
        return [ticks for edge in self.edges for ticks in edge.coverage]

    def view(self, covered: Sequence[Ticks]) -> View:
        known = self._views.get(tuple(covered))
        if known is not None:
            return known
        views, first = [], 0
        for sender in self.senders:
            count = len(sender.lineages)
            views.append(sender.view(covered[first : first + count]))
            first += count
        made = self._views[tuple(covered)] = self.compute(*views)
        return made

    # Input

    def take(self, edge: int, batch: Batch) -> None:
        rows = self.operator.rows
        touched = self.operator.take(edge, batch)
        assert len(touched) == len(set(touched))
        self.step += 1
        rows.mark(touched, self.step)
        self._inherit(self.operator.hidden_tick)
        for slot in touched:
            self.followed[rows.key_at(slot)] = (rows.row_at(slot), rows.visible[slot], rows.max_tick[slot])

    def _inherit(self, floor: int) -> None:
        """T3: nothing is known about tombstones up to here, nor to those who follow; I6: so nothing is claimed."""
        self.floor, self.told = max(self.floor, floor), max(self.told, floor)
        self.in_floor = self.operator.in_floor = max(self.in_floor, floor)

    def deliver(self, index: int, generator: random.Random) -> None:
        edge = self.edges[index]
        if isinstance(edge.sender, Source):
            missing = [tick for tick in edge.sender.events if tick not in edge.coverage[0]]
            if missing:
                ticks = generator.sample(missing, generator.randint(1, min(3, len(missing))))
                edge.coverage = [edge.coverage[0] | frozenset(ticks)]
                columns = list(zip(*(edge.sender.events[tick] for tick in ticks), strict=True))
                self.take(index, Batch.events(ticks, columns))
        elif edge.epoch == edge.sender.epoch:
            if edge.step < edge.sender.step:
                slots = edge.sender.operator.rows.touched_since(edge.step)
                self._take_rows(index, slots, edge.sender.forgotten, edge.sender.told)
        elif all(theirs >= mine for theirs, mine in zip(edge.sender.coverage, edge.coverage, strict=True)):
            self._take_rows(
                index, edge.sender.operator.rows.above(horizon(edge.sender, edge.coverage)), edge.sender.floor
            )

    def _take_rows(self, index: int, slots: list[int], needed: int, told: int = -1) -> None:
        """S4, S5: rows since, or above the horizon; everything if a tombstone may be missing."""
        edge = self.edges[index]
        sender = edge.sender
        assert isinstance(sender, Stage)
        rows = sender.operator.rows
        if horizon(sender, edge.coverage) >= needed:
            batch = rows.select(slots)
            self._inherit(told)
        else:
            batch = self._complete(index, sender)
        edge.epoch, edge.step, edge.coverage = sender.epoch, sender.step, sender.coverage
        self.take(index, batch)

    def _complete(self, index: int, sender: Stage) -> Batch:
        """S6: what is not listed has vanished, at the latest at the floor. Tombstones that are still held are listed:
        the floor says nothing about them."""
        copy = self.operator.inputs[index]
        assert copy is not None
        rows = sender.operator.rows
        listed = rows.select(rows.slots())
        keys = set(listed.keys(rows.key_width))
        gone = copy.select([slot for slot in copy.visible_slots() if copy.key_at(slot) not in keys])
        self._inherit(sender.floor)
        return Batch.concat([listed, Batch(gone.columns, [sender.floor] * len(gone), [False] * len(gone))])

    def forget_known_tombstones(self, network: Network) -> None:
        edges = [edge for stage in network.stages for edge in stage.edges if edge.sender is self]
        if any(edge.epoch != self.epoch for edge in edges):
            return
        known = min((horizon(self, edge.coverage) for edge in edges), default=-1)
        rows = self.operator.rows
        for slot in rows.tombstones():
            if rows.max_tick[slot] <= known and self.operator.may_forget(slot):
                self.floor = max(self.floor, rows.max_tick[slot])
                self.forgotten = max(self.forgotten, rows.max_tick[slot])
                self.followed.pop(rows.key_at(slot))
                self.operator.forget_all([slot])

    # Checks

    def _held(self) -> dict[Row, tuple[Row, bool, int]]:
        rows = self.operator.rows
        return {key: (rows.row_at(slot), rows.visible[slot], rows.max_tick[slot]) for key, slot in rows.index.items()}

    def check(self, generator: random.Random) -> None:
        rows = self.operator.rows
        width = rows.key_width
        held = {key: rows.row_at(slot)[width:] for key, slot in rows.index.items() if rows.visible[slot]}
        wanted = self.view(self.coverage)
        assert held == wanted, f"I1: {held} instead of {wanted}"
        assert self.followed == self._held(), "I2: a row changed and was not touched"
        limit = horizon(self, self.coverage)
        self._check_as_of(limit)
        ticks = sorted({tick for part in self.coverage for tick in part if tick <= limit})
        for _ in range(3):
            below = generator.choice([-1, *ticks])
            extra = [frozenset(t for t in part if generator.random() < 0.5) for part in self.coverage]
            self._check_receiver(below, extra, wanted)

    def _check_as_of(self, limit: int) -> None:
        """I6: a row that depends on no tick above the horizon is that of the view at the horizon."""
        rows = self.operator.rows
        then = self.view([frozenset(tick for tick in part if tick <= limit) for part in self.coverage])
        for key, slot in rows.index.items():
            if max(rows.max_tick[slot], self.in_floor) <= limit:
                now = rows.row_at(slot)[rows.key_width :] if rows.visible[slot] else None
                assert now == then.get(key), f"I6: {key} is {now}, at {limit} it was {then.get(key)}"

    def _check_receiver(self, below: int, extra: Sequence[Ticks], wanted: View) -> None:
        """S5: a receiver that covers everything up to a tick, and more, already has every row it is not sent."""
        if below < max(self.floor, self.in_floor):
            return
        rows = self.operator.rows
        coverage = [
            frozenset(tick for tick in part if tick <= below) | more
            for part, more in zip(self.coverage, extra, strict=True)
        ]
        theirs = self.view(coverage)
        for key in {*theirs, *wanted, *rows.index}:
            slot = rows.slot_of(key)
            if slot < 0 or rows.max_tick[slot] <= below:
                assert theirs.get(key) == wanted.get(key), (
                    f"S5: {key} is {wanted.get(key)} at {self.coverage} and {theirs.get(key)} at {coverage}, "
                    f"but max_tick is {rows.max_tick[slot] if slot >= 0 else None}"
                )


def horizon(node: Source | Stage, coverage: Sequence[Ticks]) -> int:
    """The largest event tick up to which every lineage covers all its events."""
    missing = [
        tick for source, part in zip(node.lineages, coverage, strict=True) for tick in source.events if tick not in part
    ]
    below = min(missing, default=10**9)
    every = [tick for source in node.lineages for tick in source.events if tick < below]
    return max(every, default=-1)


class Network:
    """Stages in an order in which senders come first."""

    def __init__(self, sources: Sequence[Source], stages: Sequence[Stage]) -> None:
        self.sources, self.stages = sources, stages

    def run(self, generator: random.Random, actions: int = 30) -> None:
        fill(self.sources, generator)
        self.disturb(generator, actions)
        self.settle(generator)

    def disturb(self, generator: random.Random, actions: int) -> None:
        """Everything that may happen."""
        # Some stages hear of their input late, so that much is superseded before they do.
        haste = [0.05 + generator.random() ** 2 for _ in self.stages]
        for stage in generator.choices(self.stages, haste, k=actions):
            chance = generator.random()
            if chance < 0.04:
                stage.restart()
            elif chance < 0.1:
                stage.reload()
            elif chance < 0.16:
                stage.forget_known_tombstones(self)
            else:
                for _ in range(generator.randint(1, 3)):
                    stage.deliver(generator.randrange(len(stage.edges)), generator)
            stage.check(generator)

    def settle(self, generator: random.Random) -> None:
        """No more faults: everything is delivered, and everybody holds the whole view."""
        for stage in self.stages:
            for index, edge in enumerate(stage.edges):
                everything = [frozenset(source.events) for source in edge.sender.lineages]
                while edge.coverage != everything or (isinstance(edge.sender, Stage) and edge.is_behind(edge.sender)):
                    stage.deliver(index, generator)
                    stage.check(generator)


def fill(sources: Sequence[Source], generator: random.Random) -> None:
    """A few events for each source; ticks are unique in the whole network."""
    count = generator.randint(1, 12)
    for tick in sorted(generator.sample(range(60), count)):
        generator.choice(sources).events[tick] = (
            generator.randrange(3),
            generator.randrange(2),
            generator.randrange(5),
            generator.randrange(-3, 4),
        )
