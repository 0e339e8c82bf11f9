"""Goal: events that were archived before a column with a default was there have the default, wherever Spark reads them:
from older files, from newer ones, from both compacted into one, and from the log."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import smile
from runtime.bulk import archive as archiving
from runtime.bulk.archive import compact
from runtime.bulk.manifest import ArchiveError, read_manifest
from runtime.bulk.source import SmileSource
from smile.bulk.recompute import recompute
from smile.bulk.sources import Sources
from smile.bulk.verify import compare
from tests.bulk.archives import archive as plainly

BEFORE = "stream S (k int, q int);"
ADDED = r"""
    , i int[0..9] default 7, d decimal(5,2) default -0.50, w decimal(4,0) default 12, f float default 2.5e0,
    b bool default true, t text default 'it''s \n "ü"', e enum('x', 'y') default 'y',
    at time default time '1969-05-01 12:00:00.5', long duration default -90 s, n int null
"""
AFTER = BEFORE.replace("q int", f"q int{ADDED}") + "view V = from S |> project k, i, d, w, f, b, t, e, at, long, n;"
GIVEN = {"i": 1, "d": "1.00", "w": 5, "f": 0.5, "b": False, "t": "", "e": "x", "at": 0, "long": 1, "n": 3}


def read(spark: SparkSession, **options: str) -> dict[int, tuple[object, ...]]:
    spark.dataSource.register(SmileSource)
    rows = spark.read.format("smile").options(stream="S", **options).load().drop("tick").collect()
    assert len({row["k"] for row in rows}) == len(rows)
    return {row["k"]: tuple(row) for row in rows}


def test_older_events_have_the_default(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archiving, "COMPACT_FILES_MIN", 2)
    data, archive = tmp_path / "data", tmp_path / "archive"
    with smile.run(smile.compile(BEFORE), data=data) as system:
        system.publish_many("S", [{"k": k, "q": k} for k in range(3)])
    plainly(archive, data)
    program = smile.compile(AFTER)
    with smile.run(program, data=data) as system:
        system.publish_many("S", [{"k": 3, "q": 3}, {"k": 4, "q": 4, **GIVEN}])
        live = system.rows("V")
    assert len({tuple(row.values())[1:] for row in live}) == 2, "the default, and what was given"

    def check(sources: Sources, **options: str) -> None:
        found = recompute(spark, program, "V", sources)
        assert compare(found, live).is_right
        assert all(type(row["w"]) is type(live[0]["w"]) for row in found.rows())
        rows = read(spark, **options)
        assert [rows[k][2:] for k in range(4)] == [rows[3][2:]] * 4
        assert rows[3][2:4] == (live[3]["i"], live[3]["d"])
        assert rows[4][2:4] == (live[4]["i"], live[4]["d"])
        assert None not in rows[3][:-1]

    check(Sources(archive, (data,)), archive=str(archive), data=str(data))
    plainly(archive, data)
    assert read_manifest(archive).streams["S"].schema_version == 2
    check(Sources(archive, ()), archive=str(archive))
    assert compact(spark, archive, rows=1_000) == 1
    (path,) = read_manifest(archive).paths
    assert pq.read_table(archive / path).column("i").to_pylist() == [None, None, None, 7, 1]
    check(Sources(archive, ()), archive=str(archive))


def test_the_archive_refuses_another_default(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    for folder, default, reason in (
        ("one", 3, None),
        ("other", 4, "`b` is int default 3 in the log and .* would change"),
    ):
        with smile.run(smile.compile(f"stream S (a int, b int default {default});"), data=tmp_path / folder) as system:
            system.publish("S", {"a": 1})
        if reason is None:
            plainly(archive, tmp_path / folder)
        else:
            with pytest.raises(ArchiveError, match=reason):
                plainly(archive, tmp_path / folder)
