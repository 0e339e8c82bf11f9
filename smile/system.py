"""A running program in this process: publish, read, subscribe.

One lock guards everything; whoever publishes does the work, so that a view is up to date when `publish` returns.
Callbacks run in the publishing thread, after the work that caused them, and may publish themselves: what they publish
is worked off before the outermost call returns.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from os import PathLike
from types import TracebackType
from typing import Any

from compiler.plan.build import TICK_MODULUS, ProgramPlan, ViewPlan
from runtime.batch import Batch
from runtime.embedded.engine import Engine
from runtime.embedded.outcomes import LOG_FAILED, WORKING, PublishRefused
from runtime.log.memory import MemoryLog
from runtime.log.sqlite import LogDirectory, SqliteLog
from runtime.log.stream_log import LogError, StreamLog
from runtime.plan import Component, Emit, Plan, StreamSpec
from smile.delivery import Hub, leaf_of, make_hub
from smile.errors import Closed, Interrupted, LogUnusable, PublishUncertain, SmileError
from smile.program import Program
from smile.reading import Inspected, Reading, asked
from smile.streams import StreamInput
from smile.subscription import QUEUE_ROWS, Change, Subscription
from smile.tables import table_rows
from smile.views import ViewReader

RECOVER_ROWS = 262_144
"""Rows of a log that are read at once while the rules about earlier events are recovered."""


def run(
    program: Program,
    *,
    data: str | PathLike[str] | None = None,
    tables: Mapping[str, object] | None = None,
) -> System:
    """Run a program in this process: in memory, or with logs in the folder `data`, which the next run continues.

    `tables` gives the rows of tables, as for `publish_many`; those not named are read from the file that the program
    names.
    """
    return System(program, data=data, tables=tables)


class System(Reading):
    """Made by `smile.run`. All methods may be called from any thread."""

    def __init__(
        self,
        program: Program,
        *,
        data: str | PathLike[str] | None = None,
        tables: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(program)
        self._lock = threading.RLock()
        self._is_closed = False
        self._work_block = _Working(self)
        self._is_telling = False  # callbacks run, which may call us
        self._hubs: dict[tuple[str, Emit, bool], Hub] = {}  # (view, emit, coalesced)
        self._due: deque[Subscription] = deque()  # subscriptions whose callback has something to do
        self._known_failures = 0
        plan, declared = program.plan, program.checked.program
        self._inputs = {name: StreamInput(stream, plan.streams[name]) for name, stream in declared.streams.items()}
        logs: dict[str, StreamLog] = {
            name: MemoryLog(plan.components[name].relation.width) for name in (*plan.streams, *plan.tables)
        }
        epochs: Callable[[], int] = count(1).__next__
        self._directory: LogDirectory | None = None
        self._recovered = set(self._inputs)  # streams whose rules know all that is in the log
        components = dict(plan.components)
        if data is not None:
            self._directory = _opened(data)
        try:
            if self._directory is not None:
                durable = self._logs_in(self._directory)
                logs.update(durable)
                components.update(_with_residues(plan, durable))
                epochs = self._directory.next_epoch
                self._recovered = set()
            shown = {view.component for view in plan.views.values()}
            self._engine = Engine(components, logs, _now_us, epochs, shown)
            for name, table in declared.tables.items():
                self._fill_table(StreamInput(table, plan.tables[name]), table_rows(program, table, tables or {}))
        except BaseException as error:
            if self._directory is not None:
                self._directory.close()
            if isinstance(error, LogError):
                raise LogUnusable(str(error)) from error
            raise

    def _logs_in(self, directory: LogDirectory) -> dict[str, SqliteLog]:
        return {name: directory.stream(name, given.schema, given.rules) for name, given in self._inputs.items()}

    def _fill_table(self, table: StreamInput, rows: object) -> None:
        columns, number = table.encode_many(rows)
        if number:
            self._engine.publish(table.name, columns)
            self._engine.drain()

    # Publishing

    def publish(self, stream: str, row: Mapping[str, object]) -> int:
        """Log one event; its tick. Raises PublishError if a value or a rule does not allow it."""
        with self._lock, self._work_block:
            given = self._input(stream)
            columns = given.encode_row(row)
            return self._publish(given, columns)[0]

    def publish_many(self, stream: str, rows: object) -> Sequence[int]:
        """Log several events, all or none; their ticks, in order.

        `rows`: dicts, or columns: a dict of lists or numpy arrays, an Arrow table or batch, a pandas or polars frame.
        PublishError names the first rows that are wrong; then none is published.
        """
        with self._lock, self._work_block:
            given = self._input(stream)
            columns, number = given.encode_many(rows)
            return self._publish(given, columns) if number else ()

    def _input(self, stream: str) -> StreamInput:
        given = self._inputs.get(stream)
        if given is None:
            raise self.program.unknown("stream", stream, self._inputs)
        if stream not in self._recovered:
            self._recover(given)
        return given

    def _publish(self, given: StreamInput, columns: tuple[Sequence[Any], ...]) -> Sequence[int]:
        self._recovered.discard(given.name)  # until they are noted
        try:
            ticks = self._engine.publish(given.name, columns)
        except PublishRefused as refused:
            if refused.uncertain:
                raise PublishUncertain(f"`{given.name}`: {refused}") from refused
            raise SmileError(f"`{given.name}`: {refused}") from refused
        given.note(columns)
        self._recovered.add(given.name)
        return ticks

    def _recover(self, given: StreamInput) -> None:
        """Learn from the log what `unique` and `late` have to know."""
        given.forget()
        if given.remembers:
            self._engine.start(given.name)
            for rows in self._engine.history(given.name, RECOVER_ROWS):
                given.note(tuple(list(column) for column in rows.columns[1:]))
        self._recovered.add(given.name)

    def settle(self) -> None:
        """Returns when everything published so far is reflected in every view and every callback has been told.

        Cannot be called from a callback.
        """
        with self._lock:
            if self._is_telling:
                raise SmileError("settle() cannot be called from a callback: the work it waits for is its own")
            with self._work_block:
                self._engine.drain()
                self._engine.clean()
                self._run_callbacks(flush=True)

    # Reading

    def _read(self, view: str) -> tuple[ViewReader, Batch]:
        with self._lock, self._work_block:
            plan = self.program.relation(view)
            self._engine.start(plan.component)
            self._engine.drain()
            self._raise_failure(plan)
            reader = self._reader(view)
            return reader, reader.ordered(self._engine.rows_of(plan.component))

    def inspect(self, view: str) -> Inspected:
        plan = self.program.relation(view)
        leaf = leaf_of(plan, Emit.BOUNDS)
        (edge,) = leaf.in_edges
        edge = replace(edge, name=f"{edge.name} inspected")  # a subscriber may have a leaf of its own
        leaf = replace(leaf, name=f"{leaf.name} inspected", in_edges=(edge,))
        with self._lock, self._work_block:
            made = self._engine.attach(leaf, lambda _: None, wants_horizon=True)
            try:
                streams = Plan((*self._engine.needed_for(plan.component), leaf)).lineages[leaf.name]
                failure = self._failure_of(plan.name, leaf.name)
                return Inspected(made.snapshot(), streams, made.in_floor, failure)
            finally:
                self._engine.detach(leaf.name)

    def _raise_failure(self, plan: ViewPlan) -> None:
        failure = self._failure_of(plan.name, plan.component)
        if failure is not None:
            raise failure

    def _failure_of(self, view: str, component: str) -> SmileError | None:
        found = self._engine.failure_of(component)
        if found is None:
            return None
        if found.code == LOG_FAILED:
            return LogUnusable(found.reason)
        return self._view_failed(view, found.component, found.code, found.reason)

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
    ) -> Subscription:
        """A snapshot of a view, then its changes. `name` is a view, stream or table, or a subscription of the program.

        emit: "changes" (default), "bounds", "final" or "as of horizon"; a declared subscription has its own. With a
        callback, changes are handed to it from inside `publish`; otherwise iterate. `timeout` (seconds) ends an
        iteration that waits longer; `queue_rows` bounds what may wait for a slow reader (see `smile.subscription`).
        `coalesce`: of what one call publishes, each row is told at most once, as it is after it.
        """
        wanted = asked(self.program, name, emit)
        plan = wanted.plan
        with self._lock, self._work_block:
            hub = self._hub(plan, wanted.mode, coalesce=coalesce)
            subscription = Subscription(
                name,
                self._reader(plan.name),
                wanted.mode,
                wanted.key_width,
                self._left,
                callback=callback,
                timeout=timeout,
                queue_rows=queue_rows,
                every_us=wanted.every_us,
            )
            hub.subscriptions.append(subscription)
            if wanted.wants_snapshot:
                subscription.put(hub.snapshot())
                if callback is not None:
                    self._due.append(subscription)
            failure = self._failure_of(plan.name, hub.last)
            if failure is not None:
                subscription.fail(failure)
            return subscription

    def _hub(self, plan: ViewPlan, mode: Emit, *, coalesce: bool) -> Hub:
        at = (plan.name, mode, coalesce)
        if at not in self._hubs:
            self._hubs[at] = make_hub(self._engine, plan, mode, self._due.append, coalesce=coalesce)
        return self._hubs[at]

    def _left(self, subscription: Subscription) -> None:
        with self._lock:
            for at, hub in list(self._hubs.items()):
                if subscription in hub.subscriptions:
                    hub.subscriptions.remove(subscription)
                    if not hub.subscriptions and not self._is_closed and self._engine.unfinished is None:
                        hub.close()
                        del self._hubs[at]

    # Work

    def check_usable(self) -> None:
        """For `_Working`: may this call begin?"""
        if self._is_closed:
            raise Closed("the system is closed")
        if self._engine.unfinished == WORKING:  # under our lock, so by this thread
            raise Interrupted(
                "another call of this thread is in the middle of its work, or was cut short there: a signal handler"
                " must not call a system, only note that something is to be done"
            )
        if self._engine.unfinished is not None:
            raise self._tell_interrupted(self._engine.unfinished)
        if self._directory is not None:
            try:
                self._directory.check_usable()
            except LogError as error:
                raise LogUnusable(str(error)) from error

    def tell_if_interrupted(self) -> None:
        """For `_Working`: readers of subscriptions must not wait for what will never come."""
        if self._engine.unfinished is not None:
            self._tell_interrupted(self._engine.unfinished)

    def _tell_interrupted(self, cause: str) -> Interrupted:
        """Subscribers hear it after what was told to them before, all of which is true."""
        kept = "has everything that was acknowledged" if self._directory is not None else "would have kept the events"
        error = Interrupted(
            f"an earlier call was cut short in the middle of its work by {cause}; close this system and run the program"
            f" again: a log (`data=`) {kept}"
        )
        for hub in self._hubs.values():
            for subscription in hub.subscriptions:
                subscription.fail(error)
        return error

    @property
    def is_telling(self) -> bool:
        """Do callbacks run? Then a call that begins is theirs."""
        return self._is_telling

    def work_off(self) -> None:
        """For `_Working`: all that was caused, callbacks included."""
        while not self._is_closed:  # by a callback
            self.check_usable()  # a callback's call may have been cut short
            self._engine.drain()
            self._tell_failures()
            if not self._due:
                return
            self._run_callbacks(flush=False)

    def _run_callbacks(self, *, flush: bool) -> None:
        if flush:
            self._due.extend(s for hub in self._hubs.values() for s in hub.subscriptions if s.has_callback)
        count = len(self._due)
        self._is_telling = True
        try:
            for subscription in dict.fromkeys(self._due):
                subscription.run_callback(flush=flush)
        finally:
            self._is_telling = False
        for _ in range(count):  # not before: if a callback ends the call (Ctrl-C), the next call tells the others
            self._due.popleft()

    def _tell_failures(self) -> None:
        if len(self._engine.failures) == self._known_failures:
            return
        self._known_failures = len(self._engine.failures)
        for hub in self._hubs.values():
            for subscription in hub.subscriptions:
                failure = self._failure_of(subscription.view, hub.last)
                if failure is not None:
                    subscription.fail(failure)

    # The end

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        """Subscriptions end, the log is closed. Everything acknowledged is in it."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            for hub in self._hubs.values():
                for subscription in list(hub.subscriptions):
                    subscription.close()
            if self._directory is not None:
                self._directory.close()

    def __enter__(self) -> System:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Working:
    """The block in which a system works, under its lock: `with self._lock, self._work_block`. The outermost call works
    off what was caused, by itself and by callbacks, whose calls are the inner ones.

    Nothing is counted here, because Ctrl-C may come before either method has begun."""

    __slots__ = ("_system",)

    def __init__(self, system: System) -> None:
        self._system = system

    def __enter__(self) -> None:
        self._system.check_usable()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None and not self._system.is_telling:
                self._system.work_off()
        except LogError as broken:
            raise LogUnusable(str(broken)) from broken
        finally:
            self._system.tell_if_interrupted()
        if isinstance(error, LogError):
            raise LogUnusable(str(error)) from error


def _opened(folder: str | PathLike[str]) -> LogDirectory:
    try:
        return LogDirectory(folder)
    except (LogError, OSError) as error:
        raise LogUnusable(str(error)) from error


def _with_residues(plan: ProgramPlan, logs: Mapping[str, SqliteLog]) -> dict[str, Component]:
    """Streams keep their share of the ticks from run to run, whatever else the program declares by then.

    Tables, which are not logged, take theirs from the other end.
    """
    shares = {name: log.number - 1 for name, log in logs.items()}
    shares |= {name: TICK_MODULUS - 1 - number for number, name in enumerate(plan.tables)}
    return {
        name: replace(plan.components[name], operator=StreamSpec(share, TICK_MODULUS)) for name, share in shares.items()
    }


def _now_us() -> int:
    return time.time_ns() // 1_000
