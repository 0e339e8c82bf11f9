"""What a folder of logs knows beside events and publishes: the epoch counter and the position of every stream.

One record of bytes, written anew by every commit, so that all of it changes at once or not at all. It begins with a
seal: the number of the commit, and the newest commit that was surely on disk when this one began. Seals make lost
commits visible: whoever finds one in the remains of a file knows which commits must be there (`seals_in`).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Any

import msgpack

from runtime.protocol.coverage import NO_TICK

MAGIC = b"smileLG2"
_SEAL = Struct("<8sQQ")
_CHECKSUM = Struct("<I")
_HEAD_BYTES = _SEAL.size + _CHECKSUM.size
LOST_RANGES_MAX = 10_000
"""Of one stream. More damage than that is not worth telling apart: the ranges between are given up too."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where one stream stands.

    `publishes` and `publishes_digest` are number and combined checksum of its remembered publishes: with them, one that
    is missing is noticed. `lost` are ranges of ticks that a repair could not save: they are never called silence.
    """

    epoch: int = 0
    last_tick: int = NO_TICK
    reserved_tick: int = NO_TICK
    trimmed_tick: int = NO_TICK
    publishes: int = 0
    publishes_digest: int = 0
    lost: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Seal:
    """Commit `number` was begun when commit `synced` and all before it were on disk."""

    number: int
    synced: int


@dataclass(frozen=True, slots=True)
class State:
    """`positions` in the order of the streams' numbers, from 1. `floor_tick`: a repair has lost whole streams, and one
    that is new here may be one of them; up to this tick nobody knows."""

    seal: Seal
    epoch: int
    positions: tuple[Position, ...]
    floor_tick: int = NO_TICK

    def encode(self) -> bytes:
        seal = _SEAL.pack(MAGIC, self.seal.number, self.seal.synced)
        rest: bytes = msgpack.packb([self.epoch, self.floor_tick, [_plain(position) for position in self.positions]])
        body = seal + _CHECKSUM.pack(zlib.crc32(seal)) + rest
        return body + _CHECKSUM.pack(zlib.crc32(body))

    @staticmethod
    def decode(data: bytes) -> State:
        """What `encode` wrote; ValueError for anything else."""
        body, checksum = data[: -_CHECKSUM.size], data[-_CHECKSUM.size :]
        if len(body) < _HEAD_BYTES or _CHECKSUM.pack(zlib.crc32(body)) != checksum or body[:8] != MAGIC:
            raise ValueError("the record of the positions is damaged (checksum)")
        _, number, synced = _SEAL.unpack_from(body)
        try:
            epoch, floor, positions = msgpack.unpackb(body[_HEAD_BYTES:])
            return State(Seal(number, synced), int(epoch), tuple(map(_position, positions)), int(floor))
        except (msgpack.UnpackException, TypeError, ValueError) as broken:
            raise ValueError(f"the record of the positions is not readable: {broken}") from broken


def _plain(position: Position) -> list[object]:
    return [
        position.epoch,
        position.last_tick,
        position.reserved_tick,
        position.trimmed_tick,
        position.publishes,
        position.publishes_digest,
        position.lost,
    ]


def _position(fields: Any) -> Position:
    epoch, last, reserved, trimmed, publishes, digest, lost = fields
    ranges = tuple((int(first), int(end)) for first, end in lost)
    return Position(int(epoch), int(last), int(reserved), int(trimmed), int(publishes), int(digest), ranges)


def seals_in(data: Any) -> Iterator[tuple[Seal, int]]:
    """All undamaged seals in these bytes (bytes or a memory map), and where each begins."""
    at = data.find(MAGIC)
    while at >= 0:
        head = data[at : at + _HEAD_BYTES]
        if len(head) == _HEAD_BYTES and _CHECKSUM.pack(zlib.crc32(head[: _SEAL.size])) == head[_SEAL.size :]:
            _, number, synced = _SEAL.unpack_from(head)
            yield Seal(number, synced), at
        at = data.find(MAGIC, at + 1)
