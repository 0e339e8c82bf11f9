"""Goal: batches and positions come back as they were stored; any other bytes are a ValueError and cost no memory."""

from __future__ import annotations

import zlib
from pathlib import Path

import msgpack
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runtime.batch import Batch
from runtime.columns import flags, numbers
from runtime.log import codec
from runtime.log.acknowledged import AcknowledgedFile, read_acknowledged
from runtime.log.scavenge import Scavenger
from runtime.log.state import Position, Seal, State, seals_in
from tests.log.damage import floats, quick_folder, words
from tests.measures import least_peak_bytes

values = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1)),
    st.lists(st.floats(allow_nan=False)),
    st.lists(st.one_of(st.none(), st.text(), st.booleans(), st.integers(-(2**63), 2**63 - 1))),
)
places = st.integers(-1, 2**62)
positions = st.builds(
    Position,
    epoch=st.integers(0, 2**62),
    last_tick=places,
    reserved_tick=places,
    trimmed_tick=places,
    publishes=st.integers(0, 2**40),
    publishes_digest=st.integers(0, 2**32 - 1),
    lost=st.lists(st.tuples(places, places)).map(tuple),
)


@given(st.lists(values, max_size=4), st.sets(st.integers(0, 2**62), min_size=1))
def test_batches_come_back(columns: list[list[object]], ticks: set[int]) -> None:
    count = len(ticks)
    padded = [[*column, *([None] * count)][:count] for column in columns]
    rows = Batch.events(sorted(ticks), padded)  # type: ignore[arg-type]
    back = codec.decode(codec.encode(rows))
    assert back.rows() == rows.rows()
    assert list(back.max_ticks) == sorted(ticks)
    assert list(codec.decode_ticks(codec.encode_ticks(sorted(ticks)))) == sorted(ticks)


@pytest.mark.parametrize("count", [1, codec.ARRAY_ROWS_MIN, 1_000])
def test_arrays_of_every_kind_come_back(count: int) -> None:
    """As they come over a wire: truths are arrays too."""
    every = np.arange(count)
    columns = [numbers(every - 5), numbers(every / 2), flags(every % 2 == 0), numbers(np.repeat(every, 2)[::2])]
    rows = Batch.events(range(7, 7 + 3 * count, 3), columns)
    back = codec.decode(codec.encode(rows))
    assert back.rows() == rows.rows()
    assert [type(column[0]) for column in back.columns] == [int, int, float, bool, int]


def test_long_columns_are_read_in_place() -> None:
    data = codec.encode(Batch.events(range(1000), [numbers(np.arange(1000)), numbers(np.arange(1000) / 7)]))
    back = codec.decode(data)
    for column in back.columns[1:]:
        assert np.shares_memory(np.asarray(column), np.frombuffer(data, np.uint8))
        assert np.asarray(column).flags.aligned


@given(st.binary(max_size=200))
@example(codec.encode(words(1, 3))[:-1])
@example(codec.encode(floats(1, 70)) + b"\0")
@example(codec._HEAD.pack(2, 3) + msgpack.packb([2**63, []]))
def test_other_bytes_are_no_batch(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a stored batch"):
        codec.decode(data)


@given(st.binary(max_size=60))
def test_other_bytes_are_no_ticks(data: bytes) -> None:
    try:
        ticks = codec.decode_ticks(data)
    except ValueError:
        return
    assert len(data) == 24 or list(ticks) == np.frombuffer(data[1:], "<i8").tolist()


@given(st.data())
def test_changed_batches_are_an_error_or_a_batch(data: st.DataObject) -> None:
    """A checksum guards them; without it, still nothing else may happen."""
    good = bytearray(codec.encode(data.draw(st.sampled_from([words(1, 5), floats(9, 80), words(4, 1)]))))
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))

    def read() -> None:
        try:
            assert len(codec.decode(bytes(good)).max_ticks) > 0
        except ValueError as stopped:
            assert "not a stored batch" in str(stopped)  # noqa: PT017

    assert least_peak_bytes(read, 2_000_000) < 2_000_000


@given(st.integers(0, 2**63), st.integers(0, 2**63), st.integers(0, 2**62), st.lists(positions, max_size=5))
def test_positions_come_back(number: int, synced: int, epoch: int, where: list[Position]) -> None:
    state = State(Seal(number, synced), epoch, tuple(where), 5)
    data = state.encode()
    assert State.decode(data) == state
    assert list(seals_in(b"abc" + data + b"smileLG2" + data)) == [(state.seal, 3), (state.seal, 11 + len(data))]


@given(st.binary(max_size=200))
@example(b"")
@example(State(Seal(1, 0), 1, ()).encode()[:-1])
def test_other_bytes_are_no_positions(data: bytes) -> None:
    with pytest.raises(ValueError, match="record of the positions"):
        State.decode(data)


@given(st.binary(max_size=80))
def test_positions_with_a_right_checksum_that_we_never_wrote(rest: bytes) -> None:
    seal = State(Seal(1, 0), 1, ()).encode()[:28]
    body = seal + rest
    try:
        State.decode(body + zlib.crc32(body).to_bytes(4, "little"))
    except ValueError as stopped:
        assert "record of the positions" in str(stopped)  # noqa: PT017


@given(st.binary(max_size=5000))
def test_other_bytes_acknowledge_nothing(data: bytes) -> None:
    with quick_folder() as folder:
        (folder / "a").write_bytes(data)
        assert read_acknowledged(folder / "a") == 0


def test_the_newest_of_two_records_counts(tmp_path: Path) -> None:
    path = tmp_path / "a"
    file = AcknowledgedFile(path)
    for number in (1, 2, 3):
        file.write(number)
        assert read_acknowledged(path) == number
    file.close()
    data = bytearray(path.read_bytes())
    data[8] ^= 1  # the record of 3
    path.write_bytes(data)
    assert read_acknowledged(path) == 2


@given(st.binary(max_size=3000), st.sampled_from([2, 10, 13]), st.integers(1, 400))
def test_other_bytes_hold_no_rows(data: bytes, kind: int, cells: int) -> None:
    """Pages that look like pages, with anything in them."""
    page = (bytes([kind, 0, 0, cells // 256, cells % 256, 0, 0, 0]) + data).ljust(4096, b"\x81")[:4096]
    with quick_folder() as folder:
        (folder / "events.sqlite").write_bytes(page * 3 + data)
        (folder / "events.sqlite-wal").write_bytes(bytes(32) + (b"\0\0\0\2" + bytes(20) + page) * 2 + data)
        found = Scavenger(folder)
        found.close()
        assert [*found.batches, *found.publishes, *found.streams, *found.states] == []
