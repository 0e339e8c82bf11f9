"""Archives made without Spark, for tests of what surrounds it: pyarrow writes the files that Spark would write."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from runtime.bulk import archive as archiving
from runtime.bulk.archive import Archived, archive_logs
from runtime.bulk.columns import arrow_schema, logged_columns, record_batch
from runtime.bulk.manifest import read_manifest
from runtime.log.reader import LogReader


class PlainFrame:
    """As much of a frame as the archive uses: it is written as one Parquet file."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.write = self

    def option(self, _name: str, _value: str) -> PlainFrame:
        return self

    def parquet(self, folder: str) -> None:
        target = Path(folder.removeprefix("file://"))
        target.mkdir(parents=True)
        pq.write_table(self.table, target / "part-0.parquet")


def _frame(_spark: Any, work: Any) -> PlainFrame:
    columns = logged_columns(work.stream.columns)
    with LogReader(work.folder) as reader:
        batches = [
            record_batch(columns, batch)
            for first, last in work.ranges
            for batch in reader.batches(work.stream, first, last)
        ]
    return PlainFrame(pa.Table.from_batches(batches, arrow_schema(columns)))


@contextmanager
def without_spark() -> Iterator[None]:
    with mock.patch.object(archiving, "_frame", _frame):
        yield


def archive(target: Path, *folders: Path, accept_gaps: bool = False) -> list[Archived]:
    with without_spark():
        return archive_logs(mock.Mock(), target, folders, accept_gaps=accept_gaps)


def ticks_in(target: Path) -> list[int]:
    """Of all files that the manifest names, of all streams."""
    found: list[int] = []
    for path in read_manifest(target).paths:
        found += pq.read_table(target / path, columns=["tick"]).column("tick").to_pylist()
    return sorted(found)


def main() -> None:
    """Archive the log in the second folder into the first, again and again, until somebody kills it."""
    target, folder = map(Path, sys.argv[1:])
    while True:
        archive(target, folder)


if __name__ == "__main__":
    main()
