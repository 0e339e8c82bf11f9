"""The thread that looks after open views may be started and closed by two threads at once."""

from __future__ import annotations

import threading
import time

import pytest

from smile.remote import watch
from smile.remote.watch import Watch
from tests.measures import eventually


def test_closing_waits_for_a_start_that_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(threading.Thread):
        def start(self) -> None:
            time.sleep(0.2)  # as on a busy machine
            super().start()

    made = Watch(lambda: None)
    starter = threading.Thread(target=made.start)
    monkeypatch.setattr(watch.threading, "Thread", Slow)  # type: ignore[attr-defined]
    starter.start()
    eventually(lambda: made._thread is not None)
    made.close()
    starter.join()
    assert made._thread is not None
    assert not made._thread.is_alive()
