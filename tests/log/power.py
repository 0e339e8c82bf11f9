"""Power cuts: a log and a store of checkpoints work, lose their power at any moment, and must know what they said.

    python -m tests.log.power 1000        so many cuts; a second number is the seed

Each cut leaves a folder from which the next round starts, so that recovering is interrupted too. What was acknowledged
is kept in a ledger outside.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from runtime.batch import Batch
from runtime.checkpoints.store import CheckpointStore
from runtime.log.sqlite import LogDirectory, SqliteLog, Sync
from runtime.protocol.coverage import TICK_MAX, Coverage
from tests.log.damage import quick_folder
from tests.log.recorded_disk import Recording, recorded

COLUMNS = [("text", "text"), ("n", "int")]
STREAMS = ("S", "T")
LIVES = 40
"""Of one disk, one after the other; then a new one, because reading all of a log again and again takes its time."""

Event = tuple[object, ...]


@dataclass
class Ledger:
    """What has been acknowledged, over all cuts."""

    events: dict[str, dict[int, Event]] = field(default_factory=lambda: {name: {} for name in STREAMS})
    publishes: dict[str, dict[int, list[int]]] = field(default_factory=lambda: {name: {} for name in STREAMS})
    reserved: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STREAMS, -1))
    trimmed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STREAMS, -1))
    epoch: int = 0
    checkpoint: tuple[int, int] = (0, 0)
    begun: list[tuple[str, int]] = field(default_factory=list)
    """The publishes of the newest group: all of them are there, or none."""

    def count(self) -> int:
        return sum(map(len, self.events.values()))

    def note(self, fact: Any) -> None:
        match fact:
            case ("epoch", epoch):
                self.epoch = epoch
            case ("begun", publishes):
                self.begun = publishes
            case ("events", made):
                for stream, sequence, rows in made:
                    self.events[stream].update({row[0]: row for row in rows})
                    self.publishes[stream][sequence] = [row[0] for row in rows]
            case ("reserved", stream, tick):
                self.reserved[stream] = tick
            case ("trimmed", stream, tick):
                self.trimmed[stream] = tick
            case ("checkpoint", place):
                self.checkpoint = place
            case _:
                raise AssertionError(fact)


class Round:
    """One life of a process: opens what is there, writes at random until its power is cut."""

    def __init__(self, folder: Path, recording: Recording, rng: Random, number: int, sync: Sync = "always") -> None:
        self.rng, self.recording, self.number = rng, recording, number
        self.directory = LogDirectory(folder / "log", sync, interval_ms=1)
        self.store = CheckpointStore(folder / "checkpoints")
        self.epoch = self.directory.next_epoch()
        recording.told(("epoch", self.epoch))
        self.logs = {name: self.directory.stream(name, COLUMNS, producer_window=5) for name in STREAMS}
        states = {name: log.open(self.epoch) for name, log in self.logs.items()}
        self.ticks = {name: max(state.last_tick, state.reserved_tick) for name, state in states.items()}
        self.sequence = number * 1000
        self.checkpoints = 0

    def work(self, steps: int) -> None:
        for _ in range(steps):
            step = self.rng.choice((self._append, self._append, self._append, self._reserve, self._save, self._other))
            step()

    def _append(self) -> None:
        made, ends = [], dict(self.ticks)
        with self.directory.group():
            for _ in range(self.rng.choice((1, 1, 2, 5))):
                name = self.rng.choice(STREAMS)
                count = self.rng.choice((1, 3, 200))
                ticks = range(ends[name] + 2, ends[name] + 2 + count)
                text = f"{self.number} {self.sequence} " * self.rng.choice((1, 20))
                rows = Batch.events(ticks, [[text] * count, list(ticks)])
                self.logs[name].append(self.epoch, rows, "p", self.sequence)
                made.append((name, self.sequence, rows.rows()))
                ends[name] = ticks[-1]
                self.sequence += 1
            self.recording.told(("begun", [(name, sequence) for name, sequence, _ in made]))
        self.ticks = ends
        self.recording.told(("events", made))

    def _reserve(self) -> None:
        name = self.rng.choice(STREAMS)
        tick = self.ticks[name] + 50
        self.logs[name].reserve(self.epoch, tick)
        self.recording.told(("reserved", name, tick))

    def _save(self) -> None:
        self.checkpoints += 1
        place = (self.epoch, self.checkpoints)
        self.store.save("v", "d", *place, b"%d %d " % place * 300)
        self.recording.told(("checkpoint", place))
        if self.rng.random() < 0.5:
            self.store.note_acknowledged("v", "d", *place, self.checkpoints)

    def _other(self) -> None:
        if self.rng.random() < 0.5:
            self.directory._keeper.move()
            return
        name = self.rng.choice(STREAMS)
        tick = max(0, self.ticks[name] - 300)
        self.logs[name].trim(tick)
        self.recording.told(("trimmed", name, tick))


def check(folder: Path, ledger: Ledger) -> bool:
    """AssertionError if anything acknowledged is missing or wrong. Is more there than was acknowledged?"""
    directory = LogDirectory(folder / "log")
    try:
        epoch = directory.next_epoch()
        assert epoch > ledger.epoch, f"epoch {epoch} was given before"
        logs = {name: directory.stream(name, COLUMNS, producer_window=5) for name in STREAMS}
        known = {name: _check_stream(log, epoch, ledger) for name, log in logs.items()}
    finally:
        directory.close()
    _check_checkpoint(CheckpointStore(folder / "checkpoints"), ledger)
    there = [sequence in known[name] for name, sequence in ledger.begun]
    assert all(there) or not any(there), f"a part of a group is there: {ledger.begun}, {there}"
    beyond = {name: set(known[name]) - set(ledger.publishes[name]) for name in STREAMS}
    for name in STREAMS:
        ledger.publishes[name].update({sequence: known[name][sequence] for sequence in beyond[name]})
    return any(beyond.values())


def _check_stream(log: SqliteLog, epoch: int, ledger: Ledger) -> dict[int, list[int]]:
    """What it remembers of publishes: sequence number and ticks."""
    name = log.name
    state = log.open(epoch)
    assert state.reserved_tick >= ledger.reserved[name], f"{name}: a reservation is lost"
    assert state.trimmed_tick >= ledger.trimmed[name], f"{name}: trimmed events are back"
    _, rows, _ = log.read(Coverage.of((0, TICK_MAX)), 10**6)
    found = {row[0]: row for row in rows.rows()}
    expected = {tick: row for tick, row in ledger.events[name].items() if tick > state.trimmed_tick}
    missing = [tick for tick in expected if found.get(tick) != expected[tick]]
    assert not missing, f"{name}: events at {missing[:5]} are lost or wrong"
    known = {sequence: list(ticks) for _, sequence, ticks in state.publishes}
    for sequence in sorted(ledger.publishes[name])[-3:]:
        is_forgotten = len(known) == 5 and sequence < min(known)
        assert is_forgotten or known.get(sequence) == ledger.publishes[name][sequence], f"{name}: {sequence} forgotten"
    extra = {tick for sequence in set(known) - set(ledger.publishes[name]) for tick in known[sequence]}
    ghosts = set(found) - set(expected) - extra
    assert not ghosts, f"{name}: events at {sorted(map(str, ghosts))[:5]} come from nowhere"
    ledger.events[name].update({tick: found[tick] for tick in extra & set(found)})
    return known


def _check_checkpoint(store: CheckpointStore, ledger: Ledger) -> None:
    found = store.load("v", "d")
    if ledger.checkpoint != (0, 0):
        assert found.data is not None, "an acknowledged checkpoint is lost"
        epoch, number, *_ = map(int, found.data.split())
        assert (epoch, number) >= ledger.checkpoint, "an older checkpoint than the one that was saved"


def cut_once(folder: Path, ledger: Ledger, rng: Random, number: int) -> str:
    """Work in `folder` and lose the power; `folder` is then what is left. How far the work had come."""
    is_closed = rng.random() < 0.2
    with recorded(folder) as recording:
        begun = Round(folder, recording, rng, number)
        opening = len(recording.operations)
        begun.work(rng.randrange(1, 8))
        if is_closed:
            begun.directory.close()
    if not is_closed:
        begun.directory.close()
    moment = rng.randrange(opening if rng.random() < 0.2 else len(recording.operations) + 1)
    left = folder.with_name(f"{folder.name}.left")
    left.mkdir()
    for fact in recording.cut(moment, left, rng):
        ledger.note(fact)
    shutil.rmtree(folder)
    left.rename(folder)
    copy = folder.with_name(f"{folder.name}.copy")  # the next round must recover by itself
    shutil.copytree(folder, copy)
    has_more = check(copy, ledger)
    shutil.rmtree(copy)
    return ("opening" if moment <= opening else "working") + (", more there than acknowledged" if has_more else "")


def cut_unsynced(folder: Path, sync: Sync, rng: Random) -> bool:
    """One life of a log that does not wait for the disk, and its end. What is left must be readable, and what was there
    at some moment. Was anything acknowledged lost?"""
    ledger = Ledger()
    with recorded(folder) as recording:
        begun = Round(folder, recording, rng, 1, sync)
        begun.work(10)
    begun.directory.close()
    left = folder.with_name(f"{folder.name}.left")
    facts = recording.cut(rng.randrange(len(recording.operations) + 1), left, rng)
    for fact in facts:
        ledger.note(fact)
    directory = LogDirectory(left / "log")
    try:
        epoch = directory.next_epoch()
        assert epoch > ledger.epoch, "epochs are always synced"
        lost = False
        for name in STREAMS:
            log = directory.stream(name, COLUMNS, producer_window=5)
            log.open(epoch)
            found = log.read(Coverage.of((0, TICK_MAX)), 10**6)[1].rows()
            told = [row for tick, row in sorted(ledger.events[name].items()) if tick > log.open(epoch).trimmed_tick]
            shared = min(len(told), len(found))
            assert found[:shared] == told[:shared], f"{name}: not what was there at any moment"
            lost = lost or len(found) < len(told)
    finally:
        directory.close()
    return lost


def cuts(folder: Path, count: int, seed: int) -> tuple[Counter[str], int]:
    """How often power was lost when, and how many events were acknowledged; AssertionError if any was lost with it."""
    rng, ledger, moments, events = Random(seed), Ledger(), Counter[str](), 0
    place = folder / "disk"
    for number in range(1, count + 1):
        if number % LIVES == 1:  # a new disk
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            ledger, events = Ledger(), events + ledger.count()
        try:
            moments[cut_once(place, ledger, rng, number)] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}, cut {number}: {error}") from error
    return moments, events + ledger.count()


def main() -> None:
    count, seed = (int(text) for text in (*sys.argv[1:], *("1000", "1")[len(sys.argv) - 1 :]))
    began = time.monotonic()
    with quick_folder() as folder:
        moments, events = cuts(folder, count, seed)
    took_s = time.monotonic() - began
    print(f"{count} cuts, {dict(moments)}: {events} events acknowledged or found, none lost, {took_s:.0f} s")


if __name__ == "__main__":
    main()
