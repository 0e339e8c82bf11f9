"""Feeds: the changes of one view in one emit mode, told to any number of HTTP readers.

A feed subscribes once, writes each change as JSON once, and keeps the latest word about every row (for those who come)
and a ring of recent events (for those who lag or come back). A reader is a number: the event it gets next. Nothing is
queued for it, so a stalled one costs nothing; when it has fallen out of the ring it gets the latest state and goes on.
Event numbers belong to one feed of one gateway process: an id from elsewhere gets a snapshot, too.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from time import monotonic

from smile.aio import AsyncSubscription, RemoteSystem
from smile.errors import SmileError
from smile.gateway.bounds import (
    EVENT_ROWS_MAX,
    FEED_ROWS_MAX,
    FEEDS_MAX,
    HEARTBEAT_SECONDS,
    LINGER_SECONDS,
    QUEUE_ROWS,
    RING_ROWS_MAX,
)
from smile.gateway.json_values import change_to_text, to_text, with_kind
from smile.reading import asked
from smile.subscription import ChangeBatch

log = logging.getLogger("smile.gateway")


@dataclass(frozen=True)
class Event:
    """`name`: snapshot, changes, failed or quiet. `id` continues after this event; pieces before the last have none."""

    name: str
    id: str | None
    data: str


@dataclass(frozen=True)
class _Piece:
    """Some changes, already written; `more`: the next one belongs to the same step of the view."""

    changes: list[str]
    more: bool


class Busy(SmileError):
    """Too many feeds or readers; come back later."""


class Feed:
    """Made and closed by `Feeds`; everything happens in one event loop."""

    def __init__(self, subscription: AsyncSubscription) -> None:
        self.readers = 0
        self.unread_since = monotonic()
        self.failure: str | None = None
        self.is_closed = False
        self._name = secrets.token_hex(6)
        self._subscription = subscription
        self._state: dict[tuple[object, ...], str] = {}
        self._ring: deque[_Piece] = deque()
        self._ring_rows = 0
        self._next = 1  # the number of the next event; the ring ends before it
        self._pulse = asyncio.Event()
        self._task = asyncio.create_task(self._follow())
        self._has_snapshot = asyncio.Event()

    def has_ended(self) -> bool:
        return self.failure is not None or self.is_closed

    # From the view

    async def _follow(self) -> None:
        try:
            async for batch in self._subscription.batches():
                self._learn(batch)
                self._tell()
                await asyncio.sleep(0)  # readers first: a busy view must not keep them from what it says
            self.is_closed = True
        except SmileError as error:
            self.failure = str(error)
        except Exception:
            log.exception("a feed cannot go on")
            self.failure = "the gateway failed; its log says why"
        self._tell()
        await self._subscription.close()  # nobody else will, once another feed has taken its place

    def _learn(self, batch: ChangeBatch) -> None:
        texts: list[str] = []
        for change in batch.changes():
            text = change_to_text(change)
            if change.kind == "gone":
                self._state.pop(change.key, None)
            else:
                self._state[change.key] = text
            texts.append(with_kind(change.kind, text))
        if len(self._state) > FEED_ROWS_MAX:
            raise SmileError(f"the view has more than {FEED_ROWS_MAX} rows: too many for HTTP; use smile.connect")
        if batch.kind == "snapshot":
            self._has_snapshot.set()
        elif texts:
            self._keep(texts)

    def _keep(self, texts: list[str]) -> None:
        for changes, more in _pieces(texts):
            self._ring.append(_Piece(changes, more))
            self._ring_rows += len(changes)
            self._next += 1
        while self._ring_rows > RING_ROWS_MAX and len(self._ring) > 1:
            self._ring_rows -= len(self._ring.popleft().changes)

    def _tell(self) -> None:
        pulse, self._pulse = self._pulse, asyncio.Event()
        pulse.set()

    # To readers

    async def events(self, last_id: str | None) -> AsyncIterator[Event]:
        """Everything after the event of this id, or a snapshot and everything after it."""
        self.readers += 1
        try:
            await self._first_word()
            at = self._place_of(last_id)
            while not self.has_ended():
                if at is None or at < self._next - len(self._ring):
                    state, at = list(self._state.values()), self._next  # as of now: it changes while this is sent
                    for event in self._snapshot(state, at):
                        yield event
                pulse = self._pulse
                while at < self._next and at >= self._next - len(self._ring):
                    piece = self._ring[at - self._next]
                    yield Event("changes", self._id(at), _text("changes", piece.changes, more=piece.more))
                    at += 1
                if at == self._next and not self.has_ended() and not await _happens(pulse):
                    yield Event("quiet", None, "")
            if self.failure is not None:  # otherwise readers simply come back, later or elsewhere
                yield Event("failed", None, to_text({"kind": "failed", "reason": self.failure}))
        finally:
            self.readers -= 1
            self.unread_since = monotonic()

    async def _first_word(self) -> None:
        """A newcomer waits for the view's own snapshot, or for the news that there will be none."""
        while not self._has_snapshot.is_set() and not self.has_ended():
            await self._pulse.wait()

    def _id(self, number: int) -> str:
        return f"{self._name}-{number}"

    def _place_of(self, last_id: str | None) -> int | None:
        name, _, number = (last_id or "").partition("-")
        if name != self._name or not number.isdecimal() or len(number) > 18:
            return None
        return int(number) + 1 if int(number) < self._next else None

    def _snapshot(self, state: list[str], at: int) -> Iterator[Event]:
        """Cut into pieces; only the last one has an id, so that whoever breaks off before it starts again."""
        for number, (changes, more) in enumerate(_pieces(state)):
            yield Event(
                "snapshot",
                None if more else self._id(at - 1),
                _text("snapshot", [with_kind("snapshot", one) for one in changes], more=more, first=number == 0),
            )

    async def close(self) -> None:
        self.is_closed = True
        self._tell()
        await self._subscription.close()
        self._task.cancel()


