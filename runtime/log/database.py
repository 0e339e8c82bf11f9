"""The SQLite file of a folder of logs: how it is opened, what its tables are, and what its errors mean.

Nothing here knows streams. `opened` is careful in an order that matters: before SQLite sees the files it collects what
they say about commits that must be there, because SQLite silently drops the damaged end of its write-ahead log, and
deletes that log altogether if the database is empty.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from runtime.log.acknowledged import read_acknowledged
from runtime.log.checksums import stream_checksum
from runtime.log.state import Seal, State, seals_in
from runtime.log.stream_log import LogCorrupt, LogError, LogFull, LogLocked

FILE_NAME = "events.sqlite"
WAL_NAME = FILE_NAME + "-wal"
ACKNOWLEDGED_NAME = "acknowledged"
LOCK_NAME = "lock"
APPLICATION_ID = 0x534D4C32
"""Marks the file as a log of this format: "SML2"."""

CHECK_BYTES_MAX = 64 * 2**20
"""Smaller files are checked as a whole when they are opened, a few milliseconds per megabyte. Larger ones when read."""

_CACHE_KIB = 16 * 1024
_PAGE_BYTES = 4096
_WAL_HEAD_BYTES = 32
_FRAME_HEAD_BYTES = 24  # in front of every page in the write-ahead log: first the page's number
_STATE_PAGE = 2  # `state` is the first table, and one row long
_DATABASE_HEAD = b"SQLite format 3\0" + _PAGE_BYTES.to_bytes(2, "big") + b"\2\2"
TABLES = {
    "state": "CREATE TABLE state (id integer primary key, body blob not null) strict",
    "streams": "CREATE TABLE streams (number integer primary key, stream text not null, columns text not null,"
    " rules text not null, checksum integer not null) strict",
    "publishes": "CREATE TABLE publishes (stream integer not null, producer text not null, sequence integer not null,"
    " ticks blob not null, checksum integer not null, primary key (stream, producer, sequence)) strict, without rowid",
    "batches": "CREATE TABLE batches (stream integer not null, last_tick integer not null, first_tick integer not null,"
    " previous_tick integer not null, producer text not null, sequence integer not null, checksum integer not null,"
    " body blob not null, primary key (stream, last_tick)) strict, without rowid",
}


def remedy(folder: Path) -> str:
    return f"`smile repair {folder}` keeps the damaged files, saves what can be saved and says what is lost"


def as_log_error(folder: Path, error: sqlite3.Error) -> LogError:
    """Full and unwritable disks are told apart from damage; whatever else SQLite finds wrong with a file is damage."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    place = folder / FILE_NAME
    if code == sqlite3.SQLITE_FULL:
        return LogFull(f"{place}: the disk is full; nothing was written. Writing goes on when there is room")
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY):
        return LogError(f"{place}: {error}. Check the disk and the rights on this folder")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LogError(f"{place}: {error}. Another program has this file open")
    return LogCorrupt(f"{place}: {error}; {remedy(folder)}")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Which commits must be there, says whom: the newest number, and the file that names it."""

    number: int
    source: str


def locked(path: Path) -> int:
    """The handle that holds the lock of a folder; closing it gives it back. Raises LogLocked."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise LogLocked(f"{path.parent} is in use by another process, or by another system of this one") from None
    return handle


def evidence_in(folder: Path) -> Evidence:
    """What the files say about commits that were on disk; to be read before SQLite opens them."""
    found = Evidence(read_acknowledged(folder / ACKNOWLEDGED_NAME), ACKNOWLEDGED_NAME)
    newest = max((seal.synced for seal in _seals_of(folder / WAL_NAME)), default=0)
    return Evidence(newest, WAL_NAME) if newest > found.number else found


def _seals_of(path: Path) -> list[Seal]:
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return []
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return [seal for page in _state_pages(data) for seal, _ in seals_in(page)]
    except FileNotFoundError:
        return []


def _state_pages(wal: mmap.mmap) -> Iterator[bytes]:
    """What was written to the page of the table `state`. A seal anywhere else is part of somebody's event."""
    for at in range(_WAL_HEAD_BYTES, len(wal), _FRAME_HEAD_BYTES + _PAGE_BYTES):
        if int.from_bytes(wal[at : at + 4], "big") == _STATE_PAGE:
            yield wal[at + _FRAME_HEAD_BYTES : at + _FRAME_HEAD_BYTES + _PAGE_BYTES]


@dataclass(frozen=True, slots=True)
class Contents:
    """What is known without looking at events: `streams` has number, columns and rules of each by its name."""

    state: State
    streams: dict[str, tuple[int, str, str]]


NOTHING = Contents(State(Seal(0, 0), 0, ()), {})


