"""A client's connection to the brokers of one deployment: one thread that does nearly all I/O (`loop.py`).

Callers, in any thread, hand things over and are called back; callbacks of leaves and of publishes run in the I/O thread
and must not wait there. A publish is sent by its caller if nobody else uses the sockets just then. Brokers may restart,
move or vanish for a while: uplinks attach again, leaves ask for what they missed, publishes are repeated. Nobody is
told of that except by the delay.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from functools import partial
from itertools import count
from typing import Any, TypeVar

import zmq

from runtime.broker.host import Host
from runtime.broker.hosted import Told
from runtime.broker.timers import Clock
from runtime.broker.uplink import Uplink
from runtime.client.errors import ConnectFailed, ConnectionClosed, PublishRefused, RequestRefused
from runtime.client.lanes import Columns, Done, Entry, Lane, Ticks, Unsendable, both
from runtime.client.leaves import LeafHandle, Leaves
from runtime.client.loop import Loop
from runtime.client.requests import Make, Request, Requests
from runtime.client.standing import Standing
from runtime.plan import Component, Plan
from runtime.protocol.checkpoint import Checkpoint
from runtime.protocol.messages import Message
from runtime.security.endpoints import check_connecting
from runtime.security.keys import Keys
from runtime.wire import control
from runtime.wire.control import ControlRecord

log = logging.getLogger("smile.client")

PUBLISHES_MAX = 1_000
"""Publishes under way at once; then `publish` waits (and refuses inside the I/O thread). Below the number of publishes
of one producer that a stream remembers, so that a repeat is always recognised."""

POLL_US_MAX = 1_000_000
REQUEST_TIMEOUT_S = 10.0
NO_DEPLOYMENT = "deploy a program first: `smile deploy`"

T = TypeVar("T")


class Connection:
    """`address` is any broker of the deployment. `deployment` is what it described: plain data."""

    def __init__(
        self,
        address: str,
        *,
        keys: Keys | None = None,
        name: str = "",
        request_timeout: float = REQUEST_TIMEOUT_S,
        needs_deployment: bool = True,
    ) -> None:
        check_connecting(address, has_keys=keys is not None)
        self.address = address
        self.deployment: Mapping[str, Any] = {}
        self.leaves = Leaves()
        self._timeout = request_timeout
        self._keys = keys
        self._name = name
        self._incarnation = secrets.randbits(62)
        self._producer = secrets.token_hex(12)
        self._clock = Clock.system()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._uplinks: dict[str, Uplink] = {}  # by address
        self._lanes: dict[str, tuple[Lane, Uplink]] = {}  # by stream
        self._quiet_us = 0  # nothing is due before
        self._sequences = count()
        self._guard = threading.RLock()  # a handler of signals may publish, too
        self._room = threading.Condition(self._guard)
        self._under_way = 0
        self._requests = Requests()
        self._loop = Loop(self._turn, self._end)
        epochs = count(1)
        self.leaves.host = Host(self.leaves, lambda: next(epochs), clock=self._clock)
        self._loop.start()
        try:
            self._greet(needs_deployment=needs_deployment)
        except BaseException:
            self.close()
            raise

    def _greet(self, *, needs_deployment: bool) -> None:
        shown = self.address.partition("?")[0]
        try:
            described = self._ask(self.address, control.Describe)
        except TimeoutError:
            raise ConnectFailed(
                f"no answer from {shown} within {self._timeout:g} s", "is a broker running there? `smile status`"
            ) from None
        except zmq.ZMQError as error:
            raise ConnectFailed(f"{error.strerror}", "an address is like tcp://HOST:PORT") from error
        except RequestRefused as refused:
            if refused.code == "no-deployment" and not needs_deployment:
                return
            remedy = {
                "no-deployment": NO_DEPLOYMENT,
                "wire-version": "use the same version of smile as the brokers",
            }.get(refused.code, "ask who runs the broker for rights")
            raise ConnectFailed(refused.reason, remedy) from refused
        assert isinstance(described, control.Described)
        self.deployment = described.deployment
        why_not = self.deployment.get("not_run")
        if why_not is not None and needs_deployment:
            raise ConnectFailed(str(why_not), NO_DEPLOYMENT)

    # Publishing

    def publish(
        self,
        stream: str,
        columns: Columns,
        done: Done,
        producer: tuple[str, int] | None = None,
        *,
        chain: int = 0,
        is_joint: bool = False,
    ) -> None:
        """`done` is called once, in the I/O thread: with the ticks when the rows are durable, or with PublishRefused if
        a broker says no. Repeated until one answers.

        `producer`: (name, number) under which the rows are logged once, whoever repeats them and whenever; otherwise
        this connection takes care of repeats, and publishes to one stream keep their order. `chain`, `is_joint`: as in
        `lanes.Entry`.
        """
        if stream not in self.deployment.get("placement", ()):
            raise PublishRefused("unknown-stream", f"the deployment has no stream `{stream}`")
        entry: Entry | None = None

        def here() -> bool:
            nonlocal entry
            entry = self._entry(stream, columns, done, producer, chain, is_joint)
            if entry is None:
                return False
            uplink = self._begin_publish(entry)
            return uplink.has_input() or self._loop.has_work or entry.due_us < self._loop.wakes_us

        if self._loop.now(here) and entry is not None:
            return
        with self._guard:
            entry = self._entry(stream, columns, done, producer, chain, is_joint)
            while entry is None:
                self._await_room()
                entry = self._entry(stream, columns, done, producer, chain, is_joint)
            # In the order of their numbers: whoever finds work there leaves his own behind it.
            self._loop.add(partial(self._begin_publish, entry))
        self._loop.wake()

    def _entry(
        self,
        stream: str,
        columns: Columns,
        done: Done,
        producer: tuple[str, int] | None,
        chain: int,
        is_joint: bool,
    ) -> Entry | None:
        """None if too many are under way."""
        with self._guard:
            if self._under_way >= PUBLISHES_MAX:
                return None
            self._under_way += 1
            if producer is None:
                return Entry(stream, self._producer, next(self._sequences), columns, True, done, chain, is_joint)
            # Answers name the producer only, so a producer is one of one stream.
            return Entry(stream, f"{producer[0]} to {stream}", producer[1], columns, False, done)

    def _await_room(self) -> None:
        limit = time.monotonic() + self._timeout
        while self._under_way >= PUBLISHES_MAX and not self._loop.is_closed:
            left = limit - time.monotonic()
            if left <= 0 or self._loop.is_here:
                raise PublishRefused("busy", f"{PUBLISHES_MAX} publishes wait for an answer")
            self._room.wait(left)
        if self._loop.is_closed:
            raise ConnectionClosed("the connection is closed")

    def _begin_publish(self, entry: Entry) -> Uplink:
        """Of the broker that has the stream."""
        found = self._lanes.get(entry.stream)
        if found is None:
            home = self._uplink(self.deployment["brokers"][self.deployment["placement"][entry.stream]])
            found = self._lanes[entry.stream] = Lane(home.send_record_if_welcome), home
        lane, uplink = found
        if lane.is_broken(entry):
            self._refuse(entry, lane.broken(entry))
            return uplink
        try:
            first = lane.add(entry, self._clock.steady_us())
            if first is not entry:
                first.done = both(first.done, partial(self._finish, entry))
        except Exception as error:  # noqa: BLE001  a message that no broker would take, for one: the caller's to know
            for one, why in lane.give_up(entry, error):
                self._refuse(one, why)
        else:
            self._quiet_us = min(self._quiet_us, entry.due_us)
        return uplink

    def _refuse(self, entry: Entry, error: BaseException) -> None:
        """In the I/O thread, as all answers: the caller may be in the middle of something."""
        if self._loop.is_here:
            self._finish(entry, None, error)
        else:
            self._loop.add(partial(self._finish, entry, None, error))

    def _finish(self, entry: Entry, ticks: Ticks | None, error: BaseException | None) -> None:
        with self._guard:
            self._under_way -= 1
            if self._under_way == PUBLISHES_MAX - 1:
                self._room.notify_all()
        try:
            entry.done(ticks, error)
        except Exception:
            log.exception("an answer to a publish could not be passed on")

    # Leaves

    def open_leaf(
        self,
        plan: Plan,
        leaf: Component,
        told: Callable[[Told], None],
        *,
        watch: bool,
        digest: str,
        kept: Checkpoint | None = None,
    ) -> LeafHandle:
        """Run a leaf of this plan. `told` is called in the I/O thread: a first Deliver with all rows (unless `kept` has
        them), then Delivers, or with `watch` every change as a Batch. `digest` is that of the component it reads."""
        (edge,) = leaf.in_edges
        home = self.deployment["placement"][edge.sender]

        def begin() -> LeafHandle:
            uplink = self._uplink(self.deployment["brokers"][home])
            return self.leaves.open(self, uplink, plan, leaf, told, watch=watch, digest=digest, kept=kept)

        return self.call(begin)

    # Asking

    def coverages(self, components: Iterable[str], timeout: float | None = None) -> Standing:
        """Where these components stand now, asked of all brokers that have one of them, at the same time."""
        placement, brokers = self.deployment["placement"], self.deployment["brokers"]
        wanted: dict[str, list[str]] = {}
        for component in components:
            wanted.setdefault(placement[component], []).append(component)
        asked = {
            broker: self._request(brokers[broker], partial(_coverage_of, tuple(names)), timeout)
            for broker, names in wanted.items()
        }
        standing = Standing({}, {}, frozenset())
        silent = set()
        for broker, future in asked.items():
            try:
                answer = future.result()
            except (TimeoutError, RequestRefused):
                silent.add(broker)
                continue
            assert isinstance(answer, control.Coverages)
            standing.coverages.update(answer.coverages)
            standing.failures.update(answer.failures)
        return Standing(standing.coverages, standing.failures, frozenset(silent))

    def status(self, timeout: float | None = None) -> dict[str, dict[str, Any]]:
        """What every broker says about itself; {"error": ...} for those that do not answer."""
        asked = {
            broker: self._request(address, control.Status, timeout)
            for broker, address in self.deployment.get("brokers", {"": self.address}).items()
        }
        found: dict[str, dict[str, Any]] = {}
        for broker, future in asked.items():
            try:
                answer = future.result()
            except (TimeoutError, RequestRefused) as error:
                found[broker] = {"error": str(error) or "no answer"}
            else:
                assert isinstance(answer, control.StatusReply)
                found[broker] = dict(answer.body)
        return found

    def own_status(self, timeout: float | None = None) -> dict[str, Any]:
        """What the broker at `address` says about itself. Raises RequestRefused, TimeoutError."""
        answer = self._request(self.address, control.Status, timeout).result()
        assert isinstance(answer, control.StatusReply)
        return dict(answer.body)

    def deploy(self, deployment: Mapping[str, Any], address: str | None = None) -> None:
        """Give a deployment to the broker at this address. Raises RequestRefused, TimeoutError."""
        self._ask(address or self.address, lambda number: control.Deploy(number, deployment))

    def check(self, deployment: Mapping[str, Any], address: str | None = None) -> None:
        """Would the broker at this address run it? Raises RequestRefused if not; nothing changes."""
        self._ask(address or self.address, lambda number: control.Check(number, deployment))

    def ask(self, broker: str, make: Make) -> ControlRecord:
        """One request to a broker of the deployment, and its answer. Raises RequestRefused, TimeoutError."""
        return self._ask(self.deployment["brokers"][broker], make)

    def fault(self, broker: str, kind: str, arguments: Mapping[str, Any]) -> None:
        self.ask(broker, lambda number: control.Fault(number, kind, arguments))

    def stop(self, broker: str) -> None:
        """In order: it writes a checkpoint first."""
        self.ask(broker, control.Stop)

    def _ask(self, address: str, make: Make) -> ControlRecord:
        return self._request(address, make, repeats=make is control.Describe).result()

    def _request(
        self, address: str, make: Make, timeout: float | None = None, *, repeats: bool = True
    ) -> Future[ControlRecord]:
        deadline = time.monotonic() + (self._timeout if timeout is None else timeout)
        made: Future[ControlRecord] = Future()

        def begin() -> None:
            try:
                self._requests.begin(Request(self._uplink(address), make, deadline, repeats, made))
            except Exception as error:  # noqa: BLE001  whoever waits for the answer must not wait for ever
                made.set_exception(error)

        self.post(begin)
        return made

    # The I/O thread

    @property
    def is_here(self) -> bool:
        """Is this the I/O thread? Nothing may be waited for in it."""
        return self._loop.is_here

    def post(self, work: Callable[[], object]) -> None:
        """Do this in the I/O thread, soon."""
        if self._loop.is_here:
            self._quiet_us = 0
            work()
            return
        self._loop.add(work)
        self._loop.wake()

    def before_sleep(self, work: Callable[[], object]) -> None:
        """Do this now, or in the I/O thread just before it sleeps: for waking somebody who could not run before."""
        if self._loop.is_here:
            self._loop.before_sleep(work)
        else:
            work()

    def later(self, work: Callable[[], object]) -> None:
        """From the I/O thread: do this before it reads anything more, but not in the middle of what it does now."""
        self._loop.later(work)

    def call(self, work: Callable[[], T], timeout: float | None = None) -> T:
        """Do this in the I/O thread and wait for what it gives."""
        if self._loop.is_here:
            return work()
        made: Future[T] = Future()

        def do() -> None:
            try:
                made.set_result(work())
            except BaseException as error:  # noqa: BLE001  the caller's to see
                made.set_exception(error)

        self.post(do)
        return made.result(self._timeout if timeout is None else timeout)

    def _uplink(self, address: str) -> Uplink:
        found = self._uplinks.get(address)
        if found is None:
            check_connecting(address, has_keys=self._keys is not None)
            found = Uplink(
                self._context,
                address,
                name=self._name,
                kind="client",
                incarnation=self._incarnation,
                keys=self._keys,
                steady_us=self._clock.steady_us,
                listener=self,
            )
            self._uplinks[address] = found
            self._loop.watch(found.descriptors)
        return found

    def _turn(self, ready: Collection[int], *, has_worked: bool) -> int:
        """Everything is read, and leaves, uplinks, lanes and requests have done what is due."""
        uplinks = tuple(self._uplinks.values())
        for uplink in uplinks:
            uplink.read(ready)
        now_us = self._clock.steady_us()
        patience_us = self.leaves.work(now_us)
        for uplink in uplinks:
            if uplink.is_due:
                uplink.is_due, has_worked = False, True
        if has_worked or now_us >= self._quiet_us:
            self._quiet_us = now_us + self._see_to_what_is_due(now_us)
        for uplink in self._uplinks.values():
            if uplink.has_input():
                return 0
        spent_us = self._clock.steady_us() - now_us
        return max(0, min(self._quiet_us - now_us, patience_us) - spent_us)

    def _see_to_what_is_due(self, now_us: int) -> int:
        """Microseconds until something is due again."""
        self._requests.expire()
        due_us = POLL_US_MAX
        for uplink in tuple(self._uplinks.values()):
            due_us = min(due_us, uplink.tick())
        for lane, _ in self._lanes.values():
            next_us = self._pump(lane, now_us)
            if next_us is not None:
                due_us = min(due_us, max(0, next_us - now_us))
        return min(due_us, self._requests.due_us())

    def _pump(self, lane: Lane, now_us: int) -> int | None:
        """What cannot be sent ends alone, not with the connection."""
        try:
            return lane.pump(now_us)
        except Unsendable as found:
            for entry, error in lane.give_up(found.entry, found.cause):
                self._finish(entry, None, error)
            return now_us

    # What uplinks tell (`Listener`)

    def arrived(self, uplink: Uplink, edge: str, message: Message, size: int) -> None:
        self.leaves.arrived(uplink, edge, message)

    def confirmed(self, uplink: Uplink, edge: str) -> None:
        self.leaves.confirmed(uplink, edge)

    def attach_refused(self, uplink: Uplink, edge: str, code: str, reason: str) -> None:
        self.leaves.refused(uplink, edge, code, reason)

    def welcomed(self, uplink: Uplink, is_new: bool) -> None:
        self._requests.send_again(uplink)
        for lane, home in self._lanes.values():
            if home is uplink:
                lane.send_all_again()
                self._pump(lane, self._clock.steady_us())

    def replied(self, uplink: Uplink, record: ControlRecord) -> None:
        if isinstance(record, control.Acknowledged):
            for lane, _ in self._lanes.values():
                entry = lane.acknowledged(record)
                if entry is not None:
                    self._finish(entry, record.ticks, None)
                    return
        elif isinstance(record, control.PublishRefused):
            for lane, _ in self._lanes.values():
                for entry, error in lane.refused(record, self._clock.steady_us()):
                    self._finish(entry, None, error)
        else:
            self._requests.answered(uplink, record)

    # The end

    @property
    def is_closed(self) -> bool:
        return self._loop.is_closed

    @property
    def is_foreign(self) -> bool:
        """Is this process a fork of the one that connected?"""
        return self._loop.is_foreign

    def close(self) -> None:
        """What is under way ends with ConnectionClosed. May be called twice, and from the I/O thread."""
        self._loop.close()

    def _end(self) -> None:
        with self._room:
            self._room.notify_all()
        error = ConnectionClosed("the connection was closed")
        for lane, _ in self._lanes.values():
            for entry in lane.clear():
                self._finish(entry, None, error)
        self._requests.end(error)
        for uplink in self._uplinks.values():
            uplink.close()
        self._context.destroy(0)


def _coverage_of(components: tuple[str, ...], number: int) -> ControlRecord:
    return control.CoverageOf(number, components)
