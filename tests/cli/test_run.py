"""Goal: `smile run` goes on when nobody reads what it prints, and says in one line why it cannot start."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from smile.cli import app
from smile.cli.exits import Exit
from smile.deploy.run_record import read_run
from tests.measures import PATIENCE_S, eventually

ROOT = Path(__file__).parents[2]
PROGRAM = "stream S (k int, x int[0..9]);\nview V = from S |> aggregate n := sum(x) group by k;\n"
WITH_TABLE = 'table T (k int, v int) key k from "t.csv";\nstream S (k int);\nview V = from S |> join T using k;\n'


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_brokers_outlive_whoever_read_the_messages(tmp_path: Path) -> None:
    """A pipe into `head`, a terminal that was closed: the next broker that is started again has nobody to tell."""
    (tmp_path / "p.mpl").write_text(PROGRAM)
    process = subprocess.Popen(
        [sys.executable, "-m", "smile", "run", "p.mpl", "--data", "data"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert any("Ctrl-C stops it" in line for line in process.stdout)
    process.stderr.close()

    def broker_after(starts: int) -> int | None:
        found = read_run(tmp_path / "data")
        one = None if found is None else found.brokers["b1"]
        return one.pid if one is not None and one.starts > starts and one.state == "serving" else None

    try:
        eventually(lambda: broker_after(0))
        pid = broker_after(0)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: process.poll() is not None or broker_after(1), "the broker to be back")
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == Exit.OK
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize(
    ("rows", "said"), [(None, "cannot read"), (b"k,v\n1,x\n", "'x' cannot be read as int"), (b"k,v\n1,\xff\n", "utf-8")]
)
def test_a_table_that_cannot_be_read(tmp_path: Path, rows: bytes | None, said: str) -> None:
    (tmp_path / "p.mpl").write_text(WITH_TABLE)
    if rows is not None:
        (tmp_path / "t.csv").write_bytes(rows)
    for options in (("--data", str(tmp_path / "data"), "--seconds", "0"), ("--demo",)):
        result = run("run", str(tmp_path / "p.mpl"), *options)
        assert result.exit_code == Exit.FAILED
        assert isinstance(result.exception, SystemExit)
        assert said in result.stderr.splitlines()[-1]


@pytest.mark.parametrize("port", ["0", "-1", "70000"])
def test_a_port_that_does_not_exist(tmp_path: Path, port: str) -> None:
    (tmp_path / "p.mpl").write_text(PROGRAM)
    result = run("run", str(tmp_path / "p.mpl"), "--data", str(tmp_path / "data"), "--port", port, "--seconds", "0")
    assert result.exit_code == Exit.USAGE
