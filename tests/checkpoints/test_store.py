"""Goal: the newest whole checkpoint is found, none that rule C4 forbids, and no incarnation harms a later one."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.checkpoints import store as stores
from runtime.checkpoints.store import CheckpointFailed, CheckpointStore
from runtime.protocol.coverage import TICK_MAX


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    return CheckpointStore(tmp_path / "a" / "checkpoints")


def files(store: CheckpointStore) -> list[str]:
    return sorted(path.name for path in store.folder.glob("*/*.checkpoint"))


def damage(store: CheckpointStore, name: str) -> None:
    (path,) = store.folder.glob(f"*/{name}")
    data = bytearray(path.read_bytes())
    data[-1] ^= 4
    path.write_bytes(data)


def test_the_newest_one_is_loaded(store: CheckpointStore) -> None:
    assert (store.load("v", "d").data, store.load("v", "d").is_missing) == (None, False)
    store.save("v", "d", 1, 9, b"old")
    store.save("v", "d", 2, 1, b"new")
    store.save("w/../x é", "d", 2, 1, b"other")
    assert store.load("v", "d").data == b"new"
    assert store.load("w/../x é", "d").data == b"other"
    assert CheckpointStore(store.folder).load("v", "d").data == b"new"


def test_other_code_cannot_read_it(store: CheckpointStore) -> None:
    store.save("v", "d", 1, 1, b"state")
    assert store.load("v", "e").data is None
    store.clean({"v": "e"})
    assert store.load("v", "d").data is None
    assert list(store.folder.iterdir()) == []


def test_a_file_under_another_name_is_not_taken(store: CheckpointStore) -> None:
    store.save("v", "d", 1, 1, b"state")
    store.save("v", "d", 1, 2, b"later")
    (path,) = store.folder.glob("*/1-2.checkpoint")
    path.rename(path.with_name("1-3.checkpoint"))
    assert store.load("v", "d").data is None
    assert store.counters["checkpoints_damaged"] == 1


def test_a_damaged_one_is_passed_over_if_the_one_before_was_acknowledged(store: CheckpointStore) -> None:
    store.save("v", "d", 1, 1, b"one")
    store.note_acknowledged("v", "d", 1, 1, 100)
    store.save("v", "d", 1, 2, b"two")
    assert files(store) == ["1-1.checkpoint", "1-2.checkpoint"]
    damage(store, "1-2.checkpoint")
    found = store.load("v", "d")
    assert (found.data, found.acknowledged_horizon, found.is_missing) == (b"one", 100, False)
    assert store.counters["checkpoints_damaged"] == 1


def test_none_older_than_the_acknowledged_one(store: CheckpointStore) -> None:
    store.save("v", "d", 1, 1, b"one")
    (path,) = store.folder.glob("*/1-1.checkpoint")
    kept = path.read_bytes()
    store.save("v", "d", 1, 2, b"two")
    store.note_acknowledged("v", "d", 1, 2, 200)
    assert files(store) == ["1-2.checkpoint"]
    path.write_bytes(kept)  # somebody restored a copy
    damage(store, "1-2.checkpoint")
    found = store.load("v", "d")
    assert (found.data, found.acknowledged_horizon, found.is_missing) == (None, 200, True)


def test_acknowledgements_never_go_back(store: CheckpointStore) -> None:
    store.note_acknowledged("v", "d", 2, 5, 200)
    store.note_acknowledged("v", "d", 1, 9, 100)
    store.save("v", "d", 2, 6, b"later")
    assert store.load("v", "d").acknowledged_horizon == 200
    with pytest.raises(CheckpointFailed, match="epoch"):
        store.save("v", "d", 2, 4, b"older than the acknowledged one")


def test_an_unreadable_acknowledgement_leaves_only_the_newest(store: CheckpointStore) -> None:
    store.save("v", "d", 1, 1, b"one")
    store.note_acknowledged("v", "d", 1, 1, 100)
    store.save("v", "d", 1, 2, b"two")
    damage(store, "durable")
    found = store.load("v", "d")
    assert (found.data, found.acknowledged_horizon) == (b"two", TICK_MAX)
    damage(store, "1-2.checkpoint")
    assert (store.load("v", "d").data, store.load("v", "d").is_missing) == (None, True)
    store.note_acknowledged("v", "d", 1, 3, 300)
    assert store.load("v", "d").acknowledged_horizon == 300


def test_a_child_of_an_earlier_incarnation_comes_too_late(store: CheckpointStore) -> None:
    store.save("v", "d", 2, 1, b"new")
    with pytest.raises(CheckpointFailed, match="epoch"):
        store.save("v", "d", 1, 7, b"late")
    assert store.load("v", "d").data == b"new"


FORKING = """
import os, sys
from runtime.checkpoints import store as stores
from runtime.checkpoints.store import CheckpointStore
store = CheckpointStore(sys.argv[1])
child = os.fork()
if child == 0:
    store.save("v", "d", 1, 1, b"state" * 1000)
    store.note_acknowledged("v", "d", 1, 1, 7)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_saves(store: CheckpointStore) -> None:
    """In a process of its own: whoever runs the tests may have threads, and then forking is not wise."""
    subprocess.run([sys.executable, "-c", FORKING, str(store.folder)], check=True, timeout=60)
    assert (store.load("v", "d").data, store.load("v", "d").acknowledged_horizon) == (b"state" * 1000, 7)


