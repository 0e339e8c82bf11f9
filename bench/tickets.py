"""The tickets view at full speed, with the peers in the same run: events per second, latency, memory, start-up.

    python -m bench.tickets [--buys 2000000] [--seconds 8] [--latency-seconds 5] [--no-peers]
    python -m bench.tickets --profile columns       where the time goes

10,000 items are offered, then bought (`bench/tickets_events.py`). A subscriber in the same process and thread takes
what each batch has caused before the next batch is published, and keeps the view; in the end its view and the
engine's must both be what an independent computation says. Every measurement stops after about `--seconds`. Peers
need `SMILE_BENCH_PYTHON` (`bench/peers/run.py`). Compare figures of one run only: machines and neighbours differ.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import pstats
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench._report import print_table, write_results
from bench.peers.outcome import Outcome, Stopwatch
from bench.peers.run import PEERS, run_peer
from bench.tickets_events import BUYS, COASTS, ITEMS, TicketEvents, View, generate

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "tickets" / "tickets.mpl"
RATE = 2_000
MEMORY_ITEMS = 10_000
NATIVE_S = 120.0
EVERY = 0.999
"""Two coasts that are read in another order sell the last tickets of some items by other buys: a few changes differ."""
QUEUE_ROWS = 1 << 20
"""A subscriber's queue that never has to be squeezed: every change counts here."""


def program_text() -> str:
    """The example's, with room for as many tickets of one item as are bought here."""
    text = EXAMPLE.read_text(encoding="utf-8")
    assert text.count("qty int[0..1000]") == len(COASTS) + 1
    return text.replace("qty int[0..1000]", "qty int[0..100000000]")


@dataclass(frozen=True)
class Way:
    """How buys are handed in; `title` says it in the report."""

    title: str
    batch: int
    is_columnar: bool
    coalesce: bool = False


ROWS = Way("SMILE, rows", 1_000, is_columnar=False)
COLUMNS = Way("SMILE, columns", 1_000, is_columnar=True)
MANY_COLUMNS = Way("SMILE, columns", 10_000, is_columnar=True)
COALESCED = Way("SMILE, columns, coalesced", 10_000, is_columnar=True, coalesce=True)
SINGLE = Way("SMILE, single rows", 1, is_columnar=False)
WAYS = {"single": SINGLE, "rows": ROWS, "columns": COLUMNS, "many": MANY_COLUMNS, "coalesced": COALESCED}


class Taker:
    """The subscriber: what it was told is kept as what is left of every item; 0 is not shown."""

    def __init__(self, changes: Any, events: TicketEvents) -> None:
        self._changes = changes
        self._left = np.zeros(events.item_count, np.int64)
        self.number = 0
        self.take()
        self.number = 0

    def take(self) -> None:
        for batch in self._changes.ready_batches():
            left = batch.array("avail") * batch.visible_array()
            self._left[batch.array("item_id")] = left  # of several changes of an item the last counts
            self.number += len(batch)

    def left(self) -> dict[int, int]:
        return {int(item): int(self._left[item]) for item in np.flatnonzero(self._left)}


def open_view(events: TicketEvents, *, coalesce: bool = False) -> tuple[Any, Taker]:
    import smile

    system = smile.run(smile.compile(program_text()))
    items = np.arange(events.item_count)
    system.publish_many("Sellers", {"item_id": items, "price": events.prices, "qty": events.offered})
    changes = system.subscribe("Available", timeout=0, queue_rows=QUEUE_ROWS, coalesce=coalesce)
    return system, Taker(changes, events)


def wait_for_native(system: Any) -> bool:
    """Kernels start in plain Python and are replaced when compiled; measure what runs after that."""
    from runtime.kernels.operator import KernelOperator

    operators = [getattr(component, "operator", None) for component in system._engine.running.values()]
    kernels = [operator for operator in operators if isinstance(operator, KernelOperator)]
    return bool(kernels) and all(kernel.wait_for_native(NATIVE_S) for kernel in kernels)


def batches_of(events: TicketEvents, way: Way, buys: int) -> Iterable[tuple[int, object]]:
    """How many buys there are up to the end of each batch, and what is published. Rows are made before."""
    for first in range(0, buys, way.batch):
        end = min(first + way.batch, buys)
        items, quantities = events.items[first:end], events.quantities[first:end]
        if way.is_columnar:
            yield end, {"item_id": items, "qty": quantities}
        else:
            pairs = zip(items.tolist(), quantities.tolist(), strict=True)
            yield end, [{"item_id": item, "qty": quantity} for item, quantity in pairs]


