"""Publishing over a connection: single rows travel together when there are many, and nobody waits when there are few.

One `Lane` per stream. A call is sent at once while few messages are under way; then calls gather and leave together as
one message. Each call stays all in or all out and has its own future: should a broker refuse a message of
several calls, they are sent again one by one, so that only those that break a rule fail. The order of calls is kept:
what was sent after a refused message of several calls comes back with it (a *chain*, `runtime/client/lanes.py`) and
waits for its turn. The connection repeats a message until it is acknowledged or refused; this file knows nothing about
sockets.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from operator import attrgetter
from time import monotonic
from typing import Any, Protocol

import numpy as np

from runtime.client.errors import ConnectionClosed, PublishRefused
from runtime.client.lanes import BROUGHT_BACK, Done, Ticks
from runtime.columns import Numbers, numbers
from runtime.protocol.coverage import NO_TICK
from smile.errors import Closed, NotAllowed, PublishUncertain, SmileError, TimedOut
from smile.gate import publish_error
from smile.streams import Columns, StreamInput

GATHER_ROWS = 8_192
"""A message of several calls has at most so many rows."""

WINDOW = 16
"""Messages of one stream that may be under way at once, if there are enough rows for all of them."""

SINGLES_MAX = 4
"""A call is sent at once while fewer messages than this are under way: enough that a broker always has the next one,
few enough that a busy broker gets many calls in one message."""

PENDING_ROWS_MAX = 262_144
"""Rows of one stream that may wait to be sent; then `publish` waits, too."""

NUMBER_MAX = 2**63 - 1

Once = tuple[str, int]
"""Producer and number: what is published twice under the same is logged once."""


class Send(Protocol):
    """As `Connection.publish`."""

    def __call__(
        self,
        stream: str,
        columns: Columns,
        done: Done,
        producer: Once | None = None,
        *,
        chain: int = 0,
        is_joint: bool = False,
    ) -> None: ...


@dataclass(eq=False, slots=True)
class _Call:
    """One call of publish: its future gives the tick of a single row, or the ticks of many. Numbered in order."""

    number: int
    columns: Columns
    rows: int
    single: bool
    future: Future[Any] = field(default_factory=Future)
    once: Once | None = None
    was_refused: bool = False  # together with others: is it the one?

    @property
    def is_alone(self) -> bool:
        """Must it be a message of its own?"""
        return self.was_refused or self.once is not None


class Lane:
    """The calls of one stream. Its methods may be called from any thread."""

    def __init__(self, stream: StreamInput, send: Send, timeout: float) -> None:
        self.stream = stream
        self.last_tick = NO_TICK
        """The highest tick that was acknowledged to us."""
        self._send = send
        self._timeout = timeout
        self._pending: deque[_Call] = deque()
        self._pending_rows = 0
        self._calls = count()
        self._under_way = 0
        self._joint_under_way = 0  # messages of several calls
        self._chain = 1
        self._is_broken = False  # calls have come back: what is still under way comes first
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._waiters = 0  # for a change
        self._is_closed = False

    # Publishing

    def submit(self, columns: Columns, rows: int, *, single: bool, once: Once | None = None) -> Future[Any]:
        """Waits only while too many rows are pending; TimedOut if there is no room in time."""
        if once is not None and not (type(once[1]) is int and 0 <= once[1] <= NUMBER_MAX):
            raise SmileError(
                f"`{self.stream.name}`: `once` has a name and a number from 0 to {NUMBER_MAX}, not {once!r}"
            )
        with self._lock:
            if self._is_closed or not self.has_room(rows):
                self._await_room(rows)
            call = _Call(next(self._calls), columns, rows, single, once=once)
            if self._pending or self._under_way >= SINGLES_MAX or self._is_broken or once is not None:
                self._pending.append(call)
                self._pending_rows += rows
                self._pump()
            else:  # what `_pump` would do, in a third of the time
                call.future.set_running_or_notify_cancel()
                self._dispatch([call])
        return call.future

    def has_room(self, rows: int) -> bool:
        return self._pending_rows + rows <= PENDING_ROWS_MAX or not self._pending

    def _await_room(self, rows: int) -> None:
        end = monotonic() + self._timeout
        while not self._is_closed and not self.has_room(rows):
            left = end - monotonic()
            if left <= 0:
                raise TimedOut(f"`{self.stream.name}`: {self._pending_rows} rows wait to be sent and nothing moves")
            self._wait(left)
        if self._is_closed:
            raise Closed("the connection is closed")

    def _pump(self) -> None:
        """Send what may be sent now."""
        while self._pending and self._under_way < WINDOW:
            if self._is_broken and self._under_way:
                return
            self._is_broken = False
            first = self._pending[0]
            if first.once is not None and self._joint_under_way:
                return  # it is in no chain, and would overtake what comes back
            is_worth_it = self._pending_rows >= GATHER_ROWS or first.is_alone
            if self._under_way >= SINGLES_MAX and not is_worth_it:
                return  # gather
            calls = self._next_message()
            if calls:
                self._dispatch(calls)

    def _next_message(self) -> list[_Call]:
        calls: list[_Call] = []
        rows = 0
        while self._pending:
            call = self._pending[0]
            if calls and (call.is_alone or calls[0].is_alone or rows + call.rows > GATHER_ROWS):
                break
            self._pending.popleft()
            self._pending_rows -= call.rows
            if call.future.running() or call.future.set_running_or_notify_cancel():
                calls.append(call)
                rows += call.rows
        if self._waiters:
            self._changed.notify_all()
        return calls

    def _dispatch(self, calls: list[_Call]) -> None:
        self._under_way += 1
        is_joint = len(calls) > 1
        self._joint_under_way += is_joint
        columns = _joined([call.columns for call in calls]) if is_joint else calls[0].columns
        try:
            self._send(
                self.stream.name,
                columns,
                partial(self._done, calls),
                calls[0].once,
                chain=self._chain,
                is_joint=is_joint,
            )
        except Exception as error:  # noqa: BLE001  the connection is closed, or it is too large: the caller's to know
            self._done(calls, None, error)

    # Answers

    def _done(self, calls: list[_Call], ticks: Ticks | None, error: BaseException | None) -> None:
        with self._lock:
            self._under_way -= 1
            self._joint_under_way -= len(calls) > 1
            if ticks is not None:
                self.last_tick = max(self.last_tick, ticks[-1])
            elif isinstance(error, PublishRefused) and self._take_back(calls, error):
                calls = []
            if self._pending:
                self._pump()
            if self._waiters:
                self._changed.notify_all()
        self._answer(calls, ticks, error)

    def _take_back(self, calls: list[_Call], error: PublishRefused) -> bool:
        """Calls of which nobody knows yet whether they break a rule wait again, in their old order; False if there is
        nothing to find out."""
        is_brought_back = error.code == BROUGHT_BACK
        if error.uncertain or not (is_brought_back or len(calls) > 1) or self._is_closed:
            return False
        if not is_brought_back:
            self._chain += 1
            self._is_broken = True
            for call in calls:
                call.was_refused = True
        self._pending = deque(sorted((*calls, *self._pending), key=attrgetter("number")))
        self._pending_rows += sum(call.rows for call in calls)
        return True

    def _answer(self, calls: list[_Call], ticks: Ticks | None, error: BaseException | None) -> None:
        """Outside the lock: a future's callbacks may do anything."""
        first = 0
        for call in calls:
            if ticks is None:
                assert error is not None
                call.future.set_exception(self._error(call, error))
            elif call.single:
                call.future.set_result(ticks[first])
            else:
                call.future.set_result(ticks[first : first + call.rows])
            first += call.rows

    def _error(self, call: _Call, error: BaseException) -> BaseException:
        if isinstance(error, ConnectionClosed):
            return PublishUncertain(
                f"`{self.stream.name}`: the connection was closed before these rows were acknowledged"
            )
        if not isinstance(error, PublishRefused):
            return error
        if error.code == "rule":
            return publish_error(self.stream, error.reason, call.columns, single=call.single)
        if error.code == "not-allowed":
            return NotAllowed(error.reason)
        said = f"`{self.stream.name}`: {error.reason}"
        return PublishUncertain(said) if error.uncertain else SmileError(said)

    # Waiting

    def settle(self, end: float) -> None:
        """Returns when everything submitted so far is answered."""
        with self._lock:
            while self._pending or self._under_way:
                left = end - monotonic()
                if left <= 0:
                    raise TimedOut(f"`{self.stream.name}`: publishes are still not acknowledged")
                self._wait(left)

    def _wait(self, seconds: float) -> None:
        self._waiters += 1
        try:
            self._changed.wait(seconds)
        finally:
            self._waiters -= 1

    def close(self) -> None:
        """What was not sent is cancelled; what is under way is the connection's to end."""
        with self._lock:
            self._is_closed = True
            calls, self._pending = list(self._pending), deque()
            self._pending_rows = 0
            self._changed.notify_all()
        for call in calls:
            if call.future.running() or call.future.set_running_or_notify_cancel():
                call.future.set_exception(Closed("the connection was closed before these rows were sent"))


def _joined(parts: list[Columns]) -> Columns:
    return tuple(_column([columns[at] for columns in parts]) for at in range(len(parts[0])))


def _column(parts: list[Sequence[Any]]) -> Sequence[Any]:
    if all(isinstance(part, Numbers) for part in parts):
        return numbers(np.concatenate([np.asarray(part) for part in parts]))
    return [value for part in parts for value in part]
