"""A standalone Spark cluster of two workers on this machine, and the commands of the archive run on it.

    python -m tests.bulk.cluster

Starts a master and two workers (from PySpark's own package, on free ports), three brokers with the tickets example,
and then what a user would type, with `--master spark://...` and nothing else changed: archive, recompute, verify. Says
what came out; the exit code is 1 if anything is not as it must be. Everything that was started is ended again.
Workers have the driver's Python and this package, as the documentation asks; they get nothing else.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pyspark
from typer.testing import CliRunner

import smile
from smile.cli import app
from smile.local import LocalBrokers

TICKETS = Path(__file__).parents[2] / "examples" / "tickets" / "tickets.mpl"
HOST = "127.0.0.1"
WORKERS = 2
WORKER_MEMORY = "1g"
START_S = 180.0
"""Until Java has started on a machine that is very busy."""

END_S = 30.0
EVENTS = 5_000


class ClusterError(Exception):
    """The cluster, or a command on it, did not do what it must; the message has what was said."""


@contextmanager
def cluster(folder: Path, workers: int = WORKERS) -> Iterator[str]:
    """The address of a master that has so many workers, of one core each. Their logs and work are in `folder`."""
    with ExitStack() as started:
        said = folder / "master.log"
        options = ["--host", HOST, "--port", "0", "--webui-port", "0"]
        started.enter_context(_process("master.Master", options, said))
        address = _wait_for(said, r"Starting Spark master at (spark://\S+)", 1)[0]
        for number in range(workers):
            options = ["--host", HOST, "--port", "0", "--webui-port", "0", "--cores", "1", "--memory", WORKER_MEMORY]
            place = ["--work-dir", str(folder / f"work{number}"), address]
            started.enter_context(_process("worker.Worker", [*options, *place], folder / f"worker{number}.log"))
        _wait_for(said, r"Registering worker (\S+)", workers)
        yield address


@contextmanager
def _process(name: str, options: Sequence[str], said: Path) -> Iterator[None]:
    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *options]
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": HOST, "SPARK_DAEMON_MEMORY": "256m"}
    with said.open("wb") as output:
        # A group of its own, so that executors of a worker that must be killed go with it.
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=said.parent, start_new_session=True
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_for(said: Path, pattern: str, count: int) -> list[str]:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        text = said.read_text(encoding="utf-8", errors="replace")
        found = re.findall(pattern, text)
        if len(found) >= count:
            return found
        time.sleep(0.1)
    raise ClusterError(f"{said.name} does not say {pattern!r} {count} times within {START_S:g} s:\n{text[-2000:]}")


def commanded(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    if result.exit_code != 0:
        raise ClusterError(f"smile {' '.join(arguments)}: exit code {result.exit_code}\n{result.output}")
    return result.output


def wait_for_executors() -> None:
    """Spark begins with the first one that it gets."""
    from runtime.bulk.session import session

    known: Any = session().sparkContext._jsc
    end = time.monotonic() + START_S
    while (count := int(known.sc().getExecutorMemoryStatus().size()) - 1) < WORKERS:  # the driver is in the list
        if time.monotonic() > end:
            raise ClusterError(f"{count} workers have an executor, not {WORKERS}")
        time.sleep(0.1)


def check(master: str, folder: Path) -> list[str]:
    """The commands on this master, beside running brokers; what they said, or ClusterError."""
    data, archive = folder / "run", folder / "archive"
    places = ("--data", str(data), "--archive", str(archive), "--master", master)
    rng = Random(7)
    said: list[str] = []
    with LocalBrokers(TICKETS, brokers=3, data=data) as brokers, smile.connect(brokers.address, timeout=120) as system:
        system.publish_many("Sellers", [{"item_id": item, "price": f"{item}.50", "qty": 1000} for item in range(100)])
        for stream in ("BuyersWest", "BuyersEast"):
            buys = [{"item_id": rng.randrange(100), "qty": rng.randrange(1, 9)} for _ in range(EVENTS // 2)]
            system.publish_many(stream, buys)
        said.append(commanded("archive", *places))
        wait_for_executors()
        system.publish("Sellers", {"item_id": 1_000, "price": "1.00", "qty": 1})  # this one is in the log alone
        said.append(commanded("verify", "--all", *places, "--address", brokers.address, "--timeout", "120"))
        live = sorted((row["item_id"], str(row["price"]), row["avail"]) for row in system.rows("Available"))
    shown = ("--json", "--limit", str(EVENTS))
    printed = commanded("recompute", "Available", "--program", str(TICKETS), *places, *shown)
    rows = json.loads(printed[printed.index("{") :])["rows"]
    if sorted((row["item_id"], row["price"], row["avail"]) for row in rows) != live:
        raise ClusterError(f"the view recomputed on the cluster is not the one that was live:\n{printed[:2000]}")
    return [*said, f"recomputed: {len(rows)} rows of Available, as they were live"]


def main() -> int:
    os.environ["SPARK_LOCAL_IP"] = HOST
    with tempfile.TemporaryDirectory(prefix="smile-cluster-") as place:
        folder = Path(place)
        try:
            with cluster(folder) as master:
                print(f"{master} has {WORKERS} workers", flush=True)
                try:
                    for line in check(master, folder):
                        print(line.strip(), flush=True)
                finally:
                    _stop_driver()
        except ClusterError as error:
            print(error)
            return 1
    return 0


def _stop_driver() -> None:
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()


if __name__ == "__main__":
    sys.exit(main())