def _pieces(texts: list[str]) -> Iterator[tuple[list[str], bool]]:
    """At least one, even of nothing: an empty view is news."""
    for first in range(0, max(1, len(texts)), EVENT_ROWS_MAX):
        yield texts[first : first + EVENT_ROWS_MAX], first + EVENT_ROWS_MAX < len(texts)


def _text(kind: str, changes: list[str], *, more: bool, first: bool | None = None) -> str:
    begins = "" if first is None else f'"first":{"true" if first else "false"},'
    return f'{{"kind":"{kind}",{begins}"more":{"true" if more else "false"},"changes":[{",".join(changes)}]}}'


async def _happens(pulse: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(HEARTBEAT_SECONDS):
            await pulse.wait()
    except TimeoutError:
        return False
    return True


class Feeds:
    """All feeds of a gateway, by what was asked for and how."""

    def __init__(self, system: RemoteSystem) -> None:
        self._system = system
        self._feeds: dict[tuple[str, str | None], Feed] = {}
        self._being_made: dict[tuple[str, str | None], asyncio.Task[Feed]] = {}
        self._sweeper = asyncio.create_task(self._sweep_now_and_then())

    @property
    def readers(self) -> int:
        return sum(feed.readers for feed in self._feeds.values())

    async def get(self, name: str, emit: str | None) -> Feed:
        """The feed of a view, or of a declared subscription. Raises what `subscribe` raises, or Busy."""
        wanted = asked(self._system.program, name, emit)
        if not wanted.wants_snapshot:
            raise SmileError(f"`{name}` is declared `snapshot off`: over HTTP subscribe to `{wanted.plan.name}` itself")
        at = (name, wanted.mode.value)
        feed = self._feeds.get(at)
        if feed is not None and not feed.has_ended():
            feed.unread_since = monotonic()
            return feed
        making = self._being_made.get(at)
        if making is None:  # beside the others: a view whose broker is silent keeps nobody from another one
            making = self._being_made[at] = asyncio.create_task(self._make(at, emit))
            making.add_done_callback(lambda _: self._being_made.pop(at))
        return await asyncio.shield(making)

    async def _make(self, at: tuple[str, str | None], emit: str | None) -> Feed:
        await self._sweep(make_room=True)
        made = await self._system.subscribe(at[0], emit=emit, queue_rows=QUEUE_ROWS)
        self._feeds[at] = Feed(made)
        return self._feeds[at]

    async def _sweep(self, *, make_room: bool = False) -> None:
        """Close what nobody has read for long, and what has failed; for those being made also the longest unread."""
        now = monotonic()
        unread = sorted((feed.unread_since, at) for at, feed in self._feeds.items() if not feed.readers)
        too_many = max(0, len(self._feeds) + len(self._being_made) - FEEDS_MAX) if make_room else 0
        over = [at for since, at in unread if now - since > LINGER_SECONDS or self._feeds[at].has_ended()]
        gone = [self._feeds.pop(at) for at in dict.fromkeys([*over, *(at for _, at in unread[:too_many])])]
        is_full = len(self._feeds) + len(self._being_made) > FEEDS_MAX
        for feed in gone:
            await feed.close()
        if make_room and is_full:
            raise Busy(f"{FEEDS_MAX} views are being read already")

    async def _sweep_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(LINGER_SECONDS / 4)
            await self._sweep()

    async def close(self) -> None:
        self._sweeper.cancel()
        await self.end()

    async def end(self) -> None:
        """All readers come back, or go elsewhere. One that cannot be closed in order keeps no other open."""
        feeds, self._feeds = list(self._feeds.values()), {}
        for outcome in await asyncio.gather(*(feed.close() for feed in feeds), return_exceptions=True):
            if isinstance(outcome, Exception):
                log.error("a feed could not be closed: %s", outcome)
