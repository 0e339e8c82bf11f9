"""The thread in which callbacks of subscriptions run: not the connection's own, so they may publish, read and wait.

One after the other, in the order in which their subscriptions got something; a slow callback delays other callbacks of
the same system, nobody else. What a callback raises is its subscription's business.
"""

from __future__ import annotations

import logging
import threading
from time import monotonic

from smile.errors import SmileError, TimedOut
from smile.subscription import Subscription

log = logging.getLogger("smile")


class Callbacks:
    """The thread starts with the first subscription that has a callback."""

    def __init__(self) -> None:
        self._due: dict[Subscription, None] = {}
        self._later: dict[Subscription, float] = {}  # `every`: when what is queued may be handed over
        self._flushes: list[threading.Event] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def add(self, subscription: Subscription) -> None:
        """Its callback has something to do. From any thread, and never waits."""
        with self._changed:
            if self._is_closed:
                return
            self._due[subscription] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="smile-callbacks", daemon=True)
                self._thread.start()
            self._changed.notify()

    @property
    def is_here(self) -> bool:
        return threading.current_thread() is self._thread

    def flush(self, subscriptions: list[Subscription], end: float) -> None:
        """Returns when these have handed over all that was queued by now."""
        if self.is_here:
            raise SmileError("settle() cannot be called from a callback: the work it waits for is its own")
        done = threading.Event()
        with self._changed:
            if self._thread is None or self._is_closed:
                return
            self._due.update(dict.fromkeys(subscriptions))
            self._flushes.append(done)
            self._changed.notify()
        if not done.wait(max(0.0, end - monotonic())):
            raise TimedOut("callbacks are still busy")

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None and not self.is_here:
            self._thread.join(timeout=1.0)

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._is_closed and not self._due and not self._flushes:
                    self._changed.wait(self._patience())
                    self._note_due()
                if self._is_closed:
                    return
                due, self._due = self._due, {}
                flushes, self._flushes = self._flushes, []
                if flushes:
                    due.update(self._later)  # type: ignore[arg-type]  # only the keys count
                    self._later.clear()
            for subscription in due:
                try:
                    subscription.run_callback(flush=bool(flushes))
                except Exception:
                    log.exception("subscription %s cannot hand over what it has", subscription.name)
                except BaseException:  # `sys.exit()` in a callback, for one: the others are not to end with it
                    log.exception("a callback of subscription %s tried to end its thread", subscription.name)
                    self.add(subscription)  # what is left
                self._look_again(subscription)
            for done in flushes:
                done.set()

    def _look_again(self, subscription: Subscription) -> None:
        wait = subscription.due_in()
        if wait is not None and not subscription.closed:
            with self._changed:
                self._later[subscription] = monotonic() + wait

    def _patience(self) -> float | None:
        return max(0.0, min(self._later.values()) - monotonic()) if self._later else None

    def _note_due(self) -> None:
        now = monotonic()
        for subscription in [one for one, at in self._later.items() if at <= now]:
            del self._later[subscription]
            self._due[subscription] = None
