"""Goal: a log is trimmed only below what its archive surely holds; anything odd about that means less, never more."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import pytest

from runtime.broker import archived
from runtime.broker.archived import ArchiveWatch
from runtime.broker.log_access import LogAccess
from runtime.bulk.manifest import ArchivedStream, Manifest, read_manifest, write_manifest
from runtime.log.memory import MemoryLog
from runtime.protocol.events import ReserveSilence, TrimLog
from tests.bulk.archives import archive
from tests.bulk.test_archive_gaps import Log


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    made = Log(tmp_path / "log")
    made.publish(1, 2, 3)
    yield made
    made.directory.close()


@pytest.fixture
def watch(log: Log, tmp_path: Path) -> ArchiveWatch:
    """Not started: the tests look."""
    return ArchiveWatch(tmp_path / "archive", log.directory.folder)


def test_the_bound_follows_the_manifest(log: Log, watch: ArchiveWatch, tmp_path: Path) -> None:
    assert watch.look() == ({}, "")
    archive(tmp_path / "archive", log.directory.folder)
    assert watch.look() == ({"S": 30}, "")  # the batch that ends at 31 stays: it says whose archive this is
    log.publish(4)
    assert watch.look() == ({"S": 30}, "")
    archive(tmp_path / "archive", log.directory.folder)
    assert watch.look() == ({"S": 40}, "")
    # Nothing of the log that the archive lacks goes, and what is trimmed can be archived no worse than before.
    log.trim(40)
    log.publish(5)
    assert archive(tmp_path / "archive", log.directory.folder)[0].events == 2
    assert watch.look() == ({"S": 50}, "")


def test_gaps_bound_it(log: Log, watch: ArchiveWatch, tmp_path: Path) -> None:
    log.lose((15, 25))
    archive(tmp_path / "archive", log.directory.folder)
    assert watch.look() == ({"S": 14}, "")


def test_missing_and_damaged_files_bound_it(log: Log, watch: ArchiveWatch, tmp_path: Path) -> None:
    target = tmp_path / "archive"
    archive(target, log.directory.folder)
    log.publish(4)
    archive(target, log.directory.folder)
    first, second = (target / file.path for file in read_manifest(target).streams["S"].files)
    content = second.read_bytes()
    second.write_bytes(bytes(len(content)))
    held, problem = watch.look()
    assert held == {"S": 39}
    assert "is missing or damaged" in problem
    second.write_bytes(content)
    assert watch.look() == ({"S": 40}, "")
    second.unlink()
    assert watch.look()[0] == {"S": 39}
    first.unlink()
    assert watch.look()[0] == {"S": 9}


def test_files_whose_ticks_have_left_the_log_are_not_read_again(log: Log, watch: ArchiveWatch, tmp_path: Path) -> None:
    target = tmp_path / "archive"
    archive(target, log.directory.folder)
    log.publish(4)
    archive(target, log.directory.folder)
    first, second = (target / file.path for file in read_manifest(target).streams["S"].files)
    log.trim(watch.look()[0]["S"])
    for path in (first, second):
        path.write_bytes(bytes(path.stat().st_size))
    started_again = ArchiveWatch(target, log.directory.folder)
    held, problem = started_again.look()
    assert held == {"S": 39}
    assert str(second) in problem
    first.unlink()  # that is the only copy: it is missed all the same
    assert started_again.look()[0] == {"S": 9}


def test_a_manifest_counts_when_it_is_on_disk(
    log: Log, watch: ArchiveWatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its writer makes it visible first; nothing may be trimmed on the word of what a power failure takes away."""
    target = tmp_path / "archive"
    archive(target, log.directory.folder)
    with monkeypatch.context() as patched:
        patched.setattr(archived, "sync_folder", mock.Mock(side_effect=OSError("no answer")))
        for _ in range(2):
            with pytest.raises(OSError, match="no answer"):
                watch.look()
    synced = mock.Mock()
    monkeypatch.setattr(archived, "sync_folder", synced)
    assert watch.look()[0] == {"S": 30}
    synced.assert_called_once_with(target / "manifests")


def test_a_manifest_that_went_back_lowers_it(log: Log, watch: ArchiveWatch, tmp_path: Path) -> None:
    target = tmp_path / "archive"
    archive(target, log.directory.folder)
    log.publish(4)
    archive(target, log.directory.folder)
    assert watch.look()[0] == {"S": 40}
    max((target / "manifests").glob("*.json")).unlink()
    assert watch.look()[0] == {"S": 30}
    for path in (target / "manifests").glob("*.json"):
        path.unlink()
    assert watch.look()[0] == {}


def test_the_archive_of_another_log_counts_for_nothing(log: Log, watch: ArchiveWatch, tmp_path: Path) -> None:
    other = Log(tmp_path / "other")
    other.publish(1, 2, 30)
    archive(tmp_path / "archive", other.directory.folder)
    other.directory.close()
    assert watch.look() == ({}, "")
    # One that claims much, with a horizon at which our log has an event, and another event there.
    known = read_manifest(tmp_path / "archive")
    liar = ArchivedStream((("a", "int"),), horizon=31, end_checksum=7)
    write_manifest(tmp_path / "archive", known.with_stream("S", liar))
    assert watch.look() == ({}, "")


@pytest.mark.parametrize("content", [b"", b"{", b"[]\n[]\n", b'{"sha256": 1}\n{}', b"\xff\xfe\n"])
def test_garbage_means_that_nothing_is_trimmed(log: Log, tmp_path: Path, content: bytes) -> None:
    target = tmp_path / "archive"
    archive(target, log.directory.folder)
    (target / "manifests" / "0000000009.json").write_bytes(content)
    watch = ArchiveWatch(target, log.directory.folder, look_every_s=0.01).start()
    until = time.monotonic() + 60
    while not watch.status()["archive_problems"] and time.monotonic() < until:
        time.sleep(0.01)
    watch.close()
    assert watch.held("S") == -1
    assert watch.status() == {"archive_manifest": 0, "archive_problems": 1}


def test_logs_are_trimmed_by_whichever_is_less() -> None:
    limits = {"S": 5}
    access = LogAccess(nullcontext)
    access.trim_limit = lambda stream: limits.get(stream, -1)
    log, other = MemoryLog(2), MemoryLog(2)
    access.trim("S", log, TrimLog(20))
    access.trim("T", other, TrimLog(20))
    access.commit()
    assert (log.trimmed_tick, other.trimmed_tick) == (5, -1)
    limits["S"] = 30
    assert not access.waiting_writes  # it goes along with the next commit
    access.write("S", log, ReserveSilence(1, 1, 40))
    access.commit()
    assert log.trimmed_tick == 20
    limits["S"] = 3
    access.trim("S", log, TrimLog(25))
    assert not access.waiting_writes
    access.forget("S")
    limits["S"] = 30
    access.commit()
    assert log.trimmed_tick == 20


def test_an_empty_manifest_holds_nothing(log: Log, watch: ArchiveWatch, tmp_path: Path) -> None:
    write_manifest(tmp_path / "archive", Manifest(1))
    assert watch.look() == ({}, "")
