"""A small log, its files as bytes, and a judge: is an answer from damaged files right, a clear stop, or wrong?

    python -m tests.log.damage --every 50    every 50th length of each file, every 50th byte with a flipped bit: minutes
    python -m tests.log.damage               all of them: hours

The tests take slices of the same. What a log answers is compared as a whole: positions, publishes, every event.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from runtime.batch import Batch
from runtime.columns import numbers
from runtime.log.database import FILE_NAME, WAL_NAME
from runtime.log.sqlite import LogDirectory
from runtime.log.stream_log import LogCorrupt
from runtime.protocol.coverage import TICK_MAX, Coverage

WORDS = [("name", "text null"), ("n", "int")]
NUMBERS = [("a", "int"), ("b", "float")]
Files = dict[str, bytes]
Answer = object
PROGRESS_EVERY_S = 1.0


@contextmanager
def quick_folder() -> Iterator[Path]:
    """A folder in memory, where there is one: what is tested here does not depend on a real disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def words(first: int, count: int) -> Batch:
    ticks = range(first, first + 3 * count, 3)
    return Batch.events(ticks, [[None if tick % 2 else f"name {tick}" for tick in ticks], list(ticks)])


def floats(first: int, count: int) -> Batch:
    ticks = range(first, first + 2 * count, 2)
    return Batch.events(ticks, [numbers(np.arange(count)), numbers(np.arange(count) / 3)])


def fill(folder: Path) -> LogDirectory:
    """Two streams, three producers, a reservation, trimmed events; some in the database, some in its log only."""
    directory = LogDirectory(folder)
    log, other = streams(directory)
    epoch = directory.next_epoch()
    log.open(epoch)
    other.open(epoch)
    for at in range(6):
        with directory.group():
            log.append(epoch, words(100 * at, 2), "p", at)
            log.append(epoch, words(100 * at + 50, 1 + at), "q", 10 * at)
            other.append(epoch, floats(1000 * at, 90), "r", at)
        if at == 3:
            other.trim(1500)
            directory.idle()
            directory._keeper.move()
    log.reserve(epoch, 700)
    return directory


def streams(directory: LogDirectory):  # type: ignore[no-untyped-def]
    return directory.stream("Words", WORDS, producer_window=4), directory.stream("Numbers", NUMBERS, "late 3")


def answer(folder: Path) -> Answer:
    """All that a log knows, also after it has gone on writing."""
    before = files_of(folder)
    try:
        directory = LogDirectory(folder, "never")
    except LogCorrupt:
        after = files_of(folder)
        assert {name: after[name] for name in before} == before, "whoever finds damage leaves all of it to a repair"
        raise
    try:
        told: list[object] = []
        epoch = directory.next_epoch()
        for log, make in zip(streams(directory), (words, floats), strict=True):
            for _ in range(2):
                state = log.open(epoch)
                known = [(producer, number, list(ticks)) for producer, number, ticks in state.publishes]
                cover, rows, trimmed = log.read(Coverage.of((0, TICK_MAX)), 10**6)
                told.append((epoch, state.last_tick, state.reserved_tick, state.trimmed_tick, known))
                told.append((list(cover), list(trimmed), rows.rows()))
                log.append(epoch, make(10_000 * epoch, 70), "new", epoch)
                epoch = directory.next_epoch()
        return told
    finally:
        directory.close()


def files_of(folder: Path) -> Files:
    """As a crash of the process would leave them; the index in shared memory is made anew and does not count."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")}


def put(folder: Path, files: Files) -> None:
    """These files and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)


@dataclass
class Judge:
    """`folder` is overwritten with every case."""

    folder: Path
    files: Files
    expected: Answer

    def verdict(self, changed: Files) -> str:
        """ "right" or "stopped"; AssertionError if the answer is wrong or the error not the right one."""
        put(self.folder, {**self.files, **changed})
        stop, found = "", None
        try:
            found = answer(self.folder)
        except LogCorrupt as error:
            stop = str(error)
        if stop:
            assert str(self.folder) in stop, stop
            assert "smile repair" in stop, stop
            return "stopped"
        assert found == self.expected, f"another answer, and no error: {first_difference(found, self.expected)}"
        return "right"


