"""Brokers: publisher process -> broker process with a durable log -> subscriber process, for the tickets view.

    python -m bench.brokers [--buys 1000000] [--seconds 5] [--subscribers 2000] [--events 1000000] [--quick]
    python -m bench.brokers --only columns,latency

- columns, rows: all changes told, from arrays or from lists of dicts, in calls of 1,000.
- latency: 2,000 single events a second, from the call to the change in the subscriber's hands; by turns with the bare
  echo of `bench/broker_echo.py`, which commits and passes on and does nothing else.
- fan: many subscribers of one view; how long a broker's loop is held up by telling all of them a change.
- restart: a broker is killed that has logged `--events` and written a checkpoint; until a new client has read the view.
- bytes: what an event takes on the way in and its change on the way out.

Every log is on disk with `sync = always`. The view in the subscriber is compared with an independent computation each
time; a wrong one ends the run with exit code 1. Compare figures of one run only: machines and neighbours differ.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil  # type: ignore[import-untyped]

import smile
from bench._report import print_table, write_results
from bench.broker_talk import Worker
from bench.tickets import EVERY
from bench.tickets_events import COASTS, ITEMS, TicketEvents, generate
from runtime.columns import numbers
from runtime.wire.control import Publish, encode_control
from smile.local import LocalBrokers

PROGRAM = """\
stream Sellers (item_id int, price decimal(10,2), qty int[0..100000000]) unique item_id;
stream BuyersWest (item_id int, qty int[0..100000000]) tick offer_id phase 0 of 2;
stream BuyersEast (item_id int, qty int[0..100000000]) tick offer_id phase 1 of 2;

view Available = from Sellers
  |> left join (from (merge BuyersWest, BuyersEast) |> aggregate total := sum(qty) group by item_id)
       using item_id default total := 0
  |> extend avail := qty - total
  |> where avail > 0
  |> project item_id, price, avail;
"""
"""The view of examples/tickets in one piece: a broker keeps up every view that is declared, asked for or not."""

RATE = 2_000
NATIVE_S = 120.0
CHECKPOINT_S = 60.0
FAN_PROCESSES = 4
FAN_UPDATES = 100
FAN_RATE = 20
LATENCY_ROUNDS = 3
BROKER = "hub"

# What the figures should be; the report says which are met.
COLUMNS_RATE_MIN = 2_000_000
ROWS_RATE_MIN = 700_000
"""Twice the fastest peer that tells every change; see docs/performance.md."""
P50_MS_MAX = 0.7
P99_ECHOES_MAX = 2.0
BLOCKED_US_MAX = 2_000
RESTART_S_MAX = 3.0


@dataclass(frozen=True)
class Size:
    """How much is done; `quick` is for tests, where figures mean nothing."""

    buys: int
    items: int
    seconds: float
    subscribers: int
    events: int
    is_native: bool = True


QUICK = Size(buys=20_000, items=200, seconds=0.5, subscribers=40, events=20_000, is_native=False)


class WrongView(Exception):
    """A subscriber's view is not what it should be: figures about it are worth nothing."""


@contextmanager
def one_broker(size: Size, folder: Path, **options: Any) -> Iterator[LocalBrokers]:
    """A broker that has everything, with all items offered and its kernels compiled."""
    program = folder / "tickets.mpl"
    program.write_text(PROGRAM, encoding="utf-8")
    with LocalBrokers(program, [BROKER], folder / "data", **options) as brokers:
        with Worker("prepare", address=brokers.address, buys=size.buys, items=size.items) as worker:
            worker.hear()
        if size.is_native:
            wait_for_native(brokers.address)
        yield brokers


def status_of(address: str) -> dict[str, Any]:
    with smile.connect(address) as system:
        return system.status()[BROKER]


def wait_for_native(address: str) -> None:
    """Kernels start in plain Python and are replaced when compiled; measure what runs after that."""
    end = time.monotonic() + NATIVE_S
    with smile.connect(address) as system:
        while time.monotonic() < end:
            tiers = [one.get("is_native") for one in system.status()[BROKER]["components"].values()]
            if all(tier is not False for tier in tiers):
                return
            time.sleep(0.2)
    raise SystemExit("the broker's kernels are not compiled in time")


# --- throughput -------------------------------------------------------------------------------------------------------


