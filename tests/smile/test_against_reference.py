"""Goal: the rows of every view are those that the reference interpreter computes, on random programs and events.

Events are published in batches of random sizes, some before anybody asks for a view and some after. At the end, and in
the middle, the rows of every view must equal the reference over the same events with the ticks that they got; so must
the rows that a subscriber has put together from a snapshot and changes. A program whose evaluation fails as written
is left out, and so is one with windows, which do not run yet; most must remain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

import pytest

import smile
from mpl.check import check
from mpl.failures import EvaluationError
from mpl.source import Source
from mpl.typed import Schema
from runtime.embedded.tuning import EMBEDDED
from smile.values import decode
from tests.generator.program import generate
from tests.reference.data import python_stand_ins, random_events, random_tables
from tests.reference.relations import KeyBroken, Row, evaluate_program

PROGRAMS = 120
EVENTS = 24


@dataclass
class Told:
    """What a subscriber knows."""

    subscription: smile.Subscription
    rows: dict[tuple[object, ...], dict[str, object]] = field(default_factory=dict)

    def read(self) -> None:
        for change in self.subscription.ready():
            if change.kind == "gone":
                self.rows.pop(change.key, None)
            else:
                self.rows[change.key] = change.row


class Run:
    """One program with the events that were published so far, as the reference wants them."""

    def __init__(self, seed: int, text: str | None = None) -> None:
        self.rng = Random(f"run {seed}")
        text = generate(seed).text if text is None else text
        checked = check(Source("random.mpl", text)).require()
        self.python = python_stand_ins(checked.program)
        self.program = smile.compile(text, python=self.python)
        self.typed = checked.program
        self.tables = random_tables(self.typed, self.rng, 4)
        self.rules: set[str] = set()  # that refused an event
        self.events: dict[str, list[Row]] = {name: [] for name in self.typed.streams}
        self.system = smile.run(self.program, tables={name: self.as_rows(name) for name in self.tables})

    def as_rows(self, table: str) -> list[dict[str, object]]:
        columns = self.typed.tables[table].schema.columns
        return [
            {column.name: decode(value, column.type) for column, value in zip(columns, row, strict=True)}
            for row in self.tables[table]
        ]

    def publish(self, count: int) -> None:
        """Random events in random batches; those that a rule refuses are left out of the reference too."""
        for stream, rows in random_events(self.typed, self.rng, count).items():
            while rows:
                size = self.rng.choice((1, 1, 2, 5, 20))
                batch, rows = [row[:-1] for row in rows[:size]], rows[size:]
                self._publish(stream, batch, [self._given(stream, row) for row in batch])

    def _given(self, stream: str, row: Row) -> dict[str, object]:
        """As a user would publish it: now and then without what is the default anyway."""
        declared = self.typed.streams[stream]
        columns, defaults = declared.schema.columns[:-1], dict(declared.defaults)
        is_short = bool(defaults) and self.rng.random() < 0.8
        return {
            column.name: decode(value, column.type)
            for at, (column, value) in enumerate(zip(columns, row, strict=True))
            if not (is_short and at in defaults and value == defaults[at])
        }

    def _publish(self, stream: str, batch: list[Row], given: list[dict[str, object]]) -> None:
        try:
            ticks = tuple(self.system.publish_many(stream, given))
        except smile.PublishError:
            for row, one in zip(batch, given, strict=True):
                try:
                    tick = self.system.publish(stream, one)
                except smile.PublishError as refused:
                    self.rules.add(refused.rule.split(":")[0])
                else:
                    self.events[stream].append((*row, tick))
        else:
            self.events[stream] += [(*row, tick) for row, tick in zip(batch, ticks, strict=True)]

    def expected(self) -> dict[str, list[dict[str, object]]] | None:
        """The rows of every view by the reference; None if it has none."""
        try:
            found = evaluate_program(self.typed, self.events, self.tables, self.python)
        except (EvaluationError, KeyBroken):  # the second: the checker promised a key that does not hold
            return None
        return {
            view: [as_dict(self.typed.views[view].schema, row) for row in in_order(self.typed.views[view].schema, rows)]
            for view, rows in found.items()
            if view in self.program.plan.views
        }


def as_dict(schema: Schema, row: Row) -> dict[str, object]:
    return {
        column.name: decode(value, column.type)
        for column, value in zip(schema.columns, row, strict=True)
        if not column.hidden
    }


def in_order(schema: Schema, rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: [(row[position] is None, row[position]) for position in schema.key])


def shows_everything(run: Run, view: str) -> bool:
    """Not a subscription to what is new, or to what is final."""
    declared = run.typed.subscriptions.get(view)
    return declared is None or (declared.snapshot and declared.emit != "final")


def emit_of(run: Run, view: str) -> str | None:
    """Modes that show all rows: `emit final` alone would not. A subscription has the one that it declares."""
    if view in run.typed.subscriptions:
        return None
    return run.rng.choice(("changes", "bounds", "as of horizon"))


def runs(cases: int, counts: dict[str, int]) -> Iterator[tuple[int, Run]]:
    for seed in range(PROGRAMS * cases):
        try:
            run = Run(seed)
        except smile.MplError as refused:
            if "CMP0101" not in {found.code.name for found in refused.diagnostics}:
                raise
            counts["refused"] += 1
            continue
        counts["accepted"] += 1
        yield seed, run


def test_rows_are_those_of_the_reference(cases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Components check each other's messages here, which they need not do in one process.
    monkeypatch.setattr("runtime.embedded.engine.EMBEDDED", replace(EMBEDDED, trusts_peers=False))
    counts = {"refused": 0, "accepted": 0, "compared": 0, "rows": 0}
    for seed, run in runs(cases, counts):
        with run.system as system:
            run.publish(run.rng.choice((0, EVENTS)))
            told: dict[str, Told] = {}
            for _ in range(3):
                expected = run.expected()
                if expected is None:
                    break
                system.settle()
                assert all(map(system._engine.is_caught_up, system._engine.running.values())), f"seed {seed}"
                for view, rows in expected.items():
                    assert system.rows(view) == rows, f"seed {seed}: rows of {view}"
                    counts["rows"] += len(rows)
                    if not shows_everything(run, view):
                        continue
                    if view not in told:
                        told[view] = Told(system.subscribe(view, emit=emit_of(run, view)))
                    told[view].read()
                    listed = sorted(map(repr, told[view].rows.values()))
                    assert listed == sorted(map(repr, rows)), f"seed {seed}: {view} as told"
                counts["compared"] += 1
                run.publish(EVENTS)
    assert counts["accepted"] > PROGRAMS * cases * 0.9, "only windows are refused"
    assert counts["compared"] > PROGRAMS * cases * 2
    assert counts["rows"] > PROGRAMS * cases * 10
