"""Goal: nothing acknowledged is lost when the power goes, whenever that is; less strict modes lose an end, no more."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from runtime.log.sqlite import LogDirectory, Sync
from tests.log.damage import quick_folder
from tests.log.power import Round, cut_unsynced, cuts
from tests.log.recorded_disk import recorded


@pytest.mark.slow
def test_nothing_acknowledged_is_lost(cases: int) -> None:
    with quick_folder() as folder:
        moments, events = cuts(folder, 80 * cases, seed=7)
    assert len(moments) >= 3, "cuts while opening, while working, and after a commit that nobody was told of"
    assert events > 1000


@pytest.mark.parametrize("sync", ["interval", "never"])
def test_without_waiting_for_the_disk_a_tail_may_be_lost(cases: int, sync: Sync) -> None:
    lost = 0
    with quick_folder() as folder:
        for seed in range(20 * cases):
            place = folder / str(seed)
            place.mkdir()
            lost += cut_unsynced(place, sync, Random(seed))
    assert lost, "or nothing was tested"


def test_what_a_killed_process_left_on_its_way_is_synced_before_it_counts() -> None:
    """The process is killed, the next one opens the log, then the power goes: what it found counts only if it stays."""
    with quick_folder() as folder:
        place = folder / "disk"
        place.mkdir()
        with recorded(place) as recording:
            killed = Round(place, recording, Random(1), 1, "never")
            killed.work(12)
            os.close(killed.directory._lock)  # that much is left of it
            following = LogDirectory(place / "log", "never")
        for seed in range(20):
            left = folder / f"left{seed}"
            recording.cut(len(recording.operations), left, Random(seed))
            directory = LogDirectory(left / "log")
            assert directory.next_epoch() > killed.epoch
            directory.close()
        following.close()
        killed.directory._lock = os.open(place, os.O_RDONLY)
        killed.directory.close()


def test_the_recording_loses_what_was_not_synced(tmp_path: Path) -> None:
    """The tool itself: synced bytes stay, others may go, and a file that was never synced may vanish."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with recorded(folder) as recording:
        handle = os.open(folder / "a", os.O_RDWR | os.O_CREAT)
        os.pwrite(handle, b"x" * 2000, 0)
        os.fsync(handle)
        os.pwrite(handle, b"y" * 2000, 0)
        os.close(handle)
        handle = os.open(folder / "b", os.O_RDWR | os.O_CREAT)
        os.close(handle)
    seen = set()
    for seed in range(60):
        target = tmp_path / f"cut{seed}"
        target.mkdir()
        recording.cut(len(recording.operations), target, Random(seed))
        content = (target / "a").read_bytes()
        assert len(content) == 2000
        assert set(content) <= set(b"xy")
        seen.add((set(content) == set(b"x"), set(content) == set(b"y"), (target / "b").exists()))
    assert len(seen) >= 5
