"""A limit, not an engine: the whole query as one loop over Python rows, written by hand for this query alone.

No log, no other views, no typed input: what remains is what the language costs.
"""

from __future__ import annotations

import platform

from bench.peers.outcome import Stopwatch, finish, task
from bench.tickets_events import View


def main() -> None:
    given = task(1_000)
    events = given.events
    offers = zip(events.prices.tolist(), events.offered.tolist(), strict=True)
    state = {item: [price, offered] for item, (price, offered) in enumerate(offers)}
    view: View = {item: (price, left) for item, (price, left) in state.items()}
    buys = zip(events.items.tolist(), events.quantities.tolist(), strict=True)
    rows = [{"item_id": item, "qty": quantity} for item, quantity in buys]
    changes = taken = 0
    watch = Stopwatch()
    while taken < len(rows) and watch.seconds() < given.seconds:
        told: list[tuple[int, int, int]] = []
        for row in rows[taken : taken + given.batch]:
            item = row["item_id"]
            entry = state[item]
            before = entry[1]
            left = entry[1] = before - row["qty"]
            if before > 0:
                told.append((item, entry[0], left))
        for item, price, left in told:
            if left > 0:
                view[item] = (price, left)
            else:
                del view[item]
        changes += len(told)
        taken = min(taken + given.batch, len(rows))
    finish(given, "Python loop (limit)", platform.python_version(), taken, watch.times(), changes, view)


if __name__ == "__main__":
    main()
