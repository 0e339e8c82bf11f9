"""Goal: groups are all or nothing, a full disk harms nothing, the write-ahead log stays short, old things are forgotten
a bit at a time."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from runtime.batch import Batch
from runtime.columns import Numbers, numbers
from runtime.log import keeper
from runtime.log.database import FILE_NAME, WAL_NAME
from runtime.log.sqlite import TRIMMED_BATCHES_MAX, LogDirectory, SqliteLog, Sync
from runtime.log.stream_log import LogCorrupt, LogError, LogFenced, LogFull
from runtime.protocol.coverage import TICK_MAX, Coverage
from tests.measures import eventually

COLUMNS = [("a", "int"), ("b", "text")]


def batch(first: int, count: int = 1) -> Batch:
    ticks = range(first, first + count)
    return Batch.events(ticks, [list(ticks), [str(tick) for tick in ticks]])


def large(first: int) -> Batch:
    """About 24 kB."""
    return Batch.events(range(first, first + 1500), [numbers(np.arange(1500)), ["text"] * 1500])


def ticks_in(log: SqliteLog) -> list[int]:
    return list(log.read(Coverage.of((0, TICK_MAX)), 10**6)[1].max_ticks)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[LogDirectory]:
    made = LogDirectory(tmp_path)
    yield made
    made.close()


@pytest.fixture
def log(directory: LogDirectory) -> SqliteLog:
    made = directory.stream("S", COLUMNS, producer_window=8)
    made.open(1)
    return made


# Groups


def test_new_streams_are_counted_together(directory: LogDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """One has room, two have not: whoever asks for both is told before the first is there for ever."""
    directory.stream("old", COLUMNS)
    known = {one.name for one in directory.all_streams()}
    monkeypatch.setattr("runtime.log.sqlite.STREAMS_MAX", len(known) + 1)
    for fine in (["old"], ["one"], ["old", "two"]):
        directory.check_room(fine)
    with pytest.raises(LogError, match="can keep"):
        directory.check_room(["one", "two"])
    assert {one.name for one in directory.all_streams()} == known


def test_a_group_is_one_commit_of_all_streams(directory: LogDirectory, log: SqliteLog) -> None:
    other = directory.stream("T", COLUMNS)
    other.open(1)
    before = directory.counters["log_commits"]
    with directory.group():
        log.append(1, batch(1), "p", 1)
        log.append(1, batch(5), "p", 2)
        other.append(1, batch(7), "q", 1)
        other.reserve(1, 100)
        assert ticks_in(log) == [], "not yet"
    assert directory.counters["log_commits"] == before + 1
    assert (ticks_in(log), ticks_in(other), other.open(1).reserved_tick) == ([1, 5], [7], 100)


def test_a_group_that_is_given_up_leaves_nothing(directory: LogDirectory, log: SqliteLog) -> None:
    with suppress(ZeroDivisionError), directory.group():
        log.append(1, batch(1), "p", 1)
        log.reserve(1, 50)
        raise ZeroDivisionError
    assert (ticks_in(log), log.open(1).reserved_tick, log.open(1).publishes) == ([], -1, ())
    log.append(1, batch(1), "p", 1)
    assert ticks_in(log) == [1]


def test_an_old_epoch_in_a_group_harms_nobody_else(directory: LogDirectory, log: SqliteLog) -> None:
    other = directory.stream("T", COLUMNS)
    other.open(2)
    with directory.group():
        log.append(1, batch(1), "p", 1)
        with pytest.raises(LogFenced):
            other.append(1, batch(7), "q", 1)
    assert (ticks_in(log), ticks_in(other)) == ([1], [])


def test_status(directory: LogDirectory, log: SqliteLog) -> None:
    log.append(1, large(1), "p", 1)
    directory._keeper.move()
    status = directory.status()
    assert (status["log_batches"], status["log_moves"]) == (1, 1)
    assert status["log_bytes"] > 12_000
    assert status["log_file_bytes"] > 2 * status["log_bytes"], "in the database and in its log"


def test_an_empty_group_costs_nothing(directory: LogDirectory) -> None:
    before = directory.counters["log_commits"]
    with directory.group():
        pass
    assert directory.counters["log_commits"] == before


def test_epochs(directory: LogDirectory) -> None:
    assert [directory.next_epoch(), directory.next_epoch(at_least=1000), directory.next_epoch(at_least=5)] == [
        1,
        1000,
        1001,
    ]


def test_columns_come_back_as_arrays_and_ticks_as_ranges(log: SqliteLog) -> None:
    log.append(1, large(0), "p", 1)
    _, rows, _ = log.read(Coverage.of((0, TICK_MAX)), 10**6)
    assert isinstance(rows.columns[1], Numbers)
    assert rows.max_ticks == range(1500)
    assert log.open(1).publishes == (("p", 1, range(1500)),)


@pytest.mark.parametrize("sync", ["always", "interval", "never"])
def test_a_killed_process_loses_nothing(tmp_path: Path, sync: Sync) -> None:
    code = (
        "import os, sys; from tests.log.test_directory import *\n"
        f"directory = LogDirectory({str(tmp_path)!r}, {sync!r}); log = directory.stream('S', COLUMNS)\n"
        "log.open(directory.next_epoch())\n"
        "for at in range(20): log.append(1, batch(at), 'p', at)\n"
        "os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == -9
    directory = LogDirectory(tmp_path)
    assert ticks_in(directory.stream("S", COLUMNS)) == list(range(20))
    assert directory.next_epoch() == 2
    directory.close()


def test_interval_syncs_in_the_background(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path, "interval", interval_ms=1)
    log = directory.stream("S", COLUMNS)
    log.open(1)
    log.append(1, batch(1), "p", 1)
    number = directory._number()
    eventually(lambda: directory._keeper.synced >= number, "the keeper to sync")
    assert directory._keeper.synced == number
    directory.close()


def test_after_a_sync_that_failed_nothing_is_called_synced(tmp_path: Path) -> None:
    """The system forgets what it could not write, and the next sync succeeds without it."""
    directory = LogDirectory(tmp_path, "never")
    log = directory.stream("S", COLUMNS)
    log.open(1)
    log.append(1, batch(1), "p", 1)
    before = directory._keeper.synced
    broken = mock.patch("os.fdatasync", side_effect=OSError(5, "Input/output error"))
    with broken, pytest.raises(LogError, match="Input/output error"):
        directory.next_epoch()
    with pytest.raises(LogError, match="open the log again"):
        directory.next_epoch()
    assert directory._keeper.move()
    assert directory._keeper.synced == before
    directory.close()
    with closing(LogDirectory(tmp_path)) as again:
        assert again.next_epoch() > 0
        assert ticks_in(again.stream("S", COLUMNS)) == [1]


# A full disk


def test_a_full_disk_refuses_and_recovers(directory: LogDirectory, log: SqliteLog) -> None:
    log.append(1, batch(1), "p", 1)
    (pages,) = directory.connection.execute("pragma page_count").fetchone()
    directory.connection.execute(f"pragma max_page_count = {pages}")
    for _ in range(3):
        with pytest.raises(LogFull, match="disk is full"):
            log.append(1, large(100), "p", 2)
    assert ticks_in(log) == [1]
    assert log.open(2).publishes == (("p", 1, range(1, 2)),), "a small commit still has room"
    directory.connection.execute("pragma max_page_count = 100000")
    log.append(2, large(100), "p", 2)
    assert ticks_in(log) == [1, *range(100, 1600)]


FULL = """
import resource, sys
from tests.log.test_directory import *

