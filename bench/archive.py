"""How fast logs become Parquet: events a second and bytes per event, for one large run and for what came since.

    python -m bench.archive [--events 2000000]

The log is written directly, in batches of 1,000 events of two whole numbers, a decimal, a time and a text, as a broker
would. Times include Spark's jobs, checksums and the manifest, but not the start of Spark. Every event is counted
afterwards, and every file checked. On a busy machine look at the processor's time, which includes that of the JVM.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench import _report
from bench.spark import processor_s
from runtime.batch import Batch
from runtime.columns import numbers
from runtime.log.sqlite import LogDirectory

BATCH = 1_000
COLUMNS = [("item", "int"), ("qty", "int"), ("price", "decimal(10,2)"), ("at", "time"), ("shop", "text")]
SHOPS = [f"shop {number}" for number in range(50)]


@dataclass(frozen=True)
class Run:
    what: str
    events: int
    seconds: float
    processor_s: float
    bytes_per_event: float
    files: int

    @property
    def rate(self) -> float:
        return self.events / self.seconds


class _Watch:
    def __init__(self) -> None:
        self._began, self._spent = time.perf_counter(), processor_s()

    def run(self, what: str, events: int, size: int, files: int) -> Run:
        seconds, spent = time.perf_counter() - self._began, processor_s() - self._spent
        return Run(what, events, seconds, spent, size / events, files)


def fill(directory: LogDirectory, first: int, events: int, epoch: int) -> None:
    """Ticks are spread as a stream's are: 1,024 a microsecond."""
    log = directory.stream("Buys", COLUMNS, producer_window=64)
    log.open(epoch)
    random = np.random.default_rng(first)
    shops = [SHOPS[at] for at in random.integers(0, len(SHOPS), BATCH)]
    for start in range(first, first + events, 64 * BATCH):
        with directory.group():
            for begin in range(start, min(start + 64 * BATCH, first + events), BATCH):
                ticks = range((begin + 1) * 1024, (begin + BATCH + 1) * 1024, 1024)
                values = [
                    numbers(random.integers(0, 100_000, BATCH)),
                    numbers(random.integers(1, 100, BATCH)),
                    numbers(random.integers(100, 100_000, BATCH)),
                    numbers(1_700_000_000_000_000 + np.arange(begin, begin + BATCH) * 1_000),
                    shops,
                ]
                log.append(epoch, Batch.events(ticks, values), "bench", begin // BATCH)


def measure(spark: Any, folder: Path, events: int) -> list[Run]:
    from runtime.bulk.archive import archive_logs, compact
    from runtime.bulk.archive_files import verify_files
    from runtime.bulk.manifest import read_manifest

    directory = LogDirectory(folder / "log", sync="never")
    archive = folder / "archive"
    runs: list[Run] = []
    total = 0
    for what, count in (("all at once", events), ("a tenth more", max(BATCH, events // 10 // BATCH * BATCH))):
        began = _Watch()
        fill(directory, total, count, directory.next_epoch())
        if not total:
            runs.append(began.run("the log, written", count, directory.status()["log_file_bytes"], 1))
        total += count
        began = _Watch()
        (done,) = archive_logs(spark, archive, [folder / "log"])
        runs.append(began.run(what, done.events, done.bytes, done.files))
        assert done.events == count
    directory.close()
    began = _Watch()
    compact(spark, archive)
    stream = read_manifest(archive).streams["Buys"]
    runs.append(began.run("compacted", total, sum(file.bytes for file in stream.files), len(stream.files)))
    assert stream.rows == total, f"{stream.rows} events are archived of {total}"
    assert not verify_files(archive)
    return runs


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=2_000_000)
    options = parser.parse_args(arguments)
    from runtime.bulk.session import SparkSettings, session

    spark = session(SparkSettings("local[*]"))
    spark.range(1).count()
    with tempfile.TemporaryDirectory(prefix="smile-bench-") as folder:
        runs = measure(spark, Path(folder), max(BATCH, options.events // BATCH * BATCH))
    heads = ["what", "events", "seconds", "processor s", "events/s", "bytes/event", "files"]
    rows = [
        [one.what, one.events, one.seconds, one.processor_s, one.rate, one.bytes_per_event, one.files] for one in runs
    ]
    _report.print_table("From log to archive", heads, rows)
    _report.write_results("archive", [{**asdict(one), "rate": one.rate} for one in runs])


if __name__ == "__main__":
    main()
