"""`smile publish`: rows of a file or of standard input into a stream."""

from __future__ import annotations

import io
import json
import os
import queue
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from smile.cli.completing import streams
from smile.cli.connecting import Address, AsJson, KeysFile, Timeout, connected, exit_code_of
from smile.cli.exits import Exit
from smile.cli.files import STDIN, fail
from smile.cli.lines import FORMATS, Line, bounded, read_csv, read_json_lines

if TYPE_CHECKING:
    from concurrent.futures import Future

    from rich.progress import Progress, TaskID

    from smile.errors import PublishError
    from smile.remote.system import RemoteSystem

BATCH_ROWS = 1_000
UNDER_WAY_MAX = 16
"""Batches that are sent and not yet acknowledged."""

READ_AHEAD_LINES = 2_000
COMPLAINTS_MAX = 100
"""Bad lines that are printed one by one; the rest is counted."""


def publish(
    stream: Annotated[
        str, typer.Argument(metavar="STREAM", help="A stream of the program that runs.", autocompletion=streams)
    ],
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="JSON lines or CSV; - or nothing: standard input.")
    ] = STDIN,
    form: Annotated[
        str | None, typer.Option("--format", help="jsonl or csv; default: by the file's name, else jsonl.")
    ] = None,
    address: Address = None,
    keys: KeysFile = None,
    timeout: Timeout = 60.0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only complaints.")] = False,
    as_json: AsJson = False,
) -> None:
    """Publish rows: one JSON object per line, or CSV whose first line names the columns.

    A line that cannot be published is reported with its number and the reason; all others go in, in order. What was
    acknowledged is on disk at a broker. Exit code 3 if lines were refused.

    Example: smile publish Sellers sellers.csv

    Example: python generate.py BuyersWest | smile publish BuyersWest
    """
    from smile.errors import SmileError

    chosen = form or ("csv" if file.lower().endswith(".csv") else "jsonl")
    if chosen not in FORMATS:
        fail(f"unknown format `{chosen}`: one of {', '.join(FORMATS)}")
    with ExitStack() as stack:
        text = stack.enter_context(_opened(file))
        system = stack.enter_context(connected(address, keys, timeout))
        declared = system.program.checked.program.streams
        if stream not in declared:
            raise system.program.unknown("stream", stream, declared)
        columns = {column.name: column for column in declared[stream].schema.columns}
        lines = (read_csv if chosen == "csv" else read_json_lines)(bounded(text), columns)
        progress = stack.enter_context(_Shown(stream, text, hidden=quiet or as_json))
        publisher = Publisher(system, stream, progress)
        try:
            publisher.publish(lines)
        except SmileError as error:
            publisher.break_off()
            if as_json:
                _report(stream, publisher, as_json=as_json, quiet=quiet)
            fail(f"{error}\n       {_how_to_go_on(stream, publisher, chosen)}", exit_code_of(error))
    _report(stream, publisher, as_json=as_json, quiet=quiet)
    if publisher.refused:
        raise typer.Exit(Exit.PARTIAL)


@contextmanager
def _opened(file: str) -> Iterator[TextIO]:
    """Text above the bare file: a thread that waits in a buffered read holds its lock, and neither closing the file nor
    the end of the process would get past it."""
    bare: Any
    if file == STDIN:
        if sys.stdin is None:
            fail("standard input is closed; name a file")
        bare = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
    else:
        try:
            bare = io.FileIO(file)
        except OSError as error:
            fail(f"cannot read {file}: {error.strerror or error}")
    text = io.TextIOWrapper(bare, encoding="utf-8-sig", errors="surrogateescape", newline="")
    try:
        yield text
    finally:
        if file != STDIN:
            text.close()