folder = sys.argv[1]
directory = LogDirectory(folder)
log = directory.stream("S", COLUMNS)
log.open(1)
limit = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limit[1]))
acknowledged, failures = [], 0
for at in range(60):
    if at == 40:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    try:
        log.append(1, large(2000 * at), "p", at)
        acknowledged.append(at)
    except LogError:
        failures += 1
assert failures > 20, failures
assert set(range(40, 60)) <= set(acknowledged), acknowledged
assert ticks_in(log) == [tick for at in acknowledged for tick in range(2000 * at, 2000 * at + 1500)]
directory.close()
directory = LogDirectory(folder)
log = directory.stream("S", COLUMNS)
assert ticks_in(log) == [tick for at in acknowledged for tick in range(2000 * at, 2000 * at + 1500)]
print("refused", failures)
"""


def test_files_that_cannot_grow(tmp_path: Path) -> None:
    """The system itself refuses: writes fail half way, in the middle of a commit. In a process of its own."""
    found = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=False, timeout=120
    )
    assert found.stdout.startswith("refused"), found.stderr


# The write-ahead log


def test_the_write_ahead_log_stays_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "WAL_BYTES_KEPT", 400_000)
    monkeypatch.setattr(keeper, "WAL_BYTES_MAX", 2_000_000)
    directory = LogDirectory(tmp_path)
    log = directory.stream("S", COLUMNS)
    log.open(1)
    for at in range(300):
        log.append(1, large(2000 * at), "p", at)
    assert directory._keeper.counters["log_moves"] >= 2
    assert (tmp_path / WAL_NAME).stat().st_size < 3_000_000, "7 MB were written"
    assert len(ticks_in(log)) == 450_000
    directory.close()


def test_a_reader_elsewhere_only_delays_it(directory: LogDirectory, log: SqliteLog, tmp_path: Path) -> None:
    log.append(1, batch(1), "p", 1)
    reader = sqlite3.connect(f"file:{tmp_path / FILE_NAME}?mode=ro", uri=True, isolation_level=None)
    reader.execute("begin")
    reader.execute("select count(*) from batches").fetchone()
    log.append(1, batch(2), "p", 2)
    assert directory._keeper.move() is False
    reader.close()
    assert directory._keeper.move() is True
    assert ticks_in(log) == [1, 2]


MOVES = """
import fcntl, os, sys
handle = os.open(sys.argv[1], os.O_RDWR)
fcntl.lockf(handle, fcntl.LOCK_EX, 1, 121)  # what SQLite locks while it moves commits
print("locked", flush=True)
sys.stdin.read()
"""


def test_what_another_program_moves_is_not_taken_for_synced(tmp_path: Path) -> None:
    """A tool that copies SQLite files, say. Were these commits called synced, the log would be refused as damaged after
    a power loss that took them."""
    with closing(LogDirectory(tmp_path, "never")) as directory:
        log = directory.stream("S", COLUMNS)
        log.open(1)
        log.append(1, batch(1), "p", 1)
        before = directory._keeper.synced
        assert before < directory._number()
        command = [sys.executable, "-c", MOVES, str(tmp_path / f"{FILE_NAME}-shm")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"locked\n"
            assert directory._keeper.move() is False
            assert directory._keeper.synced == before
            other.communicate(timeout=60)
        assert directory._keeper.move() is True
        assert directory._keeper.synced == directory._number()


def test_commits_and_moves_at_once(directory: LogDirectory, log: SqliteLog) -> None:
    """Two threads at work: nothing is lost, nobody waits for ever."""
    stop = threading.Event()

    def move() -> None:
        while not stop.is_set():
            directory._keeper.move()

    thread = threading.Thread(target=move)
    thread.start()
    for at in range(150):
        log.append(1, batch(at), "p", at)
    stop.set()
    thread.join()
    assert ticks_in(log) == list(range(150))


# Forgetting


def test_trimming_takes_small_bites(directory: LogDirectory, log: SqliteLog) -> None:
    with directory.group():
        for at in range(200):
            log.append(1, batch(at), "p", at)
    log.trim(180)
    (left,) = directory.query("select count(*) from batches", ())[0]
    assert left == 200 - TRIMMED_BATCHES_MAX
    assert ticks_in(log) == list(range(181, 200))
    while directory.idle():
        pass
    assert directory.query("select count(*) from batches", ())[0] == (19,)
    assert not directory.idle()
    assert ticks_in(log) == list(range(181, 200))


def test_a_full_disk_only_delays_trimming(directory: LogDirectory, log: SqliteLog) -> None:
    with directory.group():
        for at in range(200):
            log.append(1, batch(at), "p", at)
    log.trim(180)
    with mock.patch.object(directory, "_commit_once", side_effect=LogFull("full")) as refused:
        assert not directory.idle()
    assert refused.called
    while directory.idle():
        pass
    assert directory.query("select count(*) from batches", ())[0] == (19,)


def test_damage_among_trimmed_events_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the stream itself, which reads them no more, not another one, and not whoever idles."""
    with closing(LogDirectory(tmp_path)) as directory:
        log, other = directory.stream("S", COLUMNS), directory.stream("T", COLUMNS)
        log.open(1)
        with directory.group():
            for at in range(200):
                log.append(1, Batch.events([at], [[at], ["trimmed" if at < 100 else "kept"]]), "p", at)
            log.trim(180)
    data = bytearray((tmp_path / FILE_NAME).read_bytes())
    page = data.find(b"trimmed", data.find(b"trimmed") + 4096) // 4096 * 4096
    data[page : page + 100] = bytes([5] * 100)
    (tmp_path / FILE_NAME).write_bytes(data)
    monkeypatch.setattr("runtime.log.database.CHECK_BYTES_MAX", 0)  # a large one is not looked through
    with closing(LogDirectory(tmp_path)) as directory:
        log, other = directory.stream("S", COLUMNS), directory.stream("T", COLUMNS)
        for one in (log, other):
            one.open(2)
            with directory.group():
                one.append(2, batch(300), "q", 1, ("p",))
            while directory.idle():
                pass
        assert (ticks_in(log), ticks_in(other)) == ([*range(181, 200), 300], [300])
        assert directory.counters["log_trims_damaged"] > 0
    with closing(LogDirectory(tmp_path)) as directory:
        assert len(directory.stream("S", COLUMNS).open(3).publishes) == 1, "counted once, though it was written twice"


