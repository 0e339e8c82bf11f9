"""A live view at one moment, as `verify` compares it: rows, what is claimed about each, and the ticks they include.

Taken from whatever can be inspected: a system in this process or one behind a connection. No consistent cut is waited
for: the rows are the view of exactly the covered ticks (invariant I1), gaps or not, so they can be checked as they are.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from runtime.columns import Numbers
from runtime.protocol.coverage import Coverage
from smile.bulk.differences import Values
from smile.bulk.sources import Sources
from smile.errors import SmileError
from smile.reading import Inspected, Reading
from smile.views import ViewReader

AGREE_S = 30.0
LOOK_S = 0.02


@dataclass(frozen=True)
class Live:
    """Canonical values. `ticks` says for each stream which of its ticks are included; `low` and `high` are the bounds
    as of `horizon`, row by row; `settled` rows are claimed to be exact then, `final` ones to stay as they are."""

    view: str
    rows: Sequence[Values]
    settled: Sequence[bool]
    final: Sequence[bool]
    low: Sequence[Values]
    high: Sequence[Values]
    horizon: int
    ticks: Mapping[str, Coverage]
    failure: str | None

    def includes_all_up_to(self, tick: int, latest: Mapping[str, int]) -> bool:
        """Are the events that are included those up to this tick, no more and no less? `latest` ends each stream."""
        return all(
            self.ticks[stream].intersection(Coverage.prefix(end)) == Coverage.prefix(min(tick, end))
            for stream, end in latest.items()
        )


def take(system: Reading, view: str, sources: Sources, wait_s: float = AGREE_S) -> Live:
    """The view as it is now. Waits while paths from one stream to it differ in which events they have brought."""
    reader = ViewReader(system.program.relation(view))
    streams = system.program.checked.program.streams
    end = time.monotonic() + wait_s
    while True:
        found = system.inspect(view)
        latest = sources.latest([name for name in dict.fromkeys(found.lineages) if name in streams])
        ticks = {stream: _agreed(found, stream, tick) for stream, tick in latest.items()}
        agreed = {stream: coverage for stream, coverage in ticks.items() if coverage is not None}
        if len(agreed) == len(ticks):
            return _live(view, found, reader, agreed)
        if time.monotonic() >= end:
            names = ", ".join(stream for stream, coverage in ticks.items() if coverage is None)
            raise SmileError(
                f"view `{view}` reads {names} along several paths, which did not agree for {wait_s:g} s;"
                " verify it when less is published, or see `smile status`"
            )
        time.sleep(LOOK_S)


def _agreed(found: Inspected, stream: str, latest: int) -> Coverage | None:
    """What all paths have; None if some have events that others lack. Beyond the latest event there is only silence."""
    paths = [part for name, part in zip(found.lineages, found.told.token.coverage, strict=True) if name == stream]
    common, some = paths[0], paths[0]
    for part in paths[1:]:
        common, some = common.intersection(part), some.union(part)
    return None if some.difference(common).intersection(Coverage.prefix(latest)) else common


def _live(view: str, found: Inspected, reader: ViewReader, ticks: Mapping[str, Coverage]) -> Live:
    told = found.told
    columns = [_plain(column) for column in reader.canonical(told.rows)]
    rows = list(zip(*columns, strict=True)) if columns else [()] * len(told.rows)
    settled = [max(int(tick), found.in_floor) <= told.horizon for tick in told.rows.max_ticks]
    low, high = _bounds(found, reader)
    failure = None if found.failure is None else str(found.failure)
    return Live(view, rows, settled, told.final, low, high, told.horizon, ticks, failure)


def _bounds(found: Inspected, reader: ViewReader) -> tuple[Sequence[Values], Sequence[Values]]:
    told = found.told
    if told.low is None or told.high is None or not reader.columns:
        nothing: Sequence[Values] = [(None,) * len(reader.columns)] * len(told.rows)
        return nothing, nothing
    lows, highs = zip(*reader.bounds(told.rows, told.low, told.high), strict=True)
    return list(zip(*lows, strict=True)), list(zip(*highs, strict=True))


def _plain(column: Sequence[object]) -> list[object]:
    return np.asarray(column).tolist() if isinstance(column, Numbers) else list(column)
