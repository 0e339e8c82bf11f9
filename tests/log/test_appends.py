"""Goal: a commit that only appends writes one page, and nobody can tell it from one that writes all tables: what it
leaves to later is there whenever it is asked for, and if it is not, that is noticed."""

from __future__ import annotations

import shutil
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import astuple, replace
from itertools import pairwise
from pathlib import Path
from random import Random

import msgpack
import pytest

from runtime.batch import Batch
from runtime.log import codec
from runtime.log.database import APPLICATION_ID, EARLIER_ID, FILE_NAME, WAL_NAME
from runtime.log.reader import LogReader
from runtime.log.repair import PROMISED_US, TICKS_PER_US, repair
from runtime.log.sqlite import LogDirectory, SqliteLog
from runtime.log.state import State, batch_in
from runtime.log.stream_log import LogCorrupt
from runtime.protocol.coverage import TICK_MAX, Coverage
from tests.log.damage import quick_folder

COLUMNS = [("a", "int")]
NAMES = ("S", "T", "U")
FRAME_BYTES = 4096 + 24
HORIZON = (1_000_000 + PROMISED_US) * TICKS_PER_US
Told = dict[str, object]


def batch(first: int, count: int = 1) -> Batch:
    ticks = range(first, first + count)
    return Batch.events(ticks, [list(ticks)])


@pytest.fixture
def place() -> Iterator[Path]:
    with quick_folder() as folder:
        yield folder


@pytest.fixture
def directory(place: Path) -> Iterator[LogDirectory]:
    made = LogDirectory(place / "log")
    yield made
    made.close()


def opened(directory: LogDirectory, epoch: int = 1) -> dict[str, SqliteLog]:
    logs = {name: directory.stream(name, COLUMNS, producer_window=4) for name in NAMES}
    for log in logs.values():
        log.open(epoch)
    directory.idle()
    return logs