def test_idling_writes_nothing_if_nothing_is_to_do(directory: LogDirectory, log: SqliteLog) -> None:
    log.append(1, batch(1), "p", 1)
    before = directory.counters["log_commits"]
    assert not directory.idle()
    assert directory.counters["log_commits"] == before


def test_trimming_goes_on_after_a_restart(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path)
    log = directory.stream("S", COLUMNS)
    log.open(1)
    with directory.group():
        for at in range(150):
            log.append(1, batch(at), "p", at)
    log.trim(148)
    directory.close()
    directory = LogDirectory(tmp_path)
    log = directory.stream("S", COLUMNS)
    log.open(2)
    while directory.idle():
        pass
    assert directory.query("select count(*) from batches", ())[0] == (1,)
    directory.close()


def test_the_newest_publishes_of_every_producer_stay_whatever_their_numbers(tmp_path: Path) -> None:
    """Numbers may have gaps: what counts is how many came after."""
    directory = LogDirectory(tmp_path)
    log = directory.stream("S", COLUMNS, producer_window=16)
    log.open(1)
    tick = 0
    for at in range(100):
        for producer, step in (("p", 1), ("q", 1000)):
            log.append(1, batch(tick), producer, at * step)
            tick += 1
    directory.close()
    directory = LogDirectory(tmp_path)
    found = directory.stream("S", COLUMNS, producer_window=16).open(2).publishes
    (stored,) = directory.query("select count(*) from publishes", ())[0]
    directory.close()
    assert [sequence for producer, sequence, _ in found if producer == "p"] == list(range(84, 100))
    assert [sequence for producer, sequence, _ in found if producer == "q"] == list(range(84_000, 100_000, 1000))
    assert isinstance(stored, int)
    assert stored <= 2 * 18