def throughput(size: Size, way: str) -> dict[str, Any]:
    """From the first call to the last change in the subscriber's hands."""
    events = generate(size.buys, size.items)
    sizes = {"buys": size.buys, "items": size.items}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        result = folder / "left.npy"
        with (
            one_broker(size, folder) as brokers,
            Worker("subscribe", address=brokers.address, result=result, **sizes) as subscriber,
            Worker("publish", address=brokers.address, way=way, offered=size.buys, **sizes) as publisher,
        ):
            subscriber.hear()
            publisher.hear()
            before, cpu = status_of(brokers.address), cpu_of(brokers)
            publisher.go()
            sent, told = publisher.hear(), subscriber.hear()
            after, cpu = status_of(brokers.address), cpu_of(brokers) - cpu
        left = np.load(result)
    check(events, size.buys, left[: size.items])
    spent = told["finished"] - sent["began"]
    return {
        "events": size.buys,
        "events_per_s": size.buys / spent,
        "acknowledged_per_s": size.buys / (sent["acknowledged"] - sent["began"]),
        "changes_per_event": told["changes"] / size.buys,
        "every_change": told["changes"] >= EVERY * events.every_change(size.buys) and not told["squeezed"],
        "bytes_out_per_event": (traffic(after, "bytes_out") - traffic(before, "bytes_out")) / size.buys,
        "messages_out": traffic(after, "messages_out") - traffic(before, "messages_out"),
        "commits": after["log"]["commits"]["count"] - before["log"]["commits"]["count"],
        "broker_cpu_s": cpu,
        "publisher_cpu_s": sent["cpu"],
        "subscriber_cpu_s": told["cpu"],
    }


def cpu_of(brokers: LocalBrokers) -> float:
    times = psutil.Process(brokers.pid(BROKER)).cpu_times()
    return float(times.user + times.system)


def traffic(status: dict[str, Any], what: str) -> int:
    return sum(edge[what] for edge in status["edges"].values())


def check(events: TicketEvents, buys: int, left: np.ndarray[Any, Any]) -> None:
    shown = {int(item): int(left[item]) for item in np.flatnonzero(left)}
    expected = {item: number for item, (_, number) in events.available(buys).items()}
    if shown != expected:
        wrong = [item for item in {*shown, *expected} if shown.get(item) != expected.get(item)]
        raise WrongView(f"{len(wrong)} of {len(expected)} items are wrong, for example {wrong[0]}")


# --- latency ----------------------------------------------------------------------------------------------------------


def latency(size: Size) -> dict[str, Any]:
    """Echo and broker by turns, so that both see the same neighbours; all rounds of each together."""
    found: dict[str, list[np.ndarray[Any, Any]]] = {"echo": [], "SMILE": []}
    rates = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with one_broker(size, folder) as brokers:
            for number in range(LATENCY_ROUNDS):
                (folder / str(number)).mkdir()
                found["echo"].append(echo_round(size, folder / str(number)))
                taken, rate = latency_round(size, brokers.address, folder / str(number), number)
                found["SMILE"].append(taken)
                rates.append(rate)
    report: dict[str, Any] = {"rate": min(rates)}
    for who, rounds in found.items():
        taken = np.concatenate(rounds)
        report[who] = {f"p{share}_ms": float(np.percentile(taken, share)) for share in (50, 90, 99, 99.9)}
        report[who]["p99_ms_by_round"] = [float(np.percentile(one, 99)) for one in rounds]
    return report


def echo_round(size: Size, folder: Path) -> np.ndarray[Any, Any]:
    """Milliseconds from hand-in to receipt."""
    with Worker("echo: serve", folder=folder) as server:
        said = server.hear()
        count = int(RATE * size.seconds)
        with (
            Worker("echo: receive", address=said["outs"], count=count, result=folder / "arrived.npy") as receiver,
            Worker(
                "echo: hand in", address=said["ins"], rate=RATE, seconds=size.seconds, result=folder / "handed.npy"
            ) as sender,
        ):
            receiver.hear()
            sender.hear()
            sender.go()
            sender.hear()
            receiver.hear()
    taken: np.ndarray[Any, Any] = 1e3 * (np.load(folder / "arrived.npy") - np.load(folder / "handed.npy"))
    assert not np.isnan(taken).any(), "the echo has lost messages"
    return taken


