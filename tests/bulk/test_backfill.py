"""Goal: views get their past from Spark when the logs no longer have it, beside brokers that go on serving."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import typer
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import smile
from smile.bulk.as_of import TICKS_PER_US
from smile.bulk.install import needing_state
from smile.bulk.sources import Sources
from smile.bulk.switching import holding
from smile.cli import app
from smile.cli.deploy import _said
from smile.cli.exits import Exit
from smile.cli.files import fail
from smile.remote.system import RemoteSystem
from tests.broker.processes import Brokers, Zygote, wait_for

STREAM = "stream Buys (item int, qty int[0..1000]);\n"
SOLD = "view Sold = from Buys |> aggregate total := sum(qty), number := count() group by item;\n"
SIZES = "view Sizes = from Buys |> aggregate number := count() group by qty;\n"
HALVES = """view Halves = from Buys |> extend half := cast(cast(qty as float) / 2.0 as text)
  |> aggregate number := count() group by half;
"""
PATIENCE_S = 60.0
PATIENTLY = ("--timeout", str(PATIENCE_S))

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    made = Zygote()
    yield made
    made.close()


class Project:
    """A folder with a smile.toml, and one broker that trims its log as soon as it may."""

    def __init__(self, zygote: Zygote, folder: Path) -> None:
        self.folder = folder
        self.archive = folder / "archive"
        (folder / "shop.mpl").write_text(STREAM + SOLD)
        program = smile.compile(folder / "shop.mpl")
        settings = {"keep": "archive", "archive": str(self.archive), "checkpoint_every_us": 100_000}
        self.brokers = Brokers(zygote, folder, program, {"Buys": "a", "Sold": "a"}, **settings)
        self.configure()
        self.brokers.start()

    def configure(self, spark: str = 'archive = "archive"') -> None:
        address = self.brokers.address
        (self.folder / "smile.toml").write_text(
            f'program = "shop.mpl"\n[brokers.a]\naddress = "{address}"\ndata = "a"\n[spark]\n{spark}\n'
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, list(arguments))
        return result.exit_code, result.output if result.exception is None else f"{result.output}{result.exception!r}"

    def json(self, *arguments: str) -> dict[str, Any]:
        code, said = self.run(*arguments, "--json")
        assert code == 0, said
        found: dict[str, Any] = json.loads(said[said.index("{") :])
        return found

    def publish(self, system: RemoteSystem, rows: list[tuple[int, int]]) -> None:
        items, sizes = zip(*rows, strict=True)
        system.publish_many("Buys", {"item": list(items), "qty": list(sizes)})

    def archive_and_trim(self) -> None:
        code, said = self.run("archive", "--data", str(self.folder / "a"), "--archive", str(self.archive))
        assert code == 0, said
        wait_for(lambda: self.brokers.log_rows("a", "Buys") < 100, "the log to be trimmed", PATIENCE_S)

    def status(self, system: RemoteSystem, component: str) -> dict[str, Any]:
        found: dict[str, Any] = self.brokers.status(system, "a")["components"][component]
        return found


@pytest.fixture
def project(zygote: Zygote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.chdir(tmp_path)
    made = Project(zygote, tmp_path)
    try:
        yield made
    finally:
        made.brokers.close()


EVENTS = [(n % 7, n % 5) for n in range(300)]


def sizes(system: RemoteSystem) -> dict[Any, Any]:
    return {row["qty"]: row["number"] for row in system.rows("Sizes")}


def test_what_fails_after_the_deployment_says_how_to_try_again(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), _said():
        fail("Spark has ended", Exit.UNREACHABLE)
    assert "smile recompute VIEW --install` tries again" in capsys.readouterr().err


def test_views_get_their_past_from_spark_while_brokers_serve(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    with smile.connect(project.brokers.address) as system:
        for first in range(0, len(EVENTS), 50):
            project.publish(system, EVENTS[first : first + 50])
        project.archive_and_trim()
        project.publish(system, EVENTS[:10])
    events = [*EVENTS, *EVENTS[:10]]
    (project.folder / "shop.mpl").write_text(STREAM + SOLD + SIZES + HALVES)

    project.configure(spark="")  # nobody has the past: nothing is deployed
    code, said = project.run("deploy", *PATIENTLY)
    assert code == Exit.REFUSED, said
    assert "`Sizes` cannot get its past: the log of Buys no longer has everything" in said

    project.configure()
    with monkeypatch.context() as patched, smile.connect(project.brokers.address) as system:
        patched.setattr(SparkSession, "getActiveSession", staticmethod(lambda: None))
        patched.setenv("JAVA_HOME", "nowhere")
        before = project.brokers.status(system, "a")["deployment"]
        code, said = project.run("deploy", *PATIENTLY)
        assert code == Exit.UNREACHABLE, said
        assert "`Sizes` gets its past from Spark" in said
        assert "but Spark needs Java, and there is none at nowhere" in said
        assert project.brokers.status(system, "a")["deployment"] == before, "nothing was deployed"

    deployed = project.json("deploy", *PATIENTLY)
    chosen = {one["component"]: (one["how"], one["reason"]) for one in deployed["backfill"]}
    assert chosen["Sizes"] == ("bulk", "the log of Buys no longer has everything")
    assert chosen["Halves"][0] == "bulk"
    assert chosen["Halves"][1].endswith("they are replayed here: Spark writes floats as text in another form")
    assert "Sold" not in chosen
    assert {one["component"] for one in deployed["installed"]} == set(chosen)
    with smile.connect(project.brokers.address, timeout=PATIENCE_S) as system:
        project.publish(system, EVENTS[:20])
        events += EVENTS[:20]
        assert sizes(system) == Counter(size for _, size in events)
        halves = {float(row["half"]): row["number"] for row in system.rows("Halves")}  # type: ignore[arg-type]
        assert halves == Counter(size / 2 for _, size in events)
        project.brokers.restart("a")
        assert sizes(system) == Counter(size for _, size in events)

    project.brokers.stop("a")  # a checkpoint is lost, and the log that it was made from has been trimmed
    shutil.rmtree(project.folder / "a" / "checkpoints")
    project.brokers.start("a")
    with smile.connect(project.brokers.address, timeout=PATIENCE_S) as system:
        wait_for(lambda: project.status(system, "Sold")["lost_ticks"], "the loss to be seen", PATIENCE_S)
        code, said = project.run("recompute", "Sold", "--install", "--as-of", "2099-01-01 00:00")
        assert (code, "lies in the future" in said) == (Exit.USAGE, True), said  # what comes until then would be lost
        components = needing_state(system.program, ["Sold"])
        with holding(system.connection, system.deployment, system.program, components, PATIENCE_S) as held:
            ahead = held.known_up_to() + 3_600_000_000 * TICKS_PER_US
            with pytest.raises(smile.SmileError, match="known up to tick"):
                held.install(None, Sources(None, ()), ahead)
        with monkeypatch.context() as patched:
            watched: list[int] = []

            def watch(_spark: Any, _what: str, *, rows: int, quiet: bool) -> AbstractContextManager[None]:
                watched.append(rows)
                return nullcontext()

            patched.setattr("smile.bulk.progress.watched", watch)
            installed = project.json("recompute", "Sold", "--install")["installed"]
            assert [rows >= len(events) for rows in watched] == [True]
        assert [(one["component"], one["broker"]) for one in installed] == [("Sold", "a")]
        assert not project.status(system, "Sold")["lost_ticks"]
        project.publish(system, EVENTS[:7])
        events += EVENTS[:7]
        assert {row["item"]: (row["total"], row["number"]) for row in system.rows("Sold")} == {
            item: (sum(size for one, size in events if one == item), sum(one == item for one, _ in events))
            for item in range(7)
        }
