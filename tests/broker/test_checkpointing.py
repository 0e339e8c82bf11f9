"""Goal: whatever goes wrong with one checkpoint costs that one, neither the others nor the broker."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runtime.broker import checkpointing
from runtime.broker.checkpointing import Checkpointing
from runtime.checkpoints import codec
from runtime.checkpoints.store import CheckpointStore
from runtime.protocol.checkpoint import Checkpoint
from tests.measures import eventually

BOUND = 1_000
SMALL, LARGE = 10, 5_000


def due(name: str, size: int) -> tuple[Any, Any]:
    """A component whose state has this size, and what it asks for."""
    hosted = SimpleNamespace(name=name, digest="d", component=SimpleNamespace(epoch=1))
    state: dict[str, object] = {"part": b"x" * size}
    return hosted, SimpleNamespace(number=1, make=lambda: Checkpoint(name, (), 0, 0, state))


class Told:
    """Checkpoints in a folder, and what was told about each."""

    def __init__(self, folder: Path) -> None:
        self.store = CheckpointStore(folder)
        self.checkpoints = Checkpointing(self.store, 1, lambda: 0)
        self.failures: dict[str, str | None] = {}
        self.checkpoints.report = lambda name, _epoch, _number, failure: self.failures.update({name: failure})

    def write(self, *wanted: tuple[Any, Any]) -> None:
        self.checkpoints.begin(list(wanted))
        nobody: Any = None

        def has_ended() -> bool:
            self.checkpoints.poll(nobody)
            return not self.checkpoints.status()["is_writing"]

        eventually(has_ended, "the child to end")

    def has(self, name: str) -> bool:
        return self.store.load(name, "d").data is not None


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    monkeypatch.setattr(codec, "CHECKPOINT_BYTES_MAX", BOUND)
    return Told(tmp_path)


@pytest.fixture
def without_children() -> Iterator[None]:
    """As in a process whose parent ignored the ends of its children: that is inherited."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGCHLD, before)


def test_one_that_is_too_large_keeps_no_other_from_being_written(told: Told) -> None:
    told.write(due("a", SMALL), due("b", LARGE), due("c", SMALL))
    assert (told.failures["a"], told.failures["c"]) == (None, None)
    assert "b: " in (told.failures["b"] or "")
    assert [told.has(name) for name in "abc"] == [True, False, True]
    assert told.checkpoints.failed == 1


def test_the_same_when_the_broker_stops(told: Told) -> None:
    host: Any = SimpleNamespace(checkpoint=lambda shelf: shelf.begin([due("b", LARGE), due("c", SMALL)]))
    told.checkpoints.finish(host)
    assert [told.has(name) for name in "bc"] == [False, True]


def test_a_stop_waits_for_the_child(told: Told) -> None:
    told.checkpoints.begin([due("a", SMALL)])
    host: Any = SimpleNamespace(checkpoint=lambda shelf: shelf.begin([due("c", SMALL)]))
    told.checkpoints.finish(host)
    assert [told.has(name) for name in "ac"] == [True, True]
    assert not told.failures  # nobody goes on with what is told now


def test_a_stop_does_not_wait_for_a_child_that_hangs(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    def hanging() -> Checkpoint:
        while True:
            signal.pause()

    hosted, instruction = due("b", SMALL)
    instruction.make = hanging
    monkeypatch.setattr(checkpointing, "CHILD_S_MAX", 0.1)
    told.checkpoints.begin([(hosted, instruction)])
    host: Any = SimpleNamespace(checkpoint=lambda shelf: shelf.begin([due("c", SMALL)]))
    told.checkpoints.finish(host)
    assert [told.has(name) for name in "bc"] == [False, True]
    assert told.checkpoints.failed == 1


def test_a_child_that_is_killed_has_written_what_it_said(told: Told) -> None:
    def killed() -> Checkpoint:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    hosted, instruction = due("b", SMALL)
    instruction.make = killed
    told.write(due("a", SMALL), (hosted, instruction), due("c", SMALL))
    assert told.failures["a"] is None
    assert "ended with 9" in (told.failures["b"] or "")
    assert "ended with 9" in (told.failures["c"] or "")


def test_no_file_may_be_opened(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each peer is two open files: a broker with many of them goes on, without checkpoints."""

    def refused() -> tuple[int, int]:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patched:
        patched.setattr(os, "pipe", refused)
        told.write(due("a", SMALL))
    assert "Too many open files" in (told.failures["a"] or "")
    told.write(due("a", SMALL))
    assert told.failures["a"] is None


@pytest.mark.usefixtures("without_children")
def test_a_child_that_nobody_can_wait_for(told: Told) -> None:
    told.write(due("a", SMALL))
    assert told.failures["a"] is None
    assert told.has("a")
