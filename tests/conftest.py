"""What every test may use: the golden-file helper and the size of random tests.

    pytest --update-golden      rewrite expected outputs; read the diff before committing it
    pytest --cases 20           random tests run 20 times their usual number of cases
    pytest -m random            only tests that ask for `cases`; hypothesis marks its own as `hypothesis`

Fixtures of one area belong in that area's folder, not here.
"""

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling

from runtime.kernels.tier import MODE_VARIABLE

GOLDEN_FOLDER = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Golden:
    """Compares a text with its committed expectation; call it as `golden("operators/sum.py.txt", text)`."""

    folder: Path
    update: bool

    def __call__(self, name: str, text: str) -> None:
        path = self.folder / name
        assert path.resolve().is_relative_to(self.folder.resolve()), f"{name} leaves the golden folder"
        # Bytes, so that line endings and a missing final newline count as differences.
        actual = text.encode("utf-8")
        if self.update:
            if not path.exists() or path.read_bytes() != actual:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(actual)
            return
        if not path.exists():
            pytest.fail(
                f"no golden file {name}: run pytest --update-golden, read the new file, commit it", pytrace=False
            )
        expected = path.read_bytes().decode("utf-8")
        assert text == expected, f"differs from golden file {name}; if the new text is right: pytest --update-golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("smile")
    group.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the files under tests/golden with what the code says now",
    )
    group.addoption(
        "--cases",
        type=int,
        default=1,
        metavar="N",
        help="multiply the number of cases of random tests by N (default 1: what `make test` runs)",
    )


def pytest_configure(config: pytest.Config) -> None:
    # Compiling kernels takes seconds, and when it is done changes from run to run. tests/kernels compares the tiers,
    # tests/chaos runs with both.
    os.environ.setdefault(MODE_VARIABLE, "plain")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)  # the commands that tests start must hear Ctrl-C
    multiplier: int = config.getoption("--cases")
    if multiplier < 1:
        raise pytest.UsageError(f"--cases must be at least 1, not {multiplier}")
    # The ordinary run repeats exactly; a larger one is a search and draws new examples. No deadline: on a shared
    # machine it measures the neighbours.
    hypothesis.settings.register_profile(
        "smile", max_examples=100 * multiplier, derandomize=multiplier == 1, deadline=None
    )
    hypothesis.settings.load_profile("smile")


GROUPS = (
    "tests/bulk/",
    "tests/cli/test_commands",
    "tests/gateway/test_http",
    "tests/kernels/test_tiers",
    "tests/remote/",
    "tests/security/test_secured_brokers",
    "tests/test_packaging",
)
"""Tests that share what is slow to start or to make (Spark, brokers, compiled kernels, an installed copy): each group
stays in one process."""

THREAD_END_S = 30.0


class Grouped(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Every test goes where there is room, but a group stays together. (Marks of xdist do not reach it in pytest 9.)"""

    def _split_scope(self, nodeid: str) -> str:
        return next((group for group in GROUPS if nodeid.startswith(group)), nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Grouped:
    return Grouped(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # long ones first, so that no process has one left when the others are done
        items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    for item in items:
        if isinstance(item, pytest.Function) and "cases" in item.fixturenames:
            item.add_marker("random")


@pytest.fixture(autouse=True)
def leaves_no_threads() -> Iterator[None]:
    """A thread that outlives its test disturbs those that follow. Daemons belong to what tests share."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        if not thread.daemon:
            thread.join(THREAD_END_S)
            assert not thread.is_alive(), f"{thread.name} still runs after the test that started it"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """The comparison with `tests/golden/<name>`; `--update-golden` writes instead of comparing."""
    return Golden(GOLDEN_FOLDER, update=bool(request.config.getoption("--update-golden")))


@pytest.fixture(scope="session")
def cases(request: pytest.FixtureRequest) -> int:
    """The multiplier for random tests: `for seed in range(500 * cases)`."""
    multiplier: int = request.config.getoption("--cases")
    return multiplier
