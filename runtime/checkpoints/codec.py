"""The exported state of a component as bytes: msgpack, with arrays as they lie in memory.

Whoever makes a checkpoint calls `encode`, in a forked child; whoever restarts a component calls `decode`. The checksum
is compared before anything is parsed, and damage of any kind is one error: a damaged checkpoint is the same as none.
What the data means is not looked at here.
"""

from __future__ import annotations

import zlib
from struct import Struct
from typing import Any

import msgpack
import numpy as np

VERSION = 1
CHECKPOINT_BYTES_MAX = 2**32 - 1
"""Encoded. A component with more state is not checkpointed: it starts from its logs."""

_MAGIC = b"smileCP\n"
_HEAD = Struct("<8sIIQ")  # magic, version, checksum of the rest, length of the rest
_ARRAY = 1
_DEPTH_IN_STEPS = 6  # large lists are columns: of a table, of a part of a state
_LONG = 1_024
_DTYPES = frozenset({"|b1", "|i1", "|u1", "<i2", "<i4", "<i8", "<u2", "<u4", "<u8", "<f4", "<f8"})


class CheckpointDamaged(ValueError):
    """These bytes are not, or no longer, a checkpoint of this version."""


class CheckpointTooLarge(Exception):
    """More than `CHECKPOINT_BYTES_MAX` bytes."""


def encode(data: object) -> bytes:
    """Dicts, lists, tuples (which become lists), texts, bytes, numbers of 64 bits, truth values, None and arrays.

    TypeError for anything else: that would be our own mistake.
    """
    try:
        payload: bytes = msgpack.packb(data, default=_packed)
    except ValueError as error:  # a part of it alone is beyond what msgpack can hold
        raise CheckpointTooLarge(str(error)) from error
    if len(payload) > CHECKPOINT_BYTES_MAX:
        raise CheckpointTooLarge(f"{len(payload)} bytes, bound {CHECKPOINT_BYTES_MAX}")
    return _HEAD.pack(_MAGIC, VERSION, zlib.crc32(payload), len(payload)) + payload


def decode(data: bytes | bytearray, *, gives_way: bool = False) -> Any:
    """What `encode` was given, with lists for tuples; arrays cannot be written. `gives_way`: in many small steps, for a
    thread beside others that must not wait."""
    if len(data) < _HEAD.size:
        raise CheckpointDamaged("shorter than its head")
    magic, version, checksum, length = _HEAD.unpack_from(data)
    if magic != _MAGIC or version != VERSION:
        raise CheckpointDamaged(f"not a checkpoint of version {VERSION}")
    payload = memoryview(data)[_HEAD.size :]
    if length != len(payload) or length > CHECKPOINT_BYTES_MAX or zlib.crc32(payload) != checksum:
        raise CheckpointDamaged("length or checksum is wrong")
    try:
        return _in_steps(payload) if gives_way else msgpack.unpackb(payload, **_OPTIONS)
    except MemoryError:
        raise
    except Exception as broken:  # the checksum was right, so this is a checkpoint that we never wrote
        raise CheckpointDamaged(f"not readable: {broken}") from broken


def _in_steps(payload: memoryview) -> Any:
    """As msgpack itself would do it, which lets no other thread run before it is through."""
    unpacker = msgpack.Unpacker(max_buffer_size=CHECKPOINT_BYTES_MAX, **_OPTIONS)
    unpacker.feed(payload)
    made = _next(unpacker, payload, 0)
    if unpacker.tell() != len(payload):
        raise ValueError("something follows the state")
    return made


def _next(unpacker: Any, payload: memoryview, depth: int) -> Any:
    if depth == _DEPTH_IN_STEPS:
        return unpacker.unpack()
    first = payload[unpacker.tell()]
    if 0x80 <= first <= 0x8F or first in (0xDE, 0xDF):
        return {unpacker.unpack(): _next(unpacker, payload, depth + 1) for _ in range(unpacker.read_map_header())}
    if 0x90 <= first <= 0x9F or first in (0xDC, 0xDD):
        count = unpacker.read_array_header()
        if count > _LONG:
            return [unpacker.unpack() for _ in range(count)]
        return [_next(unpacker, payload, depth + 1) for _ in range(count)]
    return unpacker.unpack()


def _packed(value: object) -> msgpack.ExtType:
    if not isinstance(value, np.ndarray) or value.ndim != 1:
        raise TypeError(f"{type(value).__name__} in a checkpoint")
    dtype = value.dtype.newbyteorder("<").str
    if dtype not in _DTYPES:
        raise TypeError(f"an array of {value.dtype} in a checkpoint")
    return msgpack.ExtType(_ARRAY, dtype.encode() + np.ascontiguousarray(value, dtype).tobytes())


def _unpacked(code: int, data: bytes) -> np.ndarray[Any, np.dtype[Any]]:
    dtype = data[:3].decode("ascii", "replace")
    if code != _ARRAY or dtype not in _DTYPES:
        raise ValueError(f"an extension {code} of type {dtype!r}")
    return np.frombuffer(data, np.dtype(dtype), offset=3)


_OPTIONS: dict[str, Any] = {"ext_hook": _unpacked, "strict_map_key": False}
