"""The tickets view recomputed by Spark from an archive, beside the same view written in PySpark by hand.

    python -m bench.spark [--buys 1000000 10000000] [--rounds 7] [--master local[*]] [--folder DIR]
    python -m bench.spark --buys 1000000 10000000 50000000

Both programs run in one session, by turns, and their whole result is computed and dropped by Spark. A round counts
from the call that makes the frame; the program was compiled and the JVM started before. The best round of each counts:
the first ones pay for Java's compiler. Both views must be what an independent computation says. On a busy machine
compare the processor's time, which includes that of the JVM; the clock measures the neighbours.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from bench._report import print_table, write_results
from bench._tickets_archive import write_archive
from bench.by_hand.tickets import available
from bench.tickets import program_text
from bench.tickets_events import COASTS, TicketEvents, View, generate

VIEW = "Available"
GOAL = 1.2


@dataclass(frozen=True)
class Taken:
    """Seconds of one round."""

    clock: float
    processor: float


@dataclass(frozen=True)
class Compared:
    """Best rounds of the generated program and of the one written by hand; `ratio` by the processor's time."""

    events: int
    generated: Taken
    by_hand: Taken
    ok: bool

    @property
    def ratio(self) -> float:
        return self.generated.processor / self.by_hand.processor

    @property
    def clock_ratio(self) -> float:
        return self.generated.clock / self.by_hand.clock

    @property
    def cells(self) -> list[object]:
        clock = [self.generated.clock, self.by_hand.clock, self.clock_ratio]
        processor = [self.generated.processor, self.by_hand.processor, self.ratio]
        return [self.events, *clock, *processor, self.events / self.generated.clock, self.ok]


def processor_s() -> float:
    """Of this process, the JVM and whatever they have started."""
    me = psutil.Process()
    total = 0.0
    for one in (me, *me.children(recursive=True)):
        try:
            spent = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += spent.user + spent.system
    return total


def round_of(make: Callable[[], DataFrame]) -> Taken:
    started, spent = time.perf_counter(), processor_s()
    make().write.format("noop").mode("overwrite").save()
    return Taken(time.perf_counter() - started, processor_s() - spent)


def best(rounds: Iterable[Taken]) -> Taken:
    taken = list(rounds)
    return Taken(min(one.clock for one in taken), min(one.processor for one in taken))


def compare(spark: SparkSession, archive: Path, events: TicketEvents, rounds: int) -> Compared:
    """`archive` holds these events."""
    import smile
    from runtime.bulk.manifest import read_manifest
    from smile.bulk.recompute import recompute
    from smile.bulk.sources import Sources

    program = smile.compile(program_text())
    streams = read_manifest(archive).streams

    def paths(*names: str) -> list[str]:
        return [str(archive / file.path) for name in names for file in streams[name].files]

    def generated() -> DataFrame:
        frame: DataFrame = recompute(spark, program, VIEW, Sources(archive, ())).frame
        return frame

    def by_hand() -> DataFrame:
        return available(spark, paths("Sellers"), paths(*COASTS))

    pairs = [(round_of(generated), round_of(by_hand)) for _ in range(rounds)]
    ok = is_right(events, generated()) and is_right(events, by_hand())
    count = sum(stream.rows for stream in streams.values())
    return Compared(count, best(one for one, _ in pairs), best(other for _, other in pairs), ok)


def is_right(events: TicketEvents, frame: DataFrame) -> bool:
    shown: View = {row["item_id"]: (int(row["price"]), row["avail"]) for row in frame.collect()}
    return shown == events.available(events.buys)


def main(arguments: Sequence[str] | None = None) -> None:
    from runtime.bulk.session import SparkSettings, session

    parser = argparse.ArgumentParser(description="The tickets view by Spark: generated, and written by hand.")
    parser.add_argument("--buys", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--folder", type=Path, help="where the archives go meanwhile; a cluster must see it")
    given = parser.parse_args(arguments)
    spark = session(SparkSettings(master=given.master, conf={"spark.driver.memory": "4g"}))
    found: list[Compared] = []
    for buys in given.buys:
        events = generate(buys)
        archive = Path(tempfile.mkdtemp(prefix="smile-bench-", dir=given.folder))
        try:
            write_archive(archive, events)
            found.append(compare(spark, archive, events, given.rounds))
        finally:
            shutil.rmtree(archive)
    rows = [one.cells for one in found]
    heads = ["events", "s", "by hand, s", "ratio", "CPU s", "by hand, CPU s", "ratio", "events/s", "right"]
    print_table(f"`{VIEW}` recomputed by Spark; goal: a ratio of at most {GOAL} at 10 M events", heads, rows)
    write_results("spark", [{**asdict(one), "ratio": one.ratio, "clock_ratio": one.clock_ratio} for one in found])
    if not all(one.ok for one in found):
        raise SystemExit("a view is wrong: its figures mean nothing")


if __name__ == "__main__":
    main()
