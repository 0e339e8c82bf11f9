"""A subscribing process: `python -m tests.chaos.subscriber '<json>'`. Records every batch that its subscriptions hand
out.

One of them may be resumable: it takes a token now and then, and when the process starts again it goes on from the
newest. Ends when the file `stop` appears in its folder.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import smile
from tests.chaos.publisher import connected
from tests.chaos.records import RecordWriter

TOKEN_EVERY_S = 0.5
STOP_FILE = "stop"


@dataclass(frozen=True)
class Wanted:
    """`name` is that of the record file."""

    name: str
    view: str
    emit: str
    resumes: bool = False


@dataclass(frozen=True)
class Order:
    addresses: list[str]
    folder: str
    wanted: list[Wanted]

    def to_text(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_text(text: str) -> Order:
        fields = json.loads(text)
        return Order(**(fields | {"wanted": [Wanted(**one) for one in fields["wanted"]]}))


class Tokens:
    """The newest token in a file of its own, replaced whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.number, self.newest = 0, None
        if path.exists():
            data = path.read_bytes()
            self.number, self.newest = int.from_bytes(data[:8], "big"), data[8:]

    def keep(self, token: bytes, record: RecordWriter) -> None:
        self.number += 1
        record.mark("token", self.number)  # first: a token without its mark could not be followed
        fresh = self._path.with_suffix(".new")
        fresh.write_bytes(self.number.to_bytes(8, "big") + token)
        fresh.replace(self._path)


def has_ended(folder: Path) -> bool:
    """Told to stop, or left alone by a run that was killed."""
    return (folder / STOP_FILE).exists() or not folder.exists() or os.getppid() == 1


def follow(system: Any, wanted: Wanted, folder: Path) -> None:
    record = RecordWriter(folder / f"{wanted.name}.jsonl")
    tokens = Tokens(folder / f"{wanted.name}.token") if wanted.resumes else None
    resume = None if tokens is None else tokens.newest
    subscription = None
    while subscription is None:
        if has_ended(folder):
            return
        try:
            subscription = system.subscribe(wanted.view, emit=wanted.emit, resume=resume)
        except smile.TimedOut:
            continue
    record.mark("start" if resume is None else "resume", 0 if tokens is None else tokens.number)
    next_token = 0.0
    while not has_ended(folder):
        batch = subscription.wait(0.2)
        if batch is not None and (len(batch) or batch.kind == "snapshot"):
            record.batch(batch)
        if batch is not None and tokens is not None and time.monotonic() >= next_token:
            tokens.keep(subscription.token(), record)
            next_token = time.monotonic() + TOKEN_EVERY_S
    record.close()


def main(text: str) -> None:
    order = Order.from_text(text)
    folder = Path(order.folder)
    with connected(order.addresses) as system:
        threads = [
            threading.Thread(target=follow, args=(system, wanted, folder), daemon=True) for wanted in order.wanted
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main(sys.argv[1])
