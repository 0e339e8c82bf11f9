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
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
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
from smile.broker import SERVING_FILE
from smile.local import LocalBrokers
from smile.remote.system import RemoteSystem

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
PATIENCE_S = 120.0
WARM_BATCHES = 8
FAN_PROCESSES = 4
FAN_RATE = 20
BROKER = "hub"

# What the figures should be; the report says which are met.
COLUMNS_RATE_MIN = 2_000_000
ROWS_RATE_MIN = 1_270_000
"""Twice the fastest peer that tells every change, on the machine and day of docs/performance.md: `bench/tickets.py` has
the peer's figure for another one."""
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
    updates: int = 100
    rounds: int = 3
    is_native: bool = True


QUICK = Size(buys=5_000, items=200, seconds=0.5, subscribers=20, events=5_000, updates=10, rounds=1, is_native=False)


class WrongView(Exception):
    """A subscriber's view is not what it should be: figures about it are worth nothing."""


@dataclass(frozen=True)
class Run:
    """A broker that runs, and a connection to it."""

    brokers: LocalBrokers
    system: RemoteSystem

    @property
    def address(self) -> str:
        return self.brokers.address

    def status(self) -> dict[str, Any]:
        return self.system.status()[BROKER]

    def cpu_s(self) -> float:
        return cpu_s(self.brokers.pid(BROKER))


def cpu_s(pid: int | None) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


@contextmanager
def one_broker(size: Size, folder: Path, **options: Any) -> Iterator[Run]:
    """A broker that has everything, with all items offered and its kernels compiled."""
    program = folder / "tickets.mpl"
    program.write_text(PROGRAM, encoding="utf-8")
    brokers = LocalBrokers(program, [BROKER], folder / "data", **options)
    with brokers, smile.connect(brokers.address) as system:
        run = Run(brokers, system)
        offer(size, run)
        yield run


def offer(size: Size, run: Run) -> None:
    """All items, and batches without effect: first calls are not what is measured."""
    events = generate(size.buys, size.items)
    offers = {"item_id": np.arange(size.items), "price": events.prices, "qty": events.offered}
    run.system.publish_many("Sellers", offers)
    nothing = np.zeros(1_000, np.int64)
    for at in range(WARM_BATCHES):
        run.system.publish_many(COASTS[at % 2], {"item_id": nothing, "qty": nothing})
    run.system.settle()
    if size.is_native:  # kernels start in plain Python and are replaced when compiled
        wait_until(run, lambda one: one.get("is_native") is not False, "kernels are not compiled in time")


def wait_until(run: Run, is_so: Callable[[dict[str, Any]], bool], complaint: str) -> None:
    """Of every component of the broker."""
    end = time.monotonic() + PATIENCE_S
    while not all(is_so(one) for one in run.status()["components"].values()):
        if time.monotonic() > end:
            raise SystemExit(complaint)
        time.sleep(0.1)


# --- throughput -------------------------------------------------------------------------------------------------------


def throughput(size: Size, way: str) -> dict[str, Any]:
    """From the first call to the last change in the subscriber's hands."""
    events = generate(size.buys, size.items)
    sizes = {"buys": size.buys, "items": size.items}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        result = folder / "left.npy"
        with (
            one_broker(size, folder) as run,
            Worker("subscribe", address=run.address, is_native=size.is_native, result=result, **sizes) as subscriber,
            Worker("publish", address=run.address, way=way, offered=size.buys, **sizes) as publisher,
        ):
            subscriber.hear()
            publisher.hear()
            before, cpu = run.status(), run.cpu_s()
            publisher.go()
            sent, told = publisher.hear(), subscriber.hear()
            after, cpu = run.status(), run.cpu_s() - cpu
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
        "publishes": after["log"]["log_batches"] - before["log"]["log_batches"],
        "commits": after["log"]["commits"]["count"] - before["log"]["commits"]["count"],
        "broker_cpu_s": cpu,
        "publisher_cpu_s": sent["cpu"],
        "subscriber_cpu_s": told["cpu"],
    }


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
    spent: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with one_broker(size, folder) as run:
            for number in range(size.rounds):
                (folder / str(number)).mkdir()
                found["echo"].append(echo_round(size, folder / str(number)))
                before = run.cpu_s()
                taken, rate, cpu = latency_round(size, run.address, folder / str(number), number)
                spent.update({**cpu, "broker": run.cpu_s() - before})
                found["SMILE"].append(taken)
                rates.append(rate)
    report: dict[str, Any] = {"rate": min(rates)}
    events = size.rounds * int(RATE * size.seconds)
    report["SMILE, CPU us of an event"] = {who: round(1e6 * seconds / events) for who, seconds in spent.items()}
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


