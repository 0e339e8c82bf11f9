"""What every peer does at its ends: read its options, make the events, check the view, print one line of JSON."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass

from bench.tickets_events import ITEMS, TicketEvents, View, generate


@dataclass(frozen=True)
class Task:
    events: TicketEvents
    batch: int
    seconds: float
    """Peers that can stop do so after about this time, at the end of a batch; the check is about what they took."""


@dataclass(frozen=True)
class Outcome:
    peer: str
    version: str
    events: int
    seconds: float
    cpu_seconds: float
    """Of all threads of the process: what neighbours on the machine do is not in it."""
    changes: int
    batch: int
    ok: bool


def task(batch: int) -> Task:
    parser = argparse.ArgumentParser()
    parser.add_argument("--buys", type=int, required=True)
    parser.add_argument("--items", type=int, default=ITEMS)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--batch", type=int, default=batch)
    options = parser.parse_args()
    return Task(generate(options.buys, options.items), options.batch, options.seconds)


class Stopwatch:
    """Seconds by the clock and of the processor, from the start until now."""

    def __init__(self) -> None:
        self._clock, self._processor = time.perf_counter(), time.process_time()

    def seconds(self) -> float:
        return time.perf_counter() - self._clock

    def times(self) -> tuple[float, float]:
        return self.seconds(), time.process_time() - self._processor


def finish(
    task: Task, peer: str, version: str, buys: int, times: tuple[float, float], changes: int, view: View
) -> None:
    """`changes` are those that buys caused: the first appearance of every item does not count."""
    ok = view == task.events.available(buys)
    print(json.dumps(asdict(Outcome(peer, version, buys, *times, changes, task.batch, ok))))
