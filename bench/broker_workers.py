"""The processes of `bench/brokers.py`: publishers and subscribers of the tickets view, and the bare echo's three.

    python -m bench.broker_workers ROLE JSON

Each says what it has found in lines of JSON (`bench/broker_talk.py`). All make the same events by themselves.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench import broker_echo
from bench.broker_fan import fan
from bench.broker_talk import say, sleep_until, wait_for_line
from bench.tickets import QUEUE_ROWS, WAYS, batches_of
from bench.tickets_events import COASTS, TicketEvents, generate
from runtime.kernels.copy import ColumnarCopy

if TYPE_CHECKING:
    from smile.remote.system import RemoteSystem

NATIVE_S = 120.0
CALLS_UNDER_WAY = 64
"""Calls that a publisher makes before it waits for the oldest: enough to keep all buffers on the way full."""


def mark_item(events: TicketEvents) -> int:
    """An item that nobody buys: when it is offered, everything before has been told."""
    return events.item_count


def collect_what_starting_made() -> None:
    """Looking at all objects for the first time takes 40 ms, once in the life of a process: not what is measured."""
    gc.collect()
    gc.freeze()


def connected(address: str) -> RemoteSystem:
    import smile  # here, because the processes of the echo do without

    return smile.connect(address)


def publish(address: str, way: str, buys: int, items: int, offered: int) -> None:
    """All buys as fast as the brokers take them; then the mark."""
    events = generate(buys, items)
    batches = list(batches_of(events, WAYS[way], offered))
    with connected(address) as system:
        say(ready=True)
        wait_for_line()
        under_way: deque[Future[Any]] = deque()
        began, cpu = time.monotonic(), time.process_time()
        for number, (_, data) in enumerate(batches):
            under_way.append(system.publish_many_nowait(COASTS[number % 2], data))
            if len(under_way) > CALLS_UNDER_WAY:
                system.outcome(under_way.popleft())
        for future in under_way:
            system.outcome(future)
        acknowledged, cpu = time.monotonic(), time.process_time() - cpu
        system.publish("Sellers", {"item_id": mark_item(events), "price": 1, "qty": 1})
        say(began=began, acknowledged=acknowledged, cpu=cpu)


def wait_for_native(system: RemoteSystem, is_wanted: bool) -> None:
    """A subscriber's own copy of the view is kept by compiled loops after a while, too."""
    for opened in system._open_views() if is_wanted else ():
        operator = opened.source.run(lambda leaf: leaf.operator)
        if isinstance(operator, ColumnarCopy):
            operator.wait_for_native(NATIVE_S)


def subscribe(address: str, buys: int, items: int, is_native: bool, result: Path) -> None:
    """Keep the view until the mark is there; what is left of each item is the result."""
    events = generate(buys, items)
    left = np.zeros(items + 1, np.int64)
    with connected(address) as system:
        changes = system.subscribe("Available", queue_rows=QUEUE_ROWS)
        number, cpu = 0, 0.0
        for batch in changes.batches():
            left[batch.array("item_id")] = np.where(batch.visible_array(), batch.array("avail"), 0)
            if batch.kind == "snapshot":
                wait_for_native(system, is_native)
                cpu = time.process_time()
                say(ready=len(batch))
                continue
            number += len(batch)
            if left[mark_item(events)]:
                break
        finished, cpu = time.monotonic(), time.process_time() - cpu
        np.save(result, left)
        say(finished=finished, changes=number - 1, squeezed=changes.squeezed, cpu=cpu)


def coast_of(item: int) -> str:
    """Buys of one item all come from one coast: in which order two streams are read is nobody's promise."""
    return COASTS[item % 2]


def publish_singles(address: str, buys: int, items: int, rate: int, seconds: float, first: int, result: Path) -> None:
    """One buy at a time when it is due; the times at which they were handed in are the result."""
    events = generate(buys, items)
    count = min(int(rate * seconds), events.buys - first)
    rows = [
        {"item_id": int(events.items[first + number]), "qty": int(events.quantities[first + number])}
        for number in range(count)
    ]
    handed = np.zeros(count)
    with connected(address) as system:
        collect_what_starting_made()
        say(ready=True)
        wait_for_line()
        under_way: deque[Future[Any]] = deque()
        begin, cpu = time.monotonic() + 0.1, time.process_time()
        for number, row in enumerate(rows):
            sleep_until(begin + number / rate)
            handed[number] = time.monotonic()
            under_way.append(system.publish_nowait(coast_of(row["item_id"]), row))
            while under_way and under_way[0].done():
                system.outcome(under_way.popleft())
        held = count / (time.monotonic() - begin)
        for future in under_way:
            system.outcome(future)
        cpu = time.process_time() - cpu
        np.save(result, handed)
        system.publish("Sellers", {"item_id": items + first + 1, "price": 1, "qty": 1})
        say(done=True, rate=held, count=count, cpu=cpu)


def watch(address: str, items: int, is_native: bool, first: int, result: Path) -> None:
    """Every change with the time at which it was told: (item, available, time) is the result."""
    told: list[tuple[int, int, float]] = []
    cpu = 0.0
    with connected(address) as system:
        changes = system.subscribe("Available", queue_rows=QUEUE_ROWS)
        for batch in changes.batches():
            now = time.monotonic()
            if batch.kind == "snapshot":
                wait_for_native(system, is_native)
                collect_what_starting_made()
                cpu = time.process_time()
                say(ready=len(batch))
                continue
            left = np.where(batch.visible_array(), batch.array("avail"), 0).tolist()
            found = batch.array("item_id").tolist()
            told += [(item, available, now) for item, available in zip(found, left, strict=True)]
            if items + first + 1 in found:
                break
        cpu = time.process_time() - cpu
        np.save(result, np.array(told))
        say(done=True, changes=len(told) - 1, cpu=cpu)


def read(address: str, buys: int, items: int, offered: int) -> None:
    """Connect, read the whole view once, and compare it: what a restart is measured by."""
    events = generate(buys, items)
    expected = events.available(offered)
    began = time.monotonic()
    with connected(address) as system:
        ready = time.monotonic()
        rows: list[dict[str, Any]] = system.rows("Available")
        finished = time.monotonic()
    shown = {row["item_id"]: (int(row["price"]), row["avail"]) for row in rows if row["item_id"] < items}
    say(began=began, connected=ready, finished=finished, ok=shown == expected)


ROLES: dict[str, Callable[..., None]] = {
    "publish": publish,
    "subscribe": subscribe,
    "publish singles": publish_singles,
    "watch": watch,
    "read": read,
    "fan": fan,
    "echo: serve": broker_echo.serve,
    "echo: hand in": broker_echo.hand_in,
    "echo: receive": broker_echo.receive,
}


def main() -> None:
    role, text = sys.argv[1:]
    arguments = {
        name: Path(value) if name in ("result", "folder") else value for name, value in json.loads(text).items()
    }
    ROLES[role](**arguments)


if __name__ == "__main__":
    main()
