"""POST /streams/NAME: rows in, all or none, and the same request twice is one publish.

An idempotency key of the form `NAME/NUMBER` is the producer's name and sequence number in the log: a repeat is
recognised by the broker, through restarts of anything, while it is among the producer's newest 1,024. Any other key is
remembered by this gateway, for as long as it runs and among its newest 10,000.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from smile.aio import RemoteSystem
from smile.errors import SmileError
from smile.gateway.bounds import KEY_LENGTH_MAX, KEYS_REMEMBERED_MAX, POST_ROWS_MAX
from smile.gateway.json_values import BadBody, rows_in

_NUMBERED = re.compile(r"([^\s/]{1,100})/(\d{1,18})")


class TooManyRows(SmileError):
    """More rows than one POST may have."""


class KeyReused(SmileError):
    """The key was used for another body."""


@dataclass(frozen=True)
class _Remembered:
    digest: bytes
    outcome: asyncio.Task[Sequence[int]]


class Posting:
    """All POSTs of a gateway; everything happens in one event loop."""

    def __init__(self, system: RemoteSystem) -> None:
        self._system = system
        self._remembered: OrderedDict[tuple[str, str, str], _Remembered] = OrderedDict()

    async def post(self, user: str, stream: str, body: bytes, key: str | None) -> Sequence[int]:
        """The ticks. Raises UnknownName, BadBody, TooManyRows, KeyReused and what publishing raises."""
        rows = rows_in(body, self._system.sync.stream_input(stream))
        if not rows:
            raise BadBody("no rows")
        if len(rows) > POST_ROWS_MAX:
            raise TooManyRows(f"{len(rows)} rows: one POST takes at most {POST_ROWS_MAX}; send several")
        if key is None:
            return await self._system.publish_many(stream, rows)
        if not 0 < len(key) <= KEY_LENGTH_MAX:
            raise BadBody(f"an Idempotency-Key has 1 to {KEY_LENGTH_MAX} characters")
        numbered = _NUMBERED.fullmatch(key)
        if numbered is not None:
            once = (f"http {user} {numbered.group(1)}", int(numbered.group(2)))
            return await self._system.publish_many(stream, rows, once=once)
        return await self._post_once((user, stream, key), rows, hashlib.sha256(body).digest())

    async def _post_once(self, at: tuple[str, str, str], rows: list[dict[str, object]], digest: bytes) -> Sequence[int]:
        found = self._remembered.get(at)
        if found is None:
            found = _Remembered(digest, asyncio.create_task(self._system.publish_many(at[1], rows)))
            self._remembered[at] = found
            if len(self._remembered) > KEYS_REMEMBERED_MAX:
                self._remembered.popitem(last=False)
        elif found.digest != digest:
            raise KeyReused("this Idempotency-Key was used for other rows")
        try:
            return await asyncio.shield(found.outcome)
        except SmileError:
            self._remembered.pop(at, None)  # nothing was published, or nobody knows: the next attempt is a new one
            raise
