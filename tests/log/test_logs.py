"""Goal: both logs keep what was appended, answer any question about it, refuse older epochs, and remember publishes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, cast

import numpy as np
import pytest

from runtime.batch import Batch
from runtime.columns import numbers
from runtime.log import codec
from runtime.log.memory import MemoryLog
from runtime.log.sqlite import LogDirectory
from runtime.log.stream_log import LogFenced, LogLocked, SchemaChanged, StreamLog
from runtime.protocol.coverage import TICK_MAX, Coverage
from runtime.values import Value

COLUMNS = [("a", "int"), ("b", "text null")]
Row = tuple[Value, ...]


@pytest.fixture(params=["memory", "sqlite"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StreamLog]:
    if request.param == "memory":
        yield MemoryLog(3)
        return
    directory = LogDirectory(tmp_path)
    yield directory.stream("S", COLUMNS)
    directory.close()


def batch(ticks: list[int]) -> Batch:
    return Batch.events(ticks, [[tick * 10 for tick in ticks], [None if tick % 3 else str(tick) for tick in ticks]])


def plain(publishes: tuple[tuple[str, int, Sequence[int]], ...]) -> list[tuple[str, int, list[int]]]:
    return [(producer, sequence, list(ticks)) for producer, sequence, ticks in publishes]


def filled(log: StreamLog, rng: Random, batches: int) -> list[int]:
    """Batches of all sizes; the ticks that are there."""
    log.open(1)
    ticks: list[int] = []
    tick = 0
    for number in range(batches):
        new = []
        for _ in range(rng.choice((1, 1, 3, 10, 300))):
            tick += rng.choice((1, 1, 1, 7))
            new.append(tick)
        log.append(1, batch(new), "p", number)
        ticks += new
    return ticks


def test_random_questions(log: StreamLog) -> None:
    rng = Random(5)
    ticks = filled(log, rng, 60)
    for _ in range(200):
        first = rng.randrange(ticks[-1] + 5)
        wanted = Coverage.of((first, rng.choice((first, first + rng.randrange(400), TICK_MAX))))
        if rng.random() < 0.3:
            wanted.add(*sorted(rng.randrange(ticks[-1] + 9) for _ in range(2)))
        rows_max = rng.choice((1, 5, 100, 10**9))
        cover, rows, trimmed = log.read(wanted, rows_max)
        assert not trimmed
        assert wanted.contains(cover)
        assert len(rows) <= rows_max
        assert list(rows.max_ticks) == [tick for tick in ticks if tick in cover]
        assert rows.rows() == batch(list(rows.max_ticks)).rows()
        if len(rows) < rows_max:
            assert cover == wanted, "nothing is left out unless the bound says so"
        else:
            assert cover
            rest = wanted.difference(cover)
            assert not rest or min(rest)[0] > max(cover)[1] or rest.highest() > cover.highest()


def test_reading_in_pieces_meets_every_event_once(log: StreamLog) -> None:
    ticks = filled(log, Random(6), 40)
    wanted, found = Coverage.of((0, TICK_MAX)), []
    while wanted:
        cover, rows, _ = log.read(wanted, 37)
        assert cover
        found += list(rows.max_ticks)
        wanted = wanted.difference(cover)
    assert found == ticks


def test_what_was_read_does_not_grow(log: StreamLog) -> None:
    log.open(1)
    log.append(1, batch([1]), "p", 0)
    _, rows, _ = log.read(Coverage.of((0, 9)), 10)
    log.append(1, batch([2]), "p", 1)
    assert len(rows.max_ticks) == len(rows.columns[1]) == 1


def test_trimmed_ticks_are_said_to_be_trimmed(log: StreamLog) -> None:
    log.open(1)
    log.append(1, batch(list(range(1, 600))), "p", 0)
    log.append(1, batch([700, 800]), "p", 1)
    log.trim(650)
    cover, rows, trimmed = log.read(Coverage.of((0, 750)), 100)
    assert (trimmed, cover, list(rows.max_ticks)) == (Coverage.of((0, 650)), Coverage.of((651, 750)), [700])
    assert log.open(2).trimmed_tick == 650


def test_state_and_fences(log: StreamLog) -> None:
    assert (log.open(1).last_tick, log.open(1).reserved_tick) == (-1, -1)
    log.append(1, batch([4, 9]), "p", 3)
    log.reserve(1, 50)
    log.reserve(1, 20)
    state = log.open(2)
    assert (state.last_tick, state.reserved_tick, plain(state.publishes)) == (9, 50, [("p", 3, [4, 9])])
    with pytest.raises(LogFenced):
        log.append(1, batch([60]), "p", 4)
    with pytest.raises(LogFenced):
        log.reserve(1, 60)
    log.append(2, batch([60]), "p", 4)
    assert log.open(3).last_tick == 60


def test_publishes_of_every_producer_outlive_their_events(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path)
    log = directory.stream("S", COLUMNS, producer_window=2)
    log.open(1)
    for number in range(4):
        log.append(1, batch([10 * number + 1]), "p", number)
        log.append(1, batch([10 * number + 2, 10 * number + 9]), "q", number)
    log.trim(100)
    directory.close()
    directory = LogDirectory(tmp_path)
    publishes = directory.stream("S", COLUMNS, producer_window=2).open(2).publishes
    directory.close()
    assert plain(publishes) == [("p", 2, [21]), ("p", 3, [31]), ("q", 2, [22, 29]), ("q", 3, [32, 39])]


def test_folders(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path)
    assert (directory.next_epoch(), directory.next_epoch()) == (1, 2)
    with pytest.raises(LogLocked):
        LogDirectory(tmp_path)
    numbers_ = [directory.stream(name, COLUMNS).number for name in ("S", "T", "S")]
    directory.close()
    directory = LogDirectory(tmp_path)
    assert directory.next_epoch() == 3
    assert numbers_ == [1, 2, 1]
    assert directory.stream("T", COLUMNS).number == 2
    with pytest.raises(SchemaChanged, match="column `b`"):
        directory.stream("S", COLUMNS[:1])
    directory.close()


@pytest.mark.parametrize(
    "rows",
    [
        batch([1, 2, 3]),
        batch([5]),
        batch([1, 5, 6]),
        Batch.events(
            range(3, 9, 2), [numbers(np.array([1, -(2**63), 2**63 - 1])), numbers(np.array([0.5, 1e300, -1.0]))]
        ),
        Batch.events([1, 2], [[2**63 - 1, None], [True, False]]),
        Batch.events([1], []),
    ],
)
def test_batches_as_bytes(rows: Batch) -> None:
    back = codec.decode(codec.encode(rows))
    assert back.rows() == rows.rows()
    assert [list(map(type, column)) for column in back.columns] == [list(map(type, column)) for column in rows.columns]
    assert list(back.max_ticks) == list(rows.max_ticks)


def test_numbers_are_python_numbers_outside_of_kernels() -> None:
    array = np.array([1, 2, 3])
    column = numbers(array)
    assert [type(value) for value in column] == [int] * 3
    assert type(column[1]) is int
    assert list(column[1:]) == [2, 3]
    assert type(column[1:][0]) is int
    assert np.shares_memory(cast("Any", column), array)
    rows = Batch.events([1, 2, 3], [column, [7, 8, 9]])
    assert rows.rows() == [(1, 1, 7), (2, 2, 8), (3, 3, 9)]
    assert {type(value) for row in rows.take([2, 0]).rows() for value in row} == {int}