def throughput(events: TicketEvents, way: Way, seconds: float) -> Outcome:
    """Rows are made outside the time that counts, and so is the check."""
    system, taker = open_view(events, coalesce=way.coalesce)
    tier = "native" if wait_for_native(system) else "plain"
    for at in range(8):  # first calls are not what is measured
        system.publish_many(COASTS[at % 2], {"item_id": [0], "qty": [0]})
    taker.take()
    taker.number = 0
    gc.collect()
    spent, spent_cpu, taken = 0.0, 0.0, 0
    for number, (end, data) in enumerate(batches_of(events, way, events.buys)):
        coast = COASTS[number % 2]
        watch = Stopwatch()
        system.publish_many(coast, data)
        taker.take()
        seconds_now, cpu_now = watch.times()
        spent, spent_cpu = spent + seconds_now, spent_cpu + cpu_now
        taken = end
        if spent > seconds:
            break
    ok = is_right(events, taken, taker, system.rows("Available"))
    system.close()
    return Outcome(f"{way.title}, {tier}", smile_version(), taken, spent, spent_cpu, taker.number, way.batch, ok)


def smile_version() -> str:
    from importlib.metadata import version

    return version("smile-mpl")


def is_right(events: TicketEvents, taken: int, taker: Taker, rows: list[dict[str, Any]]) -> bool:
    """Both the subscriber's view and the engine's."""
    expected = events.available(taken)
    shown: View = {row["item_id"]: (int(row["price"]), row["avail"]) for row in rows}
    return shown == expected and taker.left() == {item: left for item, (_, left) in expected.items()}


# --- latency ----------------------------------------------------------------------------------------------------------


def latency(events: TicketEvents, seconds: float) -> dict[str, float]:
    """One buy at a time, handed in when it is due; from there to the callback that is told of it, in milliseconds."""
    import smile

    told: list[float] = []
    now = time.perf_counter
    with smile.run(smile.compile(program_text())) as system:
        items = np.arange(events.item_count)
        system.publish_many("Sellers", {"item_id": items, "price": events.prices, "qty": events.offered})
        system.subscribe("Available", lambda _change: told.append(now()))
        wait_for_native(system)
        count = min(int(RATE * seconds), events.buys)
        taken: list[float] = []
        due_taken: list[float] = []
        begin = now() + 0.1
        for number in range(count):
            row = {"item_id": int(events.items[number]), "qty": int(events.quantities[number])}
            due = begin + number / RATE
            while (wait := due - now()) > 0:
                if wait > 0.000_3:
                    time.sleep(wait - 0.000_2)
            told.clear()
            started = now()
            system.publish(COASTS[number % 2], row)
            if told:  # an item that is sold out changes nothing
                taken.append(1e3 * (told[-1] - started))
                due_taken.append(1e3 * (told[-1] - due))
        held = count / (now() - begin)
    found = {"rate": held, "changes": float(len(taken))}
    for share in (50, 99, 99.9):
        found[f"p{share}_ms"] = float(np.percentile(taken, share))
    found["p99_since_due_ms"] = float(np.percentile(due_taken, 99))
    return found


# --- memory and start-up ----------------------------------------------------------------------------------------------


def memory(items: int) -> dict[str, float]:
    """Bytes that one more item adds to all state with one subscriber, and one more event to the log."""
    memory_used(items)  # whatever is loaded the first time is not state
    (fewer, _), (more, by_event) = memory_used(items), memory_used(2 * items)
    events_by_item = 1 + len(COASTS)
    return {
        "state_bytes_per_item": (more - fewer) / items - events_by_item * by_event,
        "log_bytes_per_event": by_event,
    }


def memory_used(items: int) -> tuple[float, float]:
    """Bytes after each item was offered and bought on both coasts, and what every further event adds."""
    events = generate(items, items)
    everything = {"item_id": np.arange(items), "qty": np.ones(items, np.int64)}
    offers = TicketEvents(events.prices, events.offered + 1_000, events.items, events.quantities)
    gc.collect()
    tracemalloc.start()
    system, taker = open_view(offers)
    wait_for_native(system)
    used = []
    for _ in range(3):
        for coast in COASTS:
            system.publish_many(coast, everything)
        taker.take()
        system.settle()
        gc.collect()
        used.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    system.close()
    return used[0], (used[2] - used[1]) / (len(COASTS) * items)


