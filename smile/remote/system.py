"""A deployment behind a connection: the methods of the system in one process, over brokers.

What is published is on disk in a broker when `publish` returns. Reading a view waits until it includes what this system
has published, and what the brokers have acknowledged to others as far as they answer. Callbacks run in a thread of
their own. Everything may be called from any thread; no lock is held while a broker is waited for.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from time import monotonic, sleep
from types import TracebackType
from typing import Any

from compiler.plan.build import ProgramPlan, ViewPlan
from runtime.batch import Batch
from runtime.broker.tuning import ROWS_MAX
from runtime.client.connection import Connection
from runtime.client.errors import RequestRefused
from runtime.client.standing import Standing
from runtime.plan import Emit, Plan
from runtime.protocol.coverage import NO_TICK, TICK_MAX
from smile.deploy.bundles import components_of
from smile.deploy.deployment import Deployment
from smile.digests import component_digests
from smile.errors import Closed, PublishUncertain, SmileError, TimedOut, ViewFailed
from smile.program import Program
from smile.reading import Inspected, Reading, asked
from smile.remote.callbacks import Callbacks
from smile.remote.open_view import POLL_FIRST, OpenView, Target, tells_events
from smile.remote.publisher import Lane, Once
from smile.remote.source import LeafSource
from smile.remote.subscription import RemoteSubscription
from smile.remote.token import ResumeToken, read_token
from smile.remote.translation import check_process, check_thread, public_errors
from smile.remote.watch import Watch
from smile.streams import StreamInput
from smile.subscription import QUEUE_ROWS, Change, Subscription
from smile.views import ViewReader

STANDING_SECONDS = 2.0
"""So long brokers are waited for that are asked how far they are."""

STATUS_SECONDS = 5.0

IDLE_VIEWS_MAX = 8
"""Views that stay open after they were read, so that the next reading is fast; the longest unused are closed."""

IDLE_SECONDS = 60.0
"""So long at most: an open view takes memory, and all that changes in it."""


class RemoteSystem(Reading):
    """Made by `smile.connect`. `timeout` bounds every wait for a broker, in seconds."""

    def __init__(self, connection: Connection, deployment: Deployment, program: Program, timeout: float) -> None:
        super().__init__(program)
        self.deployment = deployment
        self._connection = connection
        self._timeout = timeout
        self._plan: ProgramPlan = replace(program.plan, components=components_of(deployment, program))
        self._lineages = Plan(tuple(self._plan.components.values())).lineages
        self._digests = component_digests(deployment, program)
        declared = program.checked.program.streams
        self._lanes = {
            name: Lane(StreamInput(stream, program.plan.streams[name]), connection.publish, timeout)
            for name, stream in declared.items()
        }
        self._lock = threading.Lock()
        self._opening = threading.Lock()  # one view after the other
        self._is_closed = False
        self._views: dict[tuple[str, Emit, bool], OpenView] = {}  # (view, emit, coalesced), the longest unused first
        self._private: list[OpenView] = []  # of one subscription each
        self._callbacks = Callbacks()
        self._watch = Watch(self._look_around)

    # Publishing

    def publish(self, stream: str, row: Mapping[str, object], *, once: Once | None = None) -> int:
        """Log one event; its tick. Raises PublishError if a value or a rule does not allow it.

        It is on disk when this returns. A broker that is down is waited for, and the row sent again, logged once.
        `once=(producer, number)` is for rows that the caller may repeat, in another process too: what has the same name
        is logged once and gets the ticks of the first. The newest 1,024 of a producer are remembered, so numbers should
        rise.
        """
        tick: int = self.outcome(self.publish_nowait(stream, row, once=once))
        return tick

    def publish_many(self, stream: str, rows: object, *, once: Once | None = None) -> Sequence[int]:
        """Log several events, all or none; their ticks, in order. `rows` as for the system in one process."""
        ticks: Sequence[int] = self.outcome(self.publish_many_nowait(stream, rows, once=once))
        return ticks

    def publish_nowait(self, stream: str, row: Mapping[str, object], *, once: Once | None = None) -> Future[Any]:
        """Send without waiting for the disk: a future of the tick. Calls are logged in the order in which they are
        made. Values are checked here and now; waits only while too many rows wait to be sent."""
        lane = self._lane(stream)
        return lane.submit(lane.stream.encode_row(row), 1, single=True, once=once)

    def publish_many_nowait(self, stream: str, rows: object, *, once: Once | None = None) -> Future[Any]:
        """The same for several events: a future of their ticks."""
        lane = self._lane(stream)
        columns, number = lane.stream.encode_many(rows)
        if not number:
            nothing: Future[Any] = Future()
            nothing.set_result(())
            return nothing
        if number > ROWS_MAX:
            raise SmileError(f"`{stream}`: {number} rows in one call, which are all in or all out; at most {ROWS_MAX}")
        return lane.submit(columns, number, single=False, once=once)

    def has_room(self, stream: str) -> bool:
        """Would publishing without waiting really not wait?"""
        return self._lane(stream).has_room(1)

    def stream_input(self, stream: str) -> StreamInput:
        """What this stream takes."""
        return self._lane(stream).stream

    def _lane(self, stream: str) -> Lane:
        self._check_open()
        lane = self._lanes.get(stream)
        if lane is None:
            raise self.program.unknown("stream", stream, self._lanes)
        return lane

    def outcome(self, future: Future[Any]) -> Any:
        """What a future of `publish_nowait` gives; waits as long as `publish` would, and raises what it would."""
        if not future.done():
            check_thread(self._connection)
        try:
            return future.result(self._timeout)
        except TimeoutError:
            return self._too_late(future)

    async def outcome_async(self, future: Future[Any]) -> Any:
        """What a future of `publish_nowait` gives, for an event loop; waits as long as `publish` would."""
        try:
            async with asyncio.timeout(self._timeout):
                return await asyncio.shield(asyncio.wrap_future(future))
        except TimeoutError:
            return self._too_late(future)

    def _too_late(self, future: Future[Any]) -> Any:
        if future.done():  # it came just now, or the error is the publish's own
            return future.result()
        if future.cancel():
            raise TimedOut(f"nothing was sent within {self._timeout:g} s: no broker takes it") from None
        raise PublishUncertain(
            f"not acknowledged within {self._timeout:g} s: the rows may be logged or not, and are sent again until "
            "the connection is closed"
        ) from None

    # Reading

    def rows_up_to(self, view: str, rows_max: int) -> list[dict[str, object]]:
        """As `rows`. Raises TooManyRows as soon as there are more, without waiting for all of them."""
        reader, batch = self._read(view, rows_max)
        return reader.rows(batch)

    def rows_and_silent(self, view: str) -> tuple[list[dict[str, object]], list[str]]:
        """As `rows`; and the brokers below the view that did not answer: what they acknowledged may be missing."""
        reader = self._reader(view)
        batch, silent = self._read_as_known(view)
        return reader.rows(batch), silent

    def _read(self, view: str, rows_max: int | None = None) -> tuple[ViewReader, Batch]:
        return self._reader(view), self._read_as_known(view, rows_max)[0]

    def _read_as_known(self, view: str, rows_max: int | None = None) -> tuple[Batch, list[str]]:
        with self._using(self.program.relation(view), Emit.CHANGES) as opened:
            failure = self._catch_up(opened, rows_max)
            if failure is not None:
                raise failure
            return self._reader(view).ordered(opened.rows()), sorted(opened.silent)

    def inspect(self, view: str) -> Inspected:
        with self._using(self.program.relation(view), Emit.BOUNDS) as opened:
            failure = self._catch_up(opened)
            if failure is not None:  # its last true state will do
                opened.wait_for({}, monotonic() + self._timeout, lambda: None)
            told, in_floor = opened.source.run(lambda leaf: (leaf.snapshot(), leaf.in_floor))
            return Inspected(told, opened.source.streams, in_floor, failure)

    def known_up_to(self, relation: str) -> int:
        """No event of its streams with a tick up to this one can come any more. Raises TimedOut."""
        needed = self._plan.needed_for([self.program.relation(relation).component])
        streams = [component.name for component in needed if component.name in self._lanes]
        standing = self._standing(streams)
        silent = [name for name in streams if name not in standing.coverages]
        if silent:
            raise TimedOut(f"the brokers of {', '.join(silent)} do not answer: nobody knows what they have logged")
        return min((standing.coverages[name].horizon() for name in streams), default=TICK_MAX)

    def _catch_up(self, opened: OpenView, rows_max: int | None = None) -> ViewFailed | None:
        """Wait until the view includes what was published here, and what others had acknowledged by now as far as the
        brokers of its streams answer. A view that has stopped is not waited for: the failure is returned."""
        end = monotonic() + self._timeout
        needed = [component.name for component in self._plan.needed_for([opened.plan.component])]
        standing = self._standing(needed)
        opened.silent = standing.silent
        failure = self._failure_in(standing, opened.plan)
        if failure is None:
            try:
                opened.wait_for(self._target(needed, standing), end, lambda: self._look(opened, needed), rows_max)
            except ViewFailed as found:
                return found
        return failure

    def _look(self, opened: OpenView, needed: list[str]) -> None:
        if opened.source.failure is not None:
            raise opened.source.failure
        failure = self._failure_in(self._standing(needed), opened.plan)
        if failure is not None:
            raise failure

    def _standing(self, components: list[str]) -> Standing:
        """Of brokers that answer soon; one that is down must not keep the others' views from being read."""
        check_thread(self._connection)
        with public_errors():
            return self._connection.coverages(components, min(self._timeout, STANDING_SECONDS))

    def _target(self, needed: list[str], standing: Standing) -> Target:
        own = {
            name: self._lanes[name].last_tick if name in self._lanes else NO_TICK  # tables have no lane
            for name in needed
            if self._plan.components[name].is_stream
        }
        told = {name: coverage[0].horizon() for name, coverage in standing.coverages.items() if name in own}
        return {name: max(tick, told.get(name, tick)) for name, tick in own.items()}

    def _failure_in(self, standing: Standing, plan: ViewPlan) -> ViewFailed | None:
        for component in self._plan.needed_for([plan.component]):
            found = standing.failures.get(component.name)
            if found is not None:
                return self._view_failed(plan.name, component.name, *found)
        return None

    def settle(self) -> None:
        """Returns when everything published here so far is reflected in every view and every callback has been told.

        Views that have stopped are not waited for. Cannot be called from a callback.
        """
        end = monotonic() + self._timeout
        self._check_may_wait()
        for lane in self._lanes.values():
            lane.settle(end)
        self._settle_brokers(end)
        for opened in self._open_views():
            self._catch_up(opened)
        due: list[Subscription] = [one for one in self._subscriptions() if one.has_callback]
        self._callbacks.flush(due, end)

    def _settle_brokers(self, end: float) -> None:
        """Wait for the views that nobody here has open."""
        target = {name: lane.last_tick for name, lane in self._lanes.items()}
        views = {plan.component for plan in self.program.plan.views.values()}
        plan = self._plan
        while views:
            standing = self._standing([component.name for component in plan.needed_for(views)])
            views = {name for name in views if not self._is_settled(name, standing, target)}
            sleep(POLL_FIRST if views else 0.0)
            if views and monotonic() >= end:
                raise TimedOut(f"views have not caught up in time: {', '.join(sorted(views))}")

    def _is_settled(self, component: str, standing: Standing, target: Target) -> bool:
        coverage = standing.coverages.get(component)
        if any(one.name in standing.failures for one in self._plan.needed_for([component])):
            return True
        lineages = () if coverage is None else zip(self._lineages[component], coverage, strict=True)
        return coverage is not None and all(one.horizon() >= target.get(stream, -1) for stream, one in lineages)

    # Subscribing

    def subscribe(
        self,
        name: str,
        callback: Callable[[Change], object] | None = None,
        *,
        emit: str | None = None,
        timeout: float | None = None,
        queue_rows: int = QUEUE_ROWS,
        coalesce: bool = False,
        resume: bytes | None = None,
    ) -> RemoteSubscription:
        """A snapshot of a view, then its changes; or, with `resume=subscription.token()` of an earlier one, only what
        changed since then. Otherwise as for the system in one process; callbacks run in a thread of their own.
        """
        self._check_open()
        wanted = asked(self.program, name, emit)
        digest = self._digests[wanted.plan.component]
        token = None if resume is None else read_token(resume, wanted.plan, wanted.mode, digest)
        subscription = RemoteSubscription(
            name,
            self._reader(wanted.plan.name),
            wanted.mode,
            wanted.key_width,
            self._left,
            take_token=self._token,
            before_sleep=self._connection.before_sleep,
            check_process=partial(check_process, self._connection),
            callback=callback,
            timeout=timeout,
            queue_rows=queue_rows,
            every_us=wanted.every_us,
        )
        with self._using(wanted.plan, wanted.mode, coalesce=coalesce, token=token, subscribing=True) as opened:
            if token is None:
                failure = self._catch_up(opened)
                if failure is not None:  # its last true state will do
                    opened.wait_for({}, monotonic() + self._timeout, lambda: None)
                opened.join(subscription, wants_snapshot=wanted.wants_snapshot)
            else:
                failure = None  # the failure watch tells it, after what was unread
                opened.resume(subscription, token.unread)
            opened.users += 1
        if callback is not None:
            self._callbacks.add(subscription)
        if failure is not None:
            subscription.fail(failure)
        if self._is_closed:  # meanwhile: it was not among those that were closed
            subscription.close()
        self._watch.start()
        return subscription

    def _token(self, subscription: RemoteSubscription) -> bytes:
        for opened in self._open_views():
            if subscription in opened.hub.subscriptions:
                return opened.token(subscription)
        raise Closed("the subscription is closed: take its token before")

    def _left(self, subscription: Subscription) -> None:
        for opened in self._open_views():
            if subscription in opened.hub.subscriptions:
                opened.leave(subscription)
                self._done_with(opened)

    # Open views

    def _opened(self, plan: ViewPlan, mode: Emit, *, coalesce: bool, token: ResumeToken | None = None) -> OpenView:
        digest = self._digests[plan.component]
        kept, held = (None, None) if token is None else (token.checkpoint, token.held)
        source = LeafSource(self._connection, self._plan, plan, digest, kept, held)
        return OpenView(plan, mode, digest, source, self._callbacks.add, coalesce=coalesce)

    @contextmanager
    def _using(
        self,
        plan: ViewPlan,
        mode: Emit,
        *,
        coalesce: bool = False,
        token: ResumeToken | None = None,
        subscribing: bool = False,
    ) -> Iterator[OpenView]:
        """The shared open view; it stays open for the next one who asks, unless many others do. Whoever resumes has a
        view of its own, and so has a subscriber to events: its leaf forgets what it has told."""
        is_private = token is not None or (subscribing and tells_events(plan, mode))
        at = (plan.name, mode, coalesce)
        self._check_may_wait()
        with self._opening:
            with self._lock:
                opened = None if is_private else self._views.pop(at, None)
                if opened is not None:
                    opened.users += 1
                    self._views[at] = opened
            if opened is None:  # without that lock: the thread that is waited for may want it
                opened = self._opened(plan, mode, coalesce=coalesce, token=token)
                opened.users += 1
                with self._lock:
                    if is_private:
                        self._private.append(opened)
                    else:
                        self._views[at] = opened
        try:
            yield opened
        finally:
            self._done_with(opened)

    def _done_with(self, opened: OpenView) -> None:
        with self._lock:
            opened.users -= 1
            opened.idle_since = monotonic()
            idle = [at for at, one in self._views.items() if not one.users]
            # Events that nobody reads would be collected for ever.
            over = [at for at in idle if self._views[at].plan.side.layout.relation.is_event]
            idle = [at for at in idle if at not in over]
            ended = [self._views.pop(at) for at in (*over, *idle[: max(0, len(idle) - IDLE_VIEWS_MAX)])]
            ended += [one for one in self._private if not one.users]
            self._private = [one for one in self._private if one.users]
        for one in ended:
            one.close()
        if idle:
            self._watch.start()

    def _close_idle(self) -> None:
        with self._lock:
            end = monotonic() - IDLE_SECONDS
            over = [at for at, one in self._views.items() if not one.users and one.idle_since <= end]
            ended = [self._views.pop(at) for at in over]
        for one in ended:
            one.close()

    def _open_views(self) -> list[OpenView]:
        with self._lock:
            return [*self._views.values(), *self._private]

    def _subscriptions(self) -> list[Subscription]:
        return [subscription for opened in self._open_views() for subscription in list(opened.hub.subscriptions)]

    def _look_around(self) -> None:
        """Called once a second."""
        if self._connection.is_closed and not self._is_closed:
            for subscription in self._subscriptions():
                subscription.fail(SmileError("the connection has broken, its log says why: connect anew"))
            return
        self._close_idle()
        self._look_for_failures()

    def _look_for_failures(self) -> None:
        """A view that has stopped says nothing, so somebody has to ask. Streams promise silence
        more often than that, so whatever is well has a higher horizon each time, and need not be asked about."""
        views = [opened for opened in self._open_views() if opened.hub.subscriptions and opened.stands_still()]
        if not views:
            return
        needed = self._plan.needed_for({opened.plan.component for opened in views})
        standing = self._standing([component.name for component in needed])
        for opened in views:
            failure: SmileError | None = self._failure_in(standing, opened.plan)
            failure = failure or opened.source.failure
            for subscription in list(opened.hub.subscriptions) if failure is not None else ():
                assert failure is not None
                subscription.fail(failure)

    # The rest

    @property
    def connection(self) -> Connection:
        """For those who look after brokers: deploy, stop, inject faults."""
        return self._connection

    def status(self) -> dict[str, dict[str, Any]]:
        """What each broker says about itself: components, horizons, gaps, counters; `error` if it does not answer."""
        self._check_may_wait()
        with public_errors():
            return self._connection.status(min(self._timeout, STATUS_SECONDS))

    def own_status(self) -> dict[str, Any]:
        """What the one broker says to which we connected; no other is asked. Raises TimedOut."""
        self._check_may_wait()
        with public_errors():
            try:
                return self._connection.own_status(min(self._timeout, STATUS_SECONDS))
            except (TimeoutError, RequestRefused) as error:
                raise TimedOut(str(error) or "the broker does not answer") from error

    def _check_open(self) -> None:
        check_process(self._connection)
        if self._is_closed:
            raise Closed("the connection is closed")

    def _check_may_wait(self) -> None:
        self._check_open()
        check_thread(self._connection)

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        """Subscriptions end. Everything acknowledged is in the brokers' logs; what was not may be or not."""
        if self._connection.is_foreign:
            return  # it is the other process's
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        for lane in self._lanes.values():
            lane.close()
        for subscription in self._subscriptions():
            subscription.close()
        self._watch.close()
        self._callbacks.close()
        self._connection.close()

    def __enter__(self) -> RemoteSystem:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