def test_every_truncation_is_noticed(store: CheckpointStore) -> None:
    store.save("v", "d", 1, 1, b"state")
    (path,) = store.folder.glob("*/1-1.checkpoint")
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert store.load("v", "d").data is None
    for at in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[at // 8] ^= 1 << at % 8
        path.write_bytes(flipped)
        assert store.load("v", "d").data is None
    path.write_bytes(whole)
    assert store.load("v", "d").data == b"state"


def test_no_room_leaves_the_old_one(store: CheckpointStore) -> None:
    store.save("v", "d", 1, 1, b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(CheckpointFailed):
            store.save("v", "d", 1, 2, bytes(5000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert store.load("v", "d").data == b"old"
    assert [path.name for path in store.folder.glob("*/*.tmp")] == []
    store.save("v", "d", 1, 2, bytes(5000))
    assert store.load("v", "d").data == bytes(5000)


def test_a_child_of_a_killed_incarnation_replaces_what_is_being_loaded(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between looking which there are and reading: its own is newer, and as good. Nothing would not be."""
    store.save("v", "d", 1, 1, b"one")
    store.note_acknowledged("v", "d", 1, 1, 10)
    read = stores._read

    def read_late(path: Path, expected: list[object]) -> bytes | None:
        monkeypatch.setattr(stores, "_read", read)
        child = CheckpointStore(store.folder)
        child.save("v", "d", 1, 2, b"two")
        child.note_acknowledged("v", "d", 1, 2, 20)
        return read(path, expected)

    monkeypatch.setattr(stores, "_read", read_late)
    found = store.load("v", "d")
    assert (found.data, found.acknowledged_horizon, found.is_missing) == (b"two", 20, False)
    assert store.counters["checkpoints_damaged"] == 0


def test_a_child_of_a_killed_incarnation_writes_where_all_is_removed(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save("v", "old", 1, 1, b"one")
    unlink = Path.unlink

    def unlink_early(path: Path, missing_ok: bool = False) -> None:
        unlink(path, missing_ok=missing_ok)
        (path.parent / "1-2.checkpoint.7.tmp").touch()

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", unlink_early)
        store.clean({"v": "new"})
    store.clean({"v": "new"})
    assert list(store.folder.iterdir()) == []


def test_too_many_open_files_are_no_damage(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save("v", "d", 1, 1, b"state")
    store.note_acknowledged("v", "d", 1, 1, 10)

    def refused(_path: Path) -> bytes:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", refused)
        with pytest.raises(OSError, match="Too many open files"):
            store.load("v", "d")
        assert store.acknowledged("v", "d") == TICK_MAX
        with pytest.raises(CheckpointFailed, match="Too many open files"):
            store.save("v", "d", 1, 2, b"other")
    assert (store.load("v", "d").data, store.counters["checkpoints_damaged"]) == (b"state", 0)
