"""Goal: the end of a child is never missed, however soon it comes, and no child is left that nobody knows."""

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from smile.deploy import nursery
from smile.deploy.nursery import Nursery, NurseryError
from tests.measures import eventually


@contextmanager
def nursery_of(folder: Path, script: str) -> Iterator[Nursery]:
    """Its children run these lines."""
    (folder / "child.py").write_text(script)
    made = Nursery(folder / "nursery.log", str(folder / "child.py"))
    try:
        made.wait_ready()
        yield made
    finally:
        made.close()


def test_a_child_that_ends_before_anybody_has_heard_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine: both lines, that it was started and that it has ended, are read at once."""
    with nursery_of(tmp_path, "import sys; sys.exit(3)") as made:
        hear = made.listen

        def hear_late() -> None:
            time.sleep(0.5)
            hear()

        monkeypatch.setattr(made, "listen", hear_late)
        child = made.start("b", [], tmp_path / "b.log")
        monkeypatch.setattr(made, "listen", hear)
        eventually(lambda: child.poll() == 3, seconds=5)


def test_a_child_that_came_too_late_makes_room_for_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with nursery_of(tmp_path, "import time; time.sleep(600)") as made:
        monkeypatch.setattr(nursery, "ANSWER_TIMEOUT_S", -1.0)
        monkeypatch.setattr(made, "listen", lambda: None)
        with pytest.raises(NurseryError, match="does not answer"):
            made.start("b", [], tmp_path / "b.log")
        monkeypatch.undo()

        def has_come() -> bool:
            made.listen()
            return "b" in made._started

        eventually(has_come)
        late = made._started["b"]
        child = made.start("b", [], tmp_path / "b.log")
        assert child.pid != late.pid
        eventually(lambda: late.poll() == -signal.SIGKILL)
        assert child.poll() is None


SLEEPS = "import time; time.sleep(600)"


def test_children_of_a_nursery_that_was_closed_have_ended(tmp_path: Path) -> None:
    """The supervisor closes a dead one when it starts a broker, and looks at the others afterwards."""
    with nursery_of(tmp_path, SLEEPS) as made:
        child = made.start("b", [], tmp_path / "b.log")
    assert child.poll() == -signal.SIGKILL


def test_a_nursery_that_dies_with_a_request_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with nursery_of(tmp_path, SLEEPS) as made:
        child = made.start("b", [], tmp_path / "b.log")
        made._process.send_signal(signal.SIGSTOP)
        monkeypatch.setattr(nursery, "ANSWER_TIMEOUT_S", -1.0)
        with pytest.raises(NurseryError, match="does not answer"):
            made.start("c", [], tmp_path / "c.log")
        made._process.kill()
        made._process.wait()
        eventually(lambda: child.poll() == -signal.SIGKILL)


FORK_FAILS = """#!{python}
import errno, os, sys
from pathlib import Path
from typing import Any

sys.path.insert(0, {root!r})
from smile.deploy import nursery

fork = os.fork

def limited():
    if Path({sign!r}).exists():
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    return fork()

os.fork = limited
nursery.main(int(sys.argv[4]), int(sys.argv[5]), sys.argv[6])  # after -P -m smile.deploy.nursery
"""


def test_no_child_ends_because_another_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine has no memory, or too many processes."""
    sign, python = tmp_path / "no-more", tmp_path / "python"
    root = str(Path(__file__).parents[2])
    python.write_text(FORK_FAILS.format(python=sys.executable, root=root, sign=str(sign)))
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with nursery_of(tmp_path, SLEEPS) as made:
        child = made.start("b", [], tmp_path / "b.log")
        sign.touch()
        with pytest.raises(NurseryError, match="no process can be started: Resource temporarily unavailable"):
            made.start("c", [], tmp_path / "c.log")
        assert child.poll() is None
        sign.unlink()
        assert made.start("c", [], tmp_path / "c.log").poll() is None
        assert child.poll() is None


def test_two_threads_may_look_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both find something to read, and there is only one line."""
    with nursery_of(tmp_path, SLEEPS) as made:
        child = made.start("b", [], tmp_path / "b.log")
        os.kill(child.pid, signal.SIGKILL)
        found = select.select

        def slowly(*arguments: Any) -> Any:
            ready = found(*arguments)
            time.sleep(0.3)
            return ready

        found([made._socket], [], [], 60)
        monkeypatch.setattr("smile.deploy.nursery.select.select", slowly)
        threads = [threading.Thread(target=child.poll, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
            assert not thread.is_alive()
        assert child.returncode == -signal.SIGKILL
