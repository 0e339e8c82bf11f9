"""Goal: a view computed by Spark at a tick is the view that the engine had then, from the archive, the log, or both."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import smile
from runtime.batch import Batch
from runtime.bulk.archive import archive_logs
from runtime.bulk.manifest import read_manifest
from runtime.log.reader import LoggedStream, LogReader
from smile.bulk import recompute as recomputing
from smile.bulk.recompute import plan_of, recompute
from smile.bulk.sources import Sources
from smile.bulk.verify import compare, cut_of, verify
from smile.cli import app
from smile.cli.exits import Exit
from tests.bulk.archives import archive as archive_plainly
from tests.bulk.test_archive_gaps import Log

TICKETS = Path(__file__).parents[2] / "examples" / "tickets" / "tickets.mpl"


def traffic(system: smile.System, rng: Random, events: int) -> None:
    for _ in range(events):
        item = rng.randrange(20)
        if rng.random() < 0.2:
            try:
                system.publish("Sellers", {"item_id": item, "price": f"{rng.randrange(1000)}.50", "qty": 50})
            except smile.PublishError:
                continue
        else:
            stream = rng.choice(("BuyersEast", "BuyersWest"))
            system.publish(stream, {"item_id": item, "qty": rng.randrange(1, 9)})


def test_views_are_what_they_were(spark: SparkSession, tmp_path: Path) -> None:
    data, archive = tmp_path / "data", tmp_path / "archive"
    program = smile.compile(TICKETS)
    rng = Random(7)
    with smile.run(program, data=data) as system:
        traffic(system, rng, 120)
        earlier, earlier_rows = cut_of(system, "Available")
        archive_logs(spark, archive, [data])
        traffic(system, rng, 120)
        logs, both = Sources(None, (data,)), Sources(archive, (data,))
        # The newest state, from the log alone and from archive and log; and the past, which the archive has.
        for sources in (logs, both):
            found = recompute(spark, program, "Available", sources)
            assert compare(found, system.rows("Available")).differences == ()
        then = recompute(spark, program, "Available", Sources(archive, ()), as_of=earlier)
        assert compare(then, earlier_rows).differences == ()
        assert earlier_rows != system.rows("Available")
        verdict = verify(spark, system, "Available", both)
        assert verdict.is_right
        assert verdict.rows == len(system.rows("Available"))
    shown = {row["item_id"]: row["price"] for row in found.frame.collect()}
    assert shown == {row["item_id"]: row["price"] for row in found.frame.toPandas().to_dict("records")}


def test_a_wrong_row_is_found(spark: SparkSession, tmp_path: Path) -> None:
    program = smile.compile("stream S(a int, d decimal(8,2)); view V = from S |> aggregate t := sum(d) group by a;")
    with smile.run(program, data=tmp_path) as system:
        system.publish_many("S", [{"a": number % 3, "d": "1.25"} for number in range(9)])
        found = recompute(spark, program, "V", Sources(None, (tmp_path,)))
        rows = system.rows("V")
    assert compare(found, rows).is_right
    wrong = [{**rows[0], "t": rows[1]["t"] * 2}, rows[1]]  # type: ignore[operator]
    verdict = compare(replace(found, as_of=5), wrong)
    assert [difference.key for difference in verdict.differences] == [(0,), (2,)]
    assert verdict.differences[1].live is None


def test_unknown_views_and_missing_events_are_named(spark: SparkSession, tmp_path: Path) -> None:
    program = smile.compile("stream S(a int); view V = from S |> aggregate n := count();")
    with pytest.raises(smile.UnknownName, match="no view `W`"):
        plan_of(program, "W")
    with pytest.raises(smile.SmileError, match="no events of stream `S` in nowhere"):
        recompute(spark, program, "V", Sources(None, ()), as_of=3)


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ("a decimal(10,2), b int null, c enum('x', 'y')", ""),
        ("a decimal(10,2), b int null, c text", ""),
        ("a decimal(10,4), b int null, c text", r"`a` .* was logged as decimal\(10,2\).* says decimal\(10,4\)"),
        ("a text, b int null, c text", "`a` .* says text"),
        ("a decimal(10,2), b duration null, c text", "`b` .* says duration null"),
        ("a decimal(10,2), b int, c text", "`b` .* was logged as int null, and the program says int;"),
    ],
)
def test_a_program_that_means_other_columns_is_refused(
    spark: SparkSession, tmp_path: Path, declared: str, problem: str
) -> None:
    logged = smile.compile("stream S(a decimal(10,2), b int null, c enum('x', 'y')); view V = from S;")
    with smile.run(logged, data=tmp_path) as system:
        system.publish("S", {"a": "12.50", "b": None, "c": "x"})
        rows = system.rows("V")
    program, sources = smile.compile(f"stream S({declared}); view V = from S;"), Sources(None, (tmp_path,))
    if not problem:
        assert recompute(spark, program, "V", sources).rows() == rows
        return
    with pytest.raises(smile.SmileError, match=problem):
        recompute(spark, program, "V", sources)


@pytest.mark.parametrize("by_workers", [True, False])
def test_what_leaves_the_log_meanwhile_comes_from_the_archive(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, by_workers: bool
) -> None:
    log, archive, read = Log(tmp_path / "log"), tmp_path / "archive", LogReader.batches
    log.publish(1, 2)
    archive_plainly(archive, log.directory.folder)
    log.publish(3, 4, 5)

    def archive_and_trim() -> None:
        archive_plainly(archive, log.directory.folder)
        log.trim(40)

    def trimmed(reader: LogReader, stream: LoggedStream, first: int, last: int) -> Iterator[Batch]:
        with monkeypatch.context() as unpatched:
            unpatched.setattr(LogReader, "batches", read)
            archive_and_trim()
        return read(reader, stream, first, last)

    program = smile.compile("stream S(a int); view V = from S |> aggregate n := count(), t := sum(a);")
    if by_workers:
        monkeypatch.setattr(recomputing, "LOCAL_EVENTS_MAX", 0)
    else:
        monkeypatch.setattr(LogReader, "batches", trimmed)
    found = recompute(spark, program, "V", Sources(archive, (log.directory.folder,)))
    if by_workers:  # it reads when the frame is used
        archive_and_trim()
    assert found.rows() == [{"n": 10, "t": 35}]
    log.directory.close()


@pytest.mark.usefixtures("spark")
def test_what_is_missing_or_damaged_is_said_in_one_line(tmp_path: Path) -> None:
    program, data, archive = tmp_path / "p.mpl", tmp_path / "data", tmp_path / "archive"
    program.write_text("stream S(a int); view V = from S |> aggregate n := count();")

    def said() -> str:
        places = ["--program", str(program), "--data", str(data), "--archive", str(archive)]
        done = CliRunner().invoke(app, ["recompute", "V", *places])
        assert (done.exit_code, isinstance(done.exception, SystemExit)) == (Exit.FAILED, True), repr(done.exception)
        return done.stderr.splitlines()[-1]

    with smile.run(smile.compile(program), data=data) as system:
        system.publish("S", {"a": 1})
        archive_plainly(archive, data)
        system.publish("S", {"a": 2})
    (file,) = (archive / path for path in read_manifest(archive).paths)
    file.rename(tmp_path / "kept")
    assert "Path does not exist" in said()
    assert "restore it from a copy" in said()
    file.write_bytes((tmp_path / "kept").read_bytes()[:-20])
    assert "restore it from a copy; `smile archive --check` says which are damaged" in said()
    (tmp_path / "kept").rename(file)
    with sqlite3.connect(data / "events.sqlite") as connection:
        connection.execute("update batches set checksum = checksum + 1")
    assert "is damaged; `smile repair" in said()
    (manifest,) = (archive / "manifests").glob("*.json")
    manifest.write_text("{")
    assert "0000000001.json cannot be read" in said()
