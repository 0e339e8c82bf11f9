"""The nursery: one process that has loaded everything a broker needs, and forks brokers from itself.

Loading takes a second or two of work; a fork takes milliseconds. So a local run of several brokers starts in the time
of one, and a broker that was killed is back at once. `Nursery` is the supervisor's end, `main` the process itself. The
kernel ends it with its supervisor, and the brokers with it: nobody is left behind, frozen ones included.

The two talk in lines of JSON: {"start": name, "arguments": [...], "log": path} is answered by {"started": name, "pid":
n} or {"failed": name, "reason": text}, and the end of a child is told as {"ended": pid, "code": n}.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import logging
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
READY_TIMEOUT_S = 120.0
ANSWER_TIMEOUT_S = 30.0
LOOK_EVERY_S = 0.02
LINE_BYTES_MAX = 2**20
WARM = """
stream S (k int, x int[0..9]);
view V = from S |> aggregate n := sum(x) group by k;
view W = from S |> left join V using k default n := 0 |> where n > 1;
"""


class NurseryError(Exception):
    """The nursery cannot start, or has ended."""


class Child:
    """A broker process. `returncode` as `subprocess` has it: negative for a signal."""

    def __init__(self, pid: int, nursery: Nursery) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._nursery = nursery

    def poll(self) -> int | None:
        self._nursery.listen()
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def wait(self, timeout: float) -> bool:
        """Has it ended within this time?"""
        end = time.monotonic() + timeout
        while self.poll() is None and time.monotonic() < end:
            time.sleep(LOOK_EVERY_S)
        return self.returncode is not None


class Nursery:
    """Made and asked by one thread, which must live as long as the brokers; any may poll children. `log` is where it
    complains, `script` what children run instead of a broker."""

    def __init__(self, log: Path, script: str | None = None) -> None:
        self._log = log
        self._children: dict[int, Child] = {}
        self._received = b""
        self._started: dict[str, Child] = {}  # and not yet handed to whoever asked for them
        self._failed: dict[str, str] = {}
        self._lock = threading.Lock()  # of the socket: who finds something to read must be the one who reads it
        self._is_ready = False
        ours, theirs = socket.socketpair()
        self._socket = ours
        with theirs, log.open("wb") as complaints:
            command = [sys.executable, "-P", "-m", "smile.deploy.nursery", str(theirs.fileno()), str(os.getpid())]
            self._process = subprocess.Popen(
                [*command, script or ""],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=complaints,
                stderr=complaints,
                start_new_session=True,
            )

    def wait_ready(self) -> None:
        self._await(lambda: self._is_ready, READY_TIMEOUT_S)

    def start(self, name: str, arguments: Sequence[str], log: Path) -> Child:
        self._failed.pop(name, None)
        late = self._started.pop(name, None)
        if late is not None:  # whoever asked for it had no patience: it would be in the way of this one
            late.send_signal(signal.SIGKILL)
        request = json.dumps({"start": name, "arguments": list(arguments), "log": str(log)})
        try:
            self._socket.sendall(request.encode() + b"\n")
        except OSError as error:
            raise NurseryError(f"the process that starts brokers has ended: {error}") from error
        self._await(lambda: name in self._started or name in self._failed, ANSWER_TIMEOUT_S)
        if name in self._failed:
            raise NurseryError(f"no process can be started: {self._failed.pop(name)}")
        return self._started.pop(name)

    def listen(self) -> None:
        """Take note of what it says; children of a nursery that has ended have ended, too."""
        with self._lock:
            while self._socket.fileno() >= 0 and select.select([self._socket], [], [], 0)[0]:
                try:
                    data = self._socket.recv(65_536)
                except ConnectionResetError:  # it ended with a request that it had not read
                    data = b""
                if not data:
                    self._note_end()
                    return
                self._received += data
                *lines, self._received = self._received.split(b"\n")
                for line in lines:
                    self._note(json.loads(line))

    def _note_end(self) -> None:
        for child in self._children.values():
            child.returncode = -signal.SIGKILL if child.returncode is None else child.returncode

    def _note(self, said: dict[str, Any]) -> None:
        if "started" in said:
            # Known from here on: the next line may say that it has ended.
            self._started[said["started"]] = self._children[said["pid"]] = Child(said["pid"], self)
        elif "ended" in said:
            self._children.pop(said["ended"]).returncode = said["code"]
        elif "failed" in said:
            self._failed[said["failed"]] = said["reason"]
        else:
            self._is_ready = True

    def _await(self, condition: Callable[[], bool], timeout: float) -> None:
        end = time.monotonic() + timeout
        while True:
            self.listen()
            if condition():
                return
            if self._process.poll() is not None or time.monotonic() > end:
                said = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
                raise NurseryError(
                    f"the process that starts brokers does not answer: {said[-1] if said else 'no word'}"
                )
            select.select([self._socket], [], [], LOOK_EVERY_S)

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """Children that are left end with it, and whoever still has one finds that it has ended."""
        self._process.kill()
        self._process.wait()
        self.listen()
        with self._lock:
            self._socket.close()
            self._note_end()


def die_with(parent: int) -> None:
    """Have the kernel end this process when its parent ends; a frozen process could not do it itself."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:  # it ended before the line above
        os._exit(1)


# The process


def main(handle: int, parent: int, script: str) -> None:
    """Load, say so, fork on request, tell who has ended. Ends when the other side does."""
    die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the supervisor's matter
    if not script:
        _load()
    gc.collect()
    gc.freeze()  # what is shared with the children stays shared
    with socket.socket(fileno=handle) as link:
        _say(link, {"ready": os.getpid()})
        received = b""
        while True:
            if select.select([link], [], [], LOOK_EVERY_S)[0]:
                data = link.recv(LINE_BYTES_MAX)
                if not data:
                    return
                received += data
                *lines, received = received.split(b"\n")
                for line in lines:
                    _say(link, _answer(json.loads(line), link, script))
            _tell_ended(link)


def _load() -> None:
    """What a broker imports. Nothing of it starts a thread or opens a socket."""
    for module in ("smile.broker", "smile.cli"):
        import_module(module)
    from mpl.source import Source
    from smile.program import compile_source

    # Grammar and templates are read with the first program that is compiled.
    assert compile_source(Source("warm.mpl", WARM), Path()).plan.views


def _say(link: socket.socket, said: dict[str, Any]) -> None:
    link.sendall(json.dumps(said).encode() + b"\n")


def _tell_ended(link: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _say(link, {"ended": pid, "code": os.waitstatus_to_exitcode(status)})


def _answer(request: dict[str, Any], link: socket.socket, script: str) -> dict[str, Any]:
    try:
        return {"started": request["start"], "pid": _fork(request, link, script)}
    except OSError as error:  # no memory, or too many processes: the children that live shall not end for it
        return {"failed": request["start"], "reason": error.strerror or str(error)}


def _fork(request: dict[str, Any], link: socket.socket, script: str) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        die_with(parent)
        link.close()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for target in (1, 2):
            os.dup2(log, target)
        os.close(log)
        code = _run(request["arguments"], script)
    finally:
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def _run(arguments: list[str], script: str) -> int:
    try:
        if script:
            sys.argv = [script, *arguments]
            runpy.run_path(script, run_name="__main__")
        else:
            from smile.cli import app

            sys.argv = ["smile", "broker", *arguments]
            app()
    except SystemExit as ended:
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")
            return 1
        return ended.code or 0
    except BaseException:
        logging.getLogger("smile").exception("a broker has ended by an error of ours")
        raise
    return 0


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