def copied(directory: LogDirectory, target: Path) -> Path:
    """As a crash of the process would leave it."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(directory.folder, target)
    return target


def told_by(folder: Path) -> Told:
    """All that a log knows, also to somebody who reads it from outside."""
    with LogReader(folder) as reader:
        outside = {
            name: (stream, [rows.rows() for rows in reader.batches(stream, stream.trimmed_tick + 1, stream.last_tick)])
            for name, stream in reader.streams().items()
        }
    with closing(LogDirectory(folder)) as directory:
        logs = {name: directory.stream(name, COLUMNS, producer_window=4) for name in NAMES}
        number = directory._number()
        states = {name: log.open(1) for name, log in logs.items()}
        publishes = {name: [(p, n, list(ticks)) for p, n, ticks in one.publishes] for name, one in states.items()}
        places = {name: (one.last_tick, one.reserved_tick, one.trimmed_tick) for name, one in states.items()}
        rows = {name: log.read(Coverage.of((0, TICK_MAX)), 10**6)[1].rows() for name, log in logs.items()}
        return {"outside": outside, "number": number, "publishes": publishes, "places": places, "rows": rows}


def work(folder: Path, copy: Path, seed: int) -> tuple[list[Told], int]:
    """Whatever a log can do, at random; what copies of it know at some moments, and how many commits only appended."""
    rng, told, tick, appends = Random(seed), [], 0, 0
    with closing(LogDirectory(folder)) as directory:
        logs = opened(directory)
        for sequence in range(60):
            log = rng.choice(list(logs.values()))
            base = directory._base
            match rng.choice("aaaaaaggfrto"):
                case "a" | "f" as kind:
                    gone = ("p",) if kind == "f" else ()
                    log.append(1, batch(tick, rng.choice((1, 3))), rng.choice("pq"), sequence, gone)
                case "g":
                    with directory.group():
                        for at, other in enumerate(rng.choices(list(logs.values()), k=rng.choice((2, 4)))):
                            other.append(1, batch(tick + 10 * at), "g", 10 * sequence + at)
                            if rng.random() < 0.2:
                                other.reserve(1, tick + 60)
                case "r":
                    log.reserve(1, tick + rng.randrange(50))
                case "t":
                    log.trim(tick - rng.randrange(200))
                    directory.idle()
                case _:
                    log.open(1)
                    directory.idle()
            appends += base == directory._base
            tick += 50
            if rng.random() < 0.3:
                told.append(told_by(copied(directory, copy)))
    told.append(told_by(folder))
    del told[-1]["number"]  # closing may have been a commit
    return told, appends


@pytest.mark.parametrize("seed", range(6))
def test_both_ways_to_commit_are_the_same_to_everybody(place: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = []
    for unpublished_max, grown_max in ((-1, 0), (9, 32), (256, 2), (256, 32)):
        monkeypatch.setattr("runtime.log.sqlite.UNPUBLISHED_MAX", unpublished_max)
        monkeypatch.setattr("runtime.log.sqlite.GROWN_STREAMS_MAX", grown_max)
        outcomes.append(work(place / f"{unpublished_max} {grown_max}", place / "copy", seed))
    (expected, none), *others = outcomes
    assert none == 0
    assert len(expected) > 8
    for told, appends in others:
        assert appends > 5
        assert told == expected


def test_a_small_append_writes_one_page(directory: LogDirectory) -> None:
    logs = opened(directory)
    wal = directory.folder / WAL_NAME
    sizes = []
    for at in range(40):
        logs["S"].append(1, batch(at), "p", at)
        sizes.append(wal.stat().st_size)
    pages = [(after - before) // FRAME_BYTES for before, after in pairwise(sizes)]
    assert sorted(pages)[len(pages) // 2] == 1


def test_publishes_go_to_their_table_after_a_while(directory: LogDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.log.sqlite.UNPUBLISHED_MAX", 10)
    log = opened(directory)["S"]
    stored = []
    for at in range(23):
        log.append(1, batch(at), "p", at)
        stored.append(directory.query("select count(*) from publishes", ())[0][0])
    assert stored == [0] * 10 + [4] * 11 + [4] * 2, "all at once, and then the window's size"
    assert directory.position(log.number).published_tick == 21


def test_many_streams_take_turns(directory: LogDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.log.sqlite.GROWN_STREAMS_MAX", 2)
    logs = opened(directory)
    bases = [directory._base]
    for at, name in enumerate("SSTUTUS"):
        logs[name].append(1, batch(at), "p", at)
        bases.append(directory._base)
    assert [after > before for before, after in pairwise(bases)] == [False] * 3 + [True] + [False] * 2 + [True]


def test_a_batch_whose_publish_is_not_in_its_table_is_not_deleted(directory: LogDirectory, place: Path) -> None:
    """Not even by somebody who trims before the stream has started, and does not know it."""
    appended(directory)
    with closing(LogDirectory(copied(directory, place / "copy"))) as found:
        log = found.stream("S", COLUMNS, producer_window=4)
        log.trim(100)
        assert not found.idle()
        assert [sequence for _, sequence, _ in log.open(1).publishes] == [10, 20, 30]
        assert not found.idle()
        assert found.query("select count(*) from batches where stream = ?", (log.number,)) == [(0,)]
        assert [sequence for _, sequence, _ in log.open(1).publishes] == [10, 20, 30]


def test_trimmed_batches_are_deleted_by_the_next_commit(directory: LogDirectory) -> None:
    logs = opened(directory)
    with directory.group():
        for at in range(70):
            logs["S"].append(1, batch(at), "p", at)
    logs["S"].trim(68)
    logs["T"].append(1, batch(1), "p", 1)
    assert directory.query("select count(*) from batches where stream = 1", ()) == [(1,)]


def test_a_name_that_would_tear_a_seal_apart(directory: LogDirectory) -> None:
    log = opened(directory)["S"]
    for producer, is_alone in (("p" * 64, True), ("é" * 65, False)):
        base = directory._base
        log.append(1, batch(directory._number()), producer, 1)
        assert (directory._base == base) is is_alone


def test_what_is_stored_before_a_batch_is_not_part_of_it(directory: LogDirectory) -> None:
    """The archive knows a log by the checksum of a batch, however that was committed."""
    logs = opened(directory)
    logs["S"].append(1, batch(10, 3), "p", 1)
    with directory.group():
        logs["T"].append(1, batch(10, 3), "p", 1)
        logs["T"].reserve(1, 50)
    bodies = [body for (body,) in directory.query("select body from batches order by stream", ())]
    assert bodies[0] != bodies[1]
    assert [batch_in(body) for body in bodies if isinstance(body, bytes)] == [codec.encode(batch(10, 3))] * 2
    with LogReader(directory.folder) as reader:
        streams = reader.streams()
        found = {reader.checksum_at(streams[name], 12) for name in ("S", "T")}
        assert found == {zlib.crc32(codec.encode(batch(10, 3)))}
        assert [one.events for one in reader.ranges(streams["S"], 0, 99)] == [3]


class Interrupting:
    """A connection that is interrupted just after something was written."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)

    def execute(self, text: str, *values: object) -> sqlite3.Cursor:
        done: sqlite3.Cursor = self._connection.execute(text, *values)  # type: ignore[arg-type]
        if text.startswith("insert into batches"):
            raise KeyboardInterrupt
        return done


