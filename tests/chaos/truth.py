"""The truth about a run, computed from the ledgers in plain Python; shares no code with the engine.

An event counts if it was acknowledged, or if it was begun and the log turned out to have it. For every item, its buys
are kept by tick and by the moment their publish began: so totals as of any tick, and the most that could have been
known at any moment, are one bisection away.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from tests.chaos.ledger import Publish

SELLERS = "Sellers"
BUYERS = ("BuyersWest", "BuyersEast")


@dataclass(frozen=True)
class Buy:
    tick: int
    buy_id: int
    item: int
    quantity: int
    begun: float


@dataclass(frozen=True)
class Offer:
    tick: int
    quantity: int
    begun: float


class Totals:
    """Sums over the buys of one item, by tick and by time of begin."""

    def __init__(self, buys: Iterable[Buy]) -> None:
        self.by_tick = sorted(buys, key=lambda buy: buy.tick)
        self._ticks = [buy.tick for buy in self.by_tick]
        self._sums = [0, *accumulate(buy.quantity for buy in self.by_tick)]
        by_begin = sorted(self.by_tick, key=lambda buy: buy.begun)
        self._begun = [buy.begun for buy in by_begin]
        self._begun_sums = [0, *accumulate(buy.quantity for buy in by_begin)]

    def as_of(self, tick: int) -> tuple[int, int]:
        """Total and number of the buys at or below a tick."""
        count = bisect_right(self._ticks, tick)
        return self._sums[count], count

    def begun_by(self, moment: float) -> tuple[int, int]:
        """Of those whose publish had begun: nobody can have known of more."""
        count = bisect_right(self._begun, moment)
        return self._begun_sums[count], count

    def open_at(self, tick: int, moment: float) -> list[Buy]:
        """Buys above the tick that had begun: each may have been known or not."""
        return [buy for buy in self.by_tick[bisect_right(self._ticks, tick) :] if buy.begun <= moment]

    def last(self) -> tuple[int, int]:
        return self._sums[-1], len(self.by_tick)


@dataclass
class Truth:
    offers: dict[int, Offer] = field(default_factory=dict)
    totals: dict[int, Totals] = field(default_factory=dict)
    buys: dict[int, Buy] = field(default_factory=dict)
    """By tick."""

    def sold(self, tick: int | None = None) -> dict[int, tuple[int, int]]:
        """The view `Sold` as of a tick, or in the end: item -> (total, bought)."""
        made = {item: totals.last() if tick is None else totals.as_of(tick) for item, totals in self.totals.items()}
        return {item: total for item, total in made.items() if total[1]}

    def available(self, tick: int | None = None) -> dict[int, int]:
        """The view `Available` as of a tick, or in the end: item -> avail."""
        sold = self.sold(tick)
        left = {
            item: offer.quantity - sold.get(item, (0, 0))[0]
            for item, offer in self.offers.items()
            if tick is None or offer.tick <= tick
        }
        return {item: avail for item, avail in left.items() if avail > 0}


def compute_truth(publishes: Sequence[Publish], logged: Mapping[int, int]) -> tuple[Truth, list[str]]:
    """`logged`: the buys that the log has, buy id by tick. The truth, and what contradicts it."""
    wrong: list[str] = []
    truth = Truth()
    tick_of: dict[int, int] = {}
    for tick, buy_id in sorted(logged.items()):
        if buy_id in tick_of:
            wrong.append(f"double: buy {buy_id} is logged at ticks {tick_of[buy_id]} and {tick}")
        tick_of[buy_id] = tick
    by_item: dict[int, list[Buy]] = defaultdict(list)
    for publish in publishes:
        if publish.stream == SELLERS:
            _add_offers(publish, truth, wrong)
            continue
        if publish.ticks is not None and len(publish.ticks) != len(publish.rows):
            wrong.append(f"acknowledged {len(publish.ticks)} ticks for {len(publish.rows)} rows")
            continue
        present = [buy_id in tick_of for _, buy_id, _ in publish.rows]
        if any(present) != all(present):
            wrong.append(f"torn: of one publish some rows are logged and some not: {publish.rows}")
        for number, (item, buy_id, quantity) in enumerate(publish.rows):
            found = tick_of.pop(buy_id, None)
            if publish.ticks is not None and found is None:
                wrong.append(f"lost: buy {buy_id}, acknowledged at tick {publish.ticks[number]}, is not in the log")
            elif publish.ticks is not None and found != publish.ticks[number]:
                wrong.append(f"moved: buy {buy_id} was acknowledged at tick {publish.ticks[number]}, is at {found}")
            if found is not None:
                buy = Buy(found, buy_id, item, quantity, publish.begun)
                truth.buys[found] = buy
                by_item[item].append(buy)
    wrong += [f"invented: buy {buy_id} at tick {tick} was never published" for buy_id, tick in tick_of.items()]
    truth.totals = {item: Totals(buys) for item, buys in by_item.items()}
    return truth, wrong


def _add_offers(publish: Publish, truth: Truth, wrong: list[str]) -> None:
    if publish.ticks is None:
        wrong.append(f"an offer was never acknowledged: {publish.failure or 'no answer'}")  # sellers are not killed
        return
    for (item, quantity), tick in zip(publish.rows, publish.ticks, strict=True):
        truth.offers[item] = Offer(tick, quantity, publish.begun)
