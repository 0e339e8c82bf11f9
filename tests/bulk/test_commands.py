"""Goal: archive, recompute and verify as a user runs them, beside a deployment of real brokers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import smile
from runtime.bulk.session import NoSpark, SparkSettings, session
from smile.cli import app
from smile.cli.ticks import tick_of
from smile.local import LocalBrokers

PROGRAM = """
stream Orders(id int, customer text, worth decimal(10,2)) unique id;
view Customers = from Orders |> aggregate n := count(), worth := sum(worth) group by customer;
"""


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output if result.exception is None else f"{result.output}{result.exception!r}"


def test_a_live_deployment_is_archived_recomputed_and_verified(spark: SparkSession, tmp_path: Path) -> None:
    program, archive = tmp_path / "orders.mpl", tmp_path / "archive"
    program.write_text(PROGRAM)
    with LocalBrokers(program, brokers=3, data=tmp_path / "run") as brokers:
        with smile.connect(brokers.address) as system:
            rows = [{"id": n, "customer": f"c{n % 7}", "worth": f"{n}.25"} for n in range(200)]
            system.publish_many("Orders", rows[:120])
            code, said = run("archive", "--data", str(tmp_path / "run"), "--archive", str(archive))
            assert code == 0, said
            assert "Orders: 120 events" in said
            system.publish_many("Orders", rows[120:])
            places = ("--data", str(tmp_path / "run"), "--archive", str(archive))
            code, said = run("verify", "--all", *places, "--address", brokers.address)
            assert code == 0, said
            assert "Customers: 7 rows" in said
            assert "right" in said
            live = system.rows("Customers")
        code, said = run("recompute", "Customers", "--program", str(program), *places, "--json")
        assert code == 0, said
        found = {row["customer"]: (row["n"], row["worth"]) for row in json.loads(said.splitlines()[-1])["rows"]}
        assert found == {row["customer"]: (row["n"], str(row["worth"])) for row in live}


def test_moments_are_ticks() -> None:
    assert tick_of("17") == 17
    assert tick_of("1970-01-01 00:00:01") == 1_000_000 * 1024 + 1023


def test_a_missing_java_is_said_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr(SparkSession, "getActiveSession", staticmethod(lambda: None))
    with pytest.raises(NoSpark, match=r"none at /nowhere\. Install Java 17"):
        session(SparkSettings())
