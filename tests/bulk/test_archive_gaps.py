"""Goal: the archive continues the log it began with and no other, says what it lacks, and deletes no only copy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from runtime.batch import Batch
from runtime.bulk import manifest as manifests
from runtime.bulk.archive_files import written
from runtime.bulk.manifest import RETIRED_KEPT_S, ArchivedFile, ArchivedStream, ArchiveError, Manifest, read_manifest
from runtime.bulk.source import SmileSource, SourceError
from runtime.log.sqlite import LogDirectory, SqliteLog
from runtime.protocol.coverage import Coverage
from runtime.values import Value
from smile.bulk.as_of import require_events
from smile.bulk.sources import Sources
from smile.deploy.backfill import histories
from smile.errors import SmileError
from tests.bulk import archives
from tests.bulk.archives import PlainFrame, archive, ticks_in

COLUMNS = [("a", "int")]


class Log:
    """A stream of one column; batches of two events, at ticks 10 and 11, 20 and 21, ..."""

    def __init__(self, folder: Path, columns: list[tuple[str, str]] = COLUMNS) -> None:
        self.directory = LogDirectory(folder)
        self.epoch = self.directory.next_epoch()
        self.log: SqliteLog = self.directory.stream("S", columns)
        self.log.open(self.epoch)
        self.width = len(columns)

    def publish(self, *numbers: int) -> None:
        for number in numbers:
            nulls: list[list[Value]] = [[None, None]] * (self.width - 1)
            self.log.append(
                self.epoch, Batch.events([10 * number, 10 * number + 1], [[number, number + 1], *nulls]), "p", number
            )

    def lose(self, *lost: tuple[int, int]) -> None:
        """As a repair does that cannot save some batches."""
        state = self.directory._state
        self.directory._state = replace(state, positions=(replace(state.positions[0], lost=lost),))
        for first, last in lost:
            self.directory.connection.execute(
                "delete from batches where last_tick >= ? and first_tick <= ?", (first, last)
            )
        self.log.reserve(self.epoch, 0)

    def trim(self, tick: int) -> None:
        self.log.trim(tick)
        self.directory.idle()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    made = Log(tmp_path / "log")
    yield made
    made.directory.close()


def stream_in(target: Path) -> ArchivedStream:
    return read_manifest(target).streams["S"]


def test_lost_ticks_are_gaps_and_are_filled_when_the_log_has_them_again(log: Log, tmp_path: Path) -> None:
    target = tmp_path / "archive"
    log.publish(1, 2, 3, 4)
    log.lose((15, 25))
    (done,) = archive(target, log.directory.folder)
    assert (done.events, done.horizon, done.gaps) == (6, 41, ((15, 25),))
    assert ticks_in(target) == [10, 11, 30, 31, 40, 41]
    found = stream_in(target)
    assert found.complete_tick == 14
    assert found.gaps_in(0, 20) == ((15, 20),)
    assert found.gaps_in(26, 100) == ()
    # A state that goes on cannot do without them, and is told what helps.
    sources, status = Sources(target, (log.directory.folder,)), {"b": {"components": {"S": {"horizon_tick": 41}}}}
    assert "smile repair DIR --accept-loss" in histories(["S"], status, sources)["S"].missing
    # Somebody has said that the loss is to be accepted: then these ticks are silence, and no gap.
    log.lose()
    assert archive(target, log.directory.folder)[0].gaps == ()
    assert histories(["S"], status, sources)["S"].missing == ""
    assert stream_in(target).complete_tick == 41
    assert len(ticks_in(target)) == 6


def test_events_that_were_trimmed_too_early_are_told_and_go_missing_only_if_that_is_accepted(
    log: Log, tmp_path: Path
) -> None:
    target = tmp_path / "archive"
    log.publish(1)
    archive(target, log.directory.folder)
    log.publish(2, 3, 4)
    log.trim(30)  # in the middle of a batch
    with pytest.raises(ArchiveError, match=r"trimmed up to tick 30, .* ends at 11\. .*--accept-gaps"):
        archive(target, log.directory.folder)
    assert stream_in(target).horizon == 11
    (done,) = archive(target, log.directory.folder, accept_gaps=True)
    assert (done.events, done.gaps) == (3, ((12, 30),))
    assert ticks_in(target) == [10, 11, 31, 40, 41]
    assert archive(target, log.directory.folder)[0].events == 0


def test_another_log_of_the_same_name_is_refused(log: Log, tmp_path: Path) -> None:
    target = tmp_path / "archive"
    log.publish(1, 2)
    archive(target, log.directory.folder)
    other = Log(tmp_path / "other")
    other.publish(1, 2, 3)
    other.directory.connection.execute("update batches set body = x'00' where last_tick = 21")
    with pytest.raises(ArchiveError, match=r"is not of the log in .*other"):
        archive(target, other.directory.folder)
    other.directory.close()


def test_an_archive_and_a_log_that_are_not_of_one_stream_are_not_read_together(log: Log, tmp_path: Path) -> None:
    """Somebody has begun anew with empty data folders, and the archive of before is still there."""
    target, here = tmp_path / "archive", log.directory.folder
    log.publish(1, 2)
    archive(target, here)
    other = Log(tmp_path / "other")
    other.publish(4)
    there = other.directory.folder
    wanted = {"S": Coverage.prefix(41)}
    with pytest.raises(SmileError, match=r"is not of the log in .*other.* `S` .*at tick 21 .*name another one"):
        require_events(Sources(target, (there,)), wanted)
    with pytest.raises(SourceError, match=r"is not of the log in .*other"):
        SmileSource({"stream": "S", "archive": str(target), "data": str(there)})._origin()
    assert require_events(Sources(tmp_path / "new", (there,)), wanted) == 2
    # The log that it is of may have forgotten the events by which one could tell.
    log.publish(3)
    log.trim(21)
    assert require_events(Sources(target, (here,)), {"S": Coverage.prefix(31)}) == 6
    SmileSource({"stream": "S", "archive": str(target), "data": str(here)})._origin()
    other.directory.close()


def test_a_stream_without_events_is_known_to_have_none(log: Log, tmp_path: Path) -> None:
    target = tmp_path / "archive"
    (done,) = archive(target, log.directory.folder)
    assert (done.events, done.horizon) == (0, -1)
    alone = Sources(target, ())
    assert (alone.columns_of("S"), alone.latest(["S"])) == (tuple(COLUMNS), {"S": -1})
    assert require_events(alone, {"S": Coverage.prefix(50)}, archive_is_all=True) == 0
    log.publish(1)
    assert archive(target, log.directory.folder)[0].events == 2
    assert ticks_in(target) == [10, 11]


def test_columns_may_be_added_and_nothing_else(log: Log, tmp_path: Path) -> None:
    target = tmp_path / "archive"
    log.publish(1)
    archive(target, log.directory.folder)
    log.directory.close()
    grown = Log(tmp_path / "log", [*COLUMNS, ("b", "text null")])
    grown.publish(2)
    assert archive(target, grown.directory.folder)[0].events == 2
    assert (stream_in(target).schema_version, stream_in(target).columns[-1]) == (2, ("b", "text null"))
    changed = Log(tmp_path / "changed", [("a", "text")])
    with pytest.raises(ArchiveError, match=r"column `a` is int .*Only columns at the end that are null"):
        archive(target, changed.directory.folder)
    changed.directory.close()
    log.directory = grown.directory  # the fixture closes it


@pytest.mark.parametrize("ticks", [[2, 1], [1, 1]])
def test_files_that_are_not_in_order_are_not_archived(tmp_path: Path, ticks: list[int]) -> None:
    with pytest.raises(ArchiveError, match="in another order"):
        written(tmp_path, "S", PlainFrame(pa.table({"tick": ticks})), "tick")  # type: ignore[arg-type]


def test_events_that_spark_has_lost_are_noticed(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log.publish(1, 2)
    monkeypatch.setattr(archives, "_frame", lambda *_: PlainFrame(pa.table({"tick": [10, 11, 20]})))
    with pytest.raises(ArchiveError, match="3 events were written, the log has 4"):
        archive(tmp_path / "archive", log.directory.folder)
    assert read_manifest(tmp_path / "archive").streams == {}


def test_going_back_to_an_older_manifest_deletes_no_only_copy(log: Log, tmp_path: Path) -> None:
    target = tmp_path / "archive"
    log.publish(1)
    archive(target, log.directory.folder)
    log.publish(2)
    archive(target, log.directory.folder)
    everything = {path.name for path in target.rglob("*.parquet")}
    newest = max((target / "manifests").glob("*.json"))
    kept = newest.read_bytes()
    newest.unlink()
    # The log has it all: it is archived again, and what is left over goes.
    archive(target, log.directory.folder)
    assert ticks_in(target) == [10, 11, 20, 21]
    # The log has trimmed it since: nothing is deleted, neither when that is noticed nor when it is accepted.
    log.trim(20)
    max((target / "manifests").glob("*.json")).unlink()
    with pytest.raises(ArchiveError, match="restore its newest manifest"):
        archive(target, log.directory.folder)
    archive(target, log.directory.folder, accept_gaps=True)
    assert stream_in(target).gaps == ((12, 20),)
    assert everything <= {path.name for path in target.rglob("*.parquet")}
    for path in (target / "manifests").glob("*.json"):
        path.unlink()
    newest.write_bytes(kept)
    assert ticks_in(target) == [10, 11, 20, 21]
    assert archive(target, log.directory.folder)[0].gaps == ()


def test_replaced_files_stay_for_a_while() -> None:
    old, new = (ArchivedFile(path, 0, 1, 2, 3, "") for path in ("old", "new"))
    first = Manifest().with_stream("S", ArchivedStream((("a", "int"),), files=(old,)), now_s=100)
    second = first.with_stream("S", ArchivedStream((("a", "int"),), files=(new,)), now_s=200)
    assert dict(second.retired) == {"old": 200}
    stream = second.streams["S"]
    assert dict(second.with_stream("S", stream, now_s=200 + RETIRED_KEPT_S - 1).retired) == {"old": 200}
    assert dict(second.with_stream("S", stream, now_s=200 + RETIRED_KEPT_S).retired) == {}


def test_old_manifests_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "MANIFESTS_KEPT", 3)
    for number in range(1, 7):
        manifests.write_manifest(tmp_path, Manifest(number))
    manifests.forget_old(tmp_path)
    assert manifests._numbers(tmp_path) == [4, 5, 6]
    assert manifests.newest_number(tmp_path) == 6
