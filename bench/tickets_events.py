"""The events of the tickets benchmark, the same for every engine, and an independent answer to check them by.

    python -m bench.tickets_events [--buys 2000000]       what the events are like

10,000 items, each offered once, then up to 2M buys whose items follow Zipf's law. What is offered lies near what will
be bought: about one item in six sells out, most of them near the end, so that nearly every buy changes the view.
Buys go to the two coasts by turns, batch by batch. Needs numpy only, so that peers in other environments can use it.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

ITEMS = 10_000
BUYS = 2_000_000
SEED = 20_260_101
COASTS = ("BuyersWest", "BuyersEast")

Integers = npt.NDArray[np.int64]
View = dict[int, tuple[int, int]]
"""Item -> (price, available)."""


@dataclass(frozen=True)
class TicketEvents:
    """Items are 0, 1, ... in no order of popularity; prices are whole."""

    prices: Integers
    offered: Integers
    items: Integers
    quantities: Integers

    @property
    def buys(self) -> int:
        return len(self.items)

    @property
    def item_count(self) -> int:
        return len(self.prices)

    def available(self, buys: int) -> View:
        """The view after the first so many buys, from scratch."""
        left = self._left(buys)
        return {item: (int(self.prices[item]), int(left[item])) for item in np.flatnonzero(left > 0).tolist()}

    def _left(self, buys: int) -> Integers:
        sold = np.bincount(self.items[:buys], self.quantities[:buys], self.item_count).astype(np.int64)
        return self.offered - sold

    def changes(self, buys: int, batch: int) -> int:
        """How often a row of the view changes or goes, if every batch is told as one: with batches of 1, all changes.

        An item changes once in every batch that buys some of it, until the batch in which it sells out.
        """
        left, told = self.offered.copy(), 0
        for first in range(0, buys, batch):
            end = min(first + batch, buys)
            items, places = np.unique(self.items[first:end], return_inverse=True)
            told += int((left[items] > 0).sum())
            left[items] -= np.bincount(places, self.quantities[first:end]).astype(np.int64)
        return told

    def every_change(self, buys: int) -> int:
        """`changes` for batches of 1, without the loop: a buy counts if something was left before it."""
        items, quantities = self.items[:buys], self.quantities[:buys]
        order = np.argsort(items, kind="stable")
        sold = np.cumsum(quantities[order])
        first = np.r_[True, items[order][1:] != items[order][:-1]]
        before_group = np.maximum.accumulate(np.where(first, sold - quantities[order], 0))
        sold_before = sold - quantities[order] - before_group
        return int((sold_before < self.offered[items[order]]).sum())

    def sold_out(self, buys: int) -> int:
        return int((self._left(buys) <= 0).sum())


def generate(buys: int = BUYS, items: int = ITEMS, seed: int = SEED) -> TicketEvents:
    source = np.random.default_rng(seed)
    by_rank = source.permutation(items).astype(np.int64)
    weights = 1.0 / np.arange(1, items + 1)
    bought = by_rank[source.choice(items, buys, p=weights / weights.sum())]
    quantities = source.integers(1, 6, buys, dtype=np.int64)
    sold = np.bincount(bought, quantities, items)
    offered = (1 + sold * source.uniform(0.8, 2.0, items)).astype(np.int64)
    return TicketEvents(source.integers(1, 100, items, dtype=np.int64), offered, bought, quantities)


def main() -> None:
    parser = argparse.ArgumentParser(description="Describe the events of the tickets benchmark.")
    parser.add_argument("--buys", type=int, default=BUYS)
    events = generate(parser.parse_args().buys)
    buys = events.buys
    most = int(np.bincount(events.items).max())
    early = events.sold_out(buys * 9 // 10)
    print(f"{events.item_count:,} items, {buys:,} buys, {most:,} of the most popular item")
    print(f"sold out at the end: {events.sold_out(buys):,}, of them {early:,} before the last tenth of the buys")
    told = {batch: events.changes(buys, batch) for batch in (1_000, 10_000)}
    print(f"changes per buy: {events.every_change(buys) / buys:.3f}", end="")
    print("".join(f", {number / buys:.3f} if batches of {batch:,} are told as one" for batch, number in told.items()))


if __name__ == "__main__":
    main()
