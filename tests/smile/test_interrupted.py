"""Goal: a call that is cut short anywhere (Ctrl-C) leaves a system that is right or refuses; the log loses nothing."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from linecache import getline
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import smile
from runtime.kernels.tier import MODE_VARIABLE

PROGRAM = """
stream B (id int, q int);
stream S (id int, p int) unique id;
view T = from B |> aggregate n := count(), t := sum(q) group by id;
view J = from S |> left join T using id default t := 0 |> extend rest := p - t |> where rest > 0 |> project id, rest;
view X = from T |> where t > 3 |> aggregate s := sum(n);
"""
OURS = tuple(f"{Path(smile.__file__).parents[1] / package}/" for package in ("mpl", "compiler", "runtime", "smile"))


@pytest.fixture(autouse=True)
def plain_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread may compile while lines are counted."""
    monkeypatch.setenv(MODE_VARIABLE, "plain")


def is_with(frame: FrameType) -> bool:
    """A tracer is asked once more before the end of such a block, where no signal arrives: its lock would stay held."""
    return getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith("with ")


@contextmanager
def interrupted(at_line: int) -> Iterator[list[int]]:
    """Ctrl-C when this many lines of ours have been executed; how many there were.

    Nothing is collected meanwhile: what comes out of a finaliser is ignored, which would be a Ctrl-C without effect.
    """
    lines = [0]

    def trace(frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        if event == "line":
            lines[0] += 1
            if lines[0] >= at_line and not is_with(frame):
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    gc.disable()
    sys.settrace(trace)
    try:
        yield lines
    finally:
        sys.settrace(before)
        gc.enable()


def check(system: smile.System) -> None:
    """Every view is what the streams say."""
    totals: dict[object, list[int]] = {}
    for row in system.rows("B"):
        totals.setdefault(row["id"], []).append(int(str(row["q"])))
    assert {row["id"]: (row["n"], row["t"]) for row in system.rows("T")} == {
        id_: (len(found), sum(found)) for id_, found in totals.items()
    }
    rests = {row["id"]: int(str(row["p"])) - sum(totals.get(row["id"], ())) for row in system.rows("S")}
    assert {row["id"]: row["rest"] for row in system.rows("J")} == {id_: r for id_, r in rests.items() if r > 0}
    (x,) = system.rows("X")
    assert (x["s"] or 0) == sum(len(found) for found in totals.values() if sum(found) > 3)


def begin(program: smile.Program, data: Path | None = None) -> smile.System:
    system = smile.run(program, data=data)
    for view in "TJX":
        system.subscribe(view)
    system.publish_many("S", [{"id": id_, "p": 50} for id_ in range(4)])
    system.publish_many("B", [{"id": id_, "q": 3} for id_ in range(3)])
    return system


CALLS: dict[str, Callable[[smile.System], object]] = {
    "publish": lambda system: system.publish("B", {"id": 1, "q": 2}),
    "publish unique": lambda system: system.publish("S", {"id": 9, "p": 7}),
    "subscribe": lambda system: system.subscribe("J", emit="bounds"),
    "settle": lambda system: system.settle(),
}


@pytest.mark.parametrize("name", CALLS)
def test_cut_short_anywhere_a_system_is_right_or_refuses(name: str) -> None:
    program = smile.compile(PROGRAM)
    call, refused, right = CALLS[name], 0, 0
    for at_line in count(1, 29):
        system = begin(program)
        readers = [hub.subscriptions[0] for hub in system._hubs.values()]
        try:
            with interrupted(at_line):
                call(system)
        except KeyboardInterrupt:
            pass
        else:
            break  # it has fewer lines
        try:
            system.publish("B", {"id": 2, "q": 2})
            if name == "publish unique" and any(row["id"] == 9 for row in system.rows("S")):
                with pytest.raises(smile.PublishError, match="published before"):
                    system.publish("S", {"id": 9, "p": 7})
            check(system)
            right += 1
        except smile.Interrupted:
            refused += 1
            for reader in readers:
                reader.ready()
                with pytest.raises(smile.Interrupted):
                    reader.ready()
            for again in CALLS.values():
                with pytest.raises(smile.Interrupted):
                    again(system)
        system.close()
    assert right
    assert refused


def test_what_was_acknowledged_is_there_after_an_interruption(tmp_path: Path) -> None:
    program = smile.compile(PROGRAM)
    with begin(program, tmp_path / "whole") as system, interrupted(1_000_000) as lines:
        system.publish("B", {"id": 1, "q": 2})
    for tenths in (2, 4, 6, 8):
        data = tmp_path / str(tenths)
        with begin(program, data) as system:
            with pytest.raises(KeyboardInterrupt), interrupted(lines[0] * tenths // 10):
                system.publish("B", {"id": 1, "q": 2})
            with pytest.raises(smile.Interrupted, match=r"by KeyboardInterrupt.*acknowledged"):
                system.rows("T")
        with smile.run(program, data=data) as system:
            assert [row["q"] for row in system.rows("B")] in ([3, 3, 3], [3, 3, 3, 2])
            check(system)


def test_after_a_callback_that_ends_the_call_everybody_is_told() -> None:
    told: list[tuple[str, object]] = []

    def ending(change: smile.Change) -> None:
        told.append(("ending", change.row["id"]))
        if change.row["id"] == 1:
            raise KeyboardInterrupt

    with smile.run(smile.compile("stream S (id int);")) as system:
        system.subscribe("S", lambda change: told.append(("before", change.row["id"])))
        system.subscribe("S", ending)
        system.subscribe("S", lambda change: told.append(("after", change.row["id"])))
        with pytest.raises(KeyboardInterrupt):
            system.publish_many("S", {"id": [0, 1, 2]})
        assert told == [("before", 0), ("before", 1), ("before", 2), ("ending", 0), ("ending", 1)]
        system.publish("S", {"id": 3})
    assert told[5:] == [("before", 3), ("ending", 2), ("ending", 3), *(("after", id_) for id_ in range(4))]


def test_a_failure_inside_a_callback_s_own_call_stops_the_system_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Callbacks' errors are only logged, but this one has left the engine in the middle of something."""
    with smile.run(smile.compile("stream S (id int); stream R (id int);")) as system:
        system.subscribe("S", lambda change: system.publish("R", change.row))
        log = system._engine.logs["R"]
        monkeypatch.setattr(log, "append", lambda *_: 1 / 0)
        for _ in range(2):
            with pytest.raises(smile.Interrupted, match="ZeroDivisionError"):
                system.publish("S", {"id": 1})
