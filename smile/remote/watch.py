"""The thread that looks, once a second, after open views: has one stopped, is one not needed any more?"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

LOOK_EVERY = 1.0
"""Seconds: a subscriber learns this much later that a row of its view could not be computed."""

log = logging.getLogger("smile")


class Watch:
    def __init__(self, look: Callable[[], None]) -> None:
        self._look = look
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """With the first view that stays open; further calls do nothing."""
        with self._lock:
            if self._thread is None and not self._ended.is_set():
                self._thread = threading.Thread(target=self._work, name="smile-watch", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        while not self._ended.wait(LOOK_EVERY):
            try:
                self._look()
            except Exception:
                if not self._ended.is_set():  # otherwise the connection has just been closed
                    log.exception("cannot look after open views")

    def close(self) -> None:
        self._ended.set()
        with self._lock:  # somebody may be starting it just now, and what is not started cannot be joined
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=1.0)
