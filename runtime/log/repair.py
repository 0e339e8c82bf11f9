"""Make a damaged folder of logs usable again: keep what can be proved, say what is lost, invent nothing.

`repair` works on a copy. If everything can be read, nothing is changed. Otherwise the undamaged rows become a new
database, the damaged files go into a folder beside it, and the report says in words what is missing. Ticks about which
nothing is known any more are remembered as lost: they are answered like trimmed ones, never as silence. Called by
`smile repair`; it does not look at checkpoints, which may be lost anyway.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from runtime.files import sync_folder
from runtime.log import codec
from runtime.log.acknowledged import AcknowledgedFile, read_acknowledged
from runtime.log.checksums import batch_checksum, publish_checksum, stream_checksum
from runtime.log.database import (
    ACKNOWLEDGED_NAME,
    FILE_NAME,
    LOCK_NAME,
    WAL_NAME,
    as_log_error,
    connected,
    create,
    evidence_in,
    locked,
)
from runtime.log.scavenge import FoundBatch, Scavenger
from runtime.log.sqlite import LogDirectory
from runtime.log.state import LOST_RANGES_MAX, Position, Seal, State
from runtime.log.stream_log import LogCorrupt, LogError
from runtime.protocol.coverage import NO_TICK, TICK_MAX, Coverage

TICKS_PER_US = 1024
"""Of every stream that the compiler makes."""

PROMISED_US = 60_000_000
"""A lost reservation reached less far beyond the moment at which it was made."""

ROWS_READ = 100_000
DAMAGED = "damaged-"
"""Folders with the files as they were before a repair are called so, with a number."""

_SCRATCH = "repairing"
_NEW = "repaired"


@dataclass(frozen=True, slots=True)
class StreamReport:
    """`lost`: ranges of ticks in which events may be missing. `may_repeat`: some publishes may be forgotten."""

    name: str
    events: int
    lost: tuple[tuple[int, int], ...] = ()
    may_repeat: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """`damage` is empty if there was none; then nothing was changed. `kept` is where the damaged files are now."""

    folder: Path
    damage: str
    kept: Path | None
    commits_lost: int
    streams: tuple[StreamReport, ...]

    def lines(self) -> list[str]:
        if not self.damage:
            events = sum(stream.events for stream in self.streams)
            lost = sum(len(stream.lost) for stream in self.streams)
            earlier = f"; {lost} ranges were lost to earlier damage" if lost else ""
            found = f"{events} events in {len(self.streams)} streams"
            return [f"{self.folder}: {found}, all readable{earlier}; nothing was changed"]
        told = [f"{self.folder} was damaged: {self.damage}", f"the damaged files are in {self.kept}"]
        if self.commits_lost:
            told.append(f"the newest commits are missing, {self.commits_lost} of them")
        for stream in self.streams:
            told.append(f"stream `{stream.name}`: {stream.events} events are there")
            told += [f"  events may be missing from {_moment(first)} to {_moment(last)}" for first, last in stream.lost]
            if stream.may_repeat:
                told.append("  publishes may be forgotten: if a producer repeats one of those, it is logged twice")
            if not stream.lost and not stream.may_repeat:
                told.append("  nothing of it is lost")
        if not self.streams:
            told.append("no stream could be recognised: all events are lost")
        return told


def _moment(tick: int) -> str:
    """A tick, and the clock at that time if it is one of a clock."""
    seconds = tick / TICKS_PER_US / 1e6
    if not 0 <= seconds < 4e9:
        return f"tick {tick}"
    return f"tick {tick} ({datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC)"


def accept_loss(folder: str | os.PathLike[str]) -> int:
    """From now on lost ticks count as silence, because somebody who knows says so; how many ranges there were."""
    with closing(LogDirectory(folder)) as directory:
        return directory.accept_loss()


def repair(folder: str | os.PathLike[str], now_us: int) -> Report:
    """LogLocked if the folder is in use, LogError if there is no log in it or no room for the copies."""
    place = Path(folder)
    if not any((place / name).exists() for name in (FILE_NAME, WAL_NAME, ACKNOWLEDGED_NAME)):
        raise LogError(f"{place} has no log")
    lock = locked(place / LOCK_NAME)
    try:
        return _repair(place, now_us)
    except OSError as error:
        raise LogError(f"{place}: {error}. Nothing was changed") from error
    finally:
        os.close(lock)


def _repair(folder: Path, now_us: int) -> Report:
    scratch, new = folder / _SCRATCH, folder / _NEW
    try:
        _copy(folder, scratch)
        damage, streams = _damage_of(scratch)
        if not damage:
            return Report(folder, "", None, 0, streams)
        _copy(folder, scratch)  # looking at it has changed it
        shutil.rmtree(new, ignore_errors=True)
        with closing(Scavenger(scratch)) as found:
            saved = _Saved(found, evidence_in(scratch).number, now_us)
            _write(new, saved, found)
        kept = _put_in_place(folder, new, saved.number - 1)
    finally:
        for leftover in (scratch, new):
            shutil.rmtree(leftover, ignore_errors=True)
    return Report(folder, damage.replace(str(scratch), str(folder)), kept, saved.commits_lost, tuple(saved.reports()))


def _put_in_place(folder: Path, new: Path, number: int) -> Path:
    """The damaged files go aside, the new one takes their place. Should this be cut short, `acknowledged` keeps a new
    log from being made in a folder without a database, and the next repair finds the damaged files (`_cut_short`)."""
    kept = _cut_short(folder) or folder / f"{DAMAGED}{_free_number(folder)}"
    kept.mkdir(exist_ok=True)
    proof = folder / ACKNOWLEDGED_NAME
    if proof.exists() and not (kept / ACKNOWLEDGED_NAME).exists():
        shutil.copyfile(proof, kept / ACKNOWLEDGED_NAME)
    if read_acknowledged(proof) < number:  # damaged itself, or never there
        with closing(AcknowledgedFile(proof)) as acknowledged:
            acknowledged.write(number)
            acknowledged.sync()
        sync_folder(folder)
    for name in (FILE_NAME, WAL_NAME, FILE_NAME + "-shm"):
        if (folder / name).exists():
            (folder / name).rename(kept / name)
    sync_folder(kept)
    (new / FILE_NAME).rename(folder / FILE_NAME)
    sync_folder(folder)
    return kept


def _copy(folder: Path, scratch: Path) -> None:
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    aside = _cut_short(folder) or folder
    for name in (FILE_NAME, WAL_NAME, ACKNOWLEDGED_NAME):
        source = folder / name if (folder / name).exists() else aside / name
        if source.exists():
            shutil.copyfile(source, scratch / name)


def _cut_short(folder: Path) -> Path | None:
    """Where a repair that came to no end has put the damaged database, if there is one: nothing is in its place."""
    newest = folder / f"{DAMAGED}{_free_number(folder) - 1}"
    return newest if not (folder / FILE_NAME).exists() and (newest / FILE_NAME).exists() else None


def _free_number(folder: Path) -> int:
    number = 1
    while (folder / f"{DAMAGED}{number}").exists():
        number += 1
    return number


def _damage_of(folder: Path) -> tuple[str, tuple[StreamReport, ...]]:
    """Read everything: the first damage, or none and what is there. Other errors than damage are raised."""
    reports = []
    try:
        with closing(LogDirectory(folder)) as directory:
            for log in directory.all_streams():
                log.open(0)
                events, wanted = 0, Coverage.of((0, TICK_MAX))
                while wanted:
                    cover, rows, trimmed = log.read(wanted, ROWS_READ)
                    events += len(rows)
                    wanted = wanted.difference(cover).difference(trimmed)
                reports.append(StreamReport(log.name, events, directory.position(log.number).lost))
    except LogCorrupt as error:
        return _first_clause(error), ()
    return "", tuple(reports)


def _first_clause(error: LogError) -> str:
    """Without the remedy, which is what is being done."""
    return str(error).split("; `smile repair", 1)[0]


class _Saved:
    """What of the rows that were found makes up the new log."""

    def __init__(self, found: Scavenger, acknowledged: int, now_us: int) -> None:
        self.newest = max(found.states.values(), key=lambda state: state.seal.number, default=State(Seal(0, 0), 0, ()))
        number = self.newest.seal.number
        self.commits_lost = max(0, acknowledged - number)
        self.number = max(acknowledged, number) + 1
        self.epoch = self.newest.epoch + self.commits_lost + 1  # each lost commit may have taken one
        horizon = (now_us + PROMISED_US) * TICKS_PER_US
        self._horizon = horizon if self.commits_lost or not number else NO_TICK
        count = max([len(self.newest.positions), *found.streams, *(stream for stream, _ in found.batches)], default=0)
        self.streams = {one: found.streams.get(one) or _nameless(found, one) for one in range(1, count + 1)}
        self.floor_tick = horizon if len(found.streams) < count or not number else self.newest.floor_tick
        self.batches = {one: _chain(found, one, self.known(one)) for one in self.streams}
        self.publishes = {one: self._publishes_of(found, one) for one in self.streams}
        self.positions = {one: self._position(one) for one in self.streams}
        self.events: Counter[int] = Counter()

    def known(self, number: int) -> Position:
        """Where the stream stood, as far as that is known."""
        positions = self.newest.positions
        return positions[number - 1] if number <= len(positions) else Position()

    def _publishes_of(self, found: Scavenger, number: int) -> dict[tuple[str, int], bytes]:
        """Only those whose events are trimmed: events that are there bring theirs along, and if those that should be
        there are not, a producer that repeats them brings them back."""
        trimmed = self.known(number).trimmed_tick
        return {
            (producer, sequence): ticks
            for (stream, producer, sequence), ticks in found.publishes.items()
            if stream == number and codec.decode_ticks(ticks)[-1] <= trimmed
        }

    def _position(self, number: int) -> Position:
        known, batches = self.known(number), self.batches[number]
        before, lost = known.trimmed_tick, list(known.lost)
        for batch in batches:
            if batch.previous_tick > before:
                lost.append((before + 1, batch.previous_tick))
            before = batch.last_tick
        end = max(known.last_tick, self._horizon)
        if end > before:
            lost.append((before + 1, end))
        reserved = max(known.reserved_tick, before, end)
        return replace(known, last_tick=before, reserved_tick=reserved, lost=_merged(lost))

    def reports(self) -> Iterator[StreamReport]:
        for number, (name, _, _) in self.streams.items():
            known, position = self.known(number), self.positions[number]
            is_whole = (known.publishes, known.publishes_digest) == (position.publishes, position.publishes_digest)
            may_repeat = not is_whole and known.trimmed_tick > NO_TICK  # others come with their events
            yield StreamReport(name, self.events[number], position.lost, may_repeat)


def _nameless(found: Scavenger, number: int) -> tuple[str, str, str]:
    """The entry of a stream of which only events are left: they can be read, but no program has this stream."""
    body = next((found.body(batch) for (stream, _), batch in found.batches.items() if stream == number), None)
    width = 0 if body is None else len(codec.decode(body).columns) - 1
    return f"stream {number}, whose name is lost", "\n".join(f"column {i}\tlost" for i in range(width)), ""


def _chain(found: Scavenger, number: int, position: Position) -> list[FoundBatch]:
    """From the newest backwards. One that is newer than the one before it, as the one after it says, was written by a
    commit that never ended; if it is older, there is a hole, and a publish that is there already counts once. What was
    trimmed is gone."""
    kept: list[FoundBatch] = []
    publishes: set[tuple[str, int]] = set()
    for _, last in sorted((key for key in found.batches if key[0] == number), reverse=True):
        batch = found.batches[number, last]
        is_next = bool(kept) and last == kept[-1].previous_tick  # surely committed, even if its producer was forgotten
        is_named = not kept or last <= kept[-1].previous_tick
        is_new = is_next or (batch.producer, batch.sequence) not in publishes
        if is_named and last > position.trimmed_tick and is_new:
            kept.append(batch)
            publishes.add((batch.producer, batch.sequence))
    return kept[::-1]


def _merged(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    coverage = Coverage()
    for first, last in ranges:
        coverage.add(first, last)
    found = list(coverage)
    if len(found) > LOST_RANGES_MAX:
        found = [*found[: LOST_RANGES_MAX - 1], (found[LOST_RANGES_MAX - 1][0], found[-1][1])]
    return tuple(found)


def _write(folder: Path, saved: _Saved, found: Scavenger) -> None:
    """A new database with all of it, in one transaction, in a folder of its own."""
    folder.mkdir()
    try:
        with closing(connected(folder / FILE_NAME, is_synced=True)) as connection:
            create(connection)
            connection.execute("begin immediate")
            for number in saved.streams:
                _write_stream(connection, number, saved, found)
            state = State(
                Seal(saved.number, saved.number), saved.epoch, tuple(saved.positions.values()), saved.floor_tick
            )
            connection.execute("update state set body = ? where id = 1", (state.encode(),))
            connection.execute("commit")
            _move_all(connection)
    except sqlite3.Error as error:
        raise as_log_error(folder.parent, error) from error


def _move_all(connection: sqlite3.Connection) -> None:
    """Only the database itself is put in place. Closing it would do this too, but not say that there is no room."""
    is_busy, _, _ = connection.execute("pragma wal_checkpoint(truncate)").fetchone()
    if is_busy:
        raise LogError("the repaired log is in use by another program: repair again")


def _write_stream(connection: sqlite3.Connection, number: int, saved: _Saved, found: Scavenger) -> None:
    entry = (number, *saved.streams[number])
    connection.execute("insert into streams values (?, ?, ?, ?, ?)", (*entry, stream_checksum(*entry)))
    publishes = saved.publishes[number]
    previous = saved.positions[number].trimmed_tick
    for batch in saved.batches[number]:
        body = found.body(batch)
        ticks = codec.decode(body).max_ticks
        publishes[batch.producer, batch.sequence] = codec.encode_ticks(ticks)
        saved.events[number] += len(ticks)
        key = (number, batch.last_tick, batch.first_tick, previous, batch.producer, batch.sequence)
        connection.execute(
            "insert into batches values (?, ?, ?, ?, ?, ?, ?, ?)", (*key, batch_checksum(*key, body), body)
        )
        previous = batch.last_tick
    digest = 0
    for (producer, sequence), stored in publishes.items():
        checksum = publish_checksum(number, producer, sequence, stored)
        digest ^= checksum
        row = (number, producer, sequence, stored, checksum)
        connection.execute("insert into publishes values (?, ?, ?, ?, ?)", row)
    saved.positions[number] = replace(saved.positions[number], publishes=len(publishes), publishes_digest=digest)
