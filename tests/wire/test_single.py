"""Goal: single events take shorter ways through the wire, and come out exactly as on the long ones."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any
from unittest import mock

import numpy as np
import pytest

from runtime.columns import Same, numbers
from runtime.protocol.coverage import Coverage
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.wire import control
from runtime.wire.columns import write_column, write_singles
from runtime.wire.control import Acknowledged, Publish, decode_control, encode_control, read_control
from runtime.wire.coverages import _write_part, write_coverage
from runtime.wire.errors import WireError
from runtime.wire.framing import INT_MAX, Incoming, Outgoing
from runtime.wire.limits import INLINE_RANGES_MAX, NAME_BYTES_MAX

PUBLISH = 44
ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2, 4, INT_MAX, INT_MAX + 1, 0.5, "", "s", "s" * (NAME_BYTES_MAX + 1), b"s", b"\4s"),
    *([], [1], [4, [1]], [4, [INT_MAX + 1]], [4, ["t"]], [4, [0.5]], [4, [None]], [4, [True]], [4, b"s"], [4, "s"]),
    *([4, [1, 2]], [4, [[]]], [5, 1, 1], [1, [[4, [1]]]], [1, [[4, [1]], [4, ["t"]]]], [True, [[4, [1]]]]),
    *([1.0, [[4, [1]]]], [2, [[4, [1, 2]]]], [1, []], [0, []], [1, [0]], [1, ["\4s"]], [1, [[4.0, [1]]]], [1, b"s"]),
)


def outcome(fields: list[Any], body: bytes) -> object:
    """The record with the types of its cells, or the refusal."""
    try:
        made = read_control(Incoming(PUBLISH, fields, body))
    except WireError as error:
        return type(error), str(error)
    return repr(made)


def test_a_publish_of_one_row_is_read_as_field_by_field() -> None:
    random = Random(1)
    usual = ["Stream", "producer", 7, [1, [[4, [5]], [4, ["t"]], [4, [0.5]]]], 6]
    assert control._read_single_publish(Incoming(PUBLISH, usual, b"")) is not None
    short = 0
    for _ in range(20_000):
        fields = [random.choice(ODD) if random.random() < 0.25 else field for field in usual]
        if random.random() < 0.25:
            fields[3] = [1, [random.choice(ODD), [4, [5]]]]
        body = b"12345678" if random.random() < 0.1 else b""
        short += control._read_single_publish(Incoming(PUBLISH, fields, body)) is not None
        found = outcome(fields, body)
        with mock.patch.object(control, "_read_single_publish", return_value=None):
            assert found == outcome(fields, body), fields
    assert short > 1_000


@pytest.mark.parametrize("fields", [[], ["s"], ["s", "p", 1, [1, [[4, [1]]]], None, None]])
def test_a_publish_with_other_fields_is_refused(fields: list[Any]) -> None:
    with mock.patch.object(control, "_read_single_publish", return_value=None):
        general = outcome(fields, b"")
    assert outcome(fields, b"") == general


def field_by_field(record: Acknowledged) -> list[bytes]:
    kind, writers = control._WRITERS[Acknowledged]
    out = Outgoing()
    return out.frames(kind, [write(get(record), out) for get, write in writers])


@pytest.mark.parametrize("ticks", [range(5, 1_029, 1_024), range(5, 9_000, 1_024), range(3, 1, -1), range(0), (4, 7)])
def test_acknowledgements_have_the_bytes_of_their_layout(ticks: Sequence[int]) -> None:
    for producer in ("p", "long" * 500):
        record = Acknowledged(producer, 8, ticks, True)  # type: ignore[arg-type]
        assert encode_control(record) == field_by_field(record)


@pytest.mark.parametrize("ticks", [range(INT_MAX, INT_MAX + 5, 4), range(-(2**64), 0, 2**60)])
def test_acknowledgements_are_bounded(ticks: range) -> None:
    with pytest.raises(WireError):
        encode_control(Acknowledged("p", 8, ticks, False))
    with pytest.raises(WireError):
        encode_control(Acknowledged("p" * (NAME_BYTES_MAX + 1), 8, range(1), False))


CELLS: tuple[Any, ...] = (
    *([1], [-(2**63)], [2**63], [0.5], [float("inf")], [True], [None], ["text"], [b"bytes"], [], [1, 2], range(4, 5)),
    *(numbers(np.array([3])), numbers(np.array([0.5])), Same(4, 1), (5,)),
)


def described(values: Any, left: int, *, single: bool) -> object:
    out = Outgoing()
    out.inline_bytes_left = left
    try:
        found = write_singles([values], out)[0] if single else write_column(values, 1, out)
    except WireError as error:
        return type(error), str(error)
    return found, out.inline_bytes_left, [bytes(part) for part in out._parts]


@pytest.mark.parametrize("left", [0, 10, 17, 18, 19, 1_000])
@pytest.mark.parametrize("values", CELLS, ids=repr)
def test_a_single_value_is_described_as_in_any_column(values: Any, left: int) -> None:
    assert described(values, left, single=True) == described(values, left, single=False)


def test_a_coverage_is_written_as_part_by_part() -> None:
    random = Random(2)
    shapes = set()
    for _ in range(300):
        counts = [
            random.choice((0, 1, 2, INLINE_RANGES_MAX, INLINE_RANGES_MAX + 1)) for _ in range(random.randint(1, 4))
        ]
        whole = LineageCoverage(Coverage.of(*((3 * n, 3 * n + 1) for n in range(count))) for count in counts)
        out, other = Outgoing(), Outgoing()
        out.inline_bytes_left = other.inline_bytes_left = random.choice((0, 100, 10_000))
        found = write_coverage(whole, out)
        assert found == [_write_part(part.to_wire(), other) for part in whole]
        assert out.inline_bytes_left == other.inline_bytes_left
        assert out._size == other._size
        shapes.add((out._size > 0, any(isinstance(part, list) for part in found)))
    assert shapes == {(False, True), (True, True), (True, False)}


def test_publishes_of_one_row_survive() -> None:
    for columns in (([5], ["t"], [0.5]), ([None], [True]), ()):
        record = Publish("s", "p", 1, columns, None)
        assert decode_control(encode_control(record)) == record
