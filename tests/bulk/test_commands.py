"""Goal: archive, recompute, verify and questions about the past as a user runs them, beside a deployment of real
brokers, while somebody publishes, and after it has ended."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from typer.testing import CliRunner

import smile
from smile.cli import app
from smile.cli.exits import Exit
from smile.local import LocalBrokers
from smile.remote.system import RemoteSystem

PROGRAM = """
stream Orders(id int, customer text, worth decimal(10,2)) unique id;
stream Visits(customer text);
table Names(customer text, name text) key customer from "names.csv";
view Customers = from Orders |> aggregate n := count(), worth := sum(worth), mean := avg(worth) group by customer;
view Seen = from Customers |> join (from Visits |> aggregate visits := count() group by customer) using customer
    |> join Names using customer;
"""
EVENTS_MAX = 3_000
"""Published while a view is verified: enough to be under way all the time, and bounded."""


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output if result.exception is None else f"{result.output}{result.exception!r}"


def rows_of(said: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(said[said.index("{") :])["rows"]
    return found


def as_json(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return [
        {name: value if isinstance(value, int | str) else str(value) for name, value in row.items()} for row in rows
    ]


@contextmanager
def publishing(system: RemoteSystem) -> Iterator[None]:
    """Events on both streams, until the block ends."""
    ended = threading.Event()

    def publish() -> None:
        for number in range(EVENTS_MAX):
            if ended.is_set():
                return
            system.publish("Visits", {"customer": f"c{number % 5}"})
            system.publish("Orders", {"id": 10_000 + number, "customer": f"c{number % 9}", "worth": "0.01"})

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_a_live_deployment_is_archived_recomputed_and_verified(spark: SparkSession, tmp_path: Path) -> None:
    program, archive, data = tmp_path / "orders.mpl", tmp_path / "archive", tmp_path / "run"
    program.write_text(PROGRAM)
    (tmp_path / "names.csv").write_text("customer,name\n" + "".join(f"c{n},Name {n}\n" for n in range(6)))
    places = ("--data", str(data), "--archive", str(archive))
    with LocalBrokers(program, brokers=3, data=data) as brokers, smile.connect(brokers.address, timeout=120) as system:
        here = ("--address", brokers.address, "--timeout", "120")
        rows = [{"id": n, "customer": f"c{n % 7}", "worth": f"{n}.25"} for n in range(200)]
        system.publish_many("Visits", [{"customer": f"c{n % 4}"} for n in range(9)])
        moment = system.publish_many("Orders", rows[:120])[-1]
        then = {view: as_json(system.rows(view)) for view in ("Customers", "Seen")}
        code, said = run("archive", *places)
        assert code == 0, said
        assert "Orders: 120 events" in said
        system.publish_many("Orders", rows[120:])
        with publishing(system):
            code, said = run("verify", "--all", *places, *here)
        assert code == 0, said
        assert "Customers: " in said
        assert "Seen: " in said
        # What was, from the archive and the logs, though all has moved on.
        for view, before in then.items():
            code, said = run("query", view, "--as-of", str(moment), *places, *here, "--json")
            assert (code, rows_of(said)) == (0, before), said
        code, said = run("query", "Customers", "--as-of", "2999-01-01", *places, *here)
        assert code == Exit.USAGE
        assert "lies in the future" in said
        live = as_json(system.rows("Customers"))
        (file,) = (archive / "streams" / "Orders").glob("*.parquet")
        file.rename(tmp_path / "kept")
        code, said = run("verify", "Customers", *places, *here)
        assert code == Exit.PARTIAL, said
        assert "Customers: not verified: " in said
        assert "Path does not exist" in said
        (tmp_path / "kept").rename(file)
    # Nothing runs: the program is named.
    named = ("--program", str(program))
    code, said = run("recompute", "Customers", *named, *places, "--json")
    assert code == 0, said
    assert json.loads(said[said.index("{") :])["rows"] == live
    code, said = run("query", "Customers", *named, "--as-of", str(moment), "--archive", str(archive), "--format", "csv")
    assert code == 0, said
    assert f"c0,{then['Customers'][0]['n']},{then['Customers'][0]['worth']}" in said
    _written_anywhere(tmp_path, (*named, *places))


def _written_anywhere(folder: Path, common: tuple[str, ...]) -> None:
    """Formats are Spark's: those that it has are written, those that it lacks are said."""
    code, said = run("recompute", "Customers", *common, "--output", str(folder / "csv"), "--format", "csv")
    assert code == 0, said
    assert list((folder / "csv").glob("*.csv"))
    code, said = run("recompute", "Customers", *common, "--output", str(folder / "csv"))
    assert code == Exit.FAILED
    assert "already exists" in said
    assert "name another folder" in said
    code, said = run("recompute", "Customers", *common, "--output", str(folder / "lake"), "--format", "delta")
    assert code == Exit.FAILED
    assert "[spark] packages" in said
    assert not (folder / "lake").exists()