def test_closing_after_an_interrupted_commit_writes_nothing(place: Path) -> None:
    """Nobody here knows of that commit; writing what is known would take it back by half."""
    directory = LogDirectory(place / "log")
    log = opened(directory)["S"]
    log.append(1, batch(10), "p", 1)
    real = directory.connection
    directory.connection = Interrupting(real)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        log.append(1, batch(20), "p", 2)
    directory.connection = real
    directory.close()
    with closing(LogDirectory(place / "log")) as after:
        log = after.stream("S", COLUMNS, producer_window=4)
        assert [sequence for _, sequence, _ in log.open(2).publishes] == [1, 2]


# What is missing


def changed(directory: LogDirectory, target: Path, *statements: str) -> Path:
    folder = copied(directory, target)
    with closing(sqlite3.connect(folder / FILE_NAME, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    return folder


def appended(directory: LogDirectory) -> None:
    """All three streams have grown since the record of all positions, `T` last."""
    logs = opened(directory)
    for at in (10, 20, 30):
        for name in ("S", "U", "T"):
            logs[name].append(1, batch(at), "p", at)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("delete from batches where stream = 1 and last_tick = 10", "before the one that ends at tick 20 is missing"),
        ("delete from batches where stream = 1 and last_tick = 20", "before the one that ends at tick 30 is missing"),
        ("delete from batches where stream = 1 and last_tick = 30", "ends at tick 20, not at 30"),
        ("delete from batches where stream = 1", "ends at tick None, not at 30"),
        ("update batches set sequence = 9 where stream = 1 and last_tick = 20", "ends at tick 20 is damaged"),
    ],
)
def test_a_changed_batch_is_noticed_when_its_stream_starts(
    directory: LogDirectory, place: Path, statement: str, reason: str
) -> None:
    """And harms no other."""
    appended(directory)
    with closing(LogDirectory(changed(directory, place / "copy", statement))) as found:
        logs = {name: found.stream(name, COLUMNS, producer_window=4) for name in NAMES}
        for _ in range(2):
            with pytest.raises(LogCorrupt, match=reason):
                logs["S"].open(2)
            assert [sequence for _, sequence, _ in logs["T"].open(2).publishes] == [10, 20, 30]
        logs["T"].append(2, batch(100), "p", 100)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("delete from batches where stream = 2 and last_tick = 30", "commits, but"),
        ("update batches set body = zeroblob(90) where stream = 2 and last_tick = 30", "commits, but"),
        ("update batches set body = x'736d696c654c4732' where stream = 1", "says of positions is damaged"),
    ],
)
def test_a_newest_batch_that_is_missing_is_noticed(
    directory: LogDirectory, place: Path, statement: str, reason: str
) -> None:
    appended(directory)
    folder = changed(directory, place / "copy", statement)
    with pytest.raises(LogCorrupt, match="smile repair"), LogReader(folder) as reader:
        reader.streams()
    with pytest.raises(LogCorrupt, match=reason):
        LogDirectory(folder)


