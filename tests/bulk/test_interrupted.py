"""Goal: Ctrl-C in the middle of a Spark job ends the command with its exit code, and leaves neither a Java process nor
a half-written folder nor Spark's temporary files behind. Progress is told where there is no terminal. And an archiver
that is killed with its Spark leaves an archive that the next one continues, with each event once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest
from pyspark.sql import SparkSession

import smile
from runtime.bulk.archive import archive_logs
from runtime.bulk.archive_files import verify_files
from runtime.bulk.manifest import newest_number, read_manifest
from smile.cli.exits import Exit
from tests.bulk.archives import ticks_in
from tests.bulk.test_archive_gaps import Log

PROGRAM = """
stream S(a int, b int);
view V = from S as L |> join S as R on L.a = R.a and L.b < R.b |> aggregate n := count() group by L.b;
"""
WAIT_S = 300.0
"""Only so long if something is broken; a busy machine needs a minute to start Java."""
ROOT = Path(__file__).parents[2]


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "p.mpl").write_text(PROGRAM)
    with smile.run(smile.compile(PROGRAM), data=tmp_path / "data") as system:
        # Billions of pairs: nobody waits for them.
        system.publish_many("S", {"a": [1] * 150_000, "b": list(range(150_000))})
    (tmp_path / "spark").mkdir()
    (tmp_path / "smile.toml").write_text(f'[spark.conf]\n"spark.local.dir" = "{tmp_path / "spark"}"\n')
    arguments = ["recompute", "V", "--program", "p.mpl", "--data", "data", "--master", "local[1]", "--output", "out"]
    with (tmp_path / "said").open("wb") as said:
        command = subprocess.Popen(
            [sys.executable, "-m", "smile", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            started = _java_at_work(command, tmp_path)
            os.killpg(command.pid, signal.SIGINT)  # as a terminal does: to all of them
            assert command.wait(WAIT_S) == Exit.INTERRUPTED, (tmp_path / "said").read_text()
        finally:
            if command.poll() is None:
                os.killpg(command.pid, signal.SIGKILL)
                command.wait()
    _, alive = psutil.wait_procs(started, timeout=WAIT_S)
    assert alive == []
    assert "interrupted" in (tmp_path / "said").read_text()
    assert not (tmp_path / "out").exists()
    assert list((tmp_path / "spark").iterdir()) == []


def _java_at_work(command: subprocess.Popen[bytes], folder: Path) -> list[Any]:
    """The processes of the command, once it has told of its progress."""
    end = time.monotonic() + WAIT_S
    while "V: about " not in (text := (folder / "said").read_text()):
        assert command.poll() is None, text
        assert time.monotonic() < end, text
        time.sleep(0.05)
    assert "of 150,000 rows" in text
    return list(psutil.Process(command.pid).children(recursive=True))


@pytest.mark.slow
def test_archivers_that_are_killed_with_their_spark_leave_each_event_once(spark: SparkSession, tmp_path: Path) -> None:
    log, archive, chance, published = Log(tmp_path / "log"), tmp_path / "archive", Random(11), 0
    quickly = '"spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"'
    (tmp_path / "smile.toml").write_text(f'[spark.conf]\n"spark.local.dir" = "{tmp_path / "spark"}"\n{quickly}\n')
    arguments = ["archive", "--archive", "archive", "--data", "log", "--master", "local[1]", "--follow", "--every", "0"]
    for _ in range(2):
        with (tmp_path / "said").open("ab") as said:
            archiver = subprocess.Popen(
                [sys.executable, "-m", "smile", *arguments],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        started = []
        try:
            log.publish(published := published + 1)
            before, end = newest_number(archive), time.monotonic() + WAIT_S
            while newest_number(archive) == before:
                assert archiver.poll() is None, (tmp_path / "said").read_text()
                assert time.monotonic() < end, (tmp_path / "said").read_text()
                time.sleep(0.02)
            log.publish(published := published + 1)
            time.sleep(chance.uniform(0.1, 1.0))  # somewhere in the next round
            started = psutil.Process(archiver.pid).children(recursive=True)
        finally:
            os.killpg(archiver.pid, signal.SIGKILL)
            archiver.wait()
            psutil.wait_procs(started, timeout=WAIT_S)
    log.publish(published := published + 1)
    archive_logs(spark, archive, [log.directory.folder])
    log.directory.close()
    assert ticks_in(archive) == [10 * number + at for number in range(1, published + 1) for at in (0, 1)]
    assert verify_files(archive) == []
    named = read_manifest(archive).paths
    assert {str(path.relative_to(archive)) for path in (archive / "streams").rglob("*.parquet")} == named
