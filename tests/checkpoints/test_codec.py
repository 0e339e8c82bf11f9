"""Goal: a checkpoint comes back as it was written, quickly; any other bytes are one typed error and cost no memory."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runtime.checkpoints.codec import _HEAD, CheckpointDamaged, decode, encode
from runtime.columns import numbers
from runtime.protocol.checkpoint import Checkpoint, EdgeCheckpoint
from runtime.protocol.lineage_coverage import LineageCoverage
from tests.measures import least_cpu_s, least_peak_bytes

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
)

plain = st.recursive(scalars, lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)))


def sealed(payload: bytes) -> bytes:
    """These bytes with a head that fits them: what only somebody who knows the format could make."""
    return _HEAD.pack(b"smileCP\n", 1, zlib.crc32(payload), len(payload)) + payload


@given(plain)
@settings(max_examples=150, deadline=None)
def test_plain_data_comes_back(data: object) -> None:
    assert decode(encode(data)) == data


@pytest.mark.parametrize("dtype", ["int64", "float64", "bool", "uint8", "int32", ">i8"])
def test_arrays_come_back_as_arrays(dtype: str) -> None:
    array = np.array([0, 1, 1, 0, 5 if dtype not in ("bool",) else 1], dtype)
    back = decode(encode({"a": array, "b": [array[:0], (1, 2)]}))
    assert back["a"].dtype == array.dtype.newbyteorder("=")
    assert back["a"].tolist() == array.tolist()
    assert (back["b"][0].tolist(), back["b"][1]) == ([], [1, 2])


def test_a_column_of_numbers_is_an_array() -> None:
    assert decode(encode(numbers(np.arange(3)))).tolist() == [0, 1, 2]


@pytest.mark.parametrize("value", [object(), np.zeros((2, 2)), np.array(["a"]), {1, 2}])
def test_what_no_component_exports_is_our_own_mistake(value: object) -> None:
    with pytest.raises(TypeError):
        encode({"a": value})


def test_a_checkpoint_of_a_component() -> None:
    edge = EdgeCheckpoint(3, 4, LineageCoverage.prefix(2, 99))
    kept = Checkpoint("c", (edge,), 1, 2, {"rows": [1, None, "x"]}, None)
    assert Checkpoint.from_wire(decode(encode(kept.to_wire()))) == kept


@given(st.binary(max_size=300))
@settings(max_examples=300, deadline=None)
@example(encode({"a": 1})[:-1])
@example(encode({"a": 1}) + b"\0")
def test_other_bytes_are_damage(data: bytes) -> None:
    with pytest.raises(CheckpointDamaged):
        decode(data)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_every_flipped_bit_is_damage(data: st.DataObject) -> None:
    good = bytearray(encode({"columns": [list(range(20)), np.arange(5)], "texts": ["a", "ü"]}))
    at = data.draw(st.integers(0, 8 * len(good) - 1))
    good[at // 8] ^= 1 << at % 8
    with pytest.raises(CheckpointDamaged):
        decode(bytes(good))


@given(st.binary(max_size=400))
@settings(max_examples=300, deadline=None)
@example(b"\xc7\x04\x01<i8x")  # an array of 1 byte
@example(b"\xd7\xff" + b"\xff" * 8)  # a time that no clock shows
@example(b"\x81\x90\x90")  # a list as key
@example(b"\xc7\x05\x01zzzzz")
def test_a_right_checksum_does_not_help_other_bytes(payload: bytes) -> None:
    """Damaged, or by chance readable: never another error."""
    try:
        decode(sealed(payload))
    except CheckpointDamaged:
        return
    assert payload


@pytest.mark.parametrize(
    "payload",
    [
        b"\xdd\xff\xff\xff\xff",  # a list of 4 billion
        b"\xdd\x00\x01\x00\x00" * 400,  # lists of 65,536, one within the other
        b"\xdf\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\xc9\xff\xff\xff\xff\x01",
        b"\x91" * 100_000,
    ],
)
def test_promised_sizes_cost_no_memory(payload: bytes) -> None:
    data = sealed(payload)

    def refuse() -> None:
        with pytest.raises(CheckpointDamaged):
            decode(data)

    assert least_peak_bytes(refuse, 2_000_000) < 2_000_000


def test_a_million_rows_take_well_under_a_second() -> None:
    rows = 1_000_000
    columns: dict[str, Any] = {f"c{i}": np.arange(rows) * i for i in range(6)}
    state = {"columns": columns, "visible": np.ones(rows, bool)}
    assert least_cpu_s(lambda: decode(encode(state)), within=0.7) < 0.7
    assert int(decode(encode(state))["columns"]["c3"][-1]) == 3 * (rows - 1)
    lists = {"columns": [list(range(rows)) for _ in range(3)]}
    assert least_cpu_s(lambda: decode(encode(lists)), within=2) < 2
    assert decode(encode(lists)) == lists
