"""Generated traffic: rows that fit a program's streams, published at a steady pace, and the ledger of what was taken.

For `smile run --demo`. The ledger is what the truth is recomputed from afterwards: it knows only acknowledgements.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import groupby
from random import Random
from time import monotonic
from typing import TYPE_CHECKING, Any

from mpl.types import BoolType, DecimalType, DurationType, EnumType, FloatType, TextType, TimeType

if TYPE_CHECKING:
    from mpl.typed import Column, Stream
    from smile.remote.system import RemoteSystem

Row = dict[str, object]
Source = Iterator[list[Row]]
"""Batches of rows for one stream, each published as one call."""

WORDS = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen")
KEYS_MAX = 12
SPREAD_MAX = 20
BATCH_ROWS = 5
PACE_S = 0.1


@dataclass
class Ledger:
    """Every acknowledged row with its tick, by stream. Written by the publishing threads."""

    rows: dict[str, list[tuple[int, Row]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, stream: str, ticks: Sequence[int], rows: list[Row]) -> None:
        with self._lock:
            self.rows.setdefault(stream, []).extend(zip(ticks, rows, strict=True))

    def note_failure(self, stream: str, error: Exception) -> None:
        with self._lock:
            self.failures.append(f"{stream}: {error}")

    def __len__(self) -> int:
        with self._lock:
            return sum(len(rows) for rows in self.rows.values())

    def in_order(self) -> Iterator[tuple[str, list[Row]]]:
        """All of it in the order of ticks, as runs of rows of one stream."""
        events = sorted(
            ((tick, stream, row) for stream, rows in self.rows.items() for tick, row in rows),
            key=lambda event: event[0],
        )
        for stream, run in groupby(events, key=lambda event: event[1]):
            yield stream, [row for _, _, row in run]

    def of(self, stream: str) -> list[Row]:
        """In the order of their ticks."""
        return [row for _, row in sorted(self.rows.get(stream, ()), key=lambda item: item[0])]


class Traffic:
    """One thread per stream, so that a broker that is down holds up its own streams only."""

    def __init__(
        self, system: RemoteSystem, sources: Mapping[str, Source], ledger: Ledger, pace_s: float = PACE_S
    ) -> None:
        self._system = system
        self._ledger = ledger
        self._pace_s = pace_s
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._publish, args=(stream, source), name=f"smile-traffic-{stream}", daemon=True)
            for stream, source in sources.items()
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float) -> bool:
        """Returns when what was begun is acknowledged; False if that takes too long."""
        self._stop.set()
        end = monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, end - monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _publish(self, stream: str, source: Source) -> None:
        from smile.errors import SmileError

        due = monotonic()
        for rows in source:
            if self._stop.wait(max(0.0, due - monotonic())):
                return
            try:
                if rows:  # an empty batch is a pause
                    self._ledger.note(stream, self._system.publish_many(stream, rows), rows)
            except SmileError as error:
                self._ledger.note_failure(stream, error)
                return
            # What was missed while a broker was down is not made up for at once.
            due = max(due + self._pace_s, monotonic())


def random_rows(stream: Stream, rng: Random) -> Source:
    """Rows of the declared types and ranges, with few enough keys that they meet in joins."""
    unique = {position for columns in stream.unique for position in columns}
    makers: list[tuple[str, Callable[[], object]]] = []
    for position, column in enumerate(stream.schema.columns):
        if column.is_tick:
            continue
        counted = position in unique
        is_time = position == stream.event_time
        makers.append((column.name, _now if is_time else _maker(column, rng, counted=counted)))
    while True:
        yield [{name: make() for name, make in makers} for _ in range(BATCH_ROWS)]


def _now() -> object:
    return datetime.now(UTC)


def _maker(column: Column, rng: Random, *, counted: bool) -> Callable[[], object]:
    """A function that makes values. `counted`: no value twice."""
    count = iter(range(1, 2**62))
    low, high = _range(column)
    match column.type:
        case BoolType():
            return lambda: rng.random() < 0.5
        case EnumType(values=values):
            return lambda: rng.choice(values)
        case TextType():
            return (lambda: f"x{next(count)}") if counted else (lambda: rng.choice(WORDS))
        case FloatType():
            return lambda: round(rng.uniform(low, high), 3)
        case DecimalType(scale=scale):
            return lambda: Decimal(next(count) if counted else rng.randint(low, high)).scaleb(-scale)
        case TimeType():
            return _now
        case DurationType():
            return lambda: timedelta(microseconds=rng.randint(low, high))
        case _:
            return (lambda: low + next(count)) if counted else (lambda: rng.randint(low, high))


def _range(column: Column) -> tuple[Any, Any]:
    """Few different values, from the lower end of what is declared."""
    low: Any = 1 if column.bounds.low is None else column.bounds.low
    high: Any = low + (KEYS_MAX if column.bounds.is_open else SPREAD_MAX)
    return (low, high) if column.bounds.high is None else (min(low, column.bounds.high), min(high, column.bounds.high))
