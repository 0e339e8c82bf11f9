"""A publishing process: `python -m tests.chaos.publisher '<json>'`. Publishes seeded rows at a steady pace and keeps a
ledger.

Several publishes are under way at a time. Brokers that are down are waited for by the client; nothing here retries,
so that what the ledger calls one publish is one call of the API.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import smile
from tests.chaos.ledger import LedgerWriter, Row
from tests.chaos.truth import SELLERS

UNDER_WAY_MAX = 16
CONNECT_PATIENCE_S = 120.0


@dataclass(frozen=True)
class Job:
    """`first`: the id of the first buy, or the first item; `seconds`: over which the rows are spread; `most`: the
    largest quantity."""

    stream: str
    first: int
    count: int
    rows_each: int
    seconds: float
    items: int
    most: int


@dataclass(frozen=True)
class Order:
    addresses: list[str]
    ledger: str
    seed: int
    jobs: list[Job]

    def to_text(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_text(text: str) -> Order:
        fields = json.loads(text)
        return Order(**(fields | {"jobs": [Job(**job) for job in fields["jobs"]]}))


def rows_of(job: Job, seed: int) -> Iterator[list[Row]]:
    """The rows of each publish."""
    chance = random.Random(f"{seed} {job.stream} {job.first}")
    for start in range(job.first, job.first + job.count, job.rows_each):
        ids = range(start, min(start + job.rows_each, job.first + job.count))
        if job.stream == SELLERS:
            yield [(item, chance.randint(1, job.most)) for item in ids]
        else:
            yield [(chance.randrange(job.items), buy_id, chance.randint(0, job.most)) for buy_id in ids]


def connected(addresses: Sequence[str]) -> Any:
    """Asks the brokers in turn until one answers."""
    end = time.monotonic() + CONNECT_PATIENCE_S
    while True:
        for address in addresses:
            try:
                return smile.connect(address, timeout=60.0)
            except smile.ConnectFailed:
                if time.monotonic() > end:
                    raise


def publish_all(system: Any, job: Job, seed: int, ledger: LedgerWriter) -> None:
    """Returns when everything is acknowledged or has failed."""
    names = ("item_id", "qty") if job.stream == SELLERS else ("item_id", "buy_id", "qty")
    room = threading.Semaphore(UNDER_WAY_MAX)

    def done(number: int, future: Future[Any]) -> None:
        error = future.exception()
        if error is None:
            ledger.end(number, future.result())
        else:
            ledger.fail(number, f"{type(error).__name__}: {error}")
        room.release()

    start, sent = time.monotonic(), 0
    for rows in rows_of(job, seed):
        if os.getppid() == 1:  # left alone by a run that was killed
            return
        wait = start + job.seconds * sent / job.count - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        room.acquire()
        number = ledger.begin(job.stream, rows)
        columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
        future = system.publish_many_nowait(job.stream, columns)
        future.add_done_callback(lambda future, number=number: done(number, future))
        sent += len(rows)
    for _ in range(UNDER_WAY_MAX):
        room.acquire()


def main(text: str) -> None:
    order = Order.from_text(text)
    ledger = LedgerWriter(Path(order.ledger))
    with connected(order.addresses) as system:
        threads = [
            threading.Thread(target=publish_all, args=(system, job, order.seed, ledger), daemon=True)
            for job in order.jobs
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    ledger.close()


if __name__ == "__main__":
    main(sys.argv[1])
