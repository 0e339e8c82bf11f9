"""Systems to test: one in this process, and the same program in real broker processes.

Starting brokers takes seconds, so one deployment serves all tests of a worker: it has many copies of the program, with
numbered names, and every test gets a copy of its own behind a wrapper that hides the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import sleep
from typing import Any

import pytest

import smile
from smile.local import LocalBrokers

COPIES = 48
"""More than there are tests that want one."""

LARGE_COPIES = 8
"""So many of the copies, the first ones, have the larger program."""

SMALL = """
stream Sales{n} (item int, qty int[0..100]);
view Sold{n} = from Sales{n} |> aggregate total := sum(qty) group by item;
view Small{n} = from Sold{n} |> where total < 10;
view Big{n} = from Sales{n} |> where qty > 50;
"""
LARGE = (
    SMALL
    + """
stream Other{n} (item int, qty int[0..100]);
stream Users{n} (id int, name text) unique id unique name;
view Pairs{n} = from Sold{n} |> join (from Other{n} |> aggregate other := sum(qty) group by item) as O using item;
view Ratio{n} = from Sales{n} |> extend r := 100 / qty;
subscribe limits{n} to Sold{n} emit bounds;
subscribe cuts{n} to Pairs{n} emit as of horizon;
subscribe calm{n} to Sold{n} every 100 ms;
subscribe late{n} to Sold{n} snapshot off;
"""
)


def kill_and_wait(brokers: LocalBrokers, *names: str) -> None:
    """With -9; returns when all of them serve again."""
    starts = {name: brokers.starts(name) for name in names}
    for name in names:
        brokers.kill(name)
    for name in names:
        while brokers.starts(name) == starts[name]:
            sleep(0.01)
        brokers.wait_serving(name)


NAMING = {"publish", "publish_many", "publish_nowait", "publish_many_nowait", "rows", "arrow", "pandas", "subscribe"}
"""Methods whose first argument is a name."""


class Numbered:
    """A system with one copy of the program. Names go in without their number."""

    def __init__(self, system: Any, number: int) -> None:
        self.system = system
        self._number = number

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.system, name)
        return self._with_number(found) if name in NAMING else found

    def _with_number(self, method: Callable[..., Any]) -> Callable[..., Any]:
        return lambda name, *arguments, **named: method(f"{name}{self._number}", *arguments, **named)


@pytest.fixture(scope="session")
def program_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "copies.mpl"
    texts = [(LARGE if number < LARGE_COPIES else SMALL).format(n=number) for number in range(COPIES)]
    path.write_text("".join(texts), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def brokers(program_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBrokers]:
    """Two real processes, with everything on disk."""
    with LocalBrokers(program_file, 2, data=tmp_path_factory.mktemp("data")) as running:
        yield running


_small_numbers, _large_numbers = iter(range(LARGE_COPIES, COPIES)), iter(range(LARGE_COPIES))


@pytest.fixture
def number() -> int:
    """Of a small copy that nobody has used."""
    found = next(_small_numbers, None)
    assert found is not None, "raise COPIES"
    return found


@pytest.fixture
def large_number() -> int:
    found = next(_large_numbers, None)
    assert found is not None, "raise LARGE_COPIES"
    return found


@pytest.fixture(scope="session")
def client(brokers: LocalBrokers) -> Iterator[smile.RemoteSystem]:
    with smile.connect(brokers.address, timeout=30.0) as system:
        yield system


@pytest.fixture
def connected(client: smile.RemoteSystem, number: int) -> Numbered:
    """A client of the brokers with a copy of the program that nobody has used."""
    return Numbered(client, number)


@pytest.fixture
def connected_large(client: smile.RemoteSystem, large_number: int) -> Numbered:
    return Numbered(client, large_number)


@pytest.fixture(params=["embedded", "remote"])
def system(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The small program in this process and in brokers."""
    yield from _both(request, SMALL, "connected")


@pytest.fixture(params=["embedded", "remote"])
def large(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The same with the larger program."""
    yield from _both(request, LARGE, "connected_large")


def _both(request: pytest.FixtureRequest, program: str, connected: str) -> Iterator[Any]:
    if request.param == "embedded":
        with smile.run(smile.compile(program.format(n=""))) as running:
            yield running
    else:
        yield request.getfixturevalue(connected)