class Publisher:
    """Sends lines in batches, several at once, and finds the bad ones of a batch that is refused."""

    def __init__(self, system: RemoteSystem, stream: str, progress: _Shown) -> None:
        self.published = 0
        self.refused = 0
        self.complaints: list[dict[str, Any]] = []
        self.first_open: int | None = None
        """After breaking off: all good lines before this one are in."""
        self.last_uncertain: int | None = None
        """After breaking off: from the first open line to this one nobody knows; None if nothing of them was sent."""
        self._unsaid: list[tuple[int, str]] = []  # a heap: complaints are made in the order of lines
        self._says_no_more = False
        self._system = system
        self._stream = stream
        self._progress = progress
        self._under_way: deque[tuple[list[Line], Future[Any]]] = deque()
        declared = system.program.checked.program.streams[stream]
        # Rules about earlier events are judged by the broker, in the order in which it gets them: one batch at a time,
        # so that the good lines of a refused batch are not overtaken.
        self._window = 1 if declared.unique or declared.event_time is not None else UNDER_WAY_MAX

    def publish(self, lines: Iterator[Line]) -> None:
        for batch in _batches(lines):
            rows = []
            for line in batch:
                if line.row is None:
                    self._refuse(line.number, line.reason)
                else:
                    rows.append(line)
            self._send(rows)
            self._complain()
            self._progress.show(self.published, self.refused)
        while self._under_way:
            self._await_oldest()
            self._complain()
        self._progress.show(self.published, self.refused)

    def _send(self, lines: list[Line]) -> None:
        """Without waiting for the answer, unless many are under way. Values are checked before anything leaves."""
        from smile.errors import PublishError

        if not lines:
            return
        while len(self._under_way) >= self._window:
            self._await_oldest()
        try:
            future = self._system.publish_many_nowait(self._stream, [line.row for line in lines])
        except PublishError as error:
            self._divide(lines, error)
        else:
            self._under_way.append((lines, future))

    def _await_oldest(self) -> None:
        from smile.errors import PublishError

        lines, future = self._under_way[0]
        try:
            self._system.outcome(future)
        except PublishError as error:
            self._under_way.popleft()
            self._divide(lines, error)
        else:
            self._under_way.popleft()
            self.published += len(lines)

    def break_off(self) -> None:
        """Find out what became of the lines under way, as far as that is known."""
        from smile.errors import PublishUncertain

        is_open: list[list[Line]] = []
        uncertain: list[int] = []
        for lines, future in self._under_way:
            error = future.exception() if not future.cancel() and future.done() else None
            if future.done() and not future.cancelled() and error is None:
                self.published += len(lines)
                continue
            is_open.append(lines)
            if not future.done() or isinstance(error, PublishUncertain):
                uncertain.append(lines[-1].number)
        self._under_way.clear()
        self.first_open = min((lines[0].number for lines in is_open), default=None)
        self.last_uncertain = max(uncertain, default=None)
        self._complain()

    def _divide(self, lines: list[Line], error: PublishError) -> None:
        """All in or all out: halves of a refused batch are tried until the bad lines stand alone."""
        if len(lines) == 1:
            self._refuse(lines[0].number, "; ".join(str(replace(problem, row=None)) for problem in error.problems))
            return
        middle = len(lines) // 2
        for half in (lines[:middle], lines[middle:]):
            self._send(half)

    def _refuse(self, number: int, reason: str) -> None:
        self.refused += 1
        heappush(self._unsaid, (number, reason))

    def _complain(self) -> None:
        """Of all lines that no line under way comes before."""
        first_open = min((lines[0].number for lines, _ in self._under_way), default=inf)
        while self._unsaid and self._unsaid[0][0] < first_open:
            number, reason = heappop(self._unsaid)
            if len(self.complaints) < COMPLAINTS_MAX:
                self.complaints.append({"line": number, "reason": reason})
                self._progress.complain(f"line {number}: {reason}")
            elif not self._says_no_more:
                self._says_no_more = True
                self._progress.complain("further bad lines are only counted")


def _batches(lines: Iterator[Line]) -> Iterator[list[Line]]:
    """What is there is sent, full batch or not: a slow pipe is not waited for. Reading happens in a thread."""
    waiting: queue.Queue[Line | BaseException | None] = queue.Queue(READ_AHEAD_LINES)

    def read() -> None:
        try:
            for line in lines:
                waiting.put(line)
            waiting.put(None)
        except Exception as error:  # noqa: BLE001  # raised again by the reader of the queue
            waiting.put(error)

    threading.Thread(target=read, name="smile-reader", daemon=True).start()
    while True:
        batch: list[Line] = []
        found = waiting.get()
        while isinstance(found, Line):
            batch.append(found)
            if len(batch) >= BATCH_ROWS:
                break
            try:
                found = waiting.get_nowait()
            except queue.Empty:
                break
        if batch:
            yield batch
        if isinstance(found, BaseException):
            raise found
        if found is None:
            return


class _Shown:
    """Progress on standard error: a bar with a terminal, nothing without one; complaints always."""

    def __init__(self, stream: str, text: TextIO, *, hidden: bool) -> None:
        self._stream = stream
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._hidden = hidden or not sys.stderr.isatty()
        self._buffer: Any = getattr(text, "buffer", None)

    def __enter__(self) -> _Shown:
        if not self._hidden:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TaskProgressColumn(),
                TextColumn("{task.fields[told]}"),
                TimeElapsedColumn(),
            )
            self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._progress.add_task(self._stream, total=self._size(), told="")
            self._progress.start()
        return self

    def _size(self) -> int | None:
        try:
            return os.fstat(self._buffer.fileno()).st_size or None
        except (OSError, AttributeError, ValueError):
            return None

    def show(self, published: int, refused: int) -> None:
        if self._progress is None or self._task is None:
            return
        told = f"{published:,} published" + (f", {refused:,} refused" if refused else "")
        at = self._buffer.tell() if self._size() is not None else None
        self._progress.update(self._task, completed=at, told=told)

    def complain(self, text: str) -> None:
        if self._progress is not None:
            self._progress.console.print(text, markup=False, highlight=False)
        else:
            typer.echo(text, err=True)

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()


def _how_to_go_on(stream: str, done: Publisher, form: str) -> str:
    if done.first_open is None:
        return f"{done.published} rows are in, all that were sent; go on with the lines after them"
    keep = " (and keep the first line, which names the columns)" if form == "csv" else ""
    told = f"{done.published} rows are in, with all good lines before line {done.first_open}"
    if done.last_uncertain is None:
        return f"{told}; nothing of later ones was sent: go on with that line{keep}"
    return (
        f"{told}; lines {done.first_open} to {done.last_uncertain} may be in or not, later ones were not sent: see "
        f"which is the last that is there (`smile query {stream}`), and go on with the line after it{keep}"
    )


def _report(stream: str, done: Publisher, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        told = {
            "stream": stream,
            "published": done.published,
            "refused": done.refused,
            "complaints": done.complaints,
            "first_open_line": done.first_open,
            "last_uncertain_line": done.last_uncertain,
        }
        typer.echo(json.dumps(told, indent=2))
    elif not quiet:
        refused = f", {done.refused} line{'' if done.refused == 1 else 's'} refused" if done.refused else ""
        typer.echo(f"{stream}: {done.published} published{refused}")
