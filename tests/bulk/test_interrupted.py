"""Goal: Ctrl-C in the middle of a Spark job ends the command with its exit code, and leaves neither a Java process nor
a half-written folder nor Spark's temporary files behind. Progress is told where there is no terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

import smile
from smile.cli.exits import Exit

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
