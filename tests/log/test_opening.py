"""Goal: what cannot be opened or closed well, or is interrupted, leaves a folder that can be opened again."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from runtime.log.acknowledged import read_acknowledged
from runtime.log.database import ACKNOWLEDGED_NAME
from runtime.log.reader import LogReader
from runtime.log.sqlite import LogDirectory, SqliteLog
from runtime.log.stream_log import LogError
from tests.log.test_directory import COLUMNS, batch, ticks_in
from tests.measures import eventually


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[LogDirectory]:
    made = LogDirectory(tmp_path)
    yield made
    made.close()


@pytest.fixture
def log(directory: LogDirectory) -> SqliteLog:
    made = directory.stream("S", COLUMNS)
    made.open(1)
    return made


def test_interval_syncs_what_is_left_at_the_end(tmp_path: Path) -> None:
    """SQLite does it when it moves everything to the database, which a reader may keep it from."""
    directory = LogDirectory(tmp_path, "interval", interval_ms=3_600_000)
    log = directory.stream("S", COLUMNS)
    log.open(1)
    eventually(lambda: directory._keeper.synced > 0, "the first sync; the next would be an hour later")
    with closing(LogReader(tmp_path)):
        log.append(1, batch(1), "p", 1)
        assert directory._keeper.synced < directory._number()
        directory.close()
    assert read_acknowledged(tmp_path / ACKNOWLEDGED_NAME) == directory._number()


def no_room(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("place", ["sqlite.sync_folder", "keeper.os.fdatasync", "acknowledged.os.fsync"])
def test_a_folder_that_could_not_be_opened_can_be_opened_later(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(f"runtime.log.{place}", no_room)
        with pytest.raises(LogError, match="No space left"):
            LogDirectory(tmp_path)
    LogDirectory(tmp_path).close()


def test_closing_lets_go_of_everything_though_a_part_of_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = LogDirectory(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", no_room)
        with pytest.raises(OSError, match="No space left"):
            directory.close()
    LogDirectory(tmp_path).close()
    directory.close()


def test_too_many_open_files_do_not_keep_a_log_from_being_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with closing(LogDirectory(tmp_path, "interval", interval_ms=1)) as directory, monkeypatch.context() as patched:
        patched.setattr(os, "open", refused)
        log = directory.stream("S", COLUMNS)
        log.open(directory.next_epoch())
        log.append(1, batch(1), "p", 1)
        eventually(lambda: directory._keeper.synced == directory._number(), "the keeper to sync")


# Ctrl-C


class Interrupted:
    """A connection to SQLite during whose work Ctrl-C comes: before or after this statement was carried out."""

    def __init__(self, connection: sqlite3.Connection, statement: str, *, is_after: bool) -> None:
        self._connection = connection
        self._statement = statement
        self._is_after = is_after

    def execute(self, text: str, *values: Sequence[Any]) -> sqlite3.Cursor:
        if text.startswith(self._statement):
            if self._is_after:
                self._connection.execute(text, *values)
            raise KeyboardInterrupt
        return self._connection.execute(text, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def test_after_an_interruption_nothing_is_written_on_top_of_what_is_not_known(
    directory: LogDirectory, log: SqliteLog, tmp_path: Path
) -> None:
    log.append(1, batch(1), "p", 1)
    real = directory.connection
    directory.connection = Interrupted(real, "commit", is_after=True)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        log.append(1, batch(2), "p", 2)
    directory.connection = real
    calls: list[Callable[[], object]] = [
        lambda: log.append(1, batch(3), "p", 3),
        lambda: ticks_in(log),
        directory.next_epoch,
    ]
    for call in calls:
        with pytest.raises(LogError, match="interrupted"):
            call()
    directory.close()
    again = LogDirectory(tmp_path)
    assert ticks_in(again.stream("S", COLUMNS)) == [1, 2]
    again.close()


@pytest.mark.parametrize("statement", ["update state", "commit"])
def test_after_an_interruption_that_was_taken_back_writing_goes_on(
    directory: LogDirectory, log: SqliteLog, statement: str
) -> None:
    log.append(1, batch(1), "p", 1)
    real = directory.connection
    directory.connection = Interrupted(real, statement, is_after=False)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        log.append(1, batch(2), "p", 2)
    directory.connection = real
    log.append(1, batch(3), "p", 3)
    assert ticks_in(log) == [1, 3]


def test_an_interruption_between_a_beginning_and_its_work(directory: LogDirectory, log: SqliteLog) -> None:
    real = directory.connection
    directory.connection = Interrupted(real, "begin", is_after=True)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        log.append(1, batch(2), "p", 2)
    directory.connection = real
    with pytest.raises(LogError, match="interrupted"):  # not "damaged", because of the transaction that is open
        log.append(1, batch(3), "p", 3)
