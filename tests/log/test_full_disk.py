"""Goal: a broker whose log cannot grow refuses, and publishes again when it can; nothing is lost or double."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import smile
from smile.local import LocalBrokers

PROGRAM = "stream S (x int); view V = from S |> aggregate n := count(), total := sum(x);"
ROWS = 2_000
MESSAGES = 40


@pytest.mark.slow
def test_a_broker_without_room(tmp_path: Path) -> None:
    file = tmp_path / "p.mpl"
    file.write_text(PROGRAM)
    with LocalBrokers(smile.compile(file), brokers=1, data=tmp_path / "data") as brokers:
        (name,) = brokers.names
        brokers.wait_serving(name)
        pid = brokers.pid(name)
        assert pid is not None
        with smile.connect(brokers.address) as system:
            system.publish_many("S", {"x": [1] * ROWS})
            free = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (200_000, free[1]))
            published: list[int] = []

            def publish() -> None:
                published.extend(len(system.publish_many("S", {"x": [1] * ROWS})) for _ in range(MESSAGES))

            thread = threading.Thread(target=publish)
            thread.start()
            wait_until(lambda: "starts again" in brokers.log_of(name))
            assert len(published) < MESSAGES
            resource.prlimit(pid, resource.RLIMIT_FSIZE, free)
            thread.join(60)
            assert published == [ROWS] * MESSAGES
            system.settle()
            assert system.rows("V") == [{"n": ROWS * (MESSAGES + 1), "total": ROWS * (MESSAGES + 1)}]
        assert brokers.pid(name) == pid, "it was the same process all the time"


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)
