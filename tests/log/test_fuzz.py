"""Goal: a few seconds of coverage-guided fuzzing find nothing in what reads stored bytes, and would find a mistake if
there were one. `python -m tests.log.fuzz --seconds N` runs longer."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


INPUTS = 10_000
"""Seconds, on a machine with nothing else to do."""


def fuzz(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.log.fuzz", *options]
    return subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.slow
def test_nothing_is_found(tmp_path: Path) -> None:
    done = fuzz(tmp_path, "--inputs", str(INPUTS), "--seconds", "100")
    assert done.returncode == 0, done.stderr[-3000:]
    runs = re.search(r"number_of_executed_units:\s*(\d+)", done.stderr)
    assert runs is not None
    assert int(runs.group(1)) > INPUTS / 4


@pytest.mark.slow
def test_a_mistake_is_found(tmp_path: Path) -> None:
    done = fuzz(tmp_path, "--seconds", "60", "--planted")
    assert done.returncode != 0
    assert "IndexError: planted" in done.stdout + done.stderr
