"""Goal: the archive has every logged event exactly once, whatever interrupts it, and Spark reads it as it was."""

from __future__ import annotations

import math
import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

import smile
from bench.archive import measure
from runtime.bulk import archive as archiving
from runtime.bulk.archive import archive_logs, compact
from runtime.bulk.archive_files import verify_files
from runtime.bulk.manifest import (
    ArchiveBusy,
    ArchivedFile,
    ArchivedStream,
    ArchiveError,
    Manifest,
    read_manifest,
    write_manifest,
)
from runtime.bulk.source import EventStreamReader, SmileSource
from runtime.log.reader import LogReader
from runtime.log.stream_log import LogCorrupt
from smile.bulk.recompute import recompute
from smile.bulk.sources import Sources
from smile.cli.histories import find_sources
from tests.bulk.archives import archive as plainly
from tests.bulk.archives import ticks_in
from tests.bulk.test_archive_gaps import Log

PROGRAM = """
stream Trades(
    id int, price decimal(10,2), at time, side enum('buy', 'sell'), note text null, ok bool, x float, d duration
);
view Sides = from Trades |> aggregate n := count(), worth := sum(price) group by side;
"""


def trade(number: int) -> dict[str, object]:
    return {
        "id": number,
        "price": Decimal(number) / 4,
        "at": f"2026-01-01 00:00:{number % 60:02}",
        "side": "buy" if number % 3 else "sell",
        "note": None if number % 5 == 0 else f"n{number}\n",
        "ok": number % 2 == 0,
        "x": number / 8,
        "d": timedelta(seconds=number),
    }


def publish(data: Path, numbers: range, size: int = 100) -> None:
    with smile.run(smile.compile(PROGRAM), data=data) as system:
        rows = [trade(number) for number in numbers]
        for start in range(0, len(rows), size):
            system.publish_many("Trades", rows[start : start + size])


def read(spark: SparkSession, **options: str) -> list[tuple[object, ...]]:
    spark.dataSource.register(SmileSource)
    frame = spark.read.format("smile").options(stream="Trades", **options).load()
    return sorted(tuple(row) for row in frame.collect())


def test_events_come_back_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    data, archive = tmp_path / "data", tmp_path / "archive"
    publish(data, range(1, 251))
    (done,) = archive_logs(spark, archive, [data])
    assert (done.stream, done.events) == ("Trades", 250)
    assert verify_files(archive) == []
    archived = read(spark, archive=str(archive))
    assert archived == read(spark, data=str(data))
    assert [row[1] for row in archived] == list(range(1, 251))
    tick, number, price, at, side, note, ok, x, duration = archived[14]
    assert (number, price, side, note, ok, x, duration) == (15, Decimal("3.75"), "sell", None, False, 1.875, 15_000_000)
    assert str(at).startswith("2026-01-01 00:00:15")
    assert isinstance(tick, int)
    horizon = read_manifest(archive).streams["Trades"].horizon
    with LogReader(data) as reader:
        assert reader.streams()["Trades"].last_tick == horizon


