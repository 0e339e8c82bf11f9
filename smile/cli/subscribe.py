"""`smile subscribe`: a view as it changes, as a live table, as lines to read, or as lines for programs."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from smile.cli.cells import json_change, shown
from smile.cli.completing import views
from smile.cli.connecting import TIMEOUT_S, Address, KeysFile, Timeout, column_names, connected
from smile.cli.ended import Ended
from smile.cli.files import fail

if TYPE_CHECKING:
    from smile.remote.system import RemoteSystem
    from smile.subscription import Change, Subscription

MODES = ("table", "changelog", "jsonl")
LOOK_EVERY_S = 0.1
MARKS = {"snapshot": "=", "changed": "+", "gone": "-"}


def subscribe(
    view: Annotated[
        str,
        typer.Argument(metavar="VIEW", help="A view, stream, table or declared subscription.", autocompletion=views),
    ],
    mode: Annotated[
        str | None, typer.Option(help="table, changelog or jsonl; default: table on a terminal, else changelog.")
    ] = None,
    emit: Annotated[
        str | None, typer.Option(help="changes, bounds, final or 'as of horizon'; default: as declared, else changes.")
    ] = None,
    changes: Annotated[int | None, typer.Option("--changes", "-n", min=1, help="End after so many changes.")] = None,
    seconds: Annotated[float | None, typer.Option(min=0.0, help="End after so many seconds.")] = None,
    token: Annotated[
        Path | None,
        typer.Option("--token", metavar="FILE", help="Continue from this file if it is there; write it at the end."),
    ] = None,
    address: Address = None,
    keys: KeysFile = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --mode jsonl.")] = False,
) -> None:
    """Follow a view: its rows now, then every change, until Ctrl-C.

    What is shown is true when it is shown, also while brokers are down; it goes on by itself when they are back.

    In the table, cells that just changed are marked, and so are rows that can no longer change (final). In the
    changelog, = is a row that was there, + one that is new or changed, - one that is gone, ! after it: final.

    Example: smile subscribe Available --mode table

    Example: smile subscribe tickets --emit bounds --json --changes 100
    """
    from runtime.plan import Emit

    chosen = "jsonl" if as_json else mode or ("table" if sys.stdout.isatty() else "changelog")
    if chosen not in MODES:
        fail(f"unknown mode `{chosen}`: one of {', '.join(MODES)}")
    known_emits = [one.value for one in Emit]
    if emit is not None and emit not in known_emits:
        fail(f"unknown emit mode `{emit}`: one of {', '.join(known_emits)}")
    with connected(address, keys, timeout) as system:
        declared = system.program.checked.program
        known = (*declared.subscriptions, *declared.views, *declared.streams, *declared.tables)
        if view not in known:
            raise system.program.unknown("view, stream, table or subscription", view, known)
        subscription = system.subscribe(view, emit=emit, resume=None if token is None else _read(token))
        with subscription:
            with _told_to_end() as ended:
                told = _changes(subscription, changes, seconds, ended)
                if chosen == "table":
                    _show_table(system, subscription, told)
                else:
                    _print_lines(told, as_json=chosen == "jsonl")
            if token is not None:
                _write(token, subscription.token())


def _read(token: Path) -> bytes | None:
    try:
        return token.read_bytes()
    except FileNotFoundError:
        if not token.absolute().parent.is_dir():
            fail(f"cannot write {token}: there is no such folder")
        return None
    except OSError as error:
        fail(f"cannot read {token}: {error.strerror or error}")


def _write(token: Path, content: bytes) -> None:
    """In place of the one before, or not at all: that one is still good."""
    from runtime.files import write_durably

    try:
        write_durably(token, [content])
    except OSError as error:
        fail(f"cannot write {token}: {error.strerror or error}; the next one begins where this one began")


@contextmanager
def _told_to_end() -> Iterator[threading.Event]:
    """Set by Ctrl-C, the usual way to end it: a change is shown as a whole, or left to whoever continues from the
    token. A second Ctrl-C does not wait for a reader that has stopped reading."""
    ended = Ended()
    before = signal.getsignal(signal.SIGINT)

    def on_signal(*_: object) -> None:
        ended.set()
        signal.signal(signal.SIGINT, before)

    if before is not signal.SIG_IGN:  # as for what a shell runs in the background
        signal.signal(signal.SIGINT, on_signal)
    try:
        yield ended
    finally:
        signal.signal(signal.SIGINT, before)


def _changes(
    subscription: Subscription, limit: int | None, seconds: float | None, ended: threading.Event
) -> Iterator[Change | None]:
    """Changes as they come; None when there was nothing for a moment, so that a screen can be redrawn."""
    end = None if seconds is None else monotonic() + seconds
    count = 0
    while not ended.is_set() and (end is None or monotonic() < end):
        batch = subscription.wait(LOOK_EVERY_S)
        if batch is None:
            if subscription.closed:
                return
            yield None
            continue
        for change in subscription.each(batch):
            yield change
            count += 1
            if ended.is_set() or (limit is not None and count >= limit):
                return


def _print_lines(told: Iterator[Change | None], *, as_json: bool) -> None:
    for change in told:
        if change is not None:
            line = json.dumps(json_change(change)) if as_json else changelog_line(change)
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()


def changelog_line(change: Change) -> str:
    cells = []
    for name, value in change.row.items():
        text = f"{name}={shown(value)}"
        low, high = (change.bounds or {}).get(name, (value, value))
        if low != high:
            text += f" ({'' if low is None else shown(low)}..{'' if high is None else shown(high)})"
        cells.append(text)
    return f"{MARKS[change.kind]} {'  '.join(cells)}{'  !' if change.final else ''}"


def _show_table(system: RemoteSystem, subscription: Subscription, told: Iterator[Change | None]) -> None:
    from rich.console import Console
    from rich.live import Live

    from smile.cli.live_table import LiveTable

    table = LiveTable(f"{subscription.name} ({subscription.emit})", column_names(system, subscription.view))
    console = Console()
    with Live(console=console, auto_refresh=False, transient=False) as live:
        drawn_at = 0.0
        for change in told:
            if change is not None:
                table.apply(change)
            if monotonic() - drawn_at >= LOOK_EVERY_S:
                drawn_at = monotonic()
                live.update(table.draw(max(1, console.height - 6), caption=f"{table.changes} changes"), refresh=True)
        live.update(table.draw(max(1, console.height - 6), caption=f"{table.changes} changes"), refresh=True)
