"""Goal: what keeps Spark from running is said in one sentence with the remedy, before Spark is started; commands that
do not need it start no Java and load no Spark. Ticks are written as people write moments."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from pyspark.sql import SparkSession

import smile
from runtime.bulk.failures import words_of
from runtime.bulk.session import NoSpark, SparkSettings, session
from smile.bulk.as_of import TICKS_PER_US, said
from smile.cli.exits import Exit
from smile.cli.ticks import require_past, tick_of

PROGRAM = "stream S(a int); view V = from S |> aggregate n := count();"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A program and a log of it."""
    (tmp_path / "p.mpl").write_text(PROGRAM)
    with smile.run(smile.compile(PROGRAM), data=tmp_path / "data") as system:
        system.publish("S", {"a": 1})
    return tmp_path


def command(folder: Path, environment: dict[str, str], *more: str) -> tuple[int, str]:
    """`smile recompute`, in a process of its own, with this environment."""
    own = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PYSPARK_PYTHON")}
    own["PYTHONPATH"] = os.pathsep.join([*filter(None, [environment.pop("PYTHONPATH", "")]), str(ROOT)])
    arguments = ["recompute", "V", "--program", "p.mpl", "--data", "data", "--master", "local[1]", *more]
    done = subprocess.run(
        [sys.executable, "-m", "smile", *arguments],
        cwd=folder,
        env={**own, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_missing_java_or_pyspark_is_said_by_the_command(folder: Path) -> None:
    code, words = command(folder, {"PATH": str(folder)})
    assert code == Exit.UNREACHABLE
    assert "Spark needs Java, and there is none. Install Java 17" in words
    assert "Traceback" not in words
    (folder / "without" / "pyspark").mkdir(parents=True)
    (folder / "without" / "pyspark" / "__init__.py").write_text("raise ImportError('no pyspark here')")
    code, words = command(folder, {"PYTHONPATH": str(folder / "without")})
    assert code == Exit.UNREACHABLE
    assert "`pip install smile-mpl[spark]` brings it" in words


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has not started Spark."""
    monkeypatch.setattr(SparkSession, "getActiveSession", staticmethod(lambda: None))
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.mark.usefixtures("no_session")
def test_a_wrong_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(NoSpark, match=r"none at /nowhere\. Install Java 17"):
        session(SparkSettings())
    executable(tmp_path / "bin" / "java", "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NoSpark, match=r"needs Java 17 or newer; .* is 11\.0\.2\. Install"):
        session(SparkSettings())
    (tmp_path / "bin" / "java").chmod(0o644)
    with pytest.raises(NoSpark, match=r"java cannot be run\. Install"):
        session(SparkSettings())


@pytest.mark.usefixtures("no_session")
def test_workers_with_another_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable(tmp_path / "bin" / "java", "echo 'openjdk version \"17.0.2\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", str(executable(tmp_path / "python", "echo 3.9")))
    with pytest.raises(NoSpark, match=r"which is Python 3\.9; .* set it to"):
        session(SparkSettings("local[2]"))
    with pytest.raises(NoSpark, match=r"run no-such-python .*cannot be run\. Unset"):
        session(SparkSettings("local[2]", {"spark.pyspark.python": "no-such-python"}))


@pytest.mark.usefixtures("no_session")
def test_packages_that_are_missing_or_too_new(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as older:
        older.setattr(importlib.metadata, "version", lambda _: "3.0.1")
        with pytest.raises(NoSpark, match=r"pandas 3\.0\.1 yet\. `pip install 'pandas<3'`"):
            session(SparkSettings())
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(NoSpark, match=r"\(grpc, .*`pip install 'pyspark\[connect\]'`"):
        session(SparkSettings("sc://localhost:1"))


def test_what_needs_no_spark_starts_none(folder: Path) -> None:
    executable(folder / "bin" / "java", f"touch {folder / 'started'}")
    text = """
import sys, smile
from typer.testing import CliRunner
from smile.cli import app
nobody = ["--address", "tcp://127.0.0.1:1", "--timeout", "0.2"]
past = ["--program", "p.mpl", "--data", "nowhere"]
for words in (["check", "p.mpl"], ["explain", "p.mpl"], ["query", "V", *nobody], ["recompute", "V", *past]):
    CliRunner().invoke(app, words)
with smile.run(smile.compile("p.mpl")) as system:
    system.publish("S", {"a": 1})
print([name for name in sys.modules if name.split(".")[0] in ("pyspark", "py4j")])
"""
    environment = {**os.environ, "JAVA_HOME": str(folder), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip().endswith("[]"), done.stdout
    assert not (folder / "started").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("17", 17),
        ("1970-01-01 00:00:01", 1_000_000 * TICKS_PER_US + 1023),
        ("1970-01-01T00:00:01Z", 1_000_000 * TICKS_PER_US + 1023),
        ("1970-01-01 02:00:01 +02:00", 1_000_000 * TICKS_PER_US + 1023),
        ("1970-01-01 00:00:01.5-0130", (5_400_000_000 + 1_500_000) * TICKS_PER_US + 1023),
        ("1970-01-02", 86_400_000_000 * TICKS_PER_US + 1023),
        (None, None),
    ],
)
def test_moments_are_ticks(text: str | None, expected: int | None) -> None:
    assert tick_of(text) == expected


@pytest.mark.parametrize(
    "text",
    ["yesterday", "1969-12-31", "99999999999999999999", "1970-01-01 00:00 +02:00", "²", "2026-01-31 12:00 +99:99"],
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(typer.Exit) as left:
        tick_of(text)
    assert left.value.exit_code == Exit.USAGE


def test_the_future_is_refused() -> None:
    require_past(17)
    with pytest.raises(typer.Exit):
        require_past(2**62)
    assert said(1_000_000 * TICKS_PER_US) == "tick 1024000000 (1970-01-01 00:00:01 UTC)"


def test_words_of_spark_are_one_sentence() -> None:
    trace = (
        "[PYTHON_ERROR] An error.\nTraceback\n  File x\nruntime.log.stream_log.LogError: ticks 1..2 are gone\n\nat org"
    )
    assert words_of(Exception(trace)) == "ticks 1..2 are gone"
    raised = "Job aborted: Lost task 0.0\n[USER_RAISED_EXCEPTION] the sum is too large SQLSTATE: P0001\n\tat org.apache"
    assert words_of(Exception(raised)) == "the sum is too large"
    assert words_of(Exception("[PYTHON_VERSION_MISMATCH] 3.9 and 3.11. SQLSTATE: 0A000")).endswith("on every worker")
    called = (
        "An error occurred while calling o7.parquet.\n: org.apache.spark.SparkException: Job aborted.\n\tat org.x\n"
    )
    caused = "Caused by: java.net.ConnectException: Connection refused: no/127.0.0.1:9\n\tat java.base/java.net.Socket"
    assert words_of(Exception(called)) == "Job aborted. [SparkException]"
    assert words_of(Exception(called + caused)) == "Connection refused: no/127.0.0.1:9 [ConnectException]"
    assert words_of(Exception("plain\nand more")) == "plain"
