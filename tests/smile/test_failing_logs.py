"""Goal: a log that cannot be read or opened for a while harms whoever needs it just then, and nobody else."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import pytest

import smile
from runtime.log.sqlite import LogDirectory
from runtime.log.stream_log import LogError
from smile.broker import BrokerProcess
from smile.deploy.config import BrokerSettings

PROGRAM = """
stream Sales (qty int[0..100], at time);
view Early = from Sales |> extend slot := truncate(at, 1 min) |> aggregate total := sum(qty) group by slot;
view Later = from Sales |> extend slot := truncate(at, 1 min) |> where qty > 4
  |> aggregate number := count() group by slot;
"""
SALE = {"qty": 5, "at": "2026-01-31 12:00:00"}


@pytest.fixture
def system(tmp_path: Path) -> Iterator[smile.System]:
    with smile.run(smile.compile(PROGRAM), data=tmp_path) as made:
        made.rows("Early")
        made.publish("Sales", SALE)
        made.settle()
        yield made


def fails(*_: Any) -> NoReturn:
    raise LogError("the disk has gone")


def test_a_read_that_fails_is_the_failure_of_the_view_that_starts(
    system: smile.System, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(system._engine.logs["Sales"], "read", fails)
        with pytest.raises(smile.LogUnusable, match="the disk has gone"):
            system.rows("Later")
    system.publish("Sales", SALE)
    assert [row["total"] for row in system.rows("Early")] == [10]


def test_subscribers_hear_that_their_own_copy_could_not_be_made(
    system: smile.System, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(system._engine.logs["Sales"], "read", fails)
        changes = system.subscribe("Sales", emit="bounds")
    with pytest.raises(smile.LogUnusable, match="the disk has gone"):
        changes.ready()
    changes.close()
    assert [change.row["qty"] for change in system.subscribe("Sales", emit="bounds").ready()] == [5]


def test_a_stream_that_cannot_start_again_is_tried_with_every_call(
    system: smile.System, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = system._engine
    with monkeypatch.context() as patched:
        patched.setattr(engine.logs["Sales"], "append", fails)
        patched.setattr(engine, "_next_epoch", fails)
        with pytest.raises(smile.PublishUncertain):
            system.publish("Sales", SALE)
        with pytest.raises(smile.SmileError, match="the disk has gone"):
            system.publish("Sales", SALE)
        with pytest.raises(smile.LogUnusable, match="the disk has gone"):
            system.rows("Later")
        assert [row["total"] for row in system.rows("Early")] == [5]
    system.publish("Sales", SALE)
    assert [row["total"] for row in system.rows("Early")] == [10]
    assert [row["number"] for row in system.rows("Later")] == [2]


def test_looking_into_a_view_leaves_its_subscribers_alone(system: smile.System) -> None:
    changes = system.subscribe("Early", emit="bounds")
    changes.ready()
    system.inspect("Early")
    system.publish("Sales", SALE)
    assert [change.row["total"] for change in changes.ready()] == [10]


def test_a_signal_handler_that_calls_is_refused_and_does_no_harm(
    system: smile.System, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal arrives while an event is being logged."""
    said: list[BaseException] = []

    def handle(_number: int, _frame: FrameType | None) -> None:
        try:
            system.rows("Early")
        except smile.Interrupted as refused:
            said.append(refused)

    log = system._engine.logs["Sales"]
    append = log.append

    def interrupted(*arguments: Any) -> None:
        signal.raise_signal(signal.SIGUSR1)
        append(*arguments)

    changes = system.subscribe("Early")
    changes.ready()
    before = signal.signal(signal.SIGUSR1, handle)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(log, "append", interrupted)
            system.publish("Sales", SALE)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert ["signal handler" in str(refused) for refused in said] == [True]
    assert [change.row["total"] for change in changes.ready()] == [10]
    assert [row["total"] for row in system.rows("Early")] == [10]


def test_more_than_a_log_can_take_at_once_is_no_damage(system: smile.System, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.log.sqlite_log.BODY_BYTES_MAX", 500)
    with pytest.raises(smile.PublishUncertain, match="Publish fewer rows at a time"):
        system.publish_many("Sales", [SALE] * 100)
    system.publish("Sales", SALE)
    assert [row["total"] for row in system.rows("Early")] == [10]


def test_a_full_disk_at_the_start_is_an_error_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = smile.compile(PROGRAM)
    with monkeypatch.context() as patched:
        patched.setattr(LogDirectory, "next_epoch", fails)
        with pytest.raises(smile.LogUnusable, match="the disk has gone"):
            smile.run(program, data=tmp_path)
    smile.run(program, data=tmp_path).close()


def test_a_start_that_was_interrupted_can_be_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> NoReturn:
        raise KeyboardInterrupt

    program = smile.compile(PROGRAM)
    with monkeypatch.context() as patched:
        patched.setattr(LogDirectory, "stream", interrupted)
        with pytest.raises(KeyboardInterrupt):
            smile.run(program, data=tmp_path)
    smile.run(program, data=tmp_path).close()


def test_a_broker_says_that_it_cannot_use_its_folder(tmp_path: Path) -> None:
    """On one line: these are what `serve` prints, without a traceback."""
    (tmp_path / "file").touch()
    (tmp_path / "log").touch()
    for folder in (tmp_path / "file", tmp_path):
        settings = BrokerSettings("hub", "tcp://127.0.0.1:*", folder)
        with pytest.raises(LogError, match=str(folder)), BrokerProcess(settings):
            pass
