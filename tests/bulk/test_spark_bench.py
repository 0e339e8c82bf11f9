"""Goal: the benchmark of recomputation measures right answers over the files that the archiver would have written."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import smile
from bench import spark as bench
from bench._tickets_archive import write_archive
from bench.tickets import program_text
from bench.tickets_events import COASTS, generate
from runtime.bulk.archive import archive_logs
from runtime.bulk.archive_files import verify_files
from runtime.bulk.manifest import read_manifest

EVENTS = generate(3_001, 40)


def test_both_programs_are_right_and_wrong_ones_would_be_noticed(spark: SparkSession, tmp_path: Path) -> None:
    assert write_archive(tmp_path, EVENTS, file_rows=1_000) == 3_041
    assert verify_files(tmp_path) == []
    found = bench.compare(spark, tmp_path, EVENTS, rounds=1)
    assert found.ok
    assert found.events == 3_041
    view = EVENTS.available(EVENTS.buys)
    for missing in (0, 1):
        rows = [(item, Decimal(price), left) for item, (price, left) in view.items()][missing:]
        frame = spark.createDataFrame(rows, "item_id bigint, price decimal(10,2), avail bigint")
        assert bench.is_right(EVENTS, frame) == (not missing)


def test_the_archive_is_like_one_that_went_through_a_log(spark: SparkSession, tmp_path: Path) -> None:
    direct, archived, data = (tmp_path / name for name in ("direct", "archived", "data"))
    write_archive(direct, EVENTS)
    with smile.run(smile.compile(program_text()), data=data) as system:
        items = np.arange(EVENTS.item_count)
        system.publish_many("Sellers", {"item_id": items, "price": EVENTS.prices, "qty": EVENTS.offered})
        for phase, name in enumerate(COASTS):
            system.publish_many(name, {"item_id": EVENTS.items[phase::2], "qty": EVENTS.quantities[phase::2]})
    archive_logs(spark, archived, [data])
    for name, stream in read_manifest(archived).streams.items():
        same = read_manifest(direct).streams[name]
        assert same.columns == stream.columns
        (one,), (other,) = same.files, stream.files
        ours, theirs = pq.ParquetFile(direct / one.path), pq.ParquetFile(archived / other.path)
        for at in range(len(stream.columns) + 1):
            left, right = ours.schema.column(at), theirs.schema.column(at)
            assert (left.name, left.physical_type, str(left.logical_type)) == (
                right.name,
                right.physical_type,
                str(right.logical_type),
            )
        payload = [column for column, _ in stream.columns]
        assert ours.read(payload).to_pylist() == theirs.read(payload).to_pylist()
