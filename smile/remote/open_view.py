"""A view that is open: one leaf, the hub it feeds, and how far it has to be before its rows may be shown.

Shared by everybody who reads or subscribes to the same view in the same mode; a resumed subscription has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from time import monotonic, sleep

from compiler.plan.build import ViewPlan
from runtime.batch import Batch
from runtime.plan import Emit
from runtime.protocol.coverage import NO_TICK
from runtime.protocol.leaf import Leaf
from smile.delivery import Hub, make_hub, needs_leaf
from smile.errors import Closed, TimedOut, TooManyRows
from smile.remote.source import LeafSource
from smile.remote.subscription import RemoteSubscription
from smile.remote.token import ResumeToken, held_rows, write_token
from smile.subscription import Delivery, Subscription

POLL_FIRST = 0.0005
POLL_MAX = 0.02
"""Seconds between two looks at a leaf that is not there yet; the time doubles from the first to the last."""

Target = Mapping[str, int]
"""For each stream the tick up to which a leaf must have heard of it."""


def tells_events(plan: ViewPlan, mode: Emit) -> bool:
    """Rows that are told once and never change: then the leaf need not keep them."""
    return plan.side.layout.relation.is_event and not needs_leaf(plan, mode)


def _has_more_rows(leaf: Leaf, rows_max: int) -> bool:
    rows = leaf.operator.rows
    return len(rows) > rows_max and len(rows.visible_slots()) > rows_max  # the first is fast, and counts tombstones


class OpenView:
    """`users` counts subscriptions and readings under way; an open view without any may be closed."""

    def __init__(
        self,
        plan: ViewPlan,
        mode: Emit,
        digest: str,
        source: LeafSource,
        due: Callable[[Subscription], None],
        *,
        coalesce: bool = False,
    ) -> None:
        self.plan = plan
        self.mode = mode
        self.users = 0
        self.idle_since = 0.0
        self.silent: frozenset[str] = frozenset()
        """Brokers that did not say, when it was last read, what its streams had by then."""
        self._seen_horizon = NO_TICK
        self._digest = digest
        self.source = source
        self.hub: Hub = make_hub(source, plan, mode, due, coalesce=coalesce)

    # Waiting

    def wait_for(self, target: Target, end: float, look: Callable[[], object], rows_max: int | None = None) -> None:
        """Returns when the leaf has heard of everything in the target. `look` is called now and then, and may raise.
        TooManyRows as soon as it has more than `rows_max`."""
        pause, next_look = POLL_FIRST, monotonic() + 0.25
        while True:
            missing = self.source.run(lambda leaf: self._missing(leaf, target))
            if rows_max is not None and self.source.run(lambda leaf: _has_more_rows(leaf, rows_max)):
                raise TooManyRows(f"`{self.plan.name}` has more than {rows_max} rows")
            if not missing:
                return
            now = monotonic()
            if now >= end:
                names = ", ".join(sorted(missing))
                raise TimedOut(f"`{self.plan.name}` has not caught up with {names} in time")
            if now >= next_look:
                look()
                next_look = now + 0.25
            sleep(min(pause, max(0.0, end - now)))
            pause = min(2 * pause, POLL_MAX)

    def _missing(self, leaf: Leaf, target: Target) -> set[str]:
        lineages = zip(self.source.streams, leaf.coverage(), strict=True)
        # A leaf that nobody has fed yet knows nothing: its emptiness must not be shown as that of the view.
        return {stream for stream, coverage in lineages if coverage.horizon() < max(0, target.get(stream, 0))}

    def stands_still(self) -> bool:
        """Is its horizon where it was when this was last asked, or is it not fed at all?"""
        before, self._seen_horizon = self._seen_horizon, self.source.run(lambda leaf: leaf.horizon())
        return self._seen_horizon <= before or self.source.failure is not None

    # Reading

    def rows(self) -> Batch:
        return self.source.run(lambda leaf: leaf.operator.rows.select(leaf.operator.rows.visible_slots()))

    # Subscribing

    def join(self, subscription: RemoteSubscription, *, wants_snapshot: bool) -> None:
        """In one step: what is there now, and every change from now on."""

        def now(_: Leaf) -> None:
            if wants_snapshot:
                subscription.put(self.hub.snapshot())
            self._begin(subscription)

        self.source.run(now)

    def resume(self, subscription: RemoteSubscription, unread: Delivery | None) -> None:
        """Go on where a token was taken."""

        def now(_: Leaf) -> None:
            if unread is not None:
                subscription.put(unread)
            self._begin(subscription)
            self.source.begin()

        self.source.run(now)

    def _begin(self, subscription: RemoteSubscription) -> None:
        """What is there is known to it. A view that tells events is its own: nobody will ask for them again."""
        self.hub.subscriptions.append(subscription)
        if tells_events(self.plan, self.mode):
            self.source.forget_told()

    def leave(self, subscription: Subscription) -> None:
        """Where the telling is done: a list that somebody goes through must not change meanwhile."""
        with suppress(Closed):  # then nothing is told any more
            self.source.run(lambda _: self.hub.subscriptions.remove(subscription))

    def token(self, subscription: RemoteSubscription) -> bytes:
        def now(leaf: Leaf) -> ResumeToken:
            kept = self.source.without_rows(leaf) if tells_events(self.plan, self.mode) else leaf.checkpoint()
            return ResumeToken(kept, subscription.unread(), held_rows(leaf))

        token = self.source.run(now)
        return write_token(token, self.plan, self.mode, self._digest)

    def close(self) -> None:
        self.hub.close()
