"""What the log of one stream can do, wherever it keeps the events.

Shells call it: the embedded engine and the host of a broker. Every method returns when the effect is as durable as this
kind of log can make it. `LogError` means that nothing is known about the write or the read that raised it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left

from runtime.batch import Batch
from runtime.protocol.coverage import Coverage
from runtime.protocol.events import LogState


class LogError(Exception):
    """The log could not be written or read."""


class LogFull(LogError):
    """No room on the disk: nothing was written, and writing works again when there is room."""


class LogFenced(LogError):
    """A newer incarnation of the stream has opened this log."""


class LogCorrupt(LogError):
    """What is stored is not what was written. Nothing is skipped: whoever owns the files must decide."""


class LogLocked(LogError):
    """Another process, or another system in this one, has this folder."""


class SchemaChanged(LogError):
    """The log has events of a stream of this name with other columns."""


class StreamLog(ABC):
    """The events of one stream in tick order, its reservation, and the publishes the events came from."""

    @abstractmethod
    def open(self, epoch: int) -> LogState:
        """Fence off older epochs and say what is there."""

    @abstractmethod
    def append(self, epoch: int, rows: Batch, producer: str, sequence: int, forgotten: tuple[str, ...] = ()) -> None:
        """All rows or none. Column 0 is the tick; ticks rise and are above all that is there. What these producers
        published before is forgotten with it."""

    @abstractmethod
    def reserve(self, epoch: int, tick: int) -> None:
        """No later incarnation logs anything at or below this tick (rule E3)."""

    @abstractmethod
    def read(self, wanted: Coverage, rows_max: int) -> tuple[Coverage, Batch, Coverage]:
        """(cover, rows, trimmed): `rows` are all events in `cover`, the lowest wanted ticks, about `rows_max` of them;
        `trimmed` are wanted ticks that have left the log."""

    @abstractmethod
    def trim(self, tick: int) -> None:
        """Events at or below this tick may go."""


CHUNK_ROWS_MIN = 256
"""Logs may gather smaller batches into chunks that grow up to this size; a batch of this size never changes again."""


class Reading:
    """Gathers the answer to one `read`, batch by batch in tick order."""

    def __init__(self, width: int, rows_max: int) -> None:
        self.cover = Coverage()
        self._width = width
        self._rows_max = rows_max
        self._rows = 0
        self._parts: list[Batch] = []

    @property
    def is_full(self) -> bool:
        return self._rows >= self._rows_max

    def add(self, batch: Batch, first: int, last: int, *, is_ours: bool = False) -> int:
        """The events of `batch` from tick `first` to `last`, as far as the bound allows; the last tick now known.

        `is_ours`: nobody else has it, so that it need not be copied however small it is.
        """
        ticks = batch.max_ticks
        low = bisect_left(ticks, first)
        high = bisect_left(ticks, last + 1)
        room = self._rows_max - self._rows
        if high - low > room:
            high = low + room
            last = ticks[high] - 1
        if high > low:
            # A chunk that may still grow must not be shared with a message: a slice is a copy.
            is_whole = high - low == len(batch) and (is_ours or len(batch) >= CHUNK_ROWS_MIN)
            self._parts.append(batch if is_whole else batch.slice(low, high))
            self._rows += high - low
        return last

    def rows(self) -> Batch:
        return Batch.concat(self._parts) if self._parts else Batch.empty(self._width, events=True)