def test_an_older_record_of_all_positions_is_noticed(directory: LogDirectory, place: Path) -> None:
    logs = opened(directory)
    ((before,),) = directory.query("select body from state", ())
    assert isinstance(before, bytes)
    logs["S"].reserve(1, 500)
    logs["S"].append(1, batch(10), "p", 1)
    folder = changed(directory, place / "copy", f"update state set body = x'{before.hex()}'")
    with pytest.raises(LogCorrupt, match="record of the positions is of commit"):
        LogDirectory(folder)
    with pytest.raises(LogCorrupt, match="record of the positions is of commit"), LogReader(folder) as reader:
        reader.streams()


# Repair


def test_a_repair_knows_where_streams_ended(directory: LogDirectory, place: Path) -> None:
    appended(directory)
    statement = "delete from batches where stream = 1 and last_tick = 30"
    folder = changed(directory, place / "copy", statement, "vacuum")
    (folder / WAL_NAME).unlink(missing_ok=True)  # where it would still be found
    report = repair(folder, 1_000_000)
    assert (report.commits_lost, [stream.lost for stream in report.streams]) == (0, [((21, 30),), (), ()])
    assert not any(stream.may_repeat for stream in report.streams)


def test_a_repair_without_the_newest_record_of_all_positions_does_not_guess(
    directory: LogDirectory, place: Path
) -> None:
    """Reservations, epochs and whole batches may have been in it."""
    appended(directory)
    log = next(iter(opened(directory, 7).values()))
    log.append(7, batch(40), "p", 40)
    state = State.decode(directory.query("select body from state", ())[0][0])  # type: ignore[arg-type]
    older = replace(state, seal=replace(state.seal, number=state.seal.number - 2), epoch=0)
    statement = f"update state set body = x'{older.encode().hex()}'"
    folder = changed(directory, place / "copy", statement, "vacuum")
    (folder / WAL_NAME).unlink(missing_ok=True)
    report = repair(folder, 1_000_000)
    assert [stream.lost[-1][1] for stream in report.streams] == [HORIZON] * 3
    with closing(LogDirectory(folder)) as repaired:
        assert repaired.next_epoch() > directory._number() - older.seal.number


def test_a_repair_loses_nothing_that_can_be_read(directory: LogDirectory, place: Path) -> None:
    """Publishes of trimmed events are remembered beside those that were only in their batches."""
    appended(directory)
    logs = opened(directory)
    logs["S"].trim(20)
    directory.idle()
    logs["S"].append(1, batch(50), "p", 50)
    expected = told_by(copied(directory, place / "copy"))
    folder = changed(directory, place / "damaged", "create table more (a)")
    report = repair(folder, 1_000_000)
    assert report.damage
    assert not any(stream.lost or stream.may_repeat for stream in report.streams)
    found = told_by(folder)
    assert [found[part] for part in ("publishes", "rows")] == [expected[part] for part in ("publishes", "rows")]


# The version before


def test_a_log_of_the_version_before_is_taken_over(directory: LogDirectory, place: Path) -> None:
    """Which wrote all positions and publishes with every commit: the same tables, one number less in every position."""
    logs = opened(directory)
    logs["S"].append(1, batch(10), "p", 1)
    logs["S"].reserve(1, 50)
    logs["T"].append(1, batch(20), "p", 1)
    logs["T"].reserve(1, 70)
    expected = told_by(copied(directory, place / "copy"))
    state = State.decode(directory.query("select body from state", ())[0][0])  # type: ignore[arg-type]
    positions = [list(astuple(position)[:7]) for position in state.positions]
    body = state.encode()[:28] + msgpack.packb([state.epoch, state.floor_tick, positions])
    body += zlib.crc32(body).to_bytes(4, "little")
    folder = changed(
        directory,
        place / "earlier",
        f"update state set body = x'{body.hex()}'",
        f"pragma application_id = {EARLIER_ID}",
    )
    assert told_by(folder) == expected, "read as it is, then by its owner"
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection:
        assert connection.execute("pragma application_id").fetchone() == (APPLICATION_ID,)
    with closing(LogDirectory(folder)) as after:
        log = opened(after)["S"]
        log.append(1, batch(80), "p", 2)
        assert [number for _, number, _ in log.open(1).publishes] == [1, 2]
