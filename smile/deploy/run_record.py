"""`run.json`: what a local run of brokers consists of, for other commands in other terminals.

Written by `smile/local.py` into the run's data folder whenever something changes; read by `smile status`, `logs`,
`fault` and by whoever needs an address. Whether the run is alive is said by a lock, which goes with its process.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

FILE_NAME = "run.json"
LOCK_NAME = "run.lock"
RUNS_FOLDER = ".smile"
"""Where `smile run` keeps the data of runs that were given no folder, below the current folder."""

RECORD_BYTES_MAX = 2**20
FORMAT = 1

LOOKERS_S_MAX = 1.0
"""Whoever looks whether a run is alive holds its lock for a moment; a run that starts waits so long for them."""

State = Literal["starting", "serving", "paused", "down", "failed", "stopped"]


@dataclass(frozen=True)
class BrokerProcess:
    """One broker of a run. `pid` is None while it is down; `starts` counts its lives; `log` is what it prints."""

    name: str
    address: str
    http: str | None
    data: str
    log: str
    pid: int | None
    state: State
    starts: int


@dataclass(frozen=True)
class RunRecord:
    """`pid` is the supervisor's."""

    folder: Path
    pid: int
    program: str
    brokers: Mapping[str, BrokerProcess]

    @property
    def is_alive(self) -> bool:
        """Looking needs no right to write, and several may look at once."""
        try:
            with (self.folder / LOCK_NAME).open("rb") as file:
                return not _locked(file, fcntl.LOCK_SH)
        except OSError:
            return False

    @property
    def address(self) -> str:
        """Any broker knows the way to all; one that serves is asked first."""
        ready = [broker for broker in self.brokers.values() if broker.state == "serving"]
        return (ready or list(self.brokers.values()))[0].address

    def write(self) -> None:
        data = {
            "format": FORMAT,
            "pid": self.pid,
            "program": self.program,
            "brokers": {name: asdict(broker) for name, broker in self.brokers.items()},
        }
        made = self.folder / f".{FILE_NAME}.{os.getpid()}"
        made.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        made.replace(self.folder / FILE_NAME)


@contextmanager
def lock_run(folder: Path) -> Iterator[bool]:
    """One run per folder: True if it is ours as long as the block lasts, False if another one has it."""
    with (folder / LOCK_NAME).open("ab") as file:
        end = time.monotonic() + LOOKERS_S_MAX
        while not (is_ours := _locked(file, fcntl.LOCK_EX)) and time.monotonic() < end:
            time.sleep(0.01)
        yield is_ours


def _locked(file: BinaryIO, how: int) -> bool:
    """As long as the file is open."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def read_run(folder: Path) -> RunRecord | None:
    """The record of a folder; None if there is none that can be understood."""
    try:
        with (folder / FILE_NAME).open("rb") as file:
            data: Any = json.loads(file.read(RECORD_BYTES_MAX))
        if data["format"] != FORMAT or not data["brokers"]:
            return None
        brokers = {str(name): BrokerProcess(**broker) for name, broker in data["brokers"].items()}
        return RunRecord(folder, int(data["pid"]), str(data["program"]), brokers)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def find_run(start: Path) -> RunRecord | None:
    """The newest run that is alive and was started here or in a folder above."""
    for folder in (start.resolve(), *start.resolve().parents):
        found = [folder, *sorted((folder / RUNS_FOLDER).glob("*"))]
        runs = [run for one in found if (run := read_run(one)) is not None and run.is_alive]
        if runs:
            return max(runs, key=lambda run: (run.folder / FILE_NAME).stat().st_mtime)
    return None
