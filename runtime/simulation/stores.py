"""What survives a crash: the log of each stream, the checkpoints and the epoch of each component.

The host writes here through a node's disk and reads at a restart. Both stores refuse writes of an epoch older than
the newest that opened them (fencing). A checkpoint that was reported durable is the oldest that may ever be loaded
again (rule C4); those written but never reported may be loaded or not, as the fault of the moment wants.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from runtime.batch import Batch
from runtime.checkpoints.codec import decode, encode
from runtime.protocol.checkpoint import Checkpoint
from runtime.protocol.coverage import Coverage
from runtime.protocol.events import LogState
from runtime.simulation.oracle import Row

CHECKPOINTS_KEPT = 4


class LogStore:
    """The durable events of one stream, in tick order, with the publishes they came from."""

    def __init__(self, stream: str, payload_width: int, on_event: Callable[[str, int, Row], None]) -> None:
        self.stream = stream
        self.ticks: list[int] = []
        self.rows: list[Row] = []
        self.publishes: dict[tuple[str, int], tuple[int, ...]] = {}
        self.repeats: list[tuple[str, int]] = []  # publishes logged twice: always a violation
        self.reserved_tick = -1
        self.last_tick = -1
        self.trimmed_tick = -1
        self.fence_epoch = 0
        self._payload_width = payload_width
        self._on_event = on_event

    def open(self, epoch: int) -> LogState:
        """Fence off older incarnations and show what is there."""
        self.fence_epoch = max(self.fence_epoch, epoch)
        publishes = tuple((producer, number, ticks) for (producer, number), ticks in self.publishes.items())
        return LogState(self.last_tick, self.reserved_tick, self.trimmed_tick, publishes)

    def append(self, rows: Batch, producer: str, sequence: int, forgotten: tuple[str, ...] = ()) -> None:
        """Make events durable."""
        if forgotten:
            self.publishes = {name: ticks for name, ticks in self.publishes.items() if name[0] not in forgotten}
        ticks = tuple(rows.max_ticks)
        for row in rows.rows():
            tick, payload = row[0], row[1:]
            assert isinstance(tick, int)
            self.ticks.append(tick)
            self.rows.append(payload)  # type: ignore[arg-type]
            self.last_tick = max(self.last_tick, tick)
            self._on_event(self.stream, tick, payload)  # type: ignore[arg-type]
        if (producer, sequence) in self.publishes:
            self.repeats.append((producer, sequence))
        self.publishes[producer, sequence] = ticks

    def reserve(self, tick: int) -> None:
        """Make a reservation of silence durable."""
        self.reserved_tick = max(self.reserved_tick, tick)

    def trim(self, tick: int) -> None:
        """Events up to a tick are gone."""
        self.trimmed_tick = max(self.trimmed_tick, tick)

    def durable_tick(self) -> int:
        """No tick above this one is settled: neither logged nor reserved."""
        return max(self.reserved_tick, self.last_tick)

    def read(self, wanted: Coverage, rows_max: int) -> tuple[Coverage, Batch, Coverage]:
        """What of the wanted ticks is known (cover and its events), and what has been trimmed."""
        trimmed = wanted.intersection(Coverage.prefix(self.trimmed_tick))
        cover = Coverage()
        found: list[int] = []
        for first, last in wanted.difference(trimmed):
            at, end = bisect_left(self.ticks, first), bisect_right(self.ticks, last)
            if len(found) + end - at > rows_max:
                end = at + rows_max - len(found)
                last = self.ticks[end] - 1
            found.extend(range(at, end))
            if first <= last:
                cover.add(first, last)
            if len(found) >= rows_max:
                break
        columns = [[self.rows[i][c] for i in found] for c in range(self._payload_width)]
        return cover, Batch.events([self.ticks[i] for i in found], columns), trimmed  # type: ignore[arg-type]


@dataclass
class StoredCheckpoint:
    """Bytes with their checksum, as a file would be."""

    number: int
    data: bytes
    checksum: int
    horizons: tuple[int, ...]  # of each in-edge: what `durable` may acknowledge

    def load(self) -> Checkpoint | None:
        """The checkpoint, or None if it is damaged."""
        if zlib.crc32(self.data) != self.checksum:
            return None
        return Checkpoint.from_wire(decode(self.data))


def store_form(number: int, checkpoint: Checkpoint) -> StoredCheckpoint:
    """A checkpoint as bytes, as a broker writes it."""
    data = encode(checkpoint.to_wire())
    horizons = tuple(edge.coverage.horizon() for edge in checkpoint.edges)
    return StoredCheckpoint(number, data, zlib.crc32(data), horizons)


class CheckpointStore:
    """The checkpoints of one component. `reported` is the newest that was acknowledged; `later` are newer ones."""

    def __init__(self) -> None:
        self.reported: StoredCheckpoint | None = None
        self.later: list[StoredCheckpoint] = []
        self.fence_epoch = 0
        self.acknowledged_horizons: tuple[int, ...] | None = None  # of each in-edge, highest ever

    def put(self, stored: StoredCheckpoint) -> None:
        """Written; nobody has been told yet."""
        self.later = [*self.later, stored][-CHECKPOINTS_KEPT:]

    def report(self, stored: StoredCheckpoint) -> None:
        """The component is about to be told: rule C4 holds from now on."""
        if stored in self.later:
            self.later = self.later[self.later.index(stored) + 1 :]
        self.reported = stored
        before = self.acknowledged_horizons or (-1,) * len(stored.horizons)
        self.acknowledged_horizons = tuple(map(max, before, stored.horizons))

    def rot(self) -> bool:
        """Flip a bit in the newest checkpoint; False if there is none."""
        victim = self.later[-1] if self.later else self.reported
        if victim is None or not victim.data:
            return False
        victim.data = bytes([victim.data[0] ^ 1]) + victim.data[1:]
        return True

    def choose(self, wish: str) -> tuple[Checkpoint | None, bool]:
        """A checkpoint to restart from: the newest readable one, an older one or none, as far as C4 allows.

        The second value is False if C4 forbids to start without one and none can be read: only a bulk install helps.
        """
        candidates = [*([self.reported] if self.reported else []), *self.later]
        if wish == "none":
            candidates = candidates[:1] if self.reported else []
        elif wish == "older":
            candidates = candidates[: max(1, len(candidates) - 1)]
        for stored in reversed(candidates):
            checkpoint = stored.load()
            if checkpoint is not None:
                return checkpoint, True
        return None, self.reported is None
