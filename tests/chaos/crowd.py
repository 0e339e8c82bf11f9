"""Many subscribers in one process: `python -m tests.chaos.crowd '<json>'`. Each has a connection of its own, as if it
were alone.

They write down how long every change took from its publisher to them, and in the end which rows they have. It ends when
the file `stop` appears and all of them have the rows that it names, or do not get them.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import smile
from smile.subscription import Change

LOOK_EVERY_S = 0.05
CATCH_UP_S = 60.0


@dataclass(frozen=True)
class Order:
    """`out` is the file for the result; `stop` the one that ends it: the newest row of each sensor, as JSON."""

    address: str
    count: int
    out: str
    stop: str

    def to_text(self) -> str:
        return json.dumps(asdict(self))


class Member:
    """One subscriber: its rows, and (moment, latency) of everything it heard, in seconds."""

    def __init__(self, address: str) -> None:
        self.heard: list[tuple[float, float]] = []
        self.rows: dict[int, int] = {}
        self.system: Any = smile.connect(address)
        self.system.subscribe("Newest", self.hear)

    def hear(self, change: Change) -> None:
        sensor, sent = change.row["sensor"], change.row["sent"]
        assert isinstance(sensor, int)
        assert isinstance(sent, int)
        self.rows[sensor] = sent
        now = time.monotonic()
        if change.kind == "changed":
            self.heard.append((now, now - sent / 1e6))


def _await_rows(members: list[Member], stop: Path) -> None:
    meant = {int(sensor): sent for sensor, sent in json.loads(stop.read_text()).items()} if stop.exists() else {}
    end = time.monotonic() + CATCH_UP_S
    while any(member.rows != meant for member in members) and time.monotonic() < end:
        time.sleep(LOOK_EVERY_S)


def main(text: str) -> None:
    order = Order(**json.loads(text))
    members = [Member(order.address) for _ in range(order.count)]
    Path(f"{order.out}.ready").touch()
    while not Path(order.stop).exists() and os.getppid() != 1:
        time.sleep(LOOK_EVERY_S)
    _await_rows(members, Path(order.stop))
    result = [{"heard": member.heard, "rows": member.rows} for member in members]
    made = Path(f"{order.out}.new")
    made.write_text(json.dumps(result))
    made.replace(order.out)
    for member in members:
        member.system.close()


if __name__ == "__main__":
    main(sys.argv[1])
