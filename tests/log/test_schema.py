"""Goal: a stream may get columns at the end, with nulls or defaults in old events; any other change is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from runtime.batch import Batch
from runtime.columns import numbers
from runtime.log.reader import LogReader
from runtime.log.repair import repair
from runtime.log.schema import as_columns, as_text, check_growth, default_of
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


def test_events_from_before_have_the_default(grown: Path) -> None:
    columns = [*NEW, ("c", "decimal(5,2) [-100..] default -0.50"), ("d", "text default 'it''s, null'")]
    write(grown, columns, Batch.events([103], [[9], ["y"], [3], [""]]))
    directory = LogDirectory(grown)
    _, rows, _ = directory.stream("S", columns).read(Coverage.of((100, 200)), 1_000)
    directory.close()
    assert rows.rows() == [
        (100, 99, None, -50, "it's, null"),
        (101, 7, "x", -50, "it's, null"),
        (102, 8, None, -50, "it's, null"),
        (103, 9, "y", 3, ""),
    ]
    with LogReader(grown) as reader:
        stream = reader.streams()["S"]
        assert stream.columns == tuple(columns)
        assert [row for batch in reader.batches(stream, 100, 200) for row in batch.rows()] == rows.rows()


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ("int", None),
        ("int null", None),
        ("int [0..5] default 3", 3),
        ("int default -9223372036854775808", -(2**63)),
        ("decimal(5,2) default -0.05", -5),
        ("decimal(18,0) [0..] default 12", 12),
        ("float default 1e+16", 1e16),
        ("bool default false", False),
        ("time default time '0001-01-01 00:00:00.000001'", -62_135_596_799_999_999),
        ("duration default -1000000 us", -1_000_000),
        ("text default ''", ""),
        ("text(40) default ' default ''a'' default 3'", " default 'a' default 3"),
        ("enum('a default 3', ' null', 'it''s', ')') default 'it''s'", "it's"),
        ("enum('x default ''y') default 'x default ''y'", "x default 'y"),
        ("enum('a default ''b''', 'c')", None),
        ("lost", None),  # a repair writes that
    ],
)
def test_defaults_are_read_as_they_were_declared(kind: str, default: object) -> None:
    assert (default_of(kind), type(default_of(kind))) == (default, type(default))


def test_columns_of_a_log_are_lines_and_nothing_else_ends_one() -> None:
    columns = (("a", "int"), ("b", "text default 'x\x85\u2028\r\x0c'"))
    assert as_columns(as_text(columns)) == columns
    assert as_columns("") == ()


@pytest.mark.parametrize(
    ("had", "has", "reason"),
    [
        ("int default 3", "int default 4", "int default 3 in the log and int default 4 .*: events .* would change"),
        ("int default 3", "int", "int default 3 in the log and int in the program: events .* would change"),
        ("int default 3", "int null", "int default 3 in the log and int null in the program: events .* would change"),
        ("int default 3", "int [0..9] default 3", r"in the log and int \[0..9\] default 3 in the program$"),
        ("int", "int default 3", "int in the log and int default 3 in the program$"),
        ("int null", "int default 3", "int null in the log and int default 3 in the program$"),
    ],
)
def test_a_default_is_for_ever(had: str, has: str, reason: str) -> None:
    with pytest.raises(SchemaChanged, match=reason):
        check_growth("S", (("a", had),), (("a", has),))


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
