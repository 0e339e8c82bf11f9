"""Whether a signal has said that it is time to end."""

from __future__ import annotations

import threading
from time import monotonic, sleep

LOOK_EVERY_S = 0.05


class Ended(threading.Event):
    """An event for handlers of signals: these run in the middle of anything the main thread does, also of `wait` or of
    `set` for the signal before, whose lock they would wait for for ever. So there is none here."""

    def __init__(self) -> None:
        super().__init__()
        self._is_over = False

    def set(self) -> None:
        self._is_over = True

    def is_set(self) -> bool:
        return self._is_over

    def wait(self, timeout: float | None = None) -> bool:
        end = None if timeout is None else monotonic() + timeout
        while not self._is_over and (end is None or monotonic() < end):
            sleep(LOOK_EVERY_S)
        return self._is_over
