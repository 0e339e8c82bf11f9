"""A subscription: the snapshot of a view, then its changes, read one by one, in batches, or by a callback.

The system puts deliveries in, from whichever thread publishes; the reader takes them out, from any thread. Between the
two stands a queue of at most `queue_rows` rows. When a slow reader lets it fill up, the queue is squeezed: of every row
only the latest change stays. Nothing that is true now is lost, only states that have been superseded; the memory is
then bounded by the rows that the view has. `squeezed` counts how often that happened.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np

from runtime.batch import Batch
from runtime.plan import Emit
from runtime.protocol.events import Deliver
from runtime.records import record
from runtime.values import Value
from smile.errors import SmileError
from smile.views import ViewReader

log = logging.getLogger("smile")

QUEUE_ROWS = 65_536

Kind = Literal["snapshot", "changed", "gone"]


@dataclass(frozen=True)
class Change:
    """One row as a subscriber is told of it.

    kind: "snapshot" for a row that was there at first, "changed" for one that is new or has other values, "gone" for
    one that is no longer in the view (`row` then has its last values). `key` identifies the row from change to change:
    the view's key, or other columns where those can change. `bounds` has for every column the range (low, high) in
    which its value lies as of `as_of`, None where there is no limit; only with `emit bounds`. `final`: this row can no
    longer change. `as_of` is the tick up to which everything is included; of several changes of one row in one batch
    only the last includes all of it.
    """

    kind: Kind
    key: tuple[object, ...]
    row: dict[str, object]
    final: bool
    as_of: int
    bounds: dict[str, tuple[object, object]] | None = None


@record(frozen=True, slots=True)
class Delivery:
    """What is queued: physical rows, with what is known about each of them, or about all (then once)."""

    is_snapshot: bool
    rows: Batch
    final: Sequence[bool] | bool
    as_of: Sequence[int] | int
    low: Sequence[tuple[Value, ...]] | None = None
    high: Sequence[tuple[Value, ...]] | None = None

    @staticmethod
    def of(told: Deliver, *, is_snapshot: bool) -> Delivery:
        return Delivery(is_snapshot, told.rows, told.final, told.horizon, told.low, told.high)

    def after(self, count: int) -> Delivery:
        """Without the first `count` rows."""
        return Delivery(
            self.is_snapshot,
            self.rows.slice(count, len(self.rows)),
            self.final if isinstance(self.final, bool) else self.final[count:],
            self.as_of if isinstance(self.as_of, int) else self.as_of[count:],
            None if self.low is None else self.low[count:],
            None if self.high is None else self.high[count:],
        )

    def finals(self) -> Sequence[bool]:
        return [self.final] * len(self.rows) if isinstance(self.final, bool) else self.final

    def horizons(self) -> Sequence[int]:
        return [self.as_of] * len(self.rows) if isinstance(self.as_of, int) else self.as_of


class ChangeBatch:
    """Several changes as columns; `kind` is "snapshot" or "changes". The fast way to read: nothing is made per row
    until it is asked for."""

    def __init__(self, reader: ViewReader, delivery: Delivery) -> None:
        self._reader = reader
        self.delivery = delivery

    def __len__(self) -> int:
        return len(self.delivery.rows)

    @property
    def kind(self) -> Literal["snapshot", "changes"]:
        return "snapshot" if self.delivery.is_snapshot else "changes"

    @property
    def names(self) -> tuple[str, ...]:
        return self._reader.names

    @property
    def visible(self) -> list[bool]:
        """False: the row is no longer in the view."""
        return [bool(visible) for visible in self.delivery.rows.visible]

    def visible_array(self) -> Any:
        """The same as a numpy array."""
        return np.asarray(self.delivery.rows.visible, np.bool_)

    @property
    def final(self) -> list[bool]:
        """True: the row can no longer change."""
        return [bool(final) for final in self.delivery.finals()]

    @property
    def as_of(self) -> Sequence[int]:
        return self.delivery.horizons()

    def column(self, name: str) -> list[object]:
        """The values of one column, for all rows."""
        return list(self._reader.column(name).values(self.delivery.rows.columns))

    def array(self, name: str) -> Any:
        """The same as a numpy array of what the engine computes with: decimals are whole numbers scaled by their
        digits, times and durations are microseconds. Nothing is converted where it is an array already."""
        return np.asarray(self._reader.column(name).canonical(self.delivery.rows.columns))

    def columns(self) -> dict[str, list[object]]:
        return {name: self.column(name) for name in self.names}

    def keys(self) -> list[tuple[object, ...]]:
        return self._reader.keys(self.delivery.rows)

    def changes(self) -> Iterator[Change]:
        """One by one."""
        told = self.delivery
        here: Kind = "snapshot" if told.is_snapshot else "changed"
        parts = zip(
            told.rows.visible, self.keys(), self._reader.rows(told.rows), told.finals(), told.horizons(), strict=True
        )
        bounds = self._bounds()
        for i, (visible, key, row, final, as_of) in enumerate(parts):
            yield Change(here if visible else "gone", key, row, bool(final), as_of, bounds[i] if bounds else None)

    def _bounds(self) -> list[dict[str, tuple[object, object]]] | None:
        low, high = self.delivery.low, self.delivery.high
        if low is None or high is None:
            return None
        made: list[dict[str, tuple[object, object]]] = [{} for _ in range(len(self))]
        ends = self._reader.bounds(self.delivery.rows, low, high)
        for column, (lows, highs) in zip(self._reader.columns, ends, strict=True):
            for bounds, one, other in zip(made, column.decoded(lows), column.decoded(highs), strict=True):
                bounds[column.name] = (one, other)
        return made


def squeeze(deliveries: Sequence[Delivery], key_width: int) -> Delivery:
    """One delivery with the latest word about every row, in the order of these words."""
    latest: dict[tuple[Value, ...], tuple[int, int]] = {}
    for number, delivery in enumerate(deliveries):
        for i, key in enumerate(delivery.rows.keys(key_width)):
            latest.pop(key, None)
            latest[key] = (number, i)
    is_snapshot = deliveries[0].is_snapshot
    width = len(deliveries[0].rows.columns)
    places = [
        (deliveries[number], i)
        for number, i in latest.values()
        if not is_snapshot or deliveries[number].rows.visible[i]  # of a row that came and went nothing needs saying
    ]
    rows = Batch(
        tuple([told.rows.columns[c][i] for told, i in places] for c in range(width)),
        [told.rows.max_ticks[i] for told, i in places],
        [bool(told.rows.visible[i]) for told, i in places],
    )
    low = high = None
    if deliveries[0].low is not None:
        low = [told.low[i] for told, i in places if told.low is not None]
        high = [told.high[i] for told, i in places if told.high is not None]
    final = [told.final if isinstance(told.final, bool) else told.final[i] for told, i in places]
    as_of = [told.as_of if isinstance(told.as_of, int) else told.as_of[i] for told, i in places]
    return Delivery(is_snapshot, rows, final, as_of, low, high)


class _Begun:
    """A batch whose changes are handed out one by one: the first `handed` were."""

    __slots__ = ("changes", "delivery", "handed")

    def __init__(self, batch: ChangeBatch) -> None:
        self.delivery = batch.delivery
        self.changes = batch.changes()
        self.handed = 0


class Subscription:
    """What `system.subscribe` gives. Close it, or use it in a `with` block.

    `for change in subscription` waits for changes and ends when the subscription or the system is closed, or when
    nothing came for `timeout` seconds. `ready()` takes what is there without waiting.
    """

    def __init__(
        self,
        name: str,
        reader: ViewReader,
        emit: Emit,
        key_width: int,
        on_close: Callable[[Subscription], None],
        *,
        callback: Callable[[Change], object] | None = None,
        timeout: float | None = None,
        queue_rows: int = QUEUE_ROWS,
        every_us: int = 0,
    ) -> None:
        self.name = name
        self.emit = emit.value
        self.squeezed = 0
        self.errors: deque[Exception] = deque(maxlen=16)
        """What the callback raised: the newest few."""
        self.failure: SmileError | None = None
        self._reader = reader
        self._key_width = key_width
        self._on_close = on_close
        self._callback = callback
        self.has_callback = callback is not None
        self._timeout = timeout
        self._queue_rows_max = queue_rows
        self._every_us = every_us
        self._next_us = 0.0
        self._queue: deque[Delivery] = deque()
        self._begun: list[_Begun] = []
        self._rows = 0
        self._squeeze_at = queue_rows
        self._closed = False
        self._lock = threading.RLock()
        self._waiters: list[threading.Lock] = []  # of readers: each waits for its own to be released
        self._listeners: list[Callable[[], object]] = []

    # For the system

    @property
    def view(self) -> str:
        return self._reader.name

    def put(self, delivery: Delivery) -> None:
        with self._lock:
            if self._closed:
                return
            self._queue.append(delivery)
            self._rows += len(delivery.rows.max_ticks)
            if self._rows > self._squeeze_at:
                self._squeeze()
                self.squeezed += 1
            self._wake()

    def _squeeze(self) -> None:
        one = squeeze(self._queue, self._key_width)
        self._queue = deque([one])
        self._rows = len(one.rows)
        # A view that is larger than the bound must not be squeezed again for every row that comes.
        self._squeeze_at = max(self._queue_rows_max, 2 * self._rows)

    def fail(self, failure: SmileError) -> None:
        """The view has stopped: readers are told after what is still queued."""
        with self._lock:
            if self.failure is None:
                self.failure = failure
                log.error("subscription %s: %s", self.name, failure)
            self._wake()

    def run_callback(self, *, flush: bool = False) -> None:
        """Hand what is queued to the callback. What it raises is logged and kept in `errors`, nothing more; Ctrl-C and
        the like end the call, and what is left waits for the next."""
        assert self._callback is not None
        while (batch := self._take(flush=flush)) is not None:
            for change in self.each(batch):
                if self._closed:
                    return
                try:
                    self._callback(change)
                except Exception as error:
                    log.exception("a callback of subscription %s failed", self.name)
                    self.errors.append(error)

    def _wake(self) -> None:
        if self._waiters:
            waiters, self._waiters = self._waiters, []
            self._release(waiters)
        for listener in self._listeners:
            listener()

    def _release(self, waiters: Sequence[threading.Lock]) -> None:
        for waiter in waiters:
            waiter.release()

    def listen(self, listener: Callable[[], object]) -> None:
        """Call this, from any thread, whenever there is something to read or the end has come."""
        with self._lock:
            self._listeners.append(listener)

    # For the reader

    def __iter__(self) -> Iterator[Change]:
        for batch in self.batches():
            yield from self.each(batch)

    def each(self, batch: ChangeBatch) -> Iterator[Change]:
        """The changes of a batch, handed out one by one. Whoever stops in the middle gets the rest with what he reads
        next."""
        begun = _Begun(batch)
        with self._lock:
            self._begun.append(begun)
        while (change := self._next(begun)) is not None:
            yield change

    def _next(self, begun: _Begun) -> Change | None:
        with self._lock:
            if begun not in self._begun:  # somebody else has read on
                return None
            change = next(begun.changes, None)
            if change is None:
                self._begun.remove(begun)
            begun.handed += 1
            return change

    def batches(self) -> Iterator[ChangeBatch]:
        """The same, columnar."""
        while (batch := self.wait()) is not None:
            yield batch

    def ready(self) -> list[Change]:
        """All changes that are there, without waiting."""
        made: list[Change] = []
        while (batch := self._take(flush=True)) is not None:
            made.extend(batch.changes())
        self._raise_failure(made)
        return made

    def ready_batches(self) -> list[ChangeBatch]:
        """The same, columnar."""
        made: list[ChangeBatch] = []
        while (batch := self._take(flush=True)) is not None:
            made.append(batch)
        self._raise_failure(made)
        return made

    def _raise_failure(self, found: Sequence[object]) -> None:
        if not found and self.failure is not None:
            raise self.failure

    def wait(self, timeout: float | None = None) -> ChangeBatch | None:
        """The next batch; None when the subscription is closed or nothing came in time."""
        limit = self._timeout if timeout is None else timeout
        end = None if limit is None else monotonic() + limit
        while True:
            with self._lock:
                batch = self._take()
                if batch is not None:
                    return batch
                if self.failure is not None and not self._queue:
                    raise self.failure
                if self._closed:
                    return None
                left = None if end is None else end - monotonic()
                if left is not None and left <= 0:
                    return None
                patience = self._patience(left)
                waiter = threading.Lock()
                waiter.acquire()
                self._waiters.append(waiter)
            self._wait_for(waiter, patience)

    def _wait_for(self, waiter: threading.Lock, patience: float | None) -> None:
        """Until somebody wakes this reader, or as long as it has patience. A condition does the same in more steps."""
        if not waiter.acquire(timeout=-1 if patience is None else patience):
            with self._lock:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)

    def due_in(self) -> float | None:
        """Seconds until what is queued may be read (`every`); None if nothing is queued."""
        return max(0.0, self._next_us / 1e6 - monotonic()) if self._queue else None

    def _patience(self, left: float | None) -> float | None:
        due = self.due_in()
        if due is None or left is None:
            return left if due is None else due
        return min(left, due)

    def _take(self, *, flush: bool = False) -> ChangeBatch | None:
        with self._lock:
            while self._begun:
                begun = self._begun.pop(0)
                if begun.handed < len(begun.delivery.rows):
                    return ChangeBatch(self._reader, begun.delivery.after(begun.handed))
            if not self._queue:
                return None
            if self._every_us:
                now_us = monotonic() * 1e6
                if now_us < self._next_us and not flush and not self._closed:
                    return None
                self._next_us = now_us + self._every_us
                if len(self._queue) > 1:
                    self._squeeze()
            delivery = self._queue.popleft()
            self._rows -= len(delivery.rows.max_ticks)
            if not self._queue:
                self._squeeze_at = self._queue_rows_max
            return ChangeBatch(self._reader, delivery)

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """No more changes; what is queued can still be read."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._wake()
        self._on_close(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