def latency_round(size: Size, address: str, folder: Path, number: int) -> tuple[np.ndarray[Any, Any], float]:
    """Milliseconds from hand-in to receipt of each change, and the rate that the publisher held."""
    events = generate(size.buys, size.items)
    first = number * int(RATE * size.seconds)
    common = {"address": address, "items": size.items, "first": first}
    with (
        Worker("watch", result=folder / "told.npy", **common) as watcher,
        Worker(
            "publish singles",
            buys=size.buys,
            rate=RATE,
            seconds=size.seconds,
            result=folder / "handed.npy",
            **common,
        ) as publisher,
    ):
        watcher.hear()
        publisher.hear()
        publisher.go()
        rate = publisher.hear()["rate"]
        watcher.hear()
    handed, told = np.load(folder / "handed.npy"), np.load(folder / "told.npy")
    left = events.offered.copy()
    left -= np.bincount(events.items[:first], events.quantities[:first], size.items).astype(np.int64)
    expected: dict[tuple[int, int], float] = {}
    for at, due in enumerate(handed):
        item = int(events.items[first + at])
        if left[item] > 0:  # a buy of what is sold out changes nothing
            left[item] -= events.quantities[first + at]
            expected[item, max(0, int(left[item]))] = float(due)
    arrived = {(int(item), int(number)): float(at) for item, number, at in told}
    if missing := expected.keys() - arrived.keys():
        raise WrongView(f"{len(missing)} of {len(expected)} changes were not told")
    return np.array([1e3 * (arrived[change] - due) for change, due in expected.items()]), rate


# --- many subscribers -------------------------------------------------------------------------------------------------


def fan_out(size: Size) -> dict[str, Any]:
    """Single changes at a steady rate, told to many; how long the broker's loop was in each telling."""
    from smile.digests import component_digests

    events = generate(size.buys, size.items)
    share = size.subscribers // FAN_PROCESSES
    mark = size.items + 1
    with tempfile.TemporaryDirectory() as name, one_broker(size, Path(name)) as brokers:
        plan = brokers.program.plan.views["Available"]
        digest = component_digests(brokers.deployment, brokers.program)[plan.component]
        (shown,) = (
            one for one in brokers.program.plan.components[plan.component].relation.shown if one.name == "avail"
        )
        common: dict[str, Any] = {
            "address": brokers.address,
            "component": plan.component,
            "digest": digest,
            "mark": mark,
        }
        common["difference"] = list(shown.columns)
        workers = [Worker("fan", count=share, **common) for _ in range(FAN_PROCESSES)]
        try:
            began = time.monotonic()
            for worker in workers:
                worker.hear(300.0)
            joined_s = time.monotonic() - began
            before = status_of(brokers.address)
            with smile.connect(brokers.address) as system:
                for number in range(FAN_UPDATES):
                    row = {"item_id": int(events.items[number]), "qty": int(events.quantities[number])}
                    system.publish(COASTS[number % 2], row)
                    time.sleep(1 / FAN_RATE)
                system.publish("Sellers", {"item_id": mark, "price": 1, "qty": 1})
            ends = [worker.hear(300.0) for worker in workers]
            after = status_of(brokers.address)
        finally:
            for worker in workers:
                worker.__exit__(None, None, None)
    expected = {item: number for item, (_, number) in events.available(FAN_UPDATES).items()}
    for end in ends:
        left = {int(item): number for item, number in end["left"].items() if int(item) < size.items}
        if end["same"] != share or any(expected.get(item, 0) != number for item, number in left.items()):
            raise WrongView("a subscriber among many was told something else")
    tells = {key: after["tell"][key] - before["tell"][key] for key in ("count", "total_us")}
    return {
        "subscribers": share * FAN_PROCESSES,
        "joined_s": joined_s,
        "updates": FAN_UPDATES,
        "messages_to_each": ends[0]["messages"],
        "tell_mean_us": tells["total_us"] / max(1, tells["count"]),
        "tell_longest_us": after["tell"]["longest_us"],
        "drops": after["counters"]["drops.full"] - before["counters"]["drops.full"],
    }


# --- restart ----------------------------------------------------------------------------------------------------------


def restart(size: Size) -> dict[str, Any]:
    """From the start of the process to a view read by a new client, and to the sockets being served."""
    sizes = {"buys": size.events, "items": size.items}
    with tempfile.TemporaryDirectory() as name:
        options = {"checkpoint_every": "1s", "restart": False}
        enough = Size(size.events, size.items, 0, 0, 0, size.is_native)
        with one_broker(enough, Path(name), **options) as brokers:
            with Worker("publish", address=brokers.address, way="coalesced", offered=size.events, **sizes) as publisher:
                publisher.hear()
                publisher.go()
                publisher.hear(300.0)
            wait_for_checkpoint(brokers.address)
            brokers.kill(BROKER)
            while brokers.pid(BROKER) is not None:
                time.sleep(0.01)
            began = time.monotonic()
            brokers.restart(BROKER)
            serving_s = time.monotonic() - began
            with Worker("read", address=brokers.address, offered=size.events, **sizes) as reader:
                read = reader.hear()
            if not read["ok"]:
                raise WrongView("the view after the restart")
            status = status_of(brokers.address)
    return {
        "events": size.events,
        "serving_s": serving_s,
        "connect_s": read["connected"] - read["began"],
        "read_s": read["finished"] - read["connected"],
        "log_reads": status["log"]["reads"]["count"],
    }


