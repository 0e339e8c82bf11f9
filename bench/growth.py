"""How cost grows: with the number of views over the same three streams, and with the number of subscribers of one.

    python -m bench.growth [--views 1 10 100 500] [--subscribers 1 10 100 2000] [--seconds 2]

The views are of several kinds and share what they have in common, as those of one deployment do; all are subscribed.
What counts is the cost per event and *distinct* operator: it should stay flat. Every view is checked in the end.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from bench._report import print_table, write_results
from bench.tickets import program_text, wait_for_native
from bench.tickets_events import COASTS, TicketEvents, generate

BATCH = 1_000
ITEMS = 1_000
BUYS = 200_000
COMPILE_S_MAX = 10.0
"""What compiling the largest number of views may take."""

KINDS = (
    "from Joined |> where avail > {n} |> project item_id, price, avail",
    "from Joined |> where total >= {n} |> project item_id, total",
    "from Buyers |> where qty > {small} |> aggregate bought := count() group by item_id",
    "from Sellers |> where price > {n} |> project item_id, price",
    "from Sold |> where total > {n} |> project item_id, total",
)
"""`{n}` and `{small}` depend on the view's number; `small` has few values, so that some views are the same."""


def views_text(views: int) -> str:
    """The tickets program and so many views more; all over Sellers, BuyersWest and BuyersEast."""
    made = []
    for number in range(views):
        kind = KINDS[number % len(KINDS)]
        made.append(f"view V{number} = {kind.format(n=number, small=number // len(KINDS) % 5)};\n")
    return program_text() + "".join(made)


def expected(number: int, events: TicketEvents, buys: int) -> set[tuple[int, ...]]:
    """The rows of one view, without the price, from scratch."""
    items, quantities = events.items[:buys], events.quantities[:buys]
    sold = np.bincount(items, quantities, events.item_count).astype(np.int64)
    left = events.offered - sold
    every = np.arange(events.item_count)
    bought = np.bincount(items, minlength=events.item_count) > 0
    match number % len(KINDS):
        case 0:
            shown, value = left > number, left
        case 1:
            shown, value = sold >= number, sold
        case 2:
            some = items[quantities > number // len(KINDS) % 5]
            value = np.bincount(some, minlength=events.item_count)
            shown = value > 0
        case 3:
            shown, value = events.prices > number, events.prices
        case _:
            shown, value = bought & (sold > number), sold
    return set(zip(every[shown].tolist(), value[shown].tolist(), strict=True))


COLUMN = ("avail", "total", "bought", "price", "total")


def is_right(system: Any, number: int, events: TicketEvents, buys: int) -> bool:
    name = COLUMN[number % len(KINDS)]
    found = {(row["item_id"], int(row[name])) for row in system.rows(f"V{number}")}
    return found == expected(number, events, buys)


def publish(system: Any, subscriptions: list[Any], events: TicketEvents, seconds: float) -> tuple[int, float, int]:
    """Events, seconds, and changes that subscribers took."""
    taken, changes = 0, 0
    started = time.perf_counter()
    for number, first in enumerate(range(0, events.buys, BATCH)):
        end = min(first + BATCH, events.buys)
        columns = {"item_id": events.items[first:end], "qty": events.quantities[first:end]}
        system.publish_many(COASTS[number % 2], columns)
        changes += sum(len(batch) for one in subscriptions for batch in one.ready_batches())
        taken = end
        if time.perf_counter() - started > seconds:
            break
    return taken, time.perf_counter() - started, changes


def offer(system: Any, events: TicketEvents) -> None:
    items = np.arange(events.item_count)
    system.publish_many("Sellers", {"item_id": items, "price": events.prices, "qty": events.offered})


def measure_views(views: int, events: TicketEvents, seconds: float) -> dict[str, object]:
    import smile

    started = time.perf_counter()
    program = smile.compile(views_text(views))
    operators = len({program.relation(f"V{number}").component for number in range(views)})
    compile_s = time.perf_counter() - started
    with smile.run(program) as system:
        offer(system, events)
        subscriptions = [system.subscribe(f"V{number}") for number in range(views)]
        for one in subscriptions:
            one.ready_batches()
        wait_for_native(system)
        operators = sum(not one.plan.is_stream and one.plan.emit is None for one in system._engine.running.values())
        taken, spent, changes = publish(system, subscriptions, events, seconds)
        ok = all(is_right(system, number, events, taken) for number in range(views))
    per_event_us = 1e6 * spent / taken
    return {
        "views": views,
        "operators": operators,
        "compile_s": compile_s,
        "events": taken,
        "events_s": taken / spent,
        "changes_per_event": changes / taken,
        "us_per_event": per_event_us,
        "us_per_event_operator": per_event_us / operators,
        "right": ok,
    }


def measure_subscribers(subscribers: int, events: TicketEvents, seconds: float) -> dict[str, object]:
    """All of the view Available, and all read everything that they are told."""
    import smile

    with smile.run(smile.compile(program_text())) as system:
        offer(system, events)
        subscriptions = [system.subscribe("Available") for _ in range(subscribers)]
        for one in subscriptions:
            one.ready_batches()
        wait_for_native(system)
        taken, spent, changes = publish(system, subscriptions, events, seconds)
        shown = {row["item_id"]: row["avail"] for row in system.rows("Available")}
    wanted = {item: left for item, (_, left) in events.available(taken).items()}
    return {
        "subscribers": subscribers,
        "events": taken,
        "events_s": taken / spent,
        "us_per_event": 1e6 * spent / taken,
        "changes_s": changes / spent,
        "us_per_batch_subscriber": 1e6 * spent / (taken / BATCH) / subscribers,
        "right": shown == wanted,
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Measure growth with views and with subscribers.")
    parser.add_argument("--views", type=int, nargs="+", default=[1, 10, 100, 500])
    parser.add_argument("--subscribers", type=int, nargs="+", default=[1, 10, 100, 1_000, 2_000])
    parser.add_argument("--items", type=int, default=ITEMS)
    parser.add_argument("--buys", type=int, default=BUYS)
    parser.add_argument("--seconds", type=float, default=2.0, help="about how long each measurement publishes")
    options = parser.parse_args(arguments)
    events = generate(options.buys, options.items)
    views = [measure_views(number, events, options.seconds) for number in options.views]
    print_table(f"Views over the same three streams, batches of {BATCH:,}", list(views[0]), _values(views))
    subscribers = [measure_subscribers(number, events, options.seconds) for number in options.subscribers]
    print_table(f"Subscribers of one view, batches of {BATCH:,}", list(subscribers[0]), _values(subscribers))
    write_results("growth", {"views": views, "subscribers": subscribers})
    if not all(row["right"] for row in [*views, *subscribers]):
        raise SystemExit("a view is wrong")
    if any(float(str(row["compile_s"])) > COMPILE_S_MAX for row in views):
        raise SystemExit(f"compiling took longer than {COMPILE_S_MAX:.0f} s")


def _values(rows: list[dict[str, object]]) -> list[list[object]]:
    return [list(row.values()) for row in rows]


if __name__ == "__main__":
    main()
