"""The demonstration: a program on local brokers with traffic, a broker killed with -9, and a verdict.

Used by `smile run --demo` for any program and by the ticket example for `make demo`. The verdict compares what the
subscriber holds in the end with the truth recomputed from the ledger of acknowledged publishes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from smile.cli.live_table import LiveTable
from smile.cli.traffic import Ledger, Source, Traffic

if TYPE_CHECKING:
    from smile.local import LocalBrokers
    from smile.program import Program
    from smile.remote.subscription import RemoteSubscription
    from smile.subscription import Change

Row = dict[str, object]
Truth = Callable[[Ledger], dict[str, list[Row]]]
"""The rows that views must have, the shown one among them, from what was acknowledged."""

Judge = Callable[["Change"], str | None]
"""Looks at every change that is shown; says what is false about it."""

FRAME_S = 1.0
REDRAW_S = 0.1
NOTES_SHOWN = 6
PLAIN_ROWS = 8


@dataclass(frozen=True)
class Script:
    """What is shown and what happens when, in seconds of traffic. `settle_s`: how long catching up may take."""

    view: str
    sources: Mapping[str, Source]
    truth: Truth
    victim: str | None = None  # a broker; None: the one that has the view
    judge: Judge = field(default=lambda change: None)  # noqa: ARG005
    kill_after_s: float = 5.0
    traffic_s: float = 14.0
    settle_s: float = 30.0


@dataclass(frozen=True)
class Verdict:
    published: int
    kills: int
    shown: int
    rows: int
    views: int
    problems: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        told = (
            f"{self.published} events published, {self.kills} broker killed with -9, {self.shown} changes shown, "
            f"view of {self.rows} rows "
        )
        others = f" (and {self.views - 1} other views too)" if self.views > 1 else ""
        return told + (
            f"equal to the recomputed truth{others}" if self.is_good else f"WRONG: {'; '.join(self.problems)}"
        )


class Demo:
    """One showing. `changed` is what the brokers' supervisor calls."""

    def __init__(self, script: Script, console: Console | None = None) -> None:
        self.script = script
        self.ledger = Ledger()
        self.console = console or Console()
        self.is_plain = not self.console.is_terminal
        self._began = monotonic()
        self._notes: list[str] = []
        self._problems: list[str] = []
        self._kills = 0
        self._drawn_at = 0.0
        self._live: Live | None = None

    def changed(self, name: str, state: str) -> None:
        words = {"down": "is down", "serving": "serves", "starting": "is starting", "failed": "was given up"}
        if self._kills:
            self.note(f"{name} {words.get(state, state)}")

    def note(self, text: str) -> None:
        line = f"{monotonic() - self._began:5.1f} s  {text}"
        self._notes.append(line)
        if self.is_plain:
            self.console.print(line, markup=False, highlight=False)

    def run(self, brokers: LocalBrokers) -> Verdict:
        """Brokers serve already."""
        from smile.remote.connect import connect

        script = self.script
        with ExitStack() as stack:
            system = stack.enter_context(connect(brokers.address, timeout=script.traffic_s + script.settle_s))
            subscription = system.subscribe(script.view)
            stack.callback(subscription.close)
            table = LiveTable(f"{script.view}, as a subscriber sees it", _names(system.program, subscription.view))
            traffic = Traffic(system, script.sources, self.ledger)
            if not self.is_plain:
                self._live = stack.enter_context(Live(console=self.console, auto_refresh=False))
            victim = script.victim or brokers.deployment.placement[system.program.relation(subscription.view).component]
            traffic.start()
            started = monotonic()
            while (elapsed := monotonic() - started) < script.traffic_s:
                if elapsed >= script.kill_after_s and not self._kills:
                    self._kills += 1
                    brokers.kill(victim)
                    self.note(f"{victim} was killed with -9; what is shown stays true")
                self._show(subscription, table)
            end = monotonic() + script.settle_s
            if not traffic.stop(script.settle_s):
                self._problems.append("publishers are still waiting for an acknowledgement")
            self.note("publishers have paused; the view catches up")
            truth = script.truth(self.ledger)
            shown = truth[subscription.view]
            while not _same(table.rows, shown) and monotonic() < end:
                self._show(subscription, table)
            self._draw(table)
            held = {view: table.rows if view == subscription.view else system.rows(view) for view in truth}
        self._problems += self.ledger.failures
        self._problems += [
            f"{view}: {_difference(held[view], truth[view])}" for view in truth if not _same(held[view], truth[view])
        ]
        return Verdict(len(self.ledger), self._kills, table.changes, len(shown), len(truth), tuple(self._problems))

    def _show(self, subscription: RemoteSubscription, table: LiveTable) -> None:
        batch = subscription.wait(REDRAW_S)
        for change in batch.changes() if batch is not None else ():
            wrong = self.script.judge(change)
            if wrong is not None and len(self._problems) < NOTES_SHOWN:
                self._problems.append(wrong)
            if not table.changes:
                self.note("the first live row")
            table.apply(change)
        if monotonic() - self._drawn_at >= (FRAME_S if self.is_plain else REDRAW_S):
            self._draw(table)

    def _draw(self, table: LiveTable) -> None:
        self._drawn_at = monotonic()
        caption = f"{len(self.ledger)} events acknowledged, {table.changes} changes shown"
        if self._live is not None:
            drawn = table.draw(max(3, self.console.height - NOTES_SHOWN - 8), caption=caption)
            notes = Text("\n".join(self._notes[-NOTES_SHOWN:]))
            self._live.update(Group(drawn, notes), refresh=True)
        else:
            self.note(caption)
            self.console.print(table.draw(PLAIN_ROWS, plain=True))


def _names(program: Program, view: str) -> tuple[str, ...]:
    from smile.views import ViewReader

    return ViewReader(program.relation(view)).names


def _same(rows: list[Row], truth: list[Row]) -> bool:
    return len(rows) == len(truth) and sorted(map(repr, rows)) == sorted(map(repr, truth))


def _difference(rows: list[Row], truth: list[Row]) -> str:
    shown, true = set(map(repr, rows)), set(map(repr, truth))
    odd = next(iter(sorted(shown - true)), None)
    lacking = next(iter(sorted(true - shown)), None)
    return f"shown but not true: {odd}; true but not shown: {lacking}"


def recomputed(program: Program) -> Truth:
    """The truth about a program: everything in the ledger, in the order of its ticks, once more in one process."""

    def truth(ledger: Ledger) -> dict[str, list[Row]]:
        from smile.system import run

        with run(program) as system:
            for stream, rows in ledger.in_order():
                system.publish_many(stream, rows)
            return {view: system.rows(view) for view in comparable_views(program)}

    return truth


def comparable_views(program: Program) -> list[str]:
    """Those that do not show ticks, which are others in another run."""
    views = program.plan.views.items()
    return [
        name for name, view in views if not any(column.is_tick and not column.hidden for column in view.schema.columns)
    ]


def report(verdict: Verdict) -> None:
    """One line, whatever was shown before."""
    sys.stdout.write(f"verdict: {verdict}\n")
    sys.stdout.flush()
