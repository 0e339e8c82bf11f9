"""Goal: `smile logs` prints the last lines of logs of any size, and reads no more of them than that."""

import random
import sys
import tracemalloc
from pathlib import Path

import pytest
from typer.testing import CliRunner

from smile.cli import app
from smile.cli.logs import _print_from
from smile.deploy.run_record import BrokerProcess, RunRecord


def broker_of(folder: Path) -> BrokerProcess:
    return BrokerProcess("b1", "tcp://127.0.0.1:1", None, str(folder), str(folder / "b1.log"), None, "down", 1)


def printed(folder: Path, lines: int) -> list[str]:
    RunRecord(folder, 1, "p.mpl", {"b1": broker_of(folder)}).write()
    result = CliRunner().invoke(app, ["logs", "--data", str(folder), "--lines", str(lines)])
    assert result.exit_code == 0, result.output
    return [line.removeprefix("b1  ") for line in result.stdout.splitlines()]


def test_the_last_lines_wherever_blocks_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cases: int) -> None:
    """The end of a line that is not complete is left for later."""
    monkeypatch.setattr(sys.modules["smile.cli.logs"], "READ_BYTES", 16)
    rng = random.Random(5)
    for _ in range(60 * cases):
        text = ["x" * rng.randrange(15) for _ in range(rng.randrange(12))]
        rest = "y" * rng.randrange(40)
        (tmp_path / "b1.log").write_text("".join(f"{line}\n" for line in text) + rest)
        count = rng.randrange(14)
        assert printed(tmp_path, count) == text[len(text) - min(count, len(text)) :]


def test_a_large_log_is_not_read_as_a_whole(tmp_path: Path) -> None:
    with (tmp_path / "b1.log").open("w") as file:
        for number in range(400_000):
            file.write(f"{number} {'-' * 50}\n")
    tracemalloc.start()
    try:
        last = printed(tmp_path, 2)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [line.split()[0] for line in last] == ["399998", "399999"]
    assert peak < 8 * 2**20


def test_a_line_that_is_too_long_does_not_hide_those_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.modules["smile.cli.logs"], "READ_BYTES", 16)
    (tmp_path / "b1.log").write_text(f"{'x' * 40}\nafter\n")
    start = 0
    for _ in range(5):
        start = _print_from(broker_of(tmp_path), start, 2)
    said = [line.removeprefix("b1  ") for line in capsys.readouterr().out.splitlines()]
    assert ("".join(said[:-1]), said[-1]) == ("x" * 40, "after")
