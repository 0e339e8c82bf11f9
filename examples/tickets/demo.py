"""Figure 1 on three brokers of this machine: tickets are sold on two coasts, the hub is killed, the view stays true.

`make demo` runs it. The truth at the end is computed here, in plain Python, from the publishes that were acknowledged.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import count
from pathlib import Path
from random import Random

from smile.cli.demo import Demo, Script, report
from smile.cli.traffic import Ledger, Row
from smile.deploy.bundles import compile_file
from smile.local import LocalBrokers
from smile.subscription import Change

PROGRAM = Path(__file__).with_name("tickets.mpl")
SECONDS_MAX = 40.0
"""From start to verdict, on a slow machine too: traffic is shortened if starting took long."""

TRAFFIC_S = 14.0
ITEMS_FIRST = 6


def sellers(rng: Random) -> Iterator[list[Row]]:
    """Some items at first, then one more with every twentieth batch."""
    yield [_item(number, rng) for number in range(1, ITEMS_FIRST + 1)]
    for number in count(ITEMS_FIRST + 1):
        yield from ([] for _ in range(19))
        yield [_item(number, rng)]


def _item(number: int, rng: Random) -> Row:
    return {"item_id": number, "price": Decimal(rng.randint(1000, 9000)).scaleb(-2), "qty": rng.randint(200, 1000)}


def buyers(rng: Random) -> Iterator[list[Row]]:
    while True:
        yield [{"item_id": rng.randint(1, ITEMS_FIRST + 4), "qty": rng.randint(1, 5)} for _ in range(5)]


def truth(ledger: Ledger) -> dict[str, list[Row]]:
    """What Figure 1 says, from scratch."""
    sold: dict[object, int] = {}
    for coast in ("BuyersWest", "BuyersEast"):
        for row in ledger.of(coast):
            assert isinstance(row["qty"], int)
            sold[row["item_id"]] = sold.get(row["item_id"], 0) + row["qty"]
    left = []
    for row in ledger.of("Sellers"):
        assert isinstance(row["qty"], int)
        avail = row["qty"] - sold.get(row["item_id"], 0)
        if avail > 0:
            left.append({"item_id": row["item_id"], "price": row["price"], "avail": avail})
    return {"Available": left}


class Judge:
    """Of an item that is shown, `avail` only ever falls, and one that was sold out never comes back."""

    def __init__(self) -> None:
        self.last: dict[object, object] = {}

    def __call__(self, change: Change) -> str | None:
        item, avail = change.row["item_id"], change.row["avail"]
        before = self.last.get(item)
        self.last[item] = 0 if change.kind == "gone" else avail
        if before is not None and change.kind != "gone" and avail > before:  # type: ignore[operator]
            return f"item {item} rose from {before} to {avail}"
        return None


def main() -> int:
    """`--seconds 4` shortens the traffic."""
    wanted = float(sys.argv[2]) if sys.argv[1:2] == ["--seconds"] else TRAFFIC_S
    began = time.monotonic()
    rng = Random(7)
    sources = {"Sellers": sellers(rng), "BuyersWest": buyers(rng), "BuyersEast": buyers(rng)}
    demo = Demo(Script("Available", sources, truth, "hub", Judge()))
    demo.note("starting three brokers: west, east, hub")
    with LocalBrokers(compile_file(PROGRAM), 3, changed=demo.changed) as brokers:
        left = SECONDS_MAX - (time.monotonic() - began)
        traffic_s = min(wanted, left * 0.45)
        demo.script = replace(demo.script, kill_after_s=traffic_s / 3, traffic_s=traffic_s, settle_s=left * 0.5)
        verdict = demo.run(brokers)
    report(verdict)
    return 0 if verdict.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
