"""Goal: decoding in steps, for a thread beside others, gives what decoding at once gives, and refuses the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from runtime.checkpoints.codec import CheckpointDamaged, decode, encode
from tests.checkpoints.test_codec import plain, sealed

DEEP: object = 1
for _ in range(20):
    DEEP = [DEEP, {"x": DEEP if isinstance(DEEP, int) else 2}]


@given(plain)
@settings(max_examples=100, deadline=None)
def test_plain_data_comes_back(data: object) -> None:
    assert decode(encode(data), gives_way=True) == data


def test_long_and_deep_data_comes_back() -> None:
    data = {
        "long": [*range(5_000)],
        "rows": [["x", i] for i in range(2_000)],
        "deep": DEEP,
        "wide": {"a": [None] * 70_000},
    }
    assert decode(encode(data), gives_way=True) == data


def test_arrays_come_back() -> None:
    back = decode(bytearray(encode({"a": [np.arange(3_000), np.arange(2) / 2]})), gives_way=True)
    assert back["a"][0].tolist() == list(range(3_000))
    assert back["a"][1].tolist() == [0.0, 0.5]


@pytest.mark.parametrize(
    "payload", [b"", b"\x91", b"\x01\x02", b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff\x01", b"\xc1"]
)
def test_damage_is_one_error(payload: bytes) -> None:
    with pytest.raises(CheckpointDamaged):
        decode(sealed(payload), gives_way=True)