def test_producers_that_are_long_gone_are_forgotten(directory: LogDirectory, log: SqliteLog) -> None:
    """By the same commit as the append that needs their place, also if one of them repeats itself in it."""
    for sequence in range(1, 8):
        log.append(1, batch(sequence), "old", sequence)
    log.append(1, batch(8), "older", 1)
    with directory.group():
        log.append(1, batch(900), "new", 1, ("older", "old"))
        log.append(1, batch(901), "old", 7)
    found = [(producer, sequence, list(ticks)) for producer, sequence, ticks in log.open(2).publishes]
    assert found == [("new", 1, [900]), ("old", 7, [901])]
    assert ticks_in(log) == [*range(1, 9), 900, 901], "events stay"
    with suppress(ZeroDivisionError), directory.group():
        log.append(2, batch(902), "newest", 1, ("new",))
        raise ZeroDivisionError
    assert {producer for producer, _, _ in log.open(3).publishes} == {"new", "old"}


# Damage that SQLite does not see


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("delete from batches where last_tick = 20", "before the one that ends at tick 30 is missing"),
        ("delete from batches where last_tick = 30", "ends at tick 30 is missing"),
        ("update batches set first_tick = 19 where last_tick = 20", "ends at tick 20 is damaged"),
        ("update batches set sequence = 9 where last_tick = 20", "ends at tick 20 is damaged"),
        ("update batches set last_tick = 25 where last_tick = 20", "ends at tick 25 is damaged"),
        ("update batches set stream = 2 where last_tick = 20", "is missing"),
    ],
)
def test_a_changed_batch_is_noticed(directory: LogDirectory, log: SqliteLog, statement: str, reason: str) -> None:
    for at in (10, 20, 30):
        log.append(1, batch(at), "p", at)
    directory.connection.execute(statement)
    with pytest.raises(LogCorrupt, match=reason):
        log.read(Coverage.of((0, TICK_MAX)), 100)


