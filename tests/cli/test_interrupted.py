"""Goal: Ctrl-C ends a command wherever it is, with the exit code that it promises, and loses nothing that was told."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from smile.cli import app
from smile.cli.ended import Ended
from smile.cli.exits import Exit
from smile.local import LocalBrokers
from smile.remote.connect import connect
from tests.measures import PATIENCE_S, eventually

ROOT = Path(__file__).parents[2]
PROGRAM = "stream Buys (item int, qty int[1..100]);\nview Sold = from Buys |> aggregate n := count() group by item;\n"

INTERRUPTED_AT_50 = """
import os, signal, sys
from smile.cli import main

subscribe = sys.modules["smile.cli.subscribe"]
told = subscribe.json_change
made = []

def json_change(change):
    made.append(change)
    if len(made) == 50:
        os.kill(os.getpid(), signal.SIGINT)
    return told(change)

subscribe.json_change = json_change
main()
"""


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBrokers]:
    file = tmp_path_factory.mktemp("interrupted") / "shop.mpl"
    file.write_text(PROGRAM)
    with LocalBrokers(file, 1) as started:
        yield started


def start(*command: str, stdin: int | None = None) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, *command],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize("kind", ["standard input", "a pipe with a name"])
def test_publish_that_waits_for_more_lines(brokers: LocalBrokers, tmp_path: Path, kind: str) -> None:
    """The thread that reads is waiting in the kernel: neither the file nor the process may wait for it."""
    item = 1 if kind == "standard input" else 2
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    file = "-" if item == 1 else str(pipe)
    process = start(
        "-m",
        "smile",
        "publish",
        "Buys",
        file,
        "--address",
        brokers.address,
        stdin=subprocess.PIPE if item == 1 else None,
    )
    if item == 1:
        assert process.stdin is not None
        writer = os.dup(process.stdin.fileno())
    else:
        writer = os.open(pipe, os.O_WRONLY)
    os.write(writer, json.dumps({"item": item, "qty": 1}).encode() + b"\n")
    with connect(brokers.address) as system:
        eventually(lambda: {"item": item, "n": 1} in system.rows("Sold"), "the row")
    process.send_signal(signal.SIGINT)
    try:
        assert process.wait(PATIENCE_S) == Exit.INTERRUPTED
    finally:
        process.kill()
        os.close(writer)
        _, complaints = process.communicate()
    assert "Fatal" not in complaints


def test_a_change_is_shown_or_told_to_whoever_continues_from_the_token(brokers: LocalBrokers, tmp_path: Path) -> None:
    """Ctrl-C when a change has been taken and is not yet printed."""
    with connect(brokers.address) as system:
        system.publish_many("Buys", [{"item": 100 + n, "qty": 1} for n in range(100)])
        count = len(system.rows("Buys"))
    (tmp_path / "interrupted.py").write_text(INTERRUPTED_AT_50)
    options = ("subscribe", "Buys", "--json", "--token", str(tmp_path / "token"), "--address", brokers.address)
    process = start(str(tmp_path / "interrupted.py"), *options)
    first, complaints = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == Exit.OK, complaints
    assert 0 < len(first.splitlines()) <= 50
    left = count - len(first.splitlines())
    rest = run(*options, "--changes", str(left), "--seconds", str(PATIENCE_S)).stdout
    shown = [json.loads(line)["row"]["item"] for line in (first + rest).splitlines()]
    assert sorted(item for item in shown if item >= 100) == [100 + n for n in range(100)]


@pytest.mark.parametrize(
    ("name", "said"), [(".", "cannot read"), ("missing/token", "cannot write"), ("readonly/token", "cannot write")]
)
def test_a_token_that_cannot_be_kept_is_said_in_one_line(
    brokers: LocalBrokers, tmp_path: Path, name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    (tmp_path / "readonly").mkdir()
    with connect(brokers.address) as system:
        system.publish("Buys", {"item": 3, "qty": 1})
    monkeypatch.setattr("runtime.files.write_durably", refuses)
    result = run("subscribe", "Sold", "-n", "1", "--token", str(tmp_path / name), "--address", brokers.address)
    assert result.exit_code == Exit.USAGE, result.output
    assert result.stderr.startswith(f"smile: {said} {tmp_path / name}: ")


def test_a_signal_in_the_middle_of_a_signal_ends_what_waits() -> None:
    """Ctrl-C twice: the second comes while the handler of the first is at work. With a lock both wait for ever."""
    ended = Ended()
    nested: list[int] = []

    def at_every_call(_frame: object, event: str, _value: object) -> None:
        if event in ("call", "c_call") and len(nested) < 50:
            nested.append(1)
            ended.set()

    assert not ended.wait(0.01)
    sys.setprofile(at_every_call)
    try:
        ended.set()
        assert ended.wait(PATIENCE_S)
    finally:
        sys.setprofile(None)
    assert nested
    assert ended.is_set()
