"""How far Spark is, for people who wait: rows, rate and time left.

A thread asks Spark's status tracker how many tasks are done, while the caller waits for its job; the rows done are
estimated from that. On a terminal there is a bar, otherwise a line now and then, and nothing at all for whoever wants
to be quiet. Behind Spark Connect there is no tracker: then only the time is told.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress

LOOK_S = 0.25
LINE_S = 5.0
"""Seconds between two lines where there is no terminal."""

Tell = Callable[["Reached"], None]


@dataclass(frozen=True)
class Reached:
    """`rows` is None if nobody knows how many there are, `part` (0..1) if Spark does not say."""

    what: str
    rows: int | None
    part: float | None
    seconds: float

    def words(self) -> str:
        said = [f"{self.what}:"]
        if self.rows is not None and self.part is not None:
            done = round(self.rows * self.part)
            said.append(f"about {done:,} of {self.rows:,} rows, {done / max(self.seconds, 1e-3):,.0f} a second")
        elif self.rows is not None:
            said.append(f"{self.rows:,} rows")
        elif self.part is not None:
            said.append(f"{self.part:.0%}")
        said.append(f"after {self.seconds:.0f} s")
        if self.part is not None and self.part > 0:
            said.append(f"({self.seconds * (1 - self.part) / self.part:.0f} s left)")
        return " ".join(said)


@contextmanager
def watched(spark: Any, what: str, *, rows: int | None = None, quiet: bool = False) -> Iterator[None]:
    """Tell on standard error how the jobs go that the block starts; `rows` is how many they have to read."""
    if quiet:
        yield
        return
    from runtime.bulk.tasks import tasks_of

    with _telling() as tell:
        watch = _Watch(tasks_of(spark), what, rows, tell)
        watch.start()
        try:
            yield
        finally:
            watch.stop()


class _Watch:
    """The thread. Spark starts jobs as it goes, so the part that is done is of those known; it never goes back."""

    def __init__(self, tasks: Callable[[], tuple[int, int]] | None, what: str, rows: int | None, tell: Tell) -> None:
        self._tasks = tasks
        self._what = what
        self._rows = rows
        self._tell = tell
        self._part = 0.0
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="smile progress", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(LOOK_S):
            self._tell(self.reached())

    def reached(self) -> Reached:
        if self._tasks is not None:
            done, known = self._tasks()
            self._part = max(self._part, done / known if known else 0.0)
        part = None if self._tasks is None else self._part
        return Reached(self._what, self._rows, part, time.monotonic() - self._began)


@contextmanager
def _telling() -> Iterator[Tell]:
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines()
        return
    from rich.progress import BarColumn, Progress, TextColumn

    with Progress(BarColumn(), TextColumn("{task.description}"), console=console, transient=True) as bar:
        yield _bar(bar)


def _bar(bar: Progress) -> Tell:
    task = bar.add_task("", total=None)

    def tell(reached: Reached) -> None:
        total = None if not reached.part else 1.0
        bar.update(task, description=reached.words(), total=total, completed=reached.part or 0.0)

    return tell


class _Lines:
    """A line at most every few seconds: for logs of cron jobs and the like."""

    def __init__(self) -> None:
        self._next = LINE_S

    def __call__(self, reached: Reached) -> None:
        if reached.seconds >= self._next:
            self._next = reached.seconds + LINE_S
            print(reached.words(), file=sys.stderr, flush=True)
