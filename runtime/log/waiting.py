"""What one commit of a folder of logs is to write, gathered while its group is open."""

from __future__ import annotations

from runtime.log.checksums import batch_checksum
from runtime.log.state import Position

UnsealedBatch = tuple[int, int, int, int, str, int, bytes]
"""Stream, last tick, first tick, last tick of the batch before, producer, sequence, events."""

Publish = tuple[int, str, int, bytes, int]
"""A row of `publishes`: stream, producer, sequence, ticks, checksum."""


class Waiting:
    """What one transaction will write. `positions` has those that change; `only_appends`: in their last ticks alone."""

    __slots__ = ("batches", "body_bytes", "forgotten", "gone", "only_appends", "positions", "publishes")

    def __init__(self, positions: dict[int, Position] | None = None) -> None:
        self.positions = {} if positions is None else positions
        self.only_appends = positions is None
        self.batches: list[UnsealedBatch] = []
        self.publishes: list[Publish] = []
        self.gone: list[tuple[int, str]] = []  # producers that are forgotten before anything is added
        self.forgotten: dict[tuple[int, str], int] = {}  # of a producer, how many are remembered
        self.body_bytes = 0

    def change(self, number: int, position: Position) -> None:
        """Of this stream more changes than its last tick."""
        self.positions[number] = position
        self.only_appends = False


def stored(
    stream: int, last: int, first: int, previous: int, producer: str, sequence: int, events: bytes, advance: bytes = b""
) -> tuple[object, ...]:
    """The row of a batch; `advance` stands before its events."""
    body = advance + events
    checksum = batch_checksum(stream, last, first, previous, producer, sequence, body)
    return stream, last, first, previous, producer, sequence, checksum, body
