"""Every example checks, is in canonical layout, runs, and prints what it is expected to print."""

import subprocess
import sys
from pathlib import Path

import pytest

from mpl.check import check
from mpl.formatter import format_source
from mpl.source import Source

PROGRAMS = sorted(Path("examples").glob("*/*.mpl"))
SCRIPTS = sorted(Path("examples").glob("*/run.py"))


@pytest.mark.parametrize("path", PROGRAMS, ids=str)
def test_program_checks_and_is_formatted(path: Path) -> None:
    source = Source(str(path), path.read_text())
    assert check(source).ok
    assert format_source(source) == source.text


@pytest.mark.parametrize("path", PROGRAMS, ids=str)
def test_example_has_a_readme_of_one_screen(path: Path) -> None:
    assert 3 <= len(path.with_name("README.md").read_text().splitlines()) <= 40


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_script_prints_what_is_expected(script: Path) -> None:
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == script.with_name("expected.txt").read_text()


def test_there_is_a_script_for_each_program_without_windows() -> None:
    assert {script.parent.name for script in SCRIPTS} == {"tickets", "ledger", "sensors", "leaderboard", "orders"}
