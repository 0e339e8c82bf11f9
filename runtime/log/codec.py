"""A batch of events as bytes: what a durable log stores.

A msgpack header that says how the ticks and every column are stored, then the numbers themselves: raw little-endian
64-bit arrays, aligned, one per column of whole numbers or floats without nulls. So a numeric column is read without
touching its values. Other columns are in the header. Ticks are an arithmetic progression nearly always, and then three
numbers.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from operator import lt
from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import Any

import msgpack
import numpy as np

from runtime.batch import Batch
from runtime.columns import Numbers, numbers
from runtime.protocol.coverage import TICK_MAX
from runtime.values import Value

VERSION = 2
ARRAY_ROWS_MIN = 64
"""Shorter columns are lists in the header: an array would cost more than it saves."""

ROWS_MAX = 2**31

_HEAD = Struct("<II")  # version, length of the header
_ALIGNMENT = 8
_PADDING = tuple(map(bytes, range(_ALIGNMENT)))
_PROGRESSION = Struct("<qqq")
_INT64 = np.dtype("<i8")
_FLOAT64 = np.dtype("<f8")
_NOT_OURS = (msgpack.UnpackException, StructError, TypeError, ValueError, LookupError, OverflowError, RecursionError)


def encode(rows: Batch) -> bytes:
    """Ticks and payload columns."""
    buffers: list[Any] = []
    ticks = rows.max_ticks
    count = len(ticks)
    packed: list[list[object]]
    if count < ARRAY_ROWS_MIN:
        packed = [["v", list(column)] for column in rows.columns[1:]]
    else:
        packed = [_pack(column, buffers) for column in rows.columns[1:]]
    progression = _progression(ticks)
    packed.append(_pack(ticks, buffers) if progression is None else ["t", progression.start, progression.step])
    header: bytes = msgpack.packb([count, packed])
    head = _HEAD.pack(VERSION, len(header)) + header
    return b"".join((head, _PADDING[-len(head) % _ALIGNMENT], *buffers))


def decode(data: bytes) -> Batch:
    """What `encode` wrote; ValueError for anything else."""
    try:
        version, header_bytes = _HEAD.unpack_from(data)
        if version != VERSION:
            raise ValueError(f"version {version}, not {VERSION}")
        at = _HEAD.size + header_bytes
        count, packed = msgpack.unpackb(data[_HEAD.size : at], strict_map_key=False)
        if type(count) is not int or not 0 < count <= ROWS_MAX:
            raise ValueError(f"{count} rows")
        at += -at % _ALIGNMENT
        columns: list[Sequence[Any]] = []
        for one in packed:
            columns.append(_unpack(data, at, count, one))
            at += 8 * count if one[0] in ("q", "d") else 0
        ticks = columns.pop()
        if at != len(data) or not _is_rising(ticks):
            raise ValueError("ticks that do not rise, or more or less than the header says")
    except _NOT_OURS as broken:
        raise ValueError(f"not a stored batch: {broken}") from broken
    return Batch.events(ticks, columns)


COUNT_BYTES = _HEAD.size + 16
"""The beginning of a stored batch that says how many events it has."""


def count(data: bytes) -> int:
    """How many events a stored batch has, by its first bytes; ValueError if they do not say."""
    try:
        unpacker = msgpack.Unpacker()
        unpacker.feed(data[_HEAD.size :])
        unpacker.read_array_header()
        found = unpacker.unpack()
    except _NOT_OURS as broken:
        raise ValueError(f"not a stored batch: {broken}") from broken
    if _HEAD.unpack_from(data)[0] != VERSION or type(found) is not int or not 0 < found <= ROWS_MAX:
        raise ValueError("not a stored batch")
    return found


def _is_rising(ticks: Sequence[int]) -> bool:
    if isinstance(ticks, range):
        return ticks.step > 0 and ticks[0] >= 0 and ticks[-1] <= TICK_MAX
    if isinstance(ticks, list):
        are_ticks = all(type(tick) is int and 0 <= tick <= TICK_MAX for tick in ticks)
        return are_ticks and all(map(lt, ticks, ticks[1:]))
    values = np.asarray(ticks, np.int64)
    return bool(values[0] >= 0 and (np.diff(values) > 0).all())


def encode_ticks(ticks: Sequence[int]) -> bytes:
    found = _progression(ticks)
    if found is not None:
        return _PROGRESSION.pack(found.start, found.step, len(found))
    return b"t" + np.asarray(ticks, "<i8").tobytes()


def decode_ticks(data: bytes) -> Sequence[int]:
    """What `encode_ticks` wrote, as a range if it is one; ValueError for anything else."""
    if len(data) == _PROGRESSION.size:
        first, step, count = _PROGRESSION.unpack(data)
        if not (step > 0 and 0 < count <= ROWS_MAX):
            raise ValueError("not stored ticks: no progression")
        return range(first, first + step * count, step)
    if data[:1] != b"t" or len(data) % 8 != 1 or len(data) < 9:
        raise ValueError("not stored ticks")
    return tuple(np.frombuffer(data, "<i8", offset=1).tolist())


def _progression(ticks: Sequence[int]) -> range | None:
    """The ticks as a range with a positive step, if they are one."""
    if isinstance(ticks, range):
        return ticks if ticks.step > 0 else None
    first, count = ticks[0], len(ticks)
    if count == 1:
        return range(first, first + 1)
    step = ticks[1] - first
    found = range(first, first + step * count, step) if step > 0 else range(0)
    return found if list(ticks) == list(found) else None


def _pack(values: Sequence[Value], buffers: list[Any]) -> list[object]:
    if len(values) < ARRAY_ROWS_MIN:
        return ["v", list(values)]
    if isinstance(values, Numbers) and values.dtype.kind != "b":
        is_whole = values.dtype.kind == "i"
        buffers.append(np.ascontiguousarray(values, _INT64 if is_whole else _FLOAT64).data)
        return ["q" if is_whole else "d"]
    kinds = set(map(type, values))
    if kinds == {int} or kinds == {float}:
        kind: Any = "q" if kinds == {int} else "d"
        numeric: Any = values
        buffers.append(np.asarray(array(kind, numeric), f"<{'i' if kind == 'q' else 'f'}8").data)
        return [kind]
    return ["v", list(values)]


def _unpack(data: bytes, at: int, count: int, packed: Any) -> Sequence[Any]:
    kind = packed[0]
    if kind == "v":
        values = packed[1]
        if type(values) is not list or len(values) != count:
            raise ValueError("columns of different lengths")
        return values
    if kind == "t":
        _, first, step = packed
        ticks = range(first, first + step * count, step)  # a step of 0 is a ValueError
        return ticks if count >= ARRAY_ROWS_MIN else list(ticks)
    if kind not in ("q", "d"):
        raise ValueError(f"a column of kind {kind!r}")
    found = np.frombuffer(data, "<i8" if kind == "q" else "<f8", count, at)
    return numbers(found.astype(found.dtype.newbyteorder("="), copy=False))
