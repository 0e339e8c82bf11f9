"""Moments of the past: as people say them, and whether every event up to one of them can still be read.

A view as of a tick needs all events of its streams up to then. What a log has trimmed must be in the archive; what was
lost in a repair is nowhere, and is left out only for whoever says that this is accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mpl.functions.time_text import moment_of
from runtime.log.reader import LoggedStream
from runtime.protocol.coverage import NO_TICK, TICK_MAX, Coverage
from smile.bulk.sources import Sources, reading
from smile.errors import SmileError

TICKS_PER_US = 1024

LOSS_COMPUTED = "--accept-loss computes without them"
"""What helps whoever asks once."""

LOSS_ACCEPTED = "`smile repair DIR --accept-loss` makes them ticks without events, `smile archive` then closes the gap"
"""What helps where a state is computed that goes on: there nobody could say later that events are missing in it."""


def said(tick: int) -> str:
    """A tick with the moment that it stands for."""
    try:
        moment = moment_of(tick // TICKS_PER_US)
    except OverflowError:
        return f"tick {tick}"
    return f"tick {tick} ({moment.replace(tzinfo=None).isoformat(sep=' ')} UTC)"


@dataclass(frozen=True)
class Held:
    """What there is of one stream: an archive up to `archived_tick` with `gaps`, and a log with what is above it."""

    stream: str
    archived_tick: int
    gaps: Coverage
    archived_events: int
    folder: Path | None
    log: LoggedStream | None

    def lost(self, wanted: Coverage) -> Coverage:
        """Ticks that a repair could not save."""
        lost = self.gaps.copy()
        if self.log is not None:
            for first, last in self.log.lost:
                if last > self.archived_tick:
                    lost.add(max(first, self.archived_tick + 1), last)
        return lost.intersection(wanted)

    def beyond(self, wanted: Coverage) -> Coverage:
        """Wanted ticks that the archive does not have."""
        return wanted.difference(Coverage.prefix(self.archived_tick))

    def absent(self, wanted: Coverage) -> Coverage:
        """Wanted ticks of which nobody knows: the log has trimmed them, or there is none, and the archive never had
        them."""
        above = self.beyond(wanted)
        return above if self.log is None else above.intersection(Coverage.prefix(self.log.trimmed_tick))


def held(sources: Sources, stream: str) -> Held:
    """Raises SmileError if the stream is nowhere, or if archive and log have different ones of this name."""
    archived_tick, gaps, events = -1, Coverage.empty(), 0
    archived = sources.archived().get(stream)
    if archived is not None:
        archived_tick, gaps, events = archived.horizon, Coverage.of(*archived.gaps), archived.rows
    for folder in sources.folders:
        with reading(folder) as reader:
            log = reader.streams().get(stream)
            if log is not None and archived is not None and not archived.is_of(reader, log):
                raise SmileError(
                    f"the archive {sources.archive} is not of the log in {folder}, which does not have the event of"
                    f" stream `{stream}` that the archive has at {said(archived.horizon)}; name another one with"
                    " --archive (a new folder for none)"
                )
        if log is not None:
            return Held(stream, archived_tick, gaps, events, folder, log)
    if archived is None:
        sources.columns_of(stream)  # says where it was looked for
    return Held(stream, archived_tick, gaps, events, None, None)


def require_events(
    sources: Sources,
    wanted: Mapping[str, Coverage],
    *,
    archive_is_all: bool = False,
    accept_loss: bool = False,
    loss_remedy: str = LOSS_COMPUTED,
) -> int:
    """SmileError unless all events in these ticks can be read. How many there are, files and batches counted whole.

    `archive_is_all`: a stream that the archive has, and of which no log is known, counts as silent after its end.
    """
    events = 0
    for stream, ticks in wanted.items():
        found = held(sources, stream)
        missing = found.absent(ticks)
        if missing and not (archive_is_all and found.log is None):
            raise SmileError(_missing(sources, found, missing))
        lost = found.lost(ticks)
        if lost and not accept_loss:
            raise SmileError(
                f"events of stream `{stream}` were lost in a repair, in ticks {lost.show_briefly()}; {loss_remedy}"
            )
        events += found.archived_events + _logged_events(found, ticks)
    return events


def require_reach(sources: Sources, tick: int) -> None:
    """SmileError if there is only an archive, and all of it ends before this tick. A single stream may end earlier."""
    if sources.archive is None or sources.folders:
        return
    end = max((stream.horizon for stream in sources.archived().values()), default=NO_TICK)
    if tick > end:
        raise SmileError(
            f"the archive {sources.archive} ends at {said(end)}, before {said(tick)}, and no log is known for what"
            " follows; name a broker's data folder with --data, ask for an earlier moment, or run `smile archive`"
        )


def _missing(sources: Sources, found: Held, missing: Coverage) -> str:
    stream, last = found.stream, missing.highest()
    archive = "no archive is known" if sources.archive is None else f"the archive {sources.archive} does not have them"
    if found.log is not None:
        return (
            f"events of stream `{stream}` up to {said(last)} have left the log in {found.folder}, and {archive};"
            " name the archive that has them with --archive"
        )
    return (
        f"the archive {sources.archive} has stream `{stream}` up to {said(found.archived_tick)}, and no log is known"
        " for what follows; name its broker's data folder with --data"
    )


def _logged_events(found: Held, ticks: Coverage) -> int:
    if found.log is None or found.folder is None or not found.beyond(ticks):
        return 0
    with reading(found.folder) as reader:
        return sum(one.events for one in reader.ranges(found.log, found.archived_tick + 1, ticks.highest()))


def condition(column: str, ticks: Coverage) -> str:
    """SQL: is this tick among them?"""
    if ticks.is_prefix():
        return f"{column} <= {ticks.highest()}"
    ranges = (f"{column} between {first} and {min(last, TICK_MAX)}" for first, last in ticks)
    return " or ".join(ranges)
