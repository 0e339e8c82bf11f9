"""Whose turn it is to use the sockets of a connection: a thread that waits for input, or a caller who is quick.

Two threads must not use a ZeroMQ socket at the same time, so whoever does holds the loop's lock. Most of the time that
is the loop's own thread, which takes turns: it reads, does what callers have left for it, and sleeps until a descriptor
shows input. A caller with something small to send need not wake it: `enter`, send, `leave`. That saves two changes of
thread for every publish, which is more than all the rest of it costs.

What a descriptor shows is gone once somebody has used its socket, even to send. So every turn ends with a look for
input that no descriptor shows; a caller who has used a socket looks, too, and wakes the thread if there is some.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import Protocol

from runtime.client.errors import ConnectionClosed

log = logging.getLogger("smile.client")

Work = Callable[[], object]


class Turn(Protocol):
    """`ready`: the descriptors that show input. `has_worked`: callers had left something to do, and it is done. Gives
    the microseconds in which nothing is due; 0 if there is input to read at once."""

    def __call__(self, ready: Collection[int], *, has_worked: bool) -> int: ...


class Loop:
    """`end` is called when the loop is closed. It and `turn` are called in the thread, with the lock held."""

    def __init__(self, turn: Turn, end: Callable[[], None]) -> None:
        self._turn = turn
        self._end = end
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._taker = 0  # the thread that takes a turn now
        self._work: deque[Work] = deque()
        self._last: list[Work] = []
        self._closing = threading.RLock()
        self._is_closed = False
        self.wakes_us = 0
        """When the thread wakes by itself."""
        self._waker, self._wakee = socket.socketpair()
        self._wakee.setblocking(False)
        self._waker.setblocking(False)
        self._waits_for = select.poll()
        self._waits_for.register(self._wakee, select.POLLIN)
        self._thread = threading.Thread(target=self._run, name="smile-connection", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def watch(self, descriptors: Iterable[int]) -> None:
        """Wake up when one of these shows input."""
        for descriptor in descriptors:
            self._waits_for.register(descriptor, select.POLLIN)
        self.wake()  # it waits for the others only

    # Callers

    @property
    def is_here(self) -> bool:
        """Is this the thread that takes a turn? Nothing may be waited for in it."""
        return self._taker == threading.get_ident()

    @property
    def has_work(self) -> bool:
        return bool(self._work)

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def is_foreign(self) -> bool:
        """Is this a fork of the process that has the thread? The sockets are not usable there: using one never ends."""
        return os.getpid() != self._process

    def now(self, work: Callable[[], bool]) -> bool:
        """Do this in the caller's thread, if nobody uses the sockets and nobody has left work before; was it done?
        `work` says whether the thread is to be woken: there is something to read, or something is due before it wakes.

        Ctrl-C may come anywhere here, in `acquire` too. So giving back is tried whatever happened, and is the first
        thing that is done then.
        """
        lock = self._lock
        if self._work or self.is_foreign or lock._is_owned():  # type: ignore[attr-defined]  # a handler of signals, in the middle of this
            return False
        is_done = is_needed = False
        try:
            if lock.acquire(blocking=False) and not self._work and not self._is_closed:
                is_needed = True  # unless the work comes to its end
                is_needed = work()
                is_done = True
        finally:
            try:  # noqa: SIM105  to make a context first would leave time for Ctrl-C
                lock.release()
            except RuntimeError:  # it was not ours
                pass
            if is_needed:
                self.wake()
        return is_done

    def add(self, work: Work) -> None:
        """Do this in the next turn. Raises ConnectionClosed; otherwise it is done, come what may."""
        if self.is_foreign:  # first: locks are as they were when the process was forked
            raise ConnectionClosed("the connection is that of another process")
        with self._closing:
            if self._is_closed:
                raise ConnectionClosed("the connection is closed")
            self._work.append(work)

    def later(self, work: Work) -> None:
        """From inside a turn: do this before anything more is read, but not in the middle of what is done now."""
        assert self.is_here
        self._work.append(work)

    def before_sleep(self, work: Work) -> None:
        """From inside a turn: do this when all else is done. Whoever is woken earlier waits for the interpreter, which
        this thread still has, and is woken twice."""
        assert self.is_here
        self._last.append(work)

    def wake(self) -> None:
        with suppress(OSError):  # full: it is awake; closed: it is gone
            self._waker.send(b"!")

    def close(self) -> None:
        """May be called twice, and from inside a turn."""
        if self.is_foreign:
            return
        with self._closing:
            self._is_closed = True
        self.wake()
        if threading.current_thread() is not self._thread and not self._lock._is_owned():  # type: ignore[attr-defined]
            self._thread.join()

    # The thread

    def _run(self) -> None:
        wakee, ident = self._wakee.fileno(), threading.get_ident()
        ready: Collection[int] = ()
        try:
            while not self._is_closed:
                with self._lock:
                    self._taker = ident
                    if wakee in ready:
                        with suppress(BlockingIOError):
                            self._wakee.recv(4_096)
                    has_worked = self._do_work()
                    patience_us = self._turn(ready, has_worked=has_worked)
                    if self._work:
                        patience_us = 0
                    self.wakes_us = time.monotonic_ns() // 1_000 + patience_us
                    self._taker = 0
                if self._last:
                    self._do_last()
                ready = [found for found, _ in self._waits_for.poll(-(-patience_us // 1_000))]
        except Exception:
            log.exception("the connection has broken")
        finally:
            with self._closing:
                self._is_closed = True
            with self._lock:
                self._taker = ident
                self._do_work()  # whoever waits must not wait for ever
                try:
                    self._end()
                except Exception:
                    log.exception("the connection does not end well")
                self._taker = 0
            self._do_last()
            self._waker.close()
            self._wakee.close()

    def _do_last(self) -> None:
        last, self._last = self._last, []
        for work in last:
            work()

    def _do_work(self) -> bool:
        """Was there any?"""
        count = len(self._work)
        for _ in range(count):
            try:
                self._work.popleft()()
            except Exception:
                log.exception("what a caller asked for failed")
        return count > 0
