"""Goal: archiving goes on beside a log that is written and trimmed, may be killed, and has each event exactly once."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

import pytest
from typer.testing import CliRunner, Result

from runtime.batch import Batch
from runtime.broker.archived import ArchiveWatch
from runtime.bulk import archive_files, source
from runtime.bulk.archive_files import locked
from runtime.bulk.columns import TICK, logged_columns
from runtime.bulk.manifest import newest_number
from runtime.bulk.source import Origin, SourceError
from runtime.log import reader as reading
from smile.cli import app
from smile.cli.exits import Exit
from smile.cli.files import fail
from smile.cli.histories import find_sources
from smile.errors import SmileError
from tests.bulk.archives import archive, ticks_in, without_spark
from tests.bulk.test_archive_gaps import Log

WAIT_S = 60.0
command = sys.modules["smile.cli.archive"]  # its name in the package is that of the command


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    made = Log(tmp_path / "log")
    yield made
    made.directory.close()


def ticks_of(*numbers: int) -> list[int]:
    return [10 * number + at for number in numbers for at in (0, 1)]


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_killed_at_random_while_the_log_is_written_and_trimmed(log: Log, tmp_path: Path) -> None:
    target, chance = tmp_path / "archive", random.Random(7)
    watch = ArchiveWatch(target, log.directory.folder)
    published = 0
    for _ in range(3):
        archiver = subprocess.Popen(
            [sys.executable, "-m", "tests.bulk.archives", str(target), str(log.directory.folder)]
        )
        try:
            wanted = newest_number(target) + 3
            while newest_number(target) < wanted:
                assert archiver.poll() is None
                before = newest_number(target)
                log.publish(published := published + 1)  # so another manifest must come
                log.trim(watch.look()[0].get("S", -1))  # as a broker does, as far as it may
                wait_for(lambda before=before: newest_number(target) > before)  # type: ignore[misc]
            log.publish(published := published + 1)
            time.sleep(chance.uniform(0, 0.03))  # somewhere in the next run
        finally:
            archiver.kill()
            archiver.wait()
    archive(target, log.directory.folder)
    assert ticks_in(target) == ticks_of(*range(1, published + 1))
    assert watch.look()[0] == {"S": 10 * published}


def read(origin: Origin, pieces: list[source.Piece]) -> list[int]:
    return [tick for piece in pieces for batch in origin.read(piece, [TICK]) for tick in batch.column(0).to_pylist()]


def test_who_reads_while_the_log_is_trimmed_has_each_event_once(log: Log, tmp_path: Path) -> None:
    target = tmp_path / "archive"
    log.publish(1, 2)
    archive(target, log.directory.folder)
    log.publish(3, 4, 5)
    origin = Origin("S", str(target), (str(log.directory.folder),), logged_columns((("a", "int"),)))
    pieces = origin.pieces(0, 51, rows=4)
    assert [piece.is_archived for piece in pieces] == [True, False, False]
    # Planned; before anybody reads, the archive gets the rest and the log forgets it.
    archive(target, log.directory.folder)
    log.trim(40)
    assert read(origin, pieces) == ticks_of(1, 2, 3, 4, 5)
    assert read(origin, origin.pieces(0, 51)) == ticks_of(1, 2, 3, 4, 5)
    assert read(origin, origin.pieces(20, 31)) == ticks_of(2, 3)


def test_what_leaves_the_log_in_the_middle_of_reading_comes_from_the_archive(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "archive"
    monkeypatch.setattr(reading, "CHUNK_BYTES", 1)  # every batch is read by itself
    monkeypatch.setattr(source, "BATCH_ROWS", 3)
    log.publish(*range(1, 9))
    origin = Origin("S", str(target), (str(log.directory.folder),), logged_columns((("a", "int"),)))
    (piece,) = origin.pieces(0, 81)
    batches = origin.read(piece, [TICK])
    assert next(batches).column(0).to_pylist() == ticks_of(1, 2)
    archive(target, log.directory.folder)
    log.trim(50)
    rest = [batch.column(0).to_pylist() for batch in batches]
    assert [tick for ticks in rest for tick in ticks] == ticks_of(*range(3, 9))


def test_ticks_that_nobody_has_are_refused(log: Log, tmp_path: Path) -> None:
    log.publish(1, 2, 3)
    log.trim(11)
    here = (str(log.directory.folder),)
    with pytest.raises(SourceError, match=r"stream `S` at ticks 0\.\.11 are no longer in .*missing"):
        Origin("S", None, here, ()).pieces(0, 31)
    assert len(Origin("S", None, here, ()).pieces(12, 31)) == 1
    columns = logged_columns((("a", "int"),))
    skipping = Origin("S", None, here, columns, skips_missing=True)
    assert read(skipping, skipping.pieces(0, 31)) == ticks_of(2, 3)
    # A gap of the archive is no silence either.
    archive(tmp_path / "archive", log.directory.folder, accept_gaps=True)
    archived = Origin("S", str(tmp_path / "archive"), (), columns)
    with pytest.raises(SourceError, match=r"ticks 0\.\.11 "):
        archived.pieces(0, 31)
    assert read(archived, archived.pieces(12, 31)) == ticks_of(2, 3)


@pytest.fixture
def follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int], object]], Result]:
    """Run `smile archive --follow`; what is given is called, with a number, instead of each pause."""

    def run(pause: Callable[[int], object]) -> Result:
        numbers = itertools.count(1)
        sleep = mock.Mock(side_effect=lambda _seconds: pause(next(numbers)))
        monkeypatch.setattr(command, "time", mock.Mock(sleep=sleep, monotonic=time.monotonic))
        monkeypatch.setattr(command, "spark_session", _no_spark)
        monkeypatch.setattr(command, "signal", mock.Mock())
        places = ["--archive", str(tmp_path / "archive"), "--data", str(tmp_path / "log")]
        with without_spark():
            return CliRunner().invoke(app, ["archive", "--follow", "--json", *places])

    return run


@contextmanager
def _no_spark(_master: str | None) -> Iterator[mock.Mock]:
    try:
        yield mock.Mock()
    except SmileError as error:
        fail(str(error), Exit.FAILED)


def test_following_archives_what_comes_until_it_is_told_to_stop(
    log: Log, tmp_path: Path, follow: Callable[[Callable[[int], object]], Result]
) -> None:
    def pause(number: int) -> None:
        if number == 4:
            command._interrupt()
        if number != 2:
            log.publish(number)

    result = follow(pause)
    assert result.exit_code == 0, result.output
    assert [json.loads(line)["events"] for line in result.stdout.splitlines()] == [2, 2]
    assert ticks_in(tmp_path / "archive") == ticks_of(1, 3)


def test_a_folder_that_cannot_be_written_is_said_in_one_line(
    log: Log, tmp_path: Path, follow: Callable[[Callable[[int], object]], Result]
) -> None:
    log.publish(1)
    (tmp_path / "archive").write_text("a file")

    def pause(number: int) -> None:
        if number == 2:  # somebody has made room for it
            (tmp_path / "archive").unlink()
        if number == 3:
            raise KeyboardInterrupt

    result = follow(pause)
    assert "File exists: " in result.stderr.splitlines()[0]
    assert "trying again" in result.stderr.splitlines()[0]
    assert ticks_in(tmp_path / "archive") == ticks_of(1)


def test_a_run_waits_for_another_one(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log.publish(1)
    other = ExitStack()
    other.enter_context(locked(tmp_path / "archive"))
    looks = itertools.count(1)
    sleep = mock.Mock(side_effect=lambda _seconds: other.close() if next(looks) == 3 else None)
    monkeypatch.setattr(archive_files, "time", mock.Mock(sleep=sleep, monotonic=time.monotonic))
    archive(tmp_path / "archive", log.directory.folder)
    assert sleep.call_count == 3
    assert ticks_in(tmp_path / "archive") == ticks_of(1)


def test_following_waits_for_another_run_but_not_for_ever(
    log: Log,
    tmp_path: Path,
    follow: Callable[[Callable[[int], object]], Result],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(archive_files, "LOCK_WAIT_S", 0.0)
    log.publish(1)
    with locked(tmp_path / "archive"):
        result = follow(lambda _number: None)
    assert result.exit_code == Exit.FAILED
    assert result.stderr.count("another run is under way; trying again in 10 s") == 4

    other = ExitStack()
    other.enter_context(locked(tmp_path / "archive"))
    result = follow(lambda number: other.close() if number == 3 else command._interrupt() if number == 4 else None)
    assert result.exit_code == 0, result.output
    assert ticks_in(tmp_path / "archive") == ticks_of(1)


def test_a_stream_that_cannot_be_archived_does_not_keep_the_others_from_it(
    log: Log, tmp_path: Path, follow: Callable[[Callable[[int], object]], Result]
) -> None:
    other = log.directory.stream("T", [("a", "int")])
    other.open(log.epoch)
    log.publish(1)
    log.trim(11)  # before it was archived

    def pause(number: int) -> None:
        if number == 8:
            command._interrupt()
        other.append(log.epoch, Batch.events([10 * number], [[number]]), "p", number)

    result = follow(pause)
    assert result.exit_code == 0, result.output
    assert ticks_in(tmp_path / "archive") == [10 * number for number in range(1, 8)]
    assert result.stderr.count("smile: S was not archived: stream `S`: its log was trimmed up to tick 11") == 1

    places = ["--archive", str(tmp_path / "archive"), "--data", str(tmp_path / "log")]
    other.append(log.epoch, Batch.events([80], [[8]]), "p", 8)
    with without_spark():
        result = CliRunner().invoke(app, ["archive", "--json", *places])
    assert result.exit_code == Exit.FAILED, result.output
    told = json.loads(result.stdout)
    assert [(one["stream"], one["events"]) for one in told["streams"]] == [("T", 1)]
    assert list(told["failed"]) == ["S"]
    assert "S was not archived: " in result.stderr


def test_brokers_whose_logs_cannot_be_seen_are_named(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    brokers = "".join(
        f'[brokers.{name}]\naddress = "tcp://127.0.0.1:{port}"\ndata = "{data}"\n'
        for name, port, data in (("here", 7001, "log"), ("there", 7002, "elsewhere"))
    )
    (tmp_path / "smile.toml").write_text(brokers)
    monkeypatch.chdir(tmp_path)
    assert find_sources(None, None).folders == (log.directory.folder,)
    said = capsys.readouterr().err
    assert "no log of broker there can be seen in" in said
    assert "broker here" not in said


def test_archived_files_are_checked_without_spark(log: Log, tmp_path: Path) -> None:
    target = tmp_path / "archive"
    log.publish(1)
    archive(target, log.directory.folder)
    log.publish(2)
    archive(target, log.directory.folder)

    def check(*more: str) -> Result:
        return CliRunner().invoke(app, ["archive", "--check", "--archive", str(target), *more])

    nowhere = CliRunner().invoke(app, ["archive", "--check", "--archive", str(tmp_path / "unmounted")])
    assert (nowhere.exit_code, "holds no archive" in nowhere.stderr) == (Exit.FAILED, True)
    assert check().exit_code == 0
    assert "2 files, all as they were written" in check().stdout
    first, second = sorted((target / "streams" / "S").glob("*.parquet"))
    first.unlink()
    second.write_bytes(bytes(second.stat().st_size))
    result = check("--json")
    assert result.exit_code == Exit.FAILED
    assert json.loads(result.stdout)["wrong"] == [f"{first} is missing", f"{second} was changed or is damaged"]
    for manifest in (target / "manifests").glob("*.json"):
        manifest.write_text("{")
    result = check()
    assert result.exit_code == Exit.FAILED
    assert "cannot be read" in result.stderr
