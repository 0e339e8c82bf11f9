"""Goal: three brokers publish, archive, trim and are killed; their views come back from archive, checkpoint and the
rest of the log, equal to a plain computation. And a stream gets a column while it is deployed and archived."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import smile
from runtime.bulk.archive import archive_logs
from runtime.bulk.manifest import read_manifest
from runtime.client.connection import Connection
from runtime.client.errors import RequestRefused
from runtime.log.reader import LoggedStream, LogReader
from smile.bulk.install import needing_state
from smile.bulk.recompute import recompute
from smile.bulk.sources import Sources
from smile.bulk.switching import holding
from smile.bulk.verify import verify
from smile.deploy.bundles import compile_file, make_deployment
from smile.deploy.placement import place
from smile.local import LocalBrokers
from tests.bulk.archives import archive as archive_plainly

WAIT_S = 60.0

PROGRAM = """
stream Buys(item int, qty int);
stream Refunds(item int, qty int);
view Sold = from Buys |> aggregate bought := sum(qty), n := count() group by item;
view Back = from Refunds |> aggregate back := sum(qty) group by item;
view Net = from Sold |> join Back on item = Back.item |> extend net := bought - back |> project item, net;
"""
GROWN = PROGRAM.replace("Buys(item int, qty int)", "Buys(item int, qty int, shop text null, till int default 7)") + (
    "view Shops = from Buys |> aggregate n := count() group by shop;\n"
    "view Tills = from Buys |> aggregate n := count() group by till;\n"
)


def wait_for(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"not within {WAIT_S:g} s: {what}"
        time.sleep(0.05)


class Shop:
    """Brokers, and what was published to them, for a plain computation."""

    def __init__(self, brokers: LocalBrokers, archive: Path) -> None:
        self.brokers = brokers
        self.archive = archive
        self.bought: Counter[int] = Counter()
        self.back: Counter[int] = Counter()

    @property
    def folders(self) -> list[Path]:
        return [self.brokers.data / name / "log" for name in self.brokers.names]

    def publish(self, first: int, count: int) -> None:
        with smile.connect(self.brokers.address) as system:
            for start in range(first, first + count, 20):
                numbers = range(start, start + 20)
                system.publish_many("Buys", [{"item": n % 7, "qty": n} for n in numbers])
                system.publish_many("Refunds", [{"item": n % 7, "qty": n % 3} for n in numbers])
                self.bought.update({item: sum(n for n in numbers if n % 7 == item) for item in range(7)})
                self.back.update({item: sum(n % 3 for n in numbers if n % 7 == item) for item in range(7)})
            system.settle()

    def deploy(self, text: str) -> None:
        path = self.brokers.data / "shop.mpl"
        path.write_text(text)
        program = compile_file(path)
        before = self.brokers.deployment
        placed = place(program.checked.program, program.plan, self.brokers.names, previous=before)
        after = make_deployment(program, self.brokers.addresses, placed.homes, previous=before)
        with closing(Connection(self.brokers.address, needs_deployment=False)) as connection:
            for address in self.brokers.addresses.values():
                connection.deploy(after.to_wire(), address)
        self.brokers.deployment = after

    def net(self) -> dict[int, int]:
        """As the brokers have it."""
        with smile.connect(self.brokers.address) as system:
            return {row["item"]: row["net"] for row in system.rows("Net")}  # type: ignore[misc]

    def truth(self) -> dict[int, int]:
        return {item: self.bought[item] - self.back[item] for item in range(7)}

    def logged(self, stream: str) -> tuple[LogReader, LoggedStream]:
        for folder in self.folders:
            reader = LogReader(folder)
            if stream in reader.streams():
                return reader, reader.streams()[stream]
            reader.close()
        raise AssertionError(f"no log has {stream}")

    def trimmed_tick(self, stream: str) -> int:
        reader, found = self.logged(stream)
        with reader:
            return found.trimmed_tick

    def wait_trimmed(self) -> None:
        """Up to what the archive has, but for the batch that says whose archive it is."""
        for name, stream in read_manifest(self.archive).streams.items():
            wait_for(partial(self._is_trimmed, name, stream.horizon - 1), f"{name} to be trimmed")

    def _is_trimmed(self, stream: str, tick: int) -> bool:
        return self.trimmed_tick(stream) >= tick

    def kill_all(self) -> None:
        starts = {name: self.brokers.starts(name) for name in self.brokers.names}
        for name in starts:
            self.brokers.kill(name)
        wait_for(lambda: all(self.brokers.starts(name) > before for name, before in starts.items()), "a restart")
        for name in starts:
            self.brokers.wait_serving(name)

    def began_with(self, component: str) -> str:
        with smile.connect(self.brokers.address) as system:
            home = self.brokers.deployment.placement[component]
            return str(system.status()[home]["components"][component]["began_with"])


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    program = tmp_path / "shop.mpl"
    program.write_text(PROGRAM)
    archive = tmp_path / "archive"
    with LocalBrokers(program, 3, tmp_path / "run", keep="archive", archive=archive, checkpoint_every="100ms") as made:
        yield Shop(made, archive)


def test_killed_after_a_trim_views_come_back_from_archive_checkpoint_and_log(spark: SparkSession, shop: Shop) -> None:
    shop.publish(0, 100)
    assert shop.trimmed_tick("Buys") == -1, "nothing is archived yet, whatever the checkpoints say"
    archive_logs(spark, shop.archive, shop.folders)
    shop.wait_trimmed()
    shop.publish(100, 40)  # this the archive does not have
    shop.kill_all()
    assert shop.net() == shop.truth()
    assert shop.began_with("Sold") == "a checkpoint"
    shop.publish(140, 20)
    assert shop.net() == shop.truth()
    # The archive and the rest of the log are the whole history: Spark computes the same view from them.
    with smile.connect(shop.brokers.address) as system:
        verdict = verify(spark, system, "Net", Sources(shop.archive, tuple(shop.folders)))
    assert verdict.is_right, verdict


def test_a_checkpoint_that_is_lost_after_a_trim_is_told_and_computed_anew(spark: SparkSession, shop: Shop) -> None:
    shop.publish(0, 40)
    archive_plainly(shop.archive, *shop.folders)
    shop.wait_trimmed()
    home = shop.brokers.deployment.placement["Sold"]
    shop.brokers.stop(home)
    for folder in (shop.brokers.data / home / "checkpoints").glob("Sold*"):
        shutil.rmtree(folder)
    shop.brokers.restart(home)
    with smile.connect(shop.brokers.address) as system:
        wait_for(lambda: system.status()[home]["components"]["Sold"]["lost_ticks"], "the loss to be told")
        with pytest.raises(smile.SmileError, match="have left the log; `smile recompute VIEW --install`"):
            system.rows("Sold")
        lost = needing_state(system.program, ["Sold"])
        with holding(system.connection, system.deployment, system.program, lost, WAIT_S) as held:
            held.install(spark, Sources(shop.archive, tuple(shop.folders)))
    shop.publish(40, 20)
    assert shop.net() == shop.truth()


def test_a_column_is_added_to_a_stream_that_runs_and_is_archived(spark: SparkSession, shop: Shop) -> None:
    shop.publish(0, 40)
    archive_plainly(shop.archive, *shop.folders)
    shop.wait_trimmed()
    shop.deploy(GROWN)
    shop.publish(40, 20)  # without the columns: null, and the default
    with smile.connect(shop.brokers.address) as system:
        system.publish("Buys", {"item": 3, "qty": 1, "shop": "mall", "till": 2})
        shop.bought[3] += 1
    assert shop.net() == shop.truth()
    assert shop.began_with("Sold") == "a checkpoint", "it does not use the new column"
    (done, _) = sorted(archive_plainly(shop.archive, *shop.folders), key=lambda one: one.stream)
    assert done.events == 21
    stream = read_manifest(shop.archive).streams["Buys"]
    assert (stream.schema_version, stream.columns[-1]) == (2, ("till", "int default 7"))
    sources = Sources(shop.archive, tuple(shop.folders))
    with smile.connect(shop.brokers.address) as system:
        assert verify(spark, system, "Sold", sources).is_right
        tills = recompute(spark, system.program, "Tills", sources).rows()
    assert tills == [{"till": 2, "n": 1}, {"till": 7, "n": 60}], "in files from before the column, too"
    with pytest.raises(RequestRefused, match="column `till` is int default 7 in the log and int default 8"):
        shop.deploy(GROWN.replace("default 7", "default 8"))
