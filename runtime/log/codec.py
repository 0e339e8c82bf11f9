"""A batch of events as bytes: what a durable log stores.

msgpack, one entry per column; columns of whole numbers and of floats as raw little-endian 64-bit arrays where no value
is null. The tick column is not stored among them if it is an arithmetic progression, which it nearly always is.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from typing import Any

import msgpack

from runtime.batch import Batch
from runtime.columns import Numbers
from runtime.values import Value

VERSION = 1
_LITTLE = sys.byteorder == "little"


def encode(rows: Batch) -> bytes:
    """Ticks and payload columns."""
    packed = [_pack(column) for column in rows.columns[1:]]
    data: bytes = msgpack.packb([VERSION, _pack_ticks(rows.max_ticks), packed])
    return data


def encode_ticks(ticks: Sequence[int]) -> bytes:
    data: bytes = msgpack.packb(_pack_ticks(ticks))
    return data


def decode_ticks(data: bytes) -> tuple[int, ...]:
    """What `encode_ticks` wrote; ValueError for anything else."""
    try:
        return tuple(_unpack_ticks(msgpack.unpackb(data)))
    except (msgpack.UnpackException, TypeError) as broken:
        raise ValueError(f"not stored ticks: {broken}") from broken


def decode(data: bytes) -> Batch:
    """What `encode` wrote; ValueError for anything else."""
    try:
        version, first, columns = msgpack.unpackb(data, strict_map_key=False, use_list=True)
        if version != VERSION:
            raise ValueError(f"version {version}, not {VERSION}")
        ticks = _unpack_ticks(first)
        payload = [_unpack(column) for column in columns]
    except (msgpack.UnpackException, TypeError, ValueError) as broken:
        raise ValueError(f"not a stored batch: {broken}") from broken
    if any(len(column) != len(ticks) for column in payload):
        raise ValueError("not a stored batch: columns of different lengths")
    return Batch.events(ticks, payload)


def _pack_ticks(ticks: Sequence[int]) -> list[object]:
    first, count = ticks[0], len(ticks)
    step = ticks[1] - first if count > 1 else 1
    is_progression = step > 0 and list(ticks) == list(range(first, first + step * count, step))
    return [first, step, count] if is_progression else _pack(ticks)


def _unpack_ticks(packed: Any) -> list[Any]:
    if len(packed) == 3:
        first, step, count = packed
        return list(range(first, first + step * count, step))
    return _unpack(packed)


def _pack(values: Sequence[Value]) -> list[object]:
    if isinstance(values, Numbers):
        kind = "q" if values.dtype.kind == "i" else "d"
        return [kind, values.astype(f"<{values.dtype.kind}8", copy=False).tobytes()]
    kinds = set(map(type, values))
    if kinds == {int}:
        return ["q", _bytes_of(array("q", values))]
    if kinds == {float}:
        return ["d", _bytes_of(array("d", values))]
    return ["v", list(values)]


def _bytes_of(values: array[Any]) -> bytes:
    if not _LITTLE:
        values.byteswap()
    return values.tobytes()


def _unpack(packed: Any) -> list[Any]:
    kind, data = packed
    if kind == "v":
        return list(data)
    if kind not in ("q", "d"):
        raise ValueError(f"a column of kind {kind!r}")
    values = array(kind, data)
    if not _LITTLE:
        values.byteswap()
    return values.tolist()
