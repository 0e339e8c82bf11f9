"""Goal: damaged files give the right answer or a clear stop, never another answer."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from runtime.batch import Batch
from runtime.log.acknowledged import read_acknowledged
from runtime.log.database import ACKNOWLEDGED_NAME, FILE_NAME, WAL_NAME
from runtime.log.sqlite import LogDirectory
from runtime.log.state import Seal, State
from tests.log.damage import Judge, flips, judge, quick_folder, random_places, run, truncations

FRAME_BYTES = 4096 + 24
SEAL_BYTES = 28
COMMITS = 13  # that `fill` makes


@pytest.fixture
def made() -> Iterator[Judge]:
    with quick_folder() as folder:
        yield judge(folder)


@pytest.mark.slow
def test_truncated_files(made: Judge, cases: int) -> None:
    verdicts = run(made, truncations(made.files, max(1, 1500 // cases)))
    assert verdicts["stopped"] > 100
    assert verdicts["right"] > 50, "some bytes are not in use"


@pytest.mark.slow
def test_flipped_bits(made: Judge, cases: int) -> None:
    verdicts = run(made, flips(made.files, random_places(made.files, Random(3), 250 * cases)))
    assert verdicts["stopped"] > 50
    assert verdicts["right"] > 50


def test_a_flipped_bit_in_the_newest_commits_is_noticed(made: Judge) -> None:
    """SQLite would take them for commits that were never finished."""
    wal = made.files[WAL_NAME]
    salts = wal[16:24]
    frames = [at for at in range(32, len(wal), FRAME_BYTES) if wal[at + 8 : at + 16] == salts]
    assert len(frames) > 8
    newest = [(WAL_NAME, 8 * at) for at in range(32, frames[-1] + FRAME_BYTES, 211)]
    assert run(made, flips(made.files, iter(newest))) == {"stopped": len(newest)}


def test_without_the_file_of_acknowledged_commits_only_the_newest_one_can_go(made: Judge) -> None:
    """A power loss can leave an old number there. All commits but the newest are still proved by those after them."""
    old = {**made.files, ACKNOWLEDGED_NAME: b""}
    outcomes: Counter[str] = Counter()
    for _, changed in flips(old, ((WAL_NAME, 8 * at) for at in range(32, len(old[WAL_NAME]), 997))):
        problem = ""
        try:
            outcomes[made.verdict({**old, **changed})] += 1
        except AssertionError as other:
            problem = str(other)
        if problem:  # only the reservation, which was the newest commit, may be missing
            assert "(2, 565, -1, " in problem
            outcomes["newest gone"] += 1
    assert set(outcomes) == {"stopped", "right", "newest gone"}
    assert outcomes["stopped"] > 5


@pytest.mark.parametrize("name", [FILE_NAME, WAL_NAME])
def test_a_missing_file_is_noticed(made: Judge, name: str) -> None:
    del made.files[name]
    assert made.verdict({}) == "stopped"


def test_an_older_copy_of_the_database_is_noticed(made: Judge, tmp_path: Path) -> None:
    """Somebody restores events.sqlite from a backup, without the log that belongs to it."""
    directory = LogDirectory(tmp_path / "older")
    directory.next_epoch()
    directory.close()
    assert made.verdict({FILE_NAME: (tmp_path / "older" / FILE_NAME).read_bytes(), WAL_NAME: b""}) == "stopped"


def test_the_file_of_acknowledged_commits_is_exact_after_a_crash_of_the_process(made: Judge, tmp_path: Path) -> None:
    path = tmp_path / "copy"
    path.write_bytes(made.files[ACKNOWLEDGED_NAME])
    assert read_acknowledged(path) == COMMITS


def test_the_judge_can_say_wrong(made: Judge) -> None:
    made.expected = [*made.expected[:-1], "something else"]  # type: ignore[index]
    with pytest.raises(AssertionError, match="another answer"):
        made.verdict({})


def test_an_event_cannot_pretend_that_commits_are_missing(tmp_path: Path) -> None:
    """Whoever may publish chooses texts and names of producers; what looks like a seal there is none."""
    number = 2**40
    while True:  # until the checksum is UTF-8, too
        seal = State(Seal(number, number), 0, ()).encode()[:SEAL_BYTES]
        try:
            text = seal.decode()
            break
        except UnicodeDecodeError:
            number += 1
    folder, copy = tmp_path / "log", tmp_path / "crashed"
    directory = LogDirectory(folder)
    log = directory.stream("S", [("t", "text")], producer_window=8)
    log.open(1)
    log.append(1, Batch.events([5], [[text]]), text, 1)
    shutil.copytree(folder, copy)
    directory.close()
    assert seal in (copy / WAL_NAME).read_bytes()
    directory = LogDirectory(copy)
    log = directory.stream("S", [("t", "text")], producer_window=8)
    assert log.open(2).publishes == ((text, 1, range(5, 6)),)
    directory.close()
