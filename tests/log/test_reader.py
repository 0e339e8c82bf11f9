"""Goal: who reads a log beside its owner gets every event once, and is told which ticks have left it meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.batch import Batch
from runtime.log import reader as reading
from runtime.log.reader import LoggedStream, LogReader, TicksGone
from runtime.log.sqlite import LogDirectory, SqliteLog

COLUMNS = [("a", "int")]


@pytest.fixture
def directory(tmp_path: Path) -> LogDirectory:
    return LogDirectory(tmp_path)


def filled(directory: LogDirectory, batches: int) -> SqliteLog:
    """Ticks 10, 20, ...: one batch each."""
    log = directory.stream("S", COLUMNS)
    log.open(1)
    for number in range(1, batches + 1):
        log.append(1, Batch.events([10 * number], [[number]]), "p", number)
    return log


def test_what_is_gone_and_what_is_there() -> None:
    stream = LoggedStream("S", 1, (("a", "int"),), last_tick=100, trimmed_tick=20, lost=((40, 49), (60, 60)))
    assert stream.gone(10, 70) == ((10, 20), (40, 49), (60, 60))
    assert stream.present(10, 70) == ((21, 39), (50, 59), (61, 70))
    assert stream.gone(21, 39) == ()
    assert stream.present(5, 4) == ()


def test_trimming_meanwhile_is_told_and_never_taken_for_damage(
    directory: LogDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = filled(directory, 10)
    monkeypatch.setattr(reading, "CHUNK_BYTES", 1)  # every batch is read by itself
    with LogReader(directory.folder) as reader:
        stream = reader.streams()["S"]
        found = reader.batches(stream, 0, 100)
        assert [next(found).max_ticks[0] for _ in range(3)] == [10, 20, 30]
        log.trim(30)
        directory.idle()
        assert next(found).max_ticks[0] == 40  # what it has read already may go
        log.trim(70)
        directory.idle()
        with pytest.raises(TicksGone, match=r"ticks 41\.\.70 are no longer in"):
            next(found)
        assert [batch.max_ticks[0] for batch in reader.batches(stream, 71, 100)] == [80, 90, 100]
    directory.close()


def test_the_checksum_at_a_tick_tells_one_log_from_another(directory: LogDirectory, tmp_path: Path) -> None:
    filled(directory, 3)
    other = LogDirectory(tmp_path / "other")
    log = other.stream("S", COLUMNS)
    log.open(1)
    log.append(1, Batch.events([30], [[4]]), "p", 1)
    with LogReader(directory.folder) as one, LogReader(other.folder) as two:
        here, there = one.streams()["S"], two.streams()["S"]
        assert one.checksum_at(here, 30) is not None
        assert one.checksum_at(here, 30) != two.checksum_at(there, 30)
        assert one.checksum_at(here, 31) is None
    directory.close()
    other.close()