def latency_round(
    size: Size, address: str, folder: Path, number: int
) -> tuple[np.ndarray[Any, Any], float, dict[str, float]]:
    """Milliseconds from hand-in to receipt of each change, the rate that the publisher held, and both clients' seconds
    of processor time."""
    events = generate(size.buys, size.items)
    first = number * int(RATE * size.seconds)
    common = {"address": address, "items": size.items, "first": first}
    with (
        Worker("watch", is_native=size.is_native, result=folder / "told.npy", **common) as watcher,
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
        sent, watched = publisher.hear(), watcher.hear()
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
    taken = np.array([1e3 * (arrived[change] - due) for change, due in expected.items()])
    return taken, sent["rate"], {"publisher": sent["cpu"], "subscriber": watched["cpu"]}


# --- many subscribers -------------------------------------------------------------------------------------------------


def fan_out(size: Size) -> dict[str, Any]:
    """Single changes at a steady rate, told to many; how long the broker's loop was in each telling."""
    from smile.digests import component_digests

    events = generate(size.buys, size.items)
    share = size.subscribers // FAN_PROCESSES
    mark = size.items + 1
    with tempfile.TemporaryDirectory() as name, one_broker(size, Path(name)) as run:
        program = run.brokers.program
        plan = program.plan.views["Available"]
        (shown,) = (one for one in program.plan.components[plan.component].relation.shown if one.name == "avail")
        about = {
            "component": plan.component,
            "digest": component_digests(run.brokers.deployment, program)[plan.component],
            "difference": list(shown.columns),
        }
        workers = [Worker("fan", address=run.address, count=share, mark=mark, **about) for _ in range(FAN_PROCESSES)]
        try:
            began = time.monotonic()
            for worker in workers:
                worker.hear(300.0)
            joined_s = time.monotonic() - began
            before = run.status()
            for number in range(size.updates):
                row = {"item_id": int(events.items[number]), "qty": int(events.quantities[number])}
                run.system.publish(COASTS[number % 2], row)
                time.sleep(1 / FAN_RATE)
            run.system.publish("Sellers", {"item_id": mark, "price": 1, "qty": 1})
            ends = [worker.hear(300.0) for worker in workers]
            after = run.status()
        finally:
            for worker in workers:
                worker.__exit__(None, None, None)
    expected = {item: number for item, (_, number) in events.available(size.updates).items()}
    for end in ends:
        left = {int(item): number for item, number in end["left"].items() if int(item) < size.items}
        if end["same"] != share or any(expected.get(item, 0) != number for item, number in left.items()):
            raise WrongView("a subscriber among many was told something else")
    tells = {key: after["tell"][key] - before["tell"][key] for key in ("count", "total_us")}
    return {
        "subscribers": share * FAN_PROCESSES,
        "joined_s": joined_s,
        "updates": size.updates,
        "messages_to_each": ends[0]["messages"],
        "tell_mean_us": tells["total_us"] / max(1, tells["count"]),
        "tell_longest_us": after["tell"]["longest_us"],
        "drops": after["counters"]["drops.full"] - before["counters"]["drops.full"],
    }


# --- restart ----------------------------------------------------------------------------------------------------------


def restart(size: Size) -> dict[str, Any]:
    """From the start of a new process to its sockets being served; then a new client reads the view."""
    sizes = {"buys": size.events, "items": size.items}
    with tempfile.TemporaryDirectory() as name:
        enough = replace(size, buys=size.events)
        with one_broker(enough, Path(name), checkpoint_every="1s", restart=False) as run:
            with Worker("publish", address=run.address, way="coalesced", offered=size.events, **sizes) as publisher:
                publisher.hear()
                publisher.go()
                publisher.hear(300.0)
            wait_until(
                run,
                lambda one: one["kind"] == "stream" or not one["rows_since_checkpoint"],
                "no checkpoint is written in time",
            )
            run.brokers.kill(BROKER)
            while run.brokers.pid(BROKER) is not None:
                time.sleep(0.01)
            with cold_start(run) as (serving_s, serving_cpu_s):
                with Worker("read", address=run.address, offered=size.events, **sizes) as reader:
                    read = reader.hear()
                status = run.status()
            if not read["ok"]:
                raise WrongView("the view after the restart")
    return {
        "events": size.events,
        "serving_s": serving_s,
        "serving_cpu_s": serving_cpu_s,
        "connect_s": read["connected"] - read["began"],
        "read_s": read["finished"] - read["connected"],
        "log_reads": status["log"]["reads"]["count"],
    }


@contextmanager
def cold_start(run: Run) -> Iterator[tuple[float, float]]:
    """A process of its own, with all imports: seconds until it says that it serves, by the clock and of processors."""
    folder = run.brokers.data / BROKER
    began = time.monotonic()
    command = [sys.executable, "-P", "-m", "smile", "broker", BROKER, "--listen", run.address, "--data", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while _serving_pid(folder) != process.pid:
            if process.poll() is not None or time.monotonic() > began + PATIENCE_S:
                raise SystemExit(f"the broker does not start again, code {process.returncode}")
            time.sleep(0.01)
        spent = time.monotonic() - began
        yield spent, cpu_s(process.pid)
    finally:
        process.kill()
        process.wait()


def _serving_pid(folder: Path) -> int:
    try:
        pid: int = json.loads((folder / SERVING_FILE).read_bytes())["pid"]
    except (OSError, ValueError, KeyError):
        return 0
    return pid


# --- bytes ------------------------------------------------------------------------------------------------------------


def bytes_in(rows: int) -> float:
    """Bytes of frames per event of a publish of so many."""
    columns = (numbers(np.arange(rows) + 10_000), numbers(np.arange(rows) % 5 + 1))
    return sum(map(len, encode_control(Publish(COASTS[0], "0123456789abcdef", 123_456, columns)))) / rows


# --- report -----------------------------------------------------------------------------------------------------------


def measure(size: Size, only: set[str]) -> dict[str, Any]:
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
        held = found["fan"]["tell_mean_us"]
        rows.append(("loop held up by a change, us on average", held, BLOCKED_US_MAX, held <= BLOCKED_US_MAX))
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
        found = measure(QUICK if options.quick else size, set(filter(None, options.only.split(","))))
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