def opened(folder: Path, *, is_synced: bool) -> tuple[sqlite3.Connection, Contents]:
    """A connection, and what is there; both files are checked as far as that is cheap. A new folder gets tables.

    `is_synced`: every commit waits for the disk. Otherwise SQLite waits only when it moves commits to the database.

    Whatever is wrong is found with a connection that cannot write: the last one that can deletes the write-ahead log
    when it is closed, and with it what a repair might still find there.
    """
    path = folder / FILE_NAME
    evidence = evidence_in(folder)
    if evidence.number and not _begins_well(path):
        raise LogCorrupt(
            f"{path} is missing, empty or damaged at its beginning, but {evidence.number} commits were made;"
            f" {remedy(folder)}"
        )
    if (folder / (FILE_NAME + "-journal")).exists() and not evidence.number:
        connected(path, is_synced=True).close()  # making it was cut short: SQLite takes back what it had begun
    is_new = not path.exists() or path.stat().st_size == 0
    contents = None if is_new else _inspected(path, evidence)
    connection = connected(path, is_synced=is_synced)
    try:
        if contents is None:
            create(connection)
    except sqlite3.Error as error:
        connection.close()
        raise as_log_error(folder, error) from error
    return connection, contents or NOTHING


def _begins_well(path: Path) -> bool:
    """Does it look like a database with a write-ahead log? If it does not, SQLite may delete that log."""
    try:
        with path.open("rb") as file:
            first = file.read(_PAGE_BYTES)
    except FileNotFoundError:
        return False
    return len(first) == _PAGE_BYTES and first.startswith(_DATABASE_HEAD)


def _inspected(path: Path, evidence: Evidence) -> Contents | None:
    """None if there is no table yet; raises LogCorrupt, and leaves all files as they are."""
    folder = path.parent
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, isolation_level=None)) as connection:
            connection.execute("pragma cell_size_check = on")
            if not connection.execute("select 1 from sqlite_schema limit 1").fetchone():
                if evidence.number:
                    raise LogCorrupt(f"{path} has no tables, but {evidence.number} commits were made; {remedy(folder)}")
                return None
            contents = _checked(connection, path)
    except sqlite3.Error as error:
        raise as_log_error(folder, error) from error
    number = contents.state.seal.number
    if number < evidence.number:
        raise LogCorrupt(
            f"{path} has {number} commits, but `{evidence.source}` says that {evidence.number} were on disk:"
            f" {WAL_NAME} or {FILE_NAME} is damaged or not the one that belongs here; {remedy(folder)}"
        )
    return contents


def connected(path: Path, *, is_synced: bool) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise as_log_error(path.parent, error) from error
    try:
        connection.execute(f"pragma page_size = {_PAGE_BYTES}")
        connection.execute("pragma journal_mode = wal")
        connection.execute(f"pragma synchronous = {'full' if is_synced else 'normal'}")
        connection.execute("pragma wal_autocheckpoint = 0")  # `keeper.py` does it, outside of commits
        connection.execute("pragma secure_delete = off")
        connection.execute("pragma cell_size_check = on")
        connection.execute("pragma trusted_schema = off")
        connection.execute(f"pragma cache_size = -{_CACHE_KIB}")
    except sqlite3.Error as error:
        connection.close()
        raise as_log_error(path.parent, error) from error
    return connection


def create(connection: sqlite3.Connection) -> None:
    connection.execute("begin immediate")
    connection.execute(f"pragma application_id = {APPLICATION_ID}")
    for statement in TABLES.values():
        connection.execute(statement)
    connection.execute("insert into state values (1, ?)", (State(Seal(0, 0), 0, ()).encode(),))
    connection.execute("commit")


def _checked(connection: sqlite3.Connection, path: Path) -> Contents:
    (found,) = connection.execute("pragma application_id").fetchone()
    tables = dict(connection.execute("select name, sql from sqlite_schema where type = 'table'").fetchall())
    if found != APPLICATION_ID and "facts" in tables:
        raise LogError(f"{path} was written by an earlier version with another format, which this one cannot read")
    if found != APPLICATION_ID or tables != TABLES:
        raise LogCorrupt(f"{path} does not have the tables of a log; {remedy(path.parent)}")
    if path.stat().st_size <= CHECK_BYTES_MAX:
        (verdict,) = connection.execute("pragma quick_check(1)").fetchone()
        if verdict != "ok":
            raise LogCorrupt(f"{path}: {' '.join(str(verdict).split())}; {remedy(path.parent)}")
    rows = connection.execute("select body from state").fetchall()
    try:
        ((body,),) = rows
        state = State.decode(body)
        streams = _streams(connection.execute("select * from streams order by number").fetchall())
        if [number for number, _, _ in streams.values()] != list(range(1, len(state.positions) + 1)):
            raise ValueError(f"{len(streams)} streams are listed, {len(state.positions)} have positions")
    except ValueError as broken:
        raise LogCorrupt(f"{path}: {broken}; {remedy(path.parent)}") from broken
    return Contents(state, streams)


def _streams(rows: list[tuple[Any, ...]]) -> dict[str, tuple[int, str, str]]:
    found = {}
    for number, name, columns, rules, checksum in rows:
        if checksum != stream_checksum(number, name, columns, rules):
            raise ValueError(f"the entry of stream {number} is damaged (checksum)")
        found[name] = (number, columns, rules)
    return found
