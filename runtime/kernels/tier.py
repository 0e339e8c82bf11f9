"""The two tiers of a kernel, and the change from one to the other.

A kernel starts in the plain tier, so nothing waits. Once it is worth it (`request`), the native tier is compiled by
another process into a folder on disk (`compile.py`); one thread of ours waits for that, loads what was compiled, and
sets `Tier.native`, which operators look at before each batch. What is on disk already is only loaded. All kernels with
one text share a tier.

If numba is missing or fails, kernels stay in the plain tier: slower, never wrong. `failure` says why.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, Protocol

CACHE_VARIABLE = "SMILE_KERNEL_CACHE"
MODE_VARIABLE = "SMILE_KERNELS"
COMPILE_TIMEOUT_S = 600
log = logging.getLogger(__name__)

Native = tuple[Callable[..., Any], ...]


class Loops(Protocol):
    """What is compiled: the functions `loop_0`, `loop_1`, ... of the module `text`, which `digest` names."""

    @property
    def text(self) -> str: ...

    @property
    def digest(self) -> str: ...

    @property
    def functions(self) -> tuple[Callable[..., None], ...]: ...

    def signature(self, loop: int) -> tuple[str, ...]:
        """The types of all parameters of one function, as numba writes them."""


class Tier:
    """`native` has the compiled functions, in the order of `Loops.functions`, once they are there."""

    def __init__(self, spec: Loops, folder: Path) -> None:
        self.spec = spec
        self.folder = folder
        self.native: Native | None = None
        self.failure: str | None = None
        self._is_settled = Event()
        self._is_requested = False

    def request(self) -> None:
        """Start the native tier on its way, unless that was done before or SMILE_KERNELS=plain."""
        with _lock:
            if self._is_requested:
                return
            self._is_requested = True
            if os.environ.get(MODE_VARIABLE) == "plain":
                self.stay_plain(f"{MODE_VARIABLE}=plain")
            else:
                _start_worker()
                _waiting.put(self)

    @property
    def source(self) -> Path:
        """The module on disk. The long name keeps it apart from everything that is imported by name."""
        return self.folder / f"smile_kernel_{self.spec.digest}.py"

    @property
    def is_compiled(self) -> bool:
        """Has a process finished compiling it, now or earlier?"""
        return self.source.with_suffix(".ready").exists()

    def wait(self, timeout_s: float) -> bool:
        """Wait until it is decided in which tier the kernel stays; True if that is the native one."""
        self.request()
        self._is_settled.wait(timeout_s)
        return self.native is not None

    def write(self) -> None:
        """Put the module and the types of its parameters where the compiling process finds them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        signatures = [self.spec.signature(loop) for loop in range(len(self.spec.functions))]
        write_once(self.source, self.spec.text)
        write_once(self.source.with_suffix(".json"), json.dumps(signatures))

    def load(self) -> None:
        """Take over what was compiled; without it, stay plain."""
        try:
            from runtime.kernels.native import load_native

            self.native = load_native(self.source)
        except Exception as broken:  # noqa: BLE001  whatever numba does, the plain tier goes on
            self.fail(f"{type(broken).__name__}: {broken}")
        self._is_settled.set()

    def fail(self, why: str) -> None:
        log.warning("kernel %s stays in the plain tier: %s", self.spec.digest, why)
        self.stay_plain(why)

    def stay_plain(self, why: str) -> None:
        self.failure = why
        self._is_settled.set()

    def begin_anew(self) -> None:
        """In a forked process: what was requested but not settled is with a thread that is not here."""
        if self.native is None and self.failure is None:
            self._is_settled = Event()
            self._is_requested = False


_tiers: dict[tuple[str, Path], Tier] = {}
_lock = Lock()
_waiting: SimpleQueue[Tier] = SimpleQueue()
_worker: Thread | None = None


def _after_fork() -> None:
    """A forked process has the objects of its parent and none of its threads; a lock may be one that nobody opens."""
    global _lock, _waiting, _worker
    _lock, _waiting, _worker = Lock(), SimpleQueue(), None
    for tier in _tiers.values():
        tier.begin_anew()


os.register_at_fork(after_in_child=_after_fork)


def tier_of(spec: Loops) -> Tier:
    """The tier of a kernel."""
    folder = cache_folder()
    with _lock:
        tier = _tiers.get((spec.digest, folder))
        if tier is None:
            tier = _tiers[(spec.digest, folder)] = Tier(spec, folder)
        return tier


def cache_folder() -> Path:
    """Where compiled kernels are kept: SMILE_KERNEL_CACHE, or the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "smile" / "kernels" / _versions()


@cache
def _versions() -> str:
    """What another version has compiled is of no use."""
    try:
        return f"{sys.implementation.cache_tag}-numba-{version('numba')}"
    except PackageNotFoundError:
        return "without-numba"


def write_once(path: Path, text: str) -> None:
    """Write a file as a whole, unless it is there: its time of change is part of numba's key."""
    if path.exists():
        return
    with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".new", delete=False, encoding="utf-8") as file:
        file.write(text)
    os.replace(file.name, path)


def _start_worker() -> None:
    global _worker  # noqa: PLW0603
    if _worker is None:
        _worker = Thread(target=_work, name="kernels", daemon=True)
        _worker.start()


def _work() -> None:
    """Compile all that wait together, in one process: most of its time is loading numba."""
    while True:
        tiers = [_waiting.get()]
        while not _waiting.empty():
            tiers.append(_waiting.get())
        missing = [tier for tier in tiers if not tier.is_compiled]
        why = _compile(missing)
        for tier in tiers:
            if tier.is_compiled:
                tier.load()
            else:
                tier.fail(why)


def _compile(tiers: list[Tier]) -> str:
    """Run the compiling process; what it says if it fails."""
    if not tiers:
        return ""
    try:
        for tier in tiers:
            tier.write()
        # -P: a folder `runtime` where the user happens to be is not ours.
        done = subprocess.run(
            [sys.executable, "-P", "-m", "runtime.kernels.compile", *(str(tier.source) for tier in tiers)],
            capture_output=True,
            text=True,
            timeout=COMPILE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as broken:
        return str(broken)
    return done.stderr[-2_000:]
