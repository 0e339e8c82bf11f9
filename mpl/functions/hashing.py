"""`hash(x)`: a stable 64-bit number for any value, the same on every machine and in Spark.

It is XXH64 with seed 42, read as a signed 64-bit integer, of these bytes: int, decimal (as scaled integer), time,
duration (microseconds) and bool (0 or 1) as 8 bytes little-endian; float as its 8 IEEE bytes little-endian (there is
only one zero); text and enum in UTF-8. Spark's `xxhash64` gives the same for bigint, decimal up to 18 digits, double
and string; a bool has to be cast to bigint first, a time to its microseconds.
"""

from __future__ import annotations

import struct

from mpl.arithmetic import INT
from mpl.functions.spec import Example, FunctionSpec, Kind, Nulls, Parameter, Signature, fixed
from mpl.types import Value

SEED = 42
_MASK = (1 << 64) - 1
_P1 = 0x9E3779B185EBCA87
_P2 = 0xC2B2AE3D27D4EB4F
_P3 = 0x165667B19E3779F9
_P4 = 0x85EBCA77C2B2AE63
_P5 = 0x27D4EB2F165667C5


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _MASK


def _round(accumulator: int, lane: int) -> int:
    return _rotate((accumulator + lane * _P2) & _MASK, 31) * _P1 & _MASK


def _stripes(data: bytes, seed: int) -> int:
    """The part of XXH64 for whole blocks of 32 bytes."""
    lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK]
    for words in struct.iter_unpack("<4Q", data):
        lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
    mixed = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
    for lane in lanes:
        mixed = ((mixed ^ _round(0, lane)) * _P1 + _P4) & _MASK
    return mixed


def xxh64(data: bytes, seed: int) -> int:
    """XXH64 as its public specification says, unsigned."""
    whole = len(data) // 32 * 32
    value = _stripes(data[:whole], seed) if whole else (seed + _P5) & _MASK
    value = (value + len(data)) & _MASK
    at = whole
    while at + 8 <= len(data):
        (word,) = struct.unpack_from("<Q", data, at)
        value = (_rotate(value ^ _round(0, word), 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= len(data):
        (half,) = struct.unpack_from("<I", data, at)
        value = (_rotate(value ^ (half * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        value = _rotate(value ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    value = (value ^ (value >> 33)) * _P2 & _MASK
    value = (value ^ (value >> 29)) * _P3 & _MASK
    return value ^ (value >> 32)


def bytes_of(value: Value) -> bytes:
    """The bytes that are hashed."""
    assert value is not None
    if isinstance(value, str):
        return value.encode("utf-8")
    return struct.pack("<d", value) if isinstance(value, float) else struct.pack("<q", int(value))


def _hash(_: Signature, value: Value) -> Value:
    unsigned = xxh64(bytes_of(value), SEED)
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned


HASHING: tuple[FunctionSpec, ...] = (
    FunctionSpec(
        name="hash",
        theme="hashing",
        called="hash",
        parameters=(Parameter("x", Kind.ANY),),
        result=fixed(INT),
        nulls=Nulls.PROPAGATE,
        monotone=(None,),
        evaluate=_hash,
        summary="A 64-bit number that depends only on the value: XXH64 with seed 42, as Spark's `xxhash64`.",
        examples=(Example("hash('Spark') = hash('Sp' || 'ark')", "true"), Example("hash(1) = hash(2)", "false")),
    ),
)
