"""POST /streams/NAME: rows in, all or none, and the same request twice is one publish.

Under an idempotency key rows are logged with a producer and a number, so the stream's log recognises a repeat, over
another connection too. A key of the form `NAME/NUMBER` says both itself: it holds through restarts of anything, while
it is among the producer's newest 1,024. Any other key is given a number by this gateway, which remembers it for as long
as it runs and among its newest 10,000.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from itertools import count

from smile.aio import RemoteSystem
from smile.errors import PublishUncertain, SmileError, TooManyRows
from smile.gateway.bounds import KEY_LENGTH_MAX, KEYS_REMEMBERED_MAX, POST_ROWS_MAX
from smile.gateway.json_values import BadBody, rows_in, ticks_to_json

_NUMBERED = re.compile(r"([^\s/]{1,100})/(\d{1,18})")

Row = dict[str, object]
Told = dict[str, object]
"""How many rows are in, and their first and last tick."""


class KeyReused(SmileError):
    """The key was used for other rows."""


@dataclass(eq=False)
class _Remembered:
    """A key that was used: for which rows, under which producer and number, and what became of the newest attempt.
    `is_uncertain`: an attempt ended without anybody knowing; then the key keeps its number, whatever comes later."""

    digest: bytes
    once: tuple[str, int]
    outcome: asyncio.Task[Told] | None = None
    is_uncertain: bool = False


class Posting:
    """All POSTs of a gateway, over one connection after the other; everything happens in one event loop."""

    def __init__(self) -> None:
        self._producer = f"http gateway {secrets.token_hex(12)}"
        self._numbers = count()
        self._remembered: OrderedDict[tuple[str, str, str], _Remembered] = OrderedDict()

    async def post(self, system: RemoteSystem, user: str, stream: str, body: bytes, key: str | None) -> Told:
        """Raises UnknownName, BadBody, TooManyRows, KeyReused and what publishing raises."""
        rows = rows_in(body, system.sync.stream_input(stream))
        if not rows:
            raise BadBody("no rows")
        if len(rows) > POST_ROWS_MAX:
            raise TooManyRows(f"{len(rows)} rows: one POST takes at most {POST_ROWS_MAX}; send several")
        if key is None:
            return ticks_to_json(await system.publish_many(stream, rows))
        if not 0 < len(key) <= KEY_LENGTH_MAX:
            raise BadBody(f"an Idempotency-Key has 1 to {KEY_LENGTH_MAX} characters")
        return await self._post_once(system, (user, stream, key), rows)

    async def _post_once(self, system: RemoteSystem, at: tuple[str, str, str], rows: list[Row]) -> Told:
        user, stream, key = at
        digest = _digest(rows)
        found = self._remembered.get(at)
        if found is None:
            found = self._remembered[at] = _Remembered(digest, self._once(user, key))
            if len(self._remembered) > KEYS_REMEMBERED_MAX:
                self._remembered.popitem(last=False)
        elif found.digest != digest:
            raise KeyReused("this Idempotency-Key was used for other rows")
        if found.outcome is None or _has_failed(found.outcome):
            found.outcome = asyncio.create_task(_published(system, stream, rows, found.once))
        outcome = found.outcome
        try:
            return await asyncio.shield(outcome)
        except PublishUncertain:  # the connection goes on sending, so the next attempt must be this same publish
            found.is_uncertain = True
            if found.outcome is outcome:
                found.outcome = None  # it holds the rows
            raise
        except SmileError:
            if not found.is_uncertain and self._remembered.get(at) is found:  # nothing was published: it is free again
                del self._remembered[at]
            raise

    def _once(self, user: str, key: str) -> tuple[str, int]:
        numbered = _NUMBERED.fullmatch(key)
        if numbered is None:
            return self._producer, next(self._numbers)
        return f"http {user} {numbered.group(1)}", int(numbered.group(2))


async def _published(system: RemoteSystem, stream: str, rows: list[Row], once: tuple[str, int]) -> Told:
    ticks = await system.publish_many(stream, rows, once=once)
    if len(ticks) != len(rows):  # those of an earlier publish of this name, which this gateway does not remember
        raise KeyReused(f"this Idempotency-Key was used for {len(ticks)} other rows")
    return ticks_to_json(ticks)


def _has_failed(outcome: asyncio.Task[Told]) -> bool:
    return outcome.done() and (outcome.cancelled() or outcome.exception() is not None)


def _digest(rows: list[Row]) -> bytes:
    """Of what they say, not of how the body was written."""
    return hashlib.sha256(repr([sorted(row.items()) for row in rows]).encode("utf-8", "surrogatepass")).digest()