def wait_for_checkpoint(address: str) -> None:
    """Until every component with state has written one since the last event."""
    end = time.monotonic() + CHECKPOINT_S
    with smile.connect(address) as system:
        while time.monotonic() < end:
            components = system.status()[BROKER]["components"].values()
            if not any(one["rows_since_checkpoint"] for one in components if one["kind"] != "stream"):
                return
            time.sleep(0.2)
    raise SystemExit("no checkpoint was written in time")


# --- bytes ------------------------------------------------------------------------------------------------------------


def bytes_in(rows: int) -> float:
    """Bytes of frames per event of a publish of so many."""
    columns = (numbers(np.arange(rows) + 10_000), numbers(np.arange(rows) % 5 + 1))
    return sum(map(len, encode_control(Publish(COASTS[0], "0123456789abcdef", 123_456, columns)))) / rows


# --- report -----------------------------------------------------------------------------------------------------------


def run(size: Size, only: set[str]) -> dict[str, Any]:
    steps: dict[str, Callable[[], dict[str, Any]]] = {
        "columns": lambda: throughput(size, "columns"),
        "rows": lambda: throughput(size, "rows"),
        "latency": lambda: latency(size),
        "fan": lambda: fan_out(size),
        "restart": lambda: restart(size),
        "bytes": lambda: {f"in, {rows:,} a call": bytes_in(rows) for rows in (1, 1_000)},
    }
    return {name: step() for name, step in steps.items() if not only or name in only}


def goals(found: dict[str, Any]) -> list[tuple[str, object, object, bool]]:
    """(what, measured, goal, met)"""
    rows: list[tuple[str, object, object, bool]] = []
    for way, goal in (("columns", COLUMNS_RATE_MIN), ("rows", ROWS_RATE_MIN)):
        if way in found:
            rate = found[way]["events_per_s"]
            rows.append((f"events/s, {way}", rate, goal, rate >= goal and found[way]["every_change"]))
    if "latency" in found:
        ours, echo = found["latency"]["SMILE"], found["latency"]["echo"]
        rows.append(("latency p50, ms", ours["p50_ms"], P50_MS_MAX, ours["p50_ms"] <= P50_MS_MAX))
        ratio = ours["p99_ms"] / echo["p99_ms"]
        rows.append(("latency p99, times the echo's", ratio, P99_ECHOES_MAX, ratio <= P99_ECHOES_MAX))
    if "fan" in found:
        held = found["fan"]["tell_longest_us"]
        rows.append(("loop held up by a change, us", held, BLOCKED_US_MAX, held <= BLOCKED_US_MAX))
    if "restart" in found:
        spent = found["restart"]["serving_s"]
        rows.append(("restart until served, s", spent, RESTART_S_MAX, spent <= RESTART_S_MAX))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure brokers with a durable log.")
    parser.add_argument("--buys", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each round of latency")
    parser.add_argument("--subscribers", type=int, default=2_000)
    parser.add_argument("--events", type=int, default=1_000_000, help="logged before the restart")
    parser.add_argument("--quick", action="store_true", help="small, for a test: the figures mean nothing")
    parser.add_argument("--only", default="", help="some of columns,rows,latency,fan,restart,bytes")
    options = parser.parse_args()
    size = Size(options.buys, ITEMS, options.seconds, options.subscribers, options.events)
    try:
        found = run(QUICK if options.quick else size, set(filter(None, options.only.split(","))))
    except WrongView as wrong:
        sys.exit(f"wrong view: {wrong}")
    for name, figures in found.items():
        flat = {f"{a} {b}": c for a, bs in figures.items() if isinstance(bs, dict) for b, c in bs.items()}
        flat = {**{key: value for key, value in figures.items() if not isinstance(value, dict)}, **flat}
        print_table(
            name, ("", ""), [(key, str(value) if isinstance(value, list) else value) for key, value in flat.items()]
        )
    print_table("goals", ("", "measured", "goal", "met"), goals(found))
    if not options.quick:
        write_results("brokers", found)


if __name__ == "__main__":
    main()
