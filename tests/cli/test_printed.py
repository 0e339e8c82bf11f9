"""Goal: where nothing can be printed, every command ends with one line, or with none, and a documented exit code."""

import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from smile.cli.exits import Exit
from tests.measures import PATIENCE_S, eventually

ROOT = Path(__file__).parents[2]
PROGRAM = "stream S (x int);\nview V = from S |> where x > 1;\n"
COMMANDS = [("check", "p.mpl"), ("explain", "p.mpl"), ("explain", "p.mpl", "--json"), ("fmt", "-"), ("--help",)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.mpl").write_text(PROGRAM)
    return tmp_path


def smile(*arguments: str, folder: Path, output: int | None) -> tuple[int, str]:
    """Exit code and standard error; None for an output that is closed."""
    command = [sys.executable, "-m", "smile", *arguments]
    if output is None:
        command = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    with (folder / "p.mpl").open() as program:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=program,
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=False,
        )
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_said_in_one_line(command: tuple[str, ...], folder: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        code, said = smile(*command, folder=folder, output=full.fileno())
    assert (code, said) == (Exit.USAGE, "smile: cannot write the output: No space left on device\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_when_nobody_reads_any_more_nothing_is_said(command: tuple[str, ...], folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert smile(*command, folder=folder, output=writer) == (Exit.UNREAD, "")
    finally:
        os.close(writer)


PRINTS_TOO_MUCH = """
import sys
from smile.cli.printed import run_and_print
run_and_print(lambda: sys.stdout.write("x" * (int(sys.argv[1]) + 100)) and None)
"""


def test_a_reader_that_does_not_read_cannot_keep_it_from_ending_by_ctrl_c() -> None:
    """A pipe that is full: what is printed last waits in a buffer until the command has done its work."""
    reader, writer = os.pipe()
    size = fcntl.fcntl(writer, fcntl.F_GETPIPE_SZ)
    command = [sys.executable, "-c", PRINTS_TOO_MUCH, str(size)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=writer, stderr=subprocess.PIPE, text=True, env=environment) as process:
        os.close(writer)
        eventually(lambda: waiting_in(reader) == size, "the pipe to be full")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE_S)
    os.close(reader)
    assert (process.returncode, said) == (Exit.INTERRUPTED, "")


def waiting_in(pipe: int) -> int:
    return int(struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0])


@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_that_is_closed_is_wanted_by_nobody(command: tuple[str, ...], folder: Path) -> None:
    assert smile(*command, folder=folder, output=None) == (Exit.OK, "")


def test_the_code_is_right_also_where_the_reason_cannot_be_said(folder: Path) -> None:
    command = [sys.executable, "-m", "smile", "check", "nowhere.mpl"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, cwd=folder, stderr=full, env=environment, check=False)
    assert done.returncode == Exit.USAGE
