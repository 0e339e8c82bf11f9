"""Brokers as real processes on free ports of this machine: start them, kill them, look at them."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import smile
from runtime.log import codec
from smile.deploy.bundles import make_deployment
from smile.deploy.deployment import Deployment
from smile.program import Program
from smile.remote.system import RemoteSystem

WAIT_S = 60.0
ROOT = Path(__file__).parents[2]


class Zygote:
    """Forks what `zygote.py` has functions for."""

    def __init__(self) -> None:
        command = [sys.executable, str(Path(__file__).with_name("zygote.py"))]
        # Loading the compiler of kernels takes 60 MB at some time or other; these tests look at memory.
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "SMILE_KERNELS": "plain"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
        )
        self.pids: list[int] = []

    def run(self, function: str, **arguments: object) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"run": function, **arguments}) + "\n")
        self._process.stdin.flush()
        pid = int(self._process.stdout.readline())
        self.pids.append(pid)
        return pid

    @contextmanager
    def files_bounded(self, count_bytes: int) -> Iterator[None]:
        """No file of what is started meanwhile can be larger, as if the disk were full."""
        before = resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (count_bytes, before[1]))
        yield
        resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, before)

    def close(self) -> None:
        for pid in self.pids:
            kill(pid)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(WAIT_S)
        self._process.stdout.close()


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def is_dead(pid: int) -> bool:
    return not is_alive(pid)


def wait_for(true: Callable[[], object], what: str, seconds: float = WAIT_S) -> Any:
    limit = time.monotonic() + seconds
    while True:
        found = true()
        if found:
            return found
        assert time.monotonic() < limit, f"waited {seconds} s for {what}"
        time.sleep(0.02)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class Brokers:
    """One deployment; `placement` names the broker of each component."""

    def __init__(self, zygote: Zygote, folder: Path, program: Program, placement: dict[str, str], **settings: object):
        self.folder = folder
        self.settings = settings
        self.own_settings: dict[str, dict[str, object]] = {}
        self.pids: dict[str, int] = {}
        self._zygote = zygote
        names = dict.fromkeys(placement.values())
        self.addresses = {name: f"tcp://127.0.0.1:{free_port()}" for name in names}
        self.deployment: Deployment = make_deployment(program, self.addresses, placement)
        for name in self.addresses:
            self.deployment.write(self.folder / name)

    @property
    def address(self) -> str:
        return next(iter(self.addresses.values()))

    def start(self, *names: str) -> None:
        for name in names or tuple(self.addresses):
            (self.folder / name / "serving.json").unlink(missing_ok=True)
            self.pids[name] = self._zygote.run(
                "broker",
                log=str(self.folder / f"{name}.log"),
                data=str(self.folder / name),
                name=name,
                address=self.addresses[name].partition("?")[0],
                **self.settings,
                **self.own_settings.get(name, {}),
            )
        for name in names or tuple(self.addresses):
            wait_for(partial(self.is_serving, name), f"broker {name}:\n{self.log(name)}")

    def is_serving(self, name: str) -> bool:
        assert is_alive(self.pids[name]), f"broker {name} has ended:\n{self.log(name)}"
        return (self.folder / name / "serving.json").exists()

    def log(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def kill(self, name: str) -> None:
        kill(self.pids[name])
        wait_for(lambda: not is_alive(self.pids[name]), f"the end of {name}")

    def stop(self, name: str) -> None:
        kill(self.pids[name], signal.SIGTERM)
        wait_for(lambda: not is_alive(self.pids[name]), f"the end of {name}")

    def restart(self, name: str) -> None:
        self.kill(name)
        self.start(name)

    def memory(self, name: str) -> int:
        """Resident bytes."""
        pages = int(Path(f"/proc/{self.pids[name]}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def log_rows(self, name: str, stream: str) -> int:
        """Events that are still in the log of a stream."""
        uri = f"file:{self.folder / name / 'log' / 'events.sqlite'}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            (number,) = connection.execute("select number from streams where stream = ?", (stream,)).fetchone()
            bodies = connection.execute("select body from batches where stream = ?", (number,)).fetchall()
        return sum(len(codec.decode(body)) for (body,) in bodies)

    def status(self, system: RemoteSystem, name: str) -> dict[str, Any]:
        return system.connection.status()[name]

    def close(self) -> None:
        for name, pid in self.pids.items():
            kill(pid)
            wait_for(partial(is_dead, pid), f"the end of {name}")


@contextmanager
def running(
    zygote: Zygote, folder: Path, text: str, placement: dict[str, str], **settings: object
) -> Iterator[Brokers]:
    program = smile.compile(text)
    brokers = Brokers(zygote, folder, program, placement, **settings)
    try:
        brokers.start()
        yield brokers
    finally:
        brokers.close()
