"""Goal: a stream may get nullable columns at the end, and old events have nulls there; any other change is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from runtime.batch import Batch
from runtime.columns import numbers
from runtime.log.reader import LogReader
from runtime.log.repair import repair
from runtime.log.sqlite import LogDirectory
from runtime.log.stream_log import SchemaChanged
from runtime.protocol.coverage import Coverage

OLD = [("a", "int")]
NEW = [("a", "int"), ("b", "text null")]


def write(folder: Path, columns: list[tuple[str, str]], rows: Batch) -> None:
    directory = LogDirectory(folder)
    log = directory.stream("S", columns)
    epoch = directory.next_epoch()
    log.open(epoch)
    log.append(epoch, rows, "p", rows.max_ticks[0])
    directory.close()


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    write(tmp_path, OLD, Batch.events(range(1, 101), [numbers(np.arange(100))]))
    write(tmp_path, NEW, Batch.events([101, 102], [[7, 8], ["x", None]]))
    return tmp_path


def test_events_from_before_have_nulls(grown: Path) -> None:
    directory = LogDirectory(grown)
    log = directory.stream("S", NEW)
    _, rows, _ = log.read(Coverage.of((99, 200)), 1_000)
    assert rows.rows() == [(99, 98, None), (100, 99, None), (101, 7, "x"), (102, 8, None)]
    directory.close()
    with LogReader(grown) as reader:
        stream = reader.streams()["S"]
        assert stream.columns == tuple(NEW)
        read = [row for batch in reader.batches(stream, 99, 200) for row in batch.rows()]
    assert read == rows.rows()


def test_looking_whether_columns_fit_changes_nothing(tmp_path: Path) -> None:
    """A broker checks a deployment before it takes it; if it does not, the old program must still start."""
    write(tmp_path, OLD, Batch.events([1], [[1]]))
    directory = LogDirectory(tmp_path)
    directory.stream("S", NEW)
    directory.close()
    write(tmp_path, OLD, Batch.events([2], [[2]]))


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ([("a", "int"), ("c", "int")], "column `c` \\(int\\) is new, .*declare it `int null`"),
        ([("b", "text null"), ("a", "int")], "in another order"),
        ([("a", "int null"), ("b", "text null")], "column `a` is int in the log and int null"),
        ([("a", "int")], "the log has a column `b` \\(text null\\) that the program no longer declares"),
    ],
)
def test_other_changes_are_refused_with_the_reason(grown: Path, columns: list[tuple[str, str]], reason: str) -> None:
    directory = LogDirectory(grown)
    with pytest.raises(SchemaChanged, match=reason):
        directory.stream("S", columns if len(columns) < 2 or columns[1][0] != "c" else [*NEW, *columns[1:]])
    directory.close()


def test_a_repair_finds_the_newest_columns(grown: Path) -> None:
    (grown / "acknowledged").write_bytes(b"")
    data = bytearray((grown / "events.sqlite").read_bytes())
    data[:16] = bytes(16)
    (grown / "events.sqlite").write_bytes(data)
    repair(grown, 0)
    directory = LogDirectory(grown)
    log = directory.stream("S", NEW)
    _, rows, _ = log.read(Coverage.of((100, 102)), 1_000)
    directory.close()
    assert rows.rows() == [(100, 99, None), (101, 7, "x"), (102, 8, None)]
