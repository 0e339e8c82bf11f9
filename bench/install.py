"""A bulk install into a broker while events flow: what publishers notice of it, and how long it takes.

    python -m bench.install [--rows 1000000] [--rate 50000] [--seconds 5]

A view of `--rows` groups is filled; then a process publishes `--rate` events a second in calls of 1,000, first beside
nothing, then while a state of the whole view, as of a tick of just before, is sent, built, caught up and switched in.
Latency is from the call to the acknowledgement, which needs a turn of the broker's loop and a commit. The state is
computed by the operator itself from the log: Spark, on the same machine, would be measured too. In the end the view is
compared with what was published.
"""

from __future__ import annotations

import argparse
import json
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import smile
from bench._bulk_state import bulk_of
from bench._report import print_table, write_results
from runtime.client.installing import Installer
from smile.broker import LOGS_FOLDER
from smile.digests import component_digests
from smile.local import LocalBrokers
from smile.remote.system import RemoteSystem

PROGRAM = """
stream Buys (item int, qty int[0..1000]);
view Sold = from Buys |> aggregate total := sum(qty), number := count() group by item;
"""
BROKER = "hub"
CALL_ROWS = 1_000
FILL_ROWS = 50_000
PATIENCE_S = 300.0
LATENCY_MS_MAX = 100.0


@dataclass(frozen=True)
class Latencies:
    """Of publishes that began in one stretch of time, in milliseconds."""

    what: str
    publishes: int
    p50: float
    p99: float
    longest: float

    @staticmethod
    def of(what: str, found: list[tuple[float, float]], began: float, ended: float) -> Latencies:
        inside = [latency for at, latency in found if began <= at <= ended]
        if not inside:
            raise SystemExit(f"nothing was published {what}")
        p50, p99 = np.percentile(inside, [50, 99])
        return Latencies(what, len(inside), float(p50), float(p99), max(inside))


def publish_steadily(address: str, rows: int, rate: int) -> None:
    """In a process of its own, until its input ends; then says when each publish began, and how long it took."""
    rng = np.random.default_rng(5)
    with smile.connect(address, timeout=PATIENCE_S) as system:
        due = time.monotonic()
        found: list[tuple[float, float]] = []
        sent = 0
        print(json.dumps("ready"), flush=True)
        while not select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))[0]:
            began = time.monotonic()
            items = rng.integers(0, rows, CALL_ROWS)
            done = system.publish_many_nowait("Buys", {"item": items, "qty": np.ones(CALL_ROWS, np.int64)})
            done.add_done_callback(lambda _, began=began: found.append((began, (time.monotonic() - began) * 1e3)))  # type: ignore[misc]
            sent += CALL_ROWS
            due = max(due + CALL_ROWS / rate, time.monotonic() - 1.0)
        system.outcome(done)
    print(json.dumps({"sent": sent, "found": found}), flush=True)


class Publisher:
    def __init__(self, address: str, rows: int, rate: int) -> None:
        command = [sys.executable, "-m", "bench.install", "--publish", address, f"--rows={rows}", f"--rate={rate}"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def end(self) -> tuple[int, list[tuple[float, float]]]:
        said, _ = self._process.communicate("\n", timeout=PATIENCE_S)
        told = json.loads(said)
        return told["sent"], [(at, latency) for at, latency in told["found"]]


def fill(system: RemoteSystem, rows: int) -> None:
    for first in range(0, rows, FILL_ROWS):
        items = np.arange(first, min(rows, first + FILL_ROWS))
        system.publish_many("Buys", {"item": items, "qty": np.ones(len(items), np.int64)})


def wait_for(true: Callable[[], bool], what: str) -> None:
    limit = time.monotonic() + PATIENCE_S
    while not true():
        if time.monotonic() > limit:
            raise SystemExit(f"waited {PATIENCE_S:g} s for {what}")
        time.sleep(0.05)


def status_of(system: RemoteSystem) -> dict[str, Any]:
    return system.connection.status()[BROKER]


def installed_while_publishing(rows: int, rate: int, seconds: float, folder: Path) -> dict[str, Any]:
    with (
        LocalBrokers(smile.compile(PROGRAM), brokers=[BROKER], data=folder) as brokers,
        smile.connect(brokers.address, timeout=PATIENCE_S) as system,
    ):
        fill(system, rows)
        wait_for(lambda: status_of(system)["components"]["Sold"].get("rows", 0) >= rows, "the view")
        installer = Installer(system.connection, "Sold", component_digests(system.deployment, system.program)["Sold"])
        publisher = Publisher(brokers.address, rows, rate)
        installer.hold(PATIENCE_S)
        horizon = system.connection.coverages(["Buys"]).coverages["Buys"].horizon()
        bulk = bulk_of(system.deployment, system.program, "Sold", horizon, folder / BROKER / LOGS_FOLDER)
        quiet = time.monotonic()
        time.sleep(seconds)
        began = time.monotonic()
        installer.send(bulk)
        sent = time.monotonic()
        installer.wait(PATIENCE_S, is_durable=False)
        switched = time.monotonic()
        told = installer.wait(PATIENCE_S)
        ended = time.monotonic()
        time.sleep(1.0)
        loop = status_of(system)["loop"]
        number, found = publisher.end()
        wait_for(lambda: _total(system) == rows + number, "the sum of everything that was published")
        return {
            "rows": rows,
            "rate": rate,
            "bytes": told["bytes"],
            "send_s": sent - began,
            "switch_s": switched - began,
            "durable_s": ended - began,
            "loop_longest_ms": loop["longest_recent_us"] / 1e3,
            "latencies_ms": [
                asdict(Latencies.of("before", found, quiet, began)),
                asdict(Latencies.of("during the install", found, began, ended + 1.0)),
            ],
        }


def _total(system: RemoteSystem) -> int:
    return int(system.arrow("Sold").column("total").to_numpy().sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="groups of the view")
    parser.add_argument("--rate", type=int, default=50_000, help="events a second")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long to measure before the install")
    parser.add_argument("--publish", metavar="ADDRESS", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.publish:
        publish_steadily(given.publish, given.rows, given.rate)
        return
    with tempfile.TemporaryDirectory(prefix="smile-bench-") as folder:
        found = installed_while_publishing(given.rows, given.rate, given.seconds, Path(folder))
    rows = [(one["what"], one["publishes"], one["p50"], one["p99"], one["longest"]) for one in found["latencies_ms"]]
    print_table("publish to acknowledgement, ms", ["", "publishes", "p50", "p99", "longest"], rows)
    print_table(
        f"installing {found['rows']:,} rows at {found['rate']:,} events/s",
        ["", "s"],
        [("sent", found["send_s"]), ("switched in", found["switch_s"]), ("on disk", found["durable_s"])],
    )
    print(
        f"\n  {found['bytes']:,} bytes; longest round of the loop in the last 10 to 20 s, perhaps still of the filling:"
        f" {found['loop_longest_ms']:.1f} ms"
    )
    write_results("install", found)
    longest = found["latencies_ms"][1]["longest"]
    print(
        f"  longest wait during the install below {LATENCY_MS_MAX:g} ms: {'yes' if longest < LATENCY_MS_MAX else 'NO'}"
    )


if __name__ == "__main__":
    main()