STARTUP = """
import sys, time
begin = time.perf_counter()
import smile
imported = time.perf_counter()
program = smile.compile(sys.argv[1])
compiled = time.perf_counter()
with smile.run(program) as system:
    with system.subscribe("Available", timeout=0) as changes:
        system.publish("Sellers", {"item_id": 1, "price": 12, "qty": 5})
        assert [change.row["avail"] for change in changes] == [5]
told = time.perf_counter()
print(imported - begin, compiled - imported, told - compiled)
"""


def startup() -> dict[str, float]:
    """Seconds in a fresh process; the best of three."""
    command = [sys.executable, "-c", STARTUP, program_text()]
    runs = []
    for _ in range(3):
        done = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True)
        runs.append([float(word) for word in done.stdout.split()])
    best = min(runs, key=sum)
    return {"import_s": best[0], "compile_s": best[1], "first_row_s": best[2], "together_s": sum(best)}


# --- report -----------------------------------------------------------------------------------------------------------


def profile(events: TicketEvents, way: Way, seconds: float) -> None:
    """Where the time goes; the profiler itself makes small functions look larger than they are."""
    profiler = cProfile.Profile()
    system, taker = open_view(events, coalesce=way.coalesce)
    wait_for_native(system)
    batches = list(batches_of(events, way, min(events.buys, 200 * way.batch)))
    started = time.perf_counter()
    profiler.enable()
    for number, (_, data) in enumerate(batches):
        system.publish_many(COASTS[number % 2], data)
        taker.take()
        if time.perf_counter() - started > seconds:
            break
    profiler.disable()
    system.close()
    pstats.Stats(profiler).strip_dirs().sort_stats("tottime").print_stats(25)


def throughput_table(events: TicketEvents, outcomes: list[Outcome]) -> None:
    rows = []
    for one in outcomes:
        everything = events.every_change(one.events)
        name = f"{one.peer} {one.version}"
        speed = one.events / one.seconds / 1e6
        per_cpu = one.events / one.cpu_seconds / 1e6
        told = (one.changes / one.events, one.changes >= EVERY * everything, one.ok)
        rows.append((name, one.batch, one.events, speed, per_cpu, *told))
    heads = ("", "batch", "events", "M events/s", "M per CPU s", "changes/event", "every change", "right")
    print_table(f"Tickets: {events.item_count:,} items, a subscriber in the same process", heads, rows)


def measured(options: argparse.Namespace, events: TicketEvents) -> tuple[list[Outcome], list[str]]:
    outcomes = [throughput(events, way, options.seconds) for way in WAYS.values()]
    missing = []
    for peer in () if options.no_peers else PEERS:
        found = run_peer(peer, events.buys, events.item_count, options.seconds)
        if isinstance(found, Outcome):
            outcomes.append(found)
        else:
            missing.append(found)
    return outcomes, list(dict.fromkeys(missing))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Measure the tickets view, and peers.")
    parser.add_argument("--buys", type=int, default=BUYS)
    parser.add_argument("--items", type=int, default=ITEMS)
    parser.add_argument("--seconds", type=float, default=8.0, help="about how long each measurement takes at most")
    parser.add_argument("--latency-seconds", type=float, default=5.0)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--profile", choices=WAYS, help="where the time goes, instead of a report")
    options = parser.parse_args(arguments)
    events = generate(options.buys, options.items)
    if options.profile:
        profile(events, WAYS[options.profile], options.seconds)
        return
    outcomes, missing = measured(options, events)
    throughput_table(events, outcomes)
    for line in missing:
        print(f"  {line}")
    parts: dict[str, Callable[[], dict[str, float]]] = {
        f"Latency, one event at a time at {RATE:,}/s": lambda: latency(events, options.latency_seconds),
        "Memory": lambda: memory(min(options.items, MEMORY_ITEMS)),
        "Start-up, a fresh process": startup,
    }
    results: dict[str, object] = {"throughput": [asdict(one) for one in outcomes]}
    for title, measure in parts.items():
        results[title] = found = measure()
        print_table(title, ("", *found), [("", *found.values())])
    write_results("tickets", results)
    if not all(one.ok for one in outcomes):
        raise SystemExit("a view is wrong")


if __name__ == "__main__":
    main()
