"""What a folder of logs knows beside events and publishes: the epoch counter and the position of every stream.

One record of bytes (`State`), so that all of it changes at once or not at all. A commit that only appends does not
write it: it says where the streams end that have grown since then in front of the events of its last batch (`Advance`),
and so writes one page instead of two. Both begin with a seal: the number of the commit, and the newest commit that was
surely on disk when this one began. Seals make lost commits visible: whoever finds one in the remains of a file knows
which commits must be there (`synced_in`).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import Any

import msgpack

from runtime.protocol.coverage import NO_TICK

MAGIC = b"smileLG2"
_SEAL = Struct("<8sQQ")
_CHECKSUM = Struct("<I")
_LENGTH = Struct("<I")
_HEAD_BYTES = _SEAL.size + _CHECKSUM.size
LOST_RANGES_MAX = 10_000
"""Of one stream. More damage than that is not worth telling apart: the ranges between are given up too."""

GROWN_STREAMS_MAX = 32
"""In one `Advance`, so that it stays short. If there are more, a commit writes the `State`."""

ADVANCE_BYTES_MAX = 480
"""No `Advance` is longer."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where one stream stands.

    `publishes` and `publishes_digest` are number and combined checksum of its remembered publishes: with them, one that
    is missing is noticed. They are stored a few hundred at a time: those of batches after `published_tick` come with
    their batches. `lost` are ranges of ticks that a repair could not save: they are never called silence.
    """

    epoch: int = 0
    last_tick: int = NO_TICK
    reserved_tick: int = NO_TICK
    trimmed_tick: int = NO_TICK
    publishes: int = 0
    publishes_digest: int = 0
    lost: tuple[tuple[int, int], ...] = ()
    published_tick: int = NO_TICK


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
        seal = _sealed(self.seal.number, self.seal.synced)
        rest: bytes = msgpack.packb([self.epoch, self.floor_tick, [_plain(position) for position in self.positions]])
        body = seal + rest
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

    def advanced(self, advance: Advance) -> State:
        """As it was after that commit."""
        positions = list(self.positions)
        for number, tick in advance.last_ticks.items():
            if number <= len(positions):
                position = positions[number - 1]
                positions[number - 1] = replace(position, last_tick=max(position.last_tick, tick))
        return replace(self, seal=advance.seal, positions=tuple(positions))


@dataclass(frozen=True, slots=True)
class Advance:
    """What a commit that only appends says of positions: the last ticks of streams that have grown since commit `base`,
    which was the last to write a `State`."""

    seal: Seal
    base: int
    last_ticks: Mapping[int, int]


def encode_advance(number: int, synced: int, base: int, last_ticks: Mapping[int, int]) -> bytes:
    """An `Advance`, made without one: every small commit needs it."""
    rest: bytes = msgpack.packb((base, last_ticks))
    head = _sealed(number, synced) + _LENGTH.pack(len(rest)) + rest
    return head + _CHECKSUM.pack(zlib.crc32(head))


def advance_in(stored: bytes) -> tuple[Advance | None, int]:
    """The one that stands before a batch as it is stored, or none, and where the batch begins; ValueError if it is
    damaged. The first `ADVANCE_BYTES_MAX` bytes are enough."""
    if not stored.startswith(MAGIC):
        return None, 0
    try:
        (length,) = _LENGTH.unpack_from(stored, _HEAD_BYTES)
        end = _HEAD_BYTES + _LENGTH.size + length
        if _CHECKSUM.unpack_from(stored, end)[0] != zlib.crc32(stored[:end]):
            raise ValueError("checksum")
        _, number, synced = _SEAL.unpack_from(stored)
        base, ticks = msgpack.unpackb(stored[_HEAD_BYTES + _LENGTH.size : end], strict_map_key=False)
        last_ticks = {int(stream): int(tick) for stream, tick in ticks.items()}
        return Advance(Seal(number, synced), int(base), last_ticks), end + _CHECKSUM.size
    except (msgpack.UnpackException, StructError, AttributeError, TypeError, ValueError) as broken:
        raise ValueError(f"what the newest batch says of positions is damaged: {broken}") from broken


def batch_in(stored: bytes) -> bytes:
    """A batch as it is stored, without the `Advance` that may stand before it; ValueError if that is damaged."""
    _, at = advance_in(stored)
    return stored[at:] if at else stored


def _sealed(number: int, synced: int) -> bytes:
    seal = _SEAL.pack(MAGIC, number, synced)
    return seal + _CHECKSUM.pack(zlib.crc32(seal))


def _plain(position: Position) -> list[object]:
    return [
        position.epoch,
        position.last_tick,
        position.reserved_tick,
        position.trimmed_tick,
        position.publishes,
        position.publishes_digest,
        position.lost,
        position.published_tick,
    ]


def _position(fields: Any) -> Position:
    epoch, last, reserved, trimmed, publishes, digest, lost, *published = fields
    ranges = tuple((int(first), int(end)) for first, end in lost)
    (published_tick,) = published or (last,)  # the version before stored publishes with their batches
    counted = int(publishes), int(digest)
    return Position(int(epoch), int(last), int(reserved), int(trimmed), *counted, ranges, int(published_tick))


def synced_in(data: Any) -> int:
    """The newest commit that any undamaged seal in these bytes (bytes or a memory map) calls synced; 0 if there is
    none. There may be a hundred thousand of them."""
    newest = 0
    at = data.find(MAGIC)
    while at >= 0:
        head = data[at : at + _HEAD_BYTES]
        if len(head) == _HEAD_BYTES:
            _, _, synced = _SEAL.unpack_from(head)
            if synced > newest and _CHECKSUM.pack(zlib.crc32(head[: _SEAL.size])) == head[_SEAL.size :]:
                newest = synced
        at = data.find(MAGIC, at + 1)
    return newest
