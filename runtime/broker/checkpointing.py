"""Soft checkpoints without stopping the flow: a forked child writes what the components were at that moment.

The child shares the memory as it was, needs no lock and copies nothing; the broker goes on. One child at a time writes
for all components that have changed. It touches neither sockets nor SQLite nor threads: it closes every file it has
inherited, writes plain files, and ends without any cleaning up.
"""

from __future__ import annotations

import gc
import logging
import os
import resource
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from runtime.broker.host import Host
from runtime.broker.hosted import Hosted
from runtime.broker.log_access import Times
from runtime.checkpoints import codec
from runtime.checkpoints.store import CheckpointFailed, CheckpointStore
from runtime.protocol.checkpoint import Checkpoint
from runtime.protocol.events import PersistCheckpoint

log = logging.getLogger("smile.checkpoint")

CHILD_S_MAX = 120.0
"""A child that has not finished by then is killed: the disk hangs, or the state is larger than it can write."""

_LOOK_EVERY_S = 0.005
"""So often a broker that stops looks whether its child has ended."""

REASON_BYTES_MAX = 1_000
_WRITTEN, _FAILED = b"+", b"-"
"""What a child says of each component, in turn; then why the first failed, if any did."""

Report = Callable[[str, int, int, str | None], None]
"""Component, epoch, number, and why it failed."""


def _to_nobody(_component: str, _epoch: int, _number: int, _failure: str | None) -> None:
    """Until a host is there."""


@dataclass(frozen=True, slots=True)
class _Due:
    component: str
    digest: str
    epoch: int
    number: int
    make: Callable[[], Checkpoint]


@dataclass(slots=True)
class _Child:
    pid: int
    said: int  # reading end of a pipe
    began: float
    due: list[_Due]


