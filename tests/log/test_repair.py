"""Goal: a repaired log holds nothing but what was published, and calls nothing silent that it has lost."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import typer
from typer.testing import CliRunner

import smile
from runtime.log import codec
from runtime.log.checksums import batch_checksum
from runtime.log.database import ACKNOWLEDGED_NAME, FILE_NAME, WAL_NAME, create
from runtime.log.repair import PROMISED_US, TICKS_PER_US, Report, accept_loss, repair
from runtime.log.sqlite import LogDirectory
from runtime.log.stream_log import LogCorrupt, LogError, LogLocked
from runtime.plan import StreamSpec, Tuning
from runtime.protocol.coverage import TICK_MAX, Coverage
from smile.cli.repair import repair as repair_command
from tests.log.damage import (
    Files,
    Judge,
    files_of,
    flips,
    judge,
    put,
    quick_folder,
    random_places,
    streams,
    truncations,
    words,
)

NOW_US = 1_000_000


@pytest.fixture
def made() -> Iterator[Judge]:
    with quick_folder() as folder:
        yield judge(folder)


Told = dict[str, tuple[dict[int, tuple[object, ...]], Coverage, Coverage, list[str], int]]


def told_by(folder: Path) -> Told:
    """Of every stream: events by tick, what is covered, what is gone, publishes, the highest tick in use."""
    directory = LogDirectory(folder, "never")
    told = {}
    for log in streams(directory):
        state = log.open(directory.next_epoch())
        cover, rows, gone = log.read(Coverage.of((0, TICK_MAX)), 10**6)
        publishes = [f"{producer} {sequence}" for producer, sequence, _ in state.publishes]
        used = max(state.last_tick, state.reserved_tick)
        told[log.name] = ({row[0]: row for row in rows.rows()}, cover, gone, publishes, used)
    directory.close()
    return told


def repaired(made: Judge, changed: Files) -> tuple[Report, Told]:
    files = {**made.files, **changed}
    put(made.folder, files)
    report = repair(made.folder, NOW_US)
    if report.kept is not None:
        kept = {path.name: path.read_bytes() for path in report.kept.iterdir()}
        assert kept == {name: data for name, data in files.items() if name != "lock"}, "the damaged files are kept"
    assert not repair(made.folder, NOW_US).damage, "what was repaired is whole"
    return report, told_by(made.folder)


def check(made: Judge, before: Told, changed: Files) -> str:
    """What a repair must not do, whatever was damaged. How it went."""
    report, after = repaired(made, changed)
    outcome = "nothing lost"
    for name, (events, _, gone_before, _, used) in before.items():
        if name not in {stream.name for stream in report.streams}:
            assert after[name][2].contains(Coverage.prefix(used)), "a stream that is lost as a whole is not silent"
            outcome = "a stream is lost"
            continue
        found, cover, gone, _, used_after = after[name]
        assert set(found.items()) <= set(events.items()), f"{name}: events from nowhere"
        for tick in set(events) - set(found):
            assert tick not in cover, f"{name}: the lost event at {tick} is called silence"
            assert tick in gone
            outcome = "events lost"
        assert gone.contains(gone_before), f"{name}: trimmed ticks are called silence"
        assert used_after >= used, f"{name}: ticks could be given again"
    return outcome if report.damage else "not damaged"


@pytest.mark.slow
def test_whatever_was_damaged(made: Judge, cases: int) -> None:
    put(made.folder, made.files)
    before = told_by(made.folder)
    outcomes: Counter[str] = Counter()
    rng = Random(8)
    damages = [*flips(made.files, random_places(made.files, rng, 60 * cases))]
    damages += rng.sample([*truncations(made.files, 200)], 60 * min(cases, 10))
    for place, changed in damages:
        try:
            outcomes[check(made, before, changed)] += 1
        except AssertionError as error:
            raise AssertionError(place) from error
    assert set(outcomes) == {"not damaged", "nothing lost", "events lost", "a stream is lost"}, outcomes
    assert outcomes["nothing lost"] > 5, "rows are found wherever they lie"


def test_an_undamaged_log_is_left_alone(made: Judge) -> None:
    put(made.folder, made.files)
    report = repair(made.folder, NOW_US)
    assert (report.damage, report.kept) == ("", None)
    assert files_of(made.folder) == made.files
    assert report.lines() == [f"{made.folder}: 393 events in 2 streams, all readable; nothing was changed"]


def test_a_lost_end_is_not_silent_and_not_given_again(made: Judge) -> None:
    """Without its log, the database is behind; how far, only the clock can say."""
    report, after = repaired(made, {WAL_NAME: b""})
    assert report.commits_lost == 3
    bound = (NOW_US + PROMISED_US) * TICKS_PER_US
    assert report.streams[0].lost == ((360, bound),)
    assert after["Words"][4] == bound
    text = "\n".join(report.lines())
    assert "the newest commits are missing, 3 of them" in text
    assert "events may be missing from tick 360 (1970-01-01 00:00:00 UTC) to tick" in text


def test_nothing_at_all_is_left(made: Judge) -> None:
    report, after = repaired(made, {FILE_NAME: b"", WAL_NAME: b""})
    assert report.streams == ()
    assert report.lines()[-1] == "no stream could be recognised: all events are lost"
    assert after["Words"][2].contains(Coverage.prefix((NOW_US + PROMISED_US) * TICKS_PER_US))


def test_a_repaired_log_goes_on(made: Judge) -> None:
    repaired(made, {WAL_NAME: b""})
    directory = LogDirectory(made.folder)
    log = next(iter(streams(directory)))
    epoch = directory.next_epoch()
    state = log.open(epoch)
    first = state.reserved_tick + 1
    log.append(epoch, words(first, 3), "p", 99)
    directory.close()
    directory = LogDirectory(made.folder)
    cover, rows, _ = next(iter(streams(directory))).read(Coverage.of((first, TICK_MAX)), 10)
    directory.close()
    assert (rows.max_ticks[0], cover) == (first, Coverage.of((first, TICK_MAX)))


class CutShort(BaseException):
    """As Ctrl-C, or a loss of power, in the middle of a repair."""


@pytest.mark.parametrize("lacks", [(), (ACKNOWLEDGED_NAME,)])
@pytest.mark.parametrize("renames", range(3))
def test_a_repair_that_was_cut_short_is_done_again(
    made: Judge, lacks: tuple[str, ...], renames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of the files had been put aside by then, all that could be saved before can be saved still."""
    middle = len(made.files[FILE_NAME]) // 2
    files = {**made.files, FILE_NAME: bytes(middle) + made.files[FILE_NAME][middle:]}
    files = {name: data for name, data in files.items() if name not in lacks}
    put(made.folder, files)
    report, expected = repair(made.folder, NOW_US), told_by(made.folder)
    put(made.folder, files)
    rename, done = Path.rename, iter(range(renames))

    def rename_some(path: Path, target: Path) -> Path:
        if next(done, None) is None:
            raise CutShort
        return rename(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", rename_some)
        with pytest.raises(CutShort):
            repair(made.folder, NOW_US)
    with pytest.raises(LogCorrupt, match="smile repair"):
        LogDirectory(made.folder)
    again = repair(made.folder, NOW_US)
    assert again.kept == made.folder / ("damaged-1" if renames else "damaged-2")
    assert (again.streams, again.commits_lost) == (report.streams, report.commits_lost)
    assert told_by(made.folder) == expected


def test_a_repaired_log_that_is_not_all_in_its_file_does_not_take_the_place_of_the_damaged_one(
    made: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There was no room to move it there; here somebody reads it, which keeps SQLite from it as well."""
    put(made.folder, {**made.files, WAL_NAME: b""})
    readers = []

    def created(connection: sqlite3.Connection) -> None:
        create(connection)
        connection.execute("pragma busy_timeout = 0")
        (_, _, path) = connection.execute("pragma database_list").fetchone()
        readers.append(sqlite3.connect(path, isolation_level=None))
        readers[0].execute("begin")
        readers[0].execute("select * from state").fetchall()

    with monkeypatch.context() as patched:
        patched.setattr("runtime.log.repair.create", created)
        with pytest.raises(LogError, match="in use"):
            repair(made.folder, NOW_US)
    readers[0].close()
    assert not (made.folder / "damaged-1").exists()
    assert repair(made.folder, NOW_US).damage


def test_what_was_never_committed_does_not_come_back(tmp_path: Path) -> None:
    """Rows of a transaction that was taken back may still lie about, with the right checksum."""
    directory = LogDirectory(tmp_path)
    log = next(iter(streams(directory)))
    log.open(1)
    for at in (10, 20, 30, 40):
        log.append(1, words(at, 1), "p", at)
    directory.close()
    connection = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    body = codec.encode(words(25, 1))
    row = (1, 25, 25, 20, "p", 25)
    connection.execute("insert into batches values (?, ?, ?, ?, ?, ?, ?, ?)", (*row, batch_checksum(*row, body), body))
    connection.execute("delete from batches where last_tick = 10")
    connection.close()
    report = repair(tmp_path, NOW_US)
    assert report.streams[0].lost == ((0, 10),)
    assert sorted(told_by(tmp_path)["Words"][0]) == [20, 30, 40]


def test_what_a_forgotten_producer_published_twice_is_kept_twice(tmp_path: Path) -> None:
    """Its numbers may have begun anew: they are other events."""
    directory = LogDirectory(tmp_path)
    log = next(iter(streams(directory)))
    log.open(1)
    log.append(1, words(10, 1), "p", 1)
    log.append(1, words(20, 1), "q", 1, ("p",))
    log.append(1, words(30, 1), "p", 1)
    directory.close()
    connection = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    connection.execute("delete from publishes where producer = 'q'")
    connection.close()
    report = repair(tmp_path, NOW_US)
    assert report.damage
    assert report.streams[0].lost == ()
    assert sorted(told_by(tmp_path)["Words"][0]) == [10, 20, 30]


def test_views_stop_until_the_loss_is_accepted(tmp_path: Path) -> None:
    program = smile.compile("stream S (x int); view V = from S |> aggregate n := count();")
    with smile.run(program, data=tmp_path) as system:
        ticks = [system.publish("S", {"x": x}) for x in range(5)]
    connection = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    connection.execute("delete from batches where last_tick = ?", (ticks[2],))
    connection.close()
    with smile.run(program, data=tmp_path) as system, pytest.raises(smile.LogUnusable, match="smile repair"):
        system.rows("V")
    report = repair(tmp_path, NOW_US)
    assert report.streams[0].lost == ((ticks[1] + 1, ticks[2]),)
    with smile.run(program, data=tmp_path) as system, pytest.raises(smile.ViewFailed, match="events of `S` are lost"):
        system.rows("V")
    assert accept_loss(tmp_path) == 1
    with smile.run(program, data=tmp_path) as system:
        assert system.rows("V") == [{"n": 4}]


def test_folders_that_cannot_be_repaired(made: Judge, tmp_path: Path) -> None:
    with pytest.raises(LogError, match="has no log"):
        repair(tmp_path, NOW_US)
    directory = LogDirectory(tmp_path)
    with pytest.raises(LogLocked):
        repair(tmp_path, NOW_US)
    directory.close()


def test_ticks_are_those_of_the_compiler() -> None:
    assert StreamSpec(modulus=1, residue=0).ticks_per_us == TICKS_PER_US
    assert Tuning().reserve_us < PROMISED_US


def test_the_command(made: Judge, tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(repair_command)
    runner = CliRunner()
    put(made.folder, made.files)
    whole = runner.invoke(app, [str(made.folder.parent)])
    assert (whole.exit_code, whole.output.count("all readable")) == (0, 2), "this log and the one it was copied from"
    put(made.folder, {**made.files, WAL_NAME: b""})
    lossy = runner.invoke(app, [str(made.folder), "--json"])
    (told,) = json.loads(lossy.output)
    assert (lossy.exit_code, told["commits_lost"], told["kept"]) == (1, 3, str(made.folder / "damaged-1"))
    assert [stream["stream"] for stream in told["streams"]] == ["Words", "Numbers"]
    again = runner.invoke(app, [str(made.folder)])
    assert (again.exit_code, "all readable; 2 ranges were lost to earlier damage" in again.output) == (1, True)
    accepted = runner.invoke(app, [str(made.folder), "--accept-loss"])
    assert (accepted.exit_code, accepted.output.splitlines()[-1]) == (
        0,
        "2 lost ranges count as ticks without events from now on, as you said",
    )
    assert list(told_by(made.folder)["Words"][2]) == []
    assert runner.invoke(app, [str(made.folder)]).exit_code == 0
    assert runner.invoke(app, [str(tmp_path)]).exit_code == 2
