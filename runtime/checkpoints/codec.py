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


def decode(data: bytes) -> Any:
    """What `encode` was given, with lists for tuples; arrays share the memory of `data` and cannot be written."""
    if len(data) < _HEAD.size:
        raise CheckpointDamaged("shorter than its head")
    magic, version, checksum, length = _HEAD.unpack_from(data)
    if magic != _MAGIC or version != VERSION:
        raise CheckpointDamaged(f"not a checkpoint of version {VERSION}")
    payload = memoryview(data)[_HEAD.size :]
    if length != len(payload) or length > CHECKPOINT_BYTES_MAX or zlib.crc32(payload) != checksum:
        raise CheckpointDamaged("length or checksum is wrong")
    try:
        return msgpack.unpackb(payload, ext_hook=_unpacked, strict_map_key=False)
    except MemoryError:
        raise
    except Exception as broken:  # the checksum was right, so this is a checkpoint that we never wrote
        raise CheckpointDamaged(f"not readable: {broken}") from broken


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