class Checkpointing:
    """Implements `CheckpointShelf`. `every_us` apart, if anything has changed; 0: only when the broker stops."""

    def __init__(self, store: CheckpointStore, every_us: int, steady_us: Callable[[], int]) -> None:
        self.report: Report = _to_nobody
        self.times = Times()
        self.forks = Times()
        self.failed = 0
        self._store = store
        self._every_us = every_us
        self._steady_us = steady_us
        self._due_us = steady_us() + every_us
        self._child: _Child | None = None

    def load(self, component: str, digest: str) -> tuple[Checkpoint | None, int]:
        found = self._store.load(component, digest)
        if found.data is not None:
            try:
                return Checkpoint.from_wire(codec.decode(found.data)), found.acknowledged_horizon
            except ValueError as broken:
                log.warning("damaged checkpoint: %s", broken, extra={"component": component})
        if found.data is not None or found.is_missing:
            log.warning("an acknowledged checkpoint cannot be read", extra={"component": component})
        return None, found.acknowledged_horizon

    def acknowledged(self, component: str, digest: str) -> int:
        return self._store.acknowledged(component, digest)

    # Writing

    def hasten(self) -> None:
        """The next one is due now."""
        self._due_us = self._steady_us()

    def maybe_begin(self, host: Host) -> None:
        """Now and then, unless one is being written."""
        if self._every_us and self._child is None and self._steady_us() >= self._due_us:
            self._due_us = self._steady_us() + self._every_us
            host.checkpoint()

    def begin(self, due: list[tuple[Hosted, PersistCheckpoint]]) -> None:
        """Fork. Nothing may be fed to these components between their instruction and this call."""
        assert self._child is None
        wanted = [
            _Due(hosted.name, hosted.digest, hosted.component.epoch, instruction.number, instruction.make)
            for hosted, instruction in due
        ]
        began = time.perf_counter_ns()
        try:
            reading, writing = os.pipe()
        except OSError as error:  # so many peers that no file may be opened
            self._ended(wanted, b"", str(error))
            return
        try:
            pid = os.fork()
        except OSError as error:
            os.close(reading)
            os.close(writing)
            self._ended(wanted, b"", str(error))
            return
        if pid == 0:
            _be_the_child(self._store, wanted, writing)
        os.close(writing)
        self.forks.note((time.perf_counter_ns() - began) // 1_000)
        self._child = _Child(pid, reading, time.monotonic(), wanted)

    def poll(self, host: Host) -> None:
        """Has the child finished? Costs one system call while there is one."""
        child = self._child
        if child is None:
            return
        try:
            pid, status = os.waitpid(child.pid, os.WNOHANG)
        except ChildProcessError:  # it has ended, and whoever started us made the system forget children at once
            pid, status = child.pid, 0
        if pid == 0:
            if time.monotonic() - child.began > CHILD_S_MAX:
                os.kill(child.pid, signal.SIGKILL)
            return
        self._child = None
        said = os.read(child.said, len(child.due) + REASON_BYTES_MAX)
        os.close(child.said)
        self.times.note(int((time.monotonic() - child.began) * 1e6))
        reason = said[len(child.due) :].decode("utf-8", "replace")
        self._ended(child.due, said, reason or f"the writing process ended with {status}")

    def _ended(self, due: list[_Due], said: bytes, reason: str) -> None:
        """`said` begins with a byte for each, as far as the child came; `reason` is that of the first failure."""
        failures = [None if said[at : at + 1] == _WRITTEN else reason for at in range(len(due))]
        if any(failures):
            self.failed += 1
            log.warning("no checkpoint: %s", reason)
        for one, failure in zip(due, failures, strict=True):
            self.report(one.component, one.epoch, one.number, failure)

    def finish(self, host: Host) -> None:
        """The broker stops: wait for the child, no longer than ever, then write what has changed since, here."""
        self.report = _to_nobody
        while self._child is not None:
            self.poll(host)
            time.sleep(_LOOK_EVERY_S)
        writer = _InThisProcess(self._store)
        host.checkpoint(shelf=writer)

    def status(self) -> dict[str, Any]:
        return {
            "written": self.times.data(),
            "fork": self.forks.data(),
            "failed": self.failed,
            "is_writing": self._child is not None,
            **self._store.counters,
        }


class _InThisProcess:
    def __init__(self, store: CheckpointStore) -> None:
        self._store = store

    def load(self, component: str, digest: str) -> tuple[Checkpoint | None, int]:
        raise AssertionError("nothing starts any more")

    def begin(self, due: list[tuple[Hosted, PersistCheckpoint]]) -> None:
        for hosted, instruction in due:
            try:
                _write(
                    self._store,
                    _Due(hosted.name, hosted.digest, hosted.component.epoch, instruction.number, instruction.make),
                )
            except CheckpointFailed as error:
                log.warning("no checkpoint: %s", error, extra={"component": hosted.name})


def _be_the_child(store: CheckpointStore, due: list[_Due], said: int) -> None:
    """Never returns. A killed parent must not live on in files that we hold open: its ports, its lock."""
    code = 1
    try:
        gc.disable()
        kept = os.dup2(said, 3)
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        os.closerange(kept + 1, limit)
        os.nice(5)
        reason = b""
        for one in due:  # one that has no room, or too much state, must not keep the others' logs from being trimmed
            try:
                _write(store, one)
            except Exception as error:  # noqa: BLE001
                reason = reason or f"{type(error).__name__}: {error}".encode()[:REASON_BYTES_MAX]
                _say(_FAILED)
            else:
                _say(_WRITTEN)
        _say(reason)
        code = 0
    finally:
        os._exit(code)


def _say(data: bytes) -> None:
    with suppress(OSError):  # nobody is there any more; whoever comes after is glad of what is written
        os.write(3, data)


def _write(store: CheckpointStore, due: _Due) -> None:
    """Durable, and noted as what others may rely on, before anybody is told (C4)."""
    checkpoint = due.make()
    try:
        data = codec.encode(checkpoint.to_wire())
    except codec.CheckpointTooLarge as error:
        raise CheckpointFailed(f"{due.component}: {error}") from error
    store.save(due.component, due.digest, due.epoch, due.number, data)
    horizon = max((edge.coverage.horizon() for edge in checkpoint.edges), default=-1)
    store.note_acknowledged(due.component, due.digest, due.epoch, due.number, horizon)
