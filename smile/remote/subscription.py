"""A subscription to a view in a broker: the same as in one process, and it can be continued later by its token."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from smile.errors import Closed
from smile.subscription import ChangeBatch, Delivery, Subscription, squeeze


class RemoteSubscription(Subscription):
    """What `smile.connect(...).subscribe` gives."""

    def __init__(
        self,
        *arguments: Any,
        take_token: Callable[[RemoteSubscription], bytes],
        before_sleep: Callable[[Callable[[], object]], None],
        check_process: Callable[[], None],
        **named: Any,
    ) -> None:
        super().__init__(*arguments, **named)
        self._before_sleep = before_sleep
        self._take_token = take_token
        self._check_process = check_process

    def token(self) -> bytes:
        """What `subscribe(..., resume=token)` continues from: after everything that was handed out so far.

        Changes that are queued, or belong to a batch whose iteration has not reached them, are told then. A token holds
        the rows of the view (a position alone could not tell what has vanished since), so it is as large as they are;
        TOKEN_BYTES_MAX bounds it.
        """
        self._check_process()
        return self._take_token(self)

    def wait(self, timeout: float | None = None) -> ChangeBatch | None:
        """The next batch; None when the subscription is closed or nothing came in time."""
        self._check_process()  # in a fork nothing ever comes
        return super().wait(timeout)

    def close(self) -> None:
        """No more changes; what is queued can still be read."""
        try:
            self._check_process()
        except Closed:
            return  # it is the other process's
        super().close()

    def unread(self) -> Delivery | None:
        """What is not handed out yet, as one delivery."""
        with self._lock:
            waiting = [_after(begun.delivery, begun.handed) for begun in self._begun]
            waiting += self._queue
            waiting = [delivery for delivery in waiting if delivery.is_snapshot or len(delivery.rows)]
            return squeeze(waiting, self._key_width) if waiting else None

    def _release(self, waiters: Sequence[threading.Lock]) -> None:
        self._before_sleep(partial(super()._release, waiters))


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
