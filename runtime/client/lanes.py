"""Publishes under way, stream by stream: sent in order, repeated until answered, never twice in the log.

The connection's thread owns the lanes. Every publish names the one before it that is still open, so that a broker that
missed one refuses those after it instead of changing the order. Whatever was sent keeps its number: a repeat is
recognised by the log, through any restart.

A publish that is joint, several calls in one, may be refused because of one of them. Then everything of its chain that
came after it comes back too, unlogged: the broker took none of it, because each named the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.client.errors import PublishRefused
from runtime.values import Value
from runtime.wire import control
from runtime.wire.errors import WireError

RETRY_US = 500_000
RETRY_US_MAX = 4_000_000
"""A publish without an answer is sent again after this, doubling."""

UNSENT_US = 10_000
"""One that found no room in the socket, or no broker, is tried again after this."""

BROUGHT_BACK = "brought-back"
"""The code of a refusal that is about a joint publish further ahead in the same chain."""


class Unsendable(Exception):
    """No broker would take this entry, because of `cause`."""

    def __init__(self, entry: Entry, cause: Exception) -> None:
        super().__init__(str(cause))
        self.entry = entry
        self.cause = cause


Columns = tuple[Sequence[Value], ...]
Ticks = Sequence[int]
Done = Callable[[Ticks | None, BaseException | None], None]
"""Called once: with the ticks, or with what went wrong."""


@dataclass(eq=False, slots=True)
class Entry:
    """`is_ordered`: comes after the one before it in its lane. `due_us`: when it is to be sent (again). `chain`: those
    of one number come back together when one that `is_joint` is refused; later chains have higher numbers."""

    stream: str
    producer: str
    sequence: int
    columns: Columns
    is_ordered: bool
    done: Done
    chain: int = 0
    is_joint: bool = False
    due_us: int = 0
    attempts: int = 0


class Lane:
    """`send` gives a record to the broker that has the stream; False if that is not possible now."""

    def __init__(self, send: Callable[[control.Publish], bool]) -> None:
        self._send = send
        self._entries: dict[tuple[str, int], Entry] = {}  # in the order of their numbers
        self._newest: Entry | None = None  # the last that is ordered
        self._wake_us: int | None = None  # nothing is due before
        self._is_blocked = False  # something could not be sent: what comes after it waits
        self._broken_chain = 0  # of this and lower numbers nothing is sent any more

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: Entry, now_us: int) -> Entry:
        """Send it, unless it has to wait. The one under way with this name: this one, or another that came before."""
        name = (entry.producer, entry.sequence)
        if name in self._entries:
            return self._entries[name]
        self._entries[name] = entry
        before, is_free = self._newest, not self._is_blocked
        if before is not None and (before.producer, before.sequence) not in self._entries:
            before = None
        if entry.is_ordered:
            self._newest = entry
        if is_free or not entry.is_ordered:
            self._put(entry, before, now_us)
        self._wake_us = entry.due_us if self._wake_us is None else min(self._wake_us, entry.due_us)
        return entry

    def _put(self, entry: Entry, before: Entry | None, now_us: int) -> None:
        previous = before.sequence if entry.is_ordered and before is not None else None
        record = control.Publish(entry.stream, entry.producer, entry.sequence, entry.columns, previous)
        if self._send(record):
            entry.attempts += 1
            later_us = RETRY_US if entry.attempts == 1 else min(RETRY_US << min(entry.attempts - 1, 8), RETRY_US_MAX)
            entry.due_us = now_us + later_us
        else:
            entry.due_us = now_us + UNSENT_US
            self._is_blocked = True

    def pump(self, now_us: int) -> int | None:
        """Send what is due, in order; when something is due again. Looks at nothing while nothing is due.

        Raises Unsendable: a message is written only when there is a broker to send it to. Once that entry is out of the
        way, call again.
        """
        if self._wake_us is None or now_us < self._wake_us:
            return self._wake_us
        self._wake_us, self._is_blocked = None, False
        before: Entry | None = None
        for entry in self._entries.values():
            if entry.due_us <= now_us and not (self._is_blocked and entry.is_ordered):
                try:
                    self._put(entry, before, now_us)
                except Exception as error:
                    self._wake_us = 0
                    raise Unsendable(entry, error) from error
            if entry.is_ordered:
                before = entry
            self._wake_us = entry.due_us if self._wake_us is None else min(self._wake_us, entry.due_us)
        return self._wake_us

    def send_all_again(self) -> None:
        """The broker is another one, or back: what was under way may be lost."""
        for entry in self._entries.values():
            entry.due_us = 0
            self._wake_us = 0

    def acknowledged(self, record: control.Acknowledged) -> Entry | None:
        return self._entries.pop((record.producer, record.sequence), None)

    def refused(self, record: control.PublishRefused, now_us: int) -> list[tuple[Entry, PublishRefused]]:
        """What is refused for good, in order, and why; nothing if it will be sent again."""
        entry = self._entries.get((record.producer, record.sequence))
        if entry is None:
            return []
        if record.retry_after_ms:
            entry.due_us = min(entry.due_us, now_us + record.retry_after_ms * 1_000)
            self._wake_us = entry.due_us if self._wake_us is None else min(self._wake_us, entry.due_us)
            return []
        found = [(entry, PublishRefused(record.code, record.reason, record.uncertain))]
        if entry.is_joint:
            self._broken_chain = entry.chain
            names = list(self._entries)
            after = (self._entries[name] for name in names[names.index((record.producer, record.sequence)) + 1 :])
            found += [(one, self.broken(one)) for one in after if one.chain == entry.chain]
        for one, _ in found:
            del self._entries[one.producer, one.sequence]
        return found

    def give_up(self, entry: Entry, cause: Exception) -> list[tuple[Entry, BaseException]]:
        """No broker would take it: what ends with it, in order, and why."""
        no = control.PublishRefused(entry.producer, entry.sequence, "too-large", str(cause), False, 0)
        is_ours = not isinstance(cause, WireError)  # a mistake
        return [(one, cause if is_ours and one is entry else error) for one, error in self.refused(no, 0)]

    def is_broken(self, entry: Entry) -> bool:
        """Was it made before anybody knew that its chain is broken? Then it must not be sent."""
        return 0 < entry.chain <= self._broken_chain

    def broken(self, entry: Entry) -> PublishRefused:
        return PublishRefused(BROUGHT_BACK, f"a publish before {entry.sequence} was refused")

    def clear(self) -> list[Entry]:
        entries, self._entries = list(self._entries.values()), {}
        return entries


def both(one: Done, other: Done) -> Done:
    """Two callers have published the same under the same name: one publish, two answers."""

    def done(ticks: Ticks | None, error: BaseException | None) -> None:
        one(ticks, error)
        other(ticks, error)

    return done
