"""How `bench/brokers.py` talks to the processes it starts: a line of JSON each way. Not a benchmark itself.

Times are those of the monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parent.parent
PATIENCE_S = 120.0


class Worker:
    """A process of `bench/broker_workers.py`. Leaving the block ends it, whatever it does."""

    def __init__(self, role: str, **arguments: object) -> None:
        self.role = role
        command = [sys.executable, "-m", "bench.broker_workers", role, json.dumps(arguments, default=str)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
        assert self._process.stdout is not None
        self._stdout = self._process.stdout
        self._buffer = b""

    def hear(self, patience_s: float = PATIENCE_S) -> dict[str, Any]:
        """The next line that it says."""
        end = time.monotonic() + patience_s
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._stdout], [], [], max(0.0, end - time.monotonic()))
            data = os.read(self._stdout.fileno(), 65_536) if ready else b""
            if not data:
                raise SystemExit(f"the process that should {self.role} says nothing, code {self._process.poll()}")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        said: dict[str, Any] = json.loads(line)
        return said

    def go(self) -> None:
        """Let it do what it is waiting to do."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"go\n")
        self._process.stdin.flush()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(10)
        self._process.kill()
        self._process.communicate()


def say(**facts: object) -> None:
    """In the process: tell the one who started it."""
    print(json.dumps(facts), flush=True)


def wait_for_line() -> None:
    """In the process: wait until it is told to go on."""
    if not sys.stdin.readline():
        raise SystemExit("nobody is there any more")


def sleep_until(due: float) -> None:
    wait = due - time.monotonic()
    if wait > 0:
        time.sleep(wait)