def test_a_stream_may_have_any_column_names(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tick` is what the archive calls the tick elsewhere; and Spark, by itself, takes `a` for `A`."""
    data, archive = tmp_path / "data", tmp_path / "archive"
    monkeypatch.setattr(archiving, "COMPACT_FILES_MIN", 2)
    program = smile.compile(
        "stream S(tick int, a int, A int); view V = from S |> aggregate t := sum(tick), x := max(a), y := max(A);"
    )
    with smile.run(program, data=data) as system:
        system.publish("S", {"tick": 1, "a": 10, "A": 100})
        archive_logs(spark, archive, [data])
        system.publish("S", {"tick": 2, "a": 20, "A": 200})
        plainly(archive, data)
        assert compact(spark, archive) == 1
        last = system.publish("S", {"tick": 4, "a": 40, "A": 400})
        found = recompute(spark, program, "V", Sources(archive, (data,))).rows()
        assert found == system.rows("V") == [{"t": 7, "x": 40, "y": 400}]
        before = recompute(spark, program, "V", Sources(archive, (data,)), as_of=last - 1).rows()
        assert before == [{"t": 3, "x": 20, "y": 200}]
    spark.dataSource.register(SmileSource)
    options = {"stream": "S", "archive": str(archive), "data": str(data), "pushdown": "true"}
    frame = spark.read.format("smile").options(**options).load()
    assert frame.columns == ["tick_", "tick", "a", "A"]
    assert [tuple(row)[1:] for row in frame.where(f"tick_ >= {last}").collect()] == [(4, 40, 400)]


def test_a_new_column_that_is_called_as_the_ticks_are_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    data, archive = tmp_path / "data", tmp_path / "archive"
    with smile.run(smile.compile("stream S(a int);"), data=data) as system:
        system.publish("S", {"a": 1})
        plainly(archive, data)
    grown = smile.compile("stream S(a int, tick int null); view V = from S |> aggregate n := count();")
    with smile.run(grown, data=data) as system:
        system.publish("S", {"a": 2, "tick": 3})
    with pytest.raises(ArchiveError, match="new column is called `tick`"):
        plainly(archive, data)
    with pytest.raises(smile.SmileError, match="has got a column `tick`"):
        recompute(spark, grown, "V", Sources(archive, (data,)))
    with pytest.raises(Exception, match="has got a column `tick`"):
        SmileSource({"stream": "S", "archive": str(archive), "data": str(data)}).schema()


def test_files_are_of_this_machine_and_their_paths_absolute(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster's default file system is another one, and its processes run in other folders."""
    folder = tmp_path / "a b%20c" / "[1]{x,y}*?\\"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(archiving, "COMPACT_FILES_MIN", 2)
    program = smile.compile("stream `my S`(a int); view V = from `my S` |> aggregate n := count();")
    spark.conf.set("fs.defaultFS", "hdfs://127.0.0.1:9/")
    try:
        with smile.run(program, data=Path("data")) as system:
            for _ in range(2):
                system.publish("my S", {"a": 1})
                archive_logs(spark, Path("archive"), [Path("data")])
            assert compact(spark, Path("archive")) == 1
            system.publish("my S", {"a": 1})
            assert recompute(spark, program, "V", find_sources(Path("archive"), [Path("data")])).rows() == [{"n": 3}]
    finally:
        spark.conf.unset("fs.defaultFS")
    found = find_sources(Path("archive"), [Path("data")])
    assert (found.archive, found.folders) == (Path.cwd() / "archive", (Path.cwd() / "data",))
    origin = SmileSource({"stream": "my S", "archive": "archive", "data": "data"})._origin()
    assert all(Path(piece.place).is_absolute() for piece in origin.pieces(0, 2**62))


def test_a_second_run_adds_only_what_is_new(spark: SparkSession, tmp_path: Path) -> None:
    data, archive = tmp_path / "data", tmp_path / "archive"
    publish(data, range(1, 101))
    plainly(archive, data)
    assert archive_logs(spark, archive, [data])[0].events == 0
    publish(data, range(101, 181))
    assert archive_logs(spark, archive, [data])[0].events == 80
    # Both at once: what the archive has is not read from the log again.
    assert [row[1] for row in read(spark, archive=str(archive), data=str(data))] == list(range(1, 181))


class Killed(Exception):
    pass


@pytest.mark.parametrize("moment", ["before the move", "after one move", "before the manifest", "after the manifest"])
def test_interrupted_anywhere_each_event_is_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    log, archive = Log(tmp_path / "data"), tmp_path / "archive"
    log.publish(1, 2)
    plainly(archive, log.directory.folder)
    log.publish(3, 4)
    calls = 0

    def dying(function: Callable[..., None], after: int, *, before: bool) -> Callable[..., None]:
        def call(*arguments: object) -> None:
            nonlocal calls
            calls += 1
            if calls == after and before:
                raise Killed
            function(*arguments)
            if calls == after:
                raise Killed

        return call

    with monkeypatch.context() as patched:
        if "move" in moment:
            patched.setattr(os, "replace", dying(os.replace, 1, before="before" in moment))
        else:
            patched.setattr(archiving, "write_manifest", dying(write_manifest, 1, before="before" in moment))
        with pytest.raises(Killed):
            plainly(archive, log.directory.folder)
    assert ticks_in(archive) == [10, 11, 20, 21] + ([30, 31, 40, 41] if moment == "after the manifest" else [])
    plainly(archive, log.directory.folder)
    log.directory.close()
    assert ticks_in(archive) == [10, 11, 20, 21, 30, 31, 40, 41]
    named = read_manifest(archive).paths
    assert {str(path.relative_to(archive)) for path in (archive / "streams").rglob("*.parquet")} == named


def test_small_files_are_compacted_and_nothing_changes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, archive = tmp_path / "data", tmp_path / "archive"
    monkeypatch.setattr(archiving, "COMPACT_FILES_MIN", 3)
    for start in range(1, 81, 20):
        publish(data, range(start, start + 20))
        plainly(archive, data)
    before = read(spark, archive=str(archive))
    assert len(read_manifest(archive).paths) == 4
    told: list[tuple[str, int]] = []

    def watch(stream: str, events: int) -> AbstractContextManager[None]:
        told.append((stream, events))
        return nullcontext()

    assert compact(spark, archive, rows=1_000, watch=watch) == 3
    assert [events for _, events in told] == [80]
    assert len(read_manifest(archive).paths) == 1
    assert len(read_manifest(archive).retired) == 4, "readers that began before still have them"
    assert read(spark, archive=str(archive)) == before
    assert verify_files(archive) == []


@pytest.mark.parametrize("seed", range(3))
def test_an_event_is_rewritten_a_few_times_only(seed: int) -> None:
    """Rounds of any size, each followed by compaction."""
    chance, files, rewritten, rounds, largest = random.Random(seed), list[ArchivedFile](), 0, 3_000, 5_000
    for tick in range(rounds):
        files.append(ArchivedFile("", tick, tick, chance.choice([1, 10, chance.randrange(1, 60)]), 0, ""))
        while run := archiving._small_run(files, largest):
            at, count = files.index(run[0]), sum(file.rows for file in run)
            assert files[at : at + len(run)] == list(run)
            assert count <= largest
            files[at : at + len(run)] = [ArchivedFile("", run[0].first_tick, run[-1].last_tick, count, 0, "")]
            rewritten += count
    events, sizes = sum(file.rows for file in files), int(math.log(largest, archiving.COMPACT_FILES_MIN)) + 1
    assert rewritten <= events * sizes
    assert len(files) <= events / (largest / 2) + archiving.COMPACT_FILES_MIN * sizes
    assert [file.first_tick for file in files[1:]] == [file.last_tick + 1 for file in files[:-1]]


def test_ticks_and_columns_are_pruned(spark: SparkSession, tmp_path: Path) -> None:
    data = tmp_path / "data"
    publish(data, range(1, 101), size=10)
    spark.dataSource.register(SmileSource)
    frame = (
        spark.read.format("smile").options(stream="Trades", data=str(data), columns="tick,id", pushdown="true").load()
    )
    ticks = {row["id"]: row["tick"] for row in frame.collect()}
    assert frame.columns == ["tick", "id"]
    some = frame.where(f"tick >= {ticks[31]} and tick < {ticks[61]}")
    assert sorted(row["id"] for row in some.collect()) == list(range(31, 61))


def test_a_stream_query_takes_what_comes_in_bounded_steps(spark: SparkSession, tmp_path: Path) -> None:
    data, sink = tmp_path / "data", tmp_path / "sink"
    publish(data, range(1, 101), size=10)
    spark.dataSource.register(SmileSource)
    query = (
        spark.readStream.format("smile")
        .options(stream="Trades", data=str(data), columns="id", maxEventsPerTrigger="30")
        .load()
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "progress"))
        .start(str(sink))
    )
    try:
        query.processAllAvailable()
        publish(data, range(101, 121))
        query.processAllAvailable()
        batches = [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]
    finally:
        query.stop()
    assert sorted(row["id"] for row in spark.read.parquet(str(sink)).collect()) == list(range(1, 121))
    assert len(batches) >= 3


def test_what_is_available_now_is_taken_in_bounded_steps_and_no_more(spark: SparkSession, tmp_path: Path) -> None:
    data, sink = tmp_path / "data", tmp_path / "sink"
    publish(data, range(1, 61), size=10)
    spark.dataSource.register(SmileSource)
    query = (
        spark.readStream.format("smile")
        .options(stream="Trades", data=str(data), columns="id", maxEventsPerTrigger="30")
        .load()
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "progress"))
        .trigger(availableNow=True)
        .start(str(sink))
    )
    query.awaitTermination()
    assert [one["numInputRows"] for one in query.recentProgress if one["numInputRows"]] == [30, 30]
    assert sorted(row["id"] for row in spark.read.parquet(str(sink)).collect()) == list(range(1, 61))
    origin = SmileSource({"stream": "Trades", "data": str(data)})._origin()
    reader, end = EventStreamReader(origin, ("id",), 0, 30), origin.latest()
    reader.prepareForTriggerAvailableNow()
    publish(data, range(61, 71))
    assert origin.latest() > end
    assert reader.latestOffset({"tick": -1}, ReadAllAvailable()) == {"tick": end}


def test_two_writers_cannot_both_be_next(tmp_path: Path) -> None:
    one = Manifest().with_stream("S", ArchivedStream((("a", "int"),), horizon=5))
    write_manifest(tmp_path, one)
    with pytest.raises(ArchiveBusy, match="manifest 1"):
        write_manifest(tmp_path, one)
    assert read_manifest(tmp_path) == one


def test_copies_beside_manifests_are_none(tmp_path: Path) -> None:
    write_manifest(tmp_path, Manifest(1, {"S": ArchivedStream((("a", "int"),), horizon=7)}))
    for name in ("0000000002 (copy).json", "2.json", "0000000002.json.bak"):
        (tmp_path / "manifests" / name).write_text("{")
    assert read_manifest(tmp_path).number == 1


def test_a_damaged_manifest_is_named(tmp_path: Path) -> None:
    write_manifest(tmp_path, Manifest().with_stream("S", ArchivedStream((("a", "int"),), horizon=5)))
    (path,) = (tmp_path / "manifests").glob("*.json")
    path.write_text(path.read_text().replace('"horizon": 5', '"horizon": 6'))
    with pytest.raises(ArchiveError, match=r"0000000001\.json cannot be read: its checksum"):
        read_manifest(tmp_path)


def test_a_damaged_log_stops_the_archive(spark: SparkSession, tmp_path: Path) -> None:
    data = tmp_path / "data"
    publish(data, range(1, 101))
    with LogReader(data) as reader:
        stream = reader.streams()["Trades"]
        assert sum(len(batch) for batch in reader.batches(stream, 0, stream.last_tick)) == 100

    with sqlite3.connect(data / "events.sqlite") as connection:
        connection.execute("update batches set checksum = checksum + 1")
    with LogReader(data) as reader, pytest.raises(LogCorrupt, match="is damaged"):
        list(reader.batches(stream, 0, stream.last_tick))
    with pytest.raises(Exception, match="is damaged"):
        archive_logs(spark, tmp_path / "archive", [data])
    assert read_manifest(tmp_path / "archive").streams == {}


def test_the_measurement_of_archiving_runs(spark: SparkSession, tmp_path: Path) -> None:
    """It counts and checks for itself what it has written."""
    runs = measure(spark, tmp_path, 3_000)
    assert [(run.what, run.events) for run in runs] == [
        ("the log, written", 3_000),
        ("all at once", 3_000),
        ("a tenth more", 1_000),
        ("compacted", 4_000),
    ]
    assert all(run.bytes_per_event > 1 for run in runs)
