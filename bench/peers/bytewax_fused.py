"""Bytewax, with the whole query in one stateful step per item: the fastest way to write it there.

Rows come from lists in the same process, in batches; one worker. Keys must be texts there, so they are made of the
items while it runs. Time counts from the first batch of buys that is asked for to the last change in the sink.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import bytewax.operators as op  # type: ignore[import-not-found,unused-ignore]
from bytewax.dataflow import Dataflow  # type: ignore[import-not-found,unused-ignore]
from bytewax.inputs import DynamicSource, StatelessSourcePartition  # type: ignore[import-not-found,unused-ignore]
from bytewax.operators import StatefulBatchLogic  # type: ignore[import-not-found,unused-ignore]
from bytewax.outputs import DynamicSink, StatelessSinkPartition  # type: ignore[import-not-found,unused-ignore]
from bytewax.testing import run_main  # type: ignore[import-not-found,unused-ignore]

from bench.peers.outcome import Stopwatch, Task, finish, task
from bench.tickets_events import View


class Rows(StatelessSourcePartition):  # type: ignore[misc,unused-ignore]
    """Offers first, at once; buys wait until the sink has seen all offers."""

    def __init__(self, rows: list[Any], batch: int, told: Told | None) -> None:
        self._batches = iter([rows[first : first + batch] for first in range(0, len(rows), batch)])
        self._waits_for = told

    def next_batch(self) -> list[Any]:
        if self._waits_for is not None:
            if not self._waits_for.has_offers:
                return []
            if self._waits_for.watch is None:
                self._waits_for.watch = Stopwatch()
        return next(self._batches)


class Source(DynamicSource):  # type: ignore[misc,unused-ignore]
    def __init__(self, rows: list[Any], batch: int, told: Told | None = None) -> None:
        self._made = (rows, batch, told)

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Rows:
        return Rows(*self._made)


class Told(StatelessSinkPartition):  # type: ignore[misc,unused-ignore]
    """The sink: keeps the view."""

    def __init__(self, items: int) -> None:
        self.view: View = {}
        self.changes = 0
        self._items = items
        self.watch: Stopwatch | None = None
        self.times = (0.0, 0.0)
        self.has_offers = False

    def write_batch(self, items: list[tuple[str, tuple[int, int]]]) -> None:
        view = self.view
        for key, (price, left) in items:
            if left > 0:
                view[int(key)] = (price, left)
            else:
                del view[int(key)]
        self.changes += len(items)
        self.has_offers = self.has_offers or self.changes >= self._items
        if self.watch is not None:
            self.times = self.watch.times()


class Sink(DynamicSink):  # type: ignore[misc,unused-ignore]
    def __init__(self, told: Told) -> None:
        self._told = told

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Told:
        return self._told


class Item(StatefulBatchLogic):  # type: ignore[misc,unused-ignore]
    """An offer is a pair, a buy a number. Every buy comes after its offer."""

    __slots__ = ("left", "price")

    def __init__(self) -> None:
        self.price = 0
        self.left = 0

    def on_batch(self, values: list[Any]) -> tuple[list[tuple[int, int]], bool]:
        told = []
        for value in values:
            if value.__class__ is tuple:
                self.price, self.left = value
                told.append(value)
                continue
            before = self.left
            self.left = before - value
            if before > 0:
                told.append((self.price, self.left))
        return told, False

    def snapshot(self) -> tuple[int, int]:
        return self.price, self.left


def flow_of(given: Task, told: Told) -> Dataflow:
    events, batch = given.events, given.batch
    offers = list(enumerate(zip(events.prices.tolist(), events.offered.tolist(), strict=True)))
    buys = list(zip(events.items.tolist(), events.quantities.tolist(), strict=True))
    coasts: tuple[list[Any], list[Any]] = ([], [])
    for number, first in enumerate(range(0, len(buys), batch)):
        coasts[number % 2].extend(buys[first : first + batch])
    flow = Dataflow("tickets")
    sellers = op.input("sellers", flow, Source(offers, batch))
    west, east = (op.input(f"coast{at}", flow, Source(rows, batch, told)) for at, rows in enumerate(coasts))
    keyed = op.map("key", op.merge("all", sellers, west, east), lambda row: (str(row[0]), row[1]))
    op.output("told", op.stateful_batch("item", keyed, lambda _saved: Item()), Sink(told))
    return flow


def main() -> None:
    given = task(1_000)
    told = Told(given.events.item_count)
    run_main(flow_of(given, told))
    changes = told.changes - given.events.item_count
    finish(given, "Bytewax, fused", version("bytewax"), given.events.buys, told.times, changes, told.view)


if __name__ == "__main__":
    main()
