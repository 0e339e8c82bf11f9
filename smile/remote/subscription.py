"""A subscription to a view in a broker: the same as in one process, and it can be continued later by its token."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from smile.subscription import Change, ChangeBatch, Delivery, Subscription, squeeze


class RemoteSubscription(Subscription):
    """What `smile.connect(...).subscribe` gives."""

    def __init__(
        self,
        *arguments: Any,
        take_token: Callable[[RemoteSubscription], bytes],
        before_sleep: Callable[[Callable[[], object]], None],
        **named: Any,
    ) -> None:
        super().__init__(*arguments, **named)
        self._before_sleep = before_sleep
        self._take_token = take_token
        self._reading: tuple[Delivery, int] | None = None  # handed out one by one: the first so many rows were

    def token(self) -> bytes:
        """What `subscribe(..., resume=token)` continues from: after everything that was handed out so far.

        Changes that are queued, or belong to a batch whose iteration has not reached them, are told then. A token holds
        the rows of the view (a position alone could not tell what has vanished since), so it is as large as they are;
        TOKEN_BYTES_MAX bounds it.
        """
        return self._take_token(self)

    def unread(self) -> Delivery | None:
        """What is not handed out yet, as one delivery."""
        with self._lock:
            waiting = list(self._queue)
            if self._reading is not None:
                waiting.insert(0, _after(*self._reading))
            waiting = [delivery for delivery in waiting if delivery.is_snapshot or len(delivery.rows)]
            return squeeze(waiting, self._key_width) if waiting else None

    def each(self, batch: ChangeBatch) -> Iterator[Change]:
        for number, change in enumerate(batch.changes(), 1):
            self._reading = (batch.delivery, number)
            yield change

    def _release(self, waiters: Sequence[threading.Lock]) -> None:
        self._before_sleep(partial(super()._release, waiters))

    def _take(self, *, flush: bool = False) -> ChangeBatch | None:
        batch = super()._take(flush=flush)
        if batch is not None:
            self._reading = None
        return batch


def _after(delivery: Delivery, first: int) -> Delivery:
    """The rest of a batch. Of a snapshot the beginning was told, so what has gone since then must be told too: the rest
    is no snapshot."""

    def rest(values: Any) -> Any:
        return values if values is None or isinstance(values, bool | int) else values[first:]

    return replace(
        delivery,
        is_snapshot=False,
        rows=delivery.rows.slice(first, len(delivery.rows)),
        final=rest(delivery.final),
        as_of=rest(delivery.as_of),
        low=rest(delivery.low),
        high=rest(delivery.high),
    )