@pytest.mark.parametrize(
    "statement",
    [
        "delete from publishes where sequence = 20",
        "update publishes set sequence = 21 where sequence = 20",
        "update publishes set ticks = x'0000000000000000010000000000000001000000000000ff' where sequence = 20",
        "insert into publishes select stream, 'z', sequence, ticks, checksum from publishes where sequence = 20",
        "delete from batches where last_tick = 30",
    ],
)
def test_a_changed_publish_is_noticed_when_the_log_is_opened(
    directory: LogDirectory, log: SqliteLog, statement: str
) -> None:
    for at in (10, 20, 30):
        log.append(1, batch(at), "p", at)
    directory.connection.execute(statement)
    with pytest.raises(LogCorrupt, match="smile repair"):
        log.open(2)


@pytest.mark.parametrize(
    "statement",
    [
        "update streams set rules = 'x'",
        "update streams set stream = 'T'",
        "delete from streams",
        "delete from state",
        "update state set body = zeroblob(60)",
        "drop table publishes",
        "create table more (a)",
        "pragma application_id = 7",
    ],
)
def test_a_changed_folder_is_noticed_when_it_is_opened(tmp_path: Path, statement: str) -> None:
    directory = LogDirectory(tmp_path)
    directory.stream("S", COLUMNS).open(1)
    directory.close()
    connection = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    connection.execute(statement)
    connection.close()
    with pytest.raises(LogCorrupt, match="smile repair"):
        LogDirectory(tmp_path)


def test_a_log_of_an_earlier_version_is_not_called_damaged(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    connection.execute("create table facts (name text primary key, value integer)")
    connection.close()
    with pytest.raises(LogError, match="earlier version") as stopped:
        LogDirectory(tmp_path)
    assert not isinstance(stopped.value, LogCorrupt)
