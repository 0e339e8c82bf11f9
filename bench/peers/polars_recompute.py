"""Polars: after every batch the view is computed anew and the rows that differ from before are told.

Two ways: from all buys so far (`recompute`, which needs no thought), and from totals that each batch is folded into
(`totals`, which is right for sums only and is what somebody in a hurry would write next).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import version

import polars as pl  # type: ignore[import-not-found,unused-ignore]

from bench.peers.outcome import Stopwatch, finish, task
from bench.tickets_events import View


def from_all() -> Callable[[pl.DataFrame], pl.DataFrame]:
    """A function from the next batch to all totals."""
    batches: list[pl.DataFrame] = []

    def totals(batch: pl.DataFrame) -> pl.DataFrame:
        batches.append(batch)
        return pl.concat(batches).group_by("item_id").agg(total=pl.col("qty").sum())

    return totals


def folded() -> Callable[[pl.DataFrame], pl.DataFrame]:
    held: list[pl.DataFrame] = []

    def totals(batch: pl.DataFrame) -> pl.DataFrame:
        new = batch.rename({"qty": "total"})
        held[:] = [pl.concat([*held, new]).group_by("item_id").agg(pl.col("total").sum())]
        return held[0]

    return totals


def main() -> None:
    way = sys.argv.pop() if sys.argv[-1] in ("recompute", "totals") else "recompute"
    given = task(10_000)
    events, batch = given.events, given.batch
    totals = from_all() if way == "recompute" else folded()
    items = list(range(events.item_count))
    offers = pl.DataFrame({"item_id": items, "price": events.prices, "offered": events.offered})
    before = offers.rename({"offered": "avail"})
    view: View = {item: (price, left) for item, price, left in before.rows()}
    columns = pl.DataFrame({"item_id": events.items, "qty": events.quantities})
    changes = taken = 0
    watch = Stopwatch()
    while taken < events.buys and watch.seconds() < given.seconds:
        sold = totals(columns.slice(taken, batch))
        left = pl.col("offered") - pl.col("total").fill_null(0)
        joined = offers.join(sold, on="item_id", how="left").select("item_id", "price", avail=left)
        now = joined.filter(pl.col("avail") > 0)
        new = now.join(before, on=["item_id", "avail"], how="anti")
        gone = before.join(now, on="item_id", how="anti")
        view.update((item, (price, avail)) for item, price, avail in new.iter_rows())
        for item in gone["item_id"]:
            del view[item]
        changes += len(new) + len(gone)
        before = now
        taken = min(taken + batch, events.buys)
    finish(given, f"Polars, {way}", version("polars"), taken, watch.times(), changes, view)


if __name__ == "__main__":
    main()