def first_difference(found: object, expected: object) -> str:
    assert isinstance(found, list)
    assert isinstance(expected, list)
    return next(
        (f"{str(a)[:300]} is not {str(b)[:300]}" for a, b in zip(found, expected, strict=False) if a != b), "lengths"
    )


def judge(folder: Path) -> Judge:
    """Makes the log, copies its files while it is open, as after a crash, and asks it once undamaged."""
    directory = fill(folder / "made")
    files = files_of(folder / "made")
    directory.close()
    made = Judge(folder / "case", files, None)
    put(made.folder, files)
    made.expected = answer(folder / "case")
    return made


def truncations(files: Files, step: int = 1) -> Iterator[tuple[str, Files]]:
    for name, length in lengths(files, step):
        yield f"{name} truncated to {length}", {name: files[name][:length]}


def lengths(files: Files, step: int) -> Iterator[tuple[str, int]]:
    """Every `step`-th length of each file, and those around the ends of pages."""
    for name, data in files.items():
        for length in range(len(data)):
            if length % step == 0 or (length % 4096 in (4095, 0, 1) or (length - 32) % 4120 in (4119, 0, 1, 24)):
                yield name, length


def flips(files: Files, places: Iterator[tuple[str, int]]) -> Iterator[tuple[str, Files]]:
    for name, at in places:
        data = bytearray(files[name])
        data[at // 8] ^= 1 << at % 8
        yield f"{name} byte {at // 8} bit {at % 8}", {name: bytes(data)}


def random_places(files: Files, rng: Random, count: int) -> Iterator[tuple[str, int]]:
    """Half of them in bytes that are not zero: the others are mostly free space."""
    names = [name for name in (FILE_NAME, WAL_NAME, "acknowledged") if files.get(name)]
    used = {name: [at for at, byte in enumerate(files[name]) if byte] for name in names}
    for _ in range(count):
        name = rng.choice(names)
        at = rng.choice(used[name]) if rng.random() < 0.5 else rng.randrange(len(files[name]))
        yield name, 8 * at + rng.randrange(8)


def every_byte(files: Files, rng: Random, step: int) -> Iterator[tuple[str, int]]:
    """One of its bits, of every `step`-th byte."""
    for name, data in files.items():
        for at in range(rng.randrange(step), len(data), step):
            yield name, 8 * at + rng.randrange(8)


def run(made: Judge, cases: Iterator[tuple[str, Files]], told: Callable[[int], object] | None = None) -> Counter[str]:
    """`told` hears how many are done."""
    verdicts: Counter[str] = Counter()
    for number, (place, changed) in enumerate(cases, 1):
        try:
            verdicts[made.verdict(changed)] += 1
        except Exception as error:
            raise AssertionError(f"{place}: {error!r}") from error
        if told is not None:
            told(number)
    return verdicts


class Progress:
    """A line that is written over, to whoever looks on; what was found goes to the output."""

    def __init__(self, what: str, count: int) -> None:
        self._what, self._count = what, count
        self.began = self._next = time.monotonic()

    def __call__(self, done: int) -> None:
        now = time.monotonic()
        if now >= self._next or done == self._count:
            self._next = now + PROGRESS_EVERY_S
            left_s = (now - self.began) / done * (self._count - done)
            end = "\n" if done == self._count else ""
            print(
                f"\r{self._what}: {done:,} of {self._count:,}, {left_s:.0f} s left   ",
                end=end,
                file=sys.stderr,
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.log.damage", description=__doc__.partition("\n")[0])
    parser.add_argument("seed", type=int, nargs="?", default=1, help="which bit of each byte is flipped")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every N-th length, and every N-th byte")
    options = parser.parse_args()
    with quick_folder() as folder:
        made = judge(folder)
        places = list(every_byte(made.files, Random(options.seed), options.every))
        for what, count, cases in (
            ("truncations", len(list(lengths(made.files, options.every))), truncations(made.files, options.every)),
            ("flipped bits", len(places), flips(made.files, iter(places))),
        ):
            progress = Progress(what, count)
            verdicts = run(made, cases, progress)
            took_s = time.monotonic() - progress.began
            print(f"{what}: {sum(verdicts.values()):,}, {dict(verdicts)}, none wrong, {took_s:.0f} s")


if __name__ == "__main__":
    main()
