"""What stands between a publisher and a stream's component: rules about history, order per producer, who is answered.

The host owns one `Publishing`. A publish is judged in three steps: is it a repeat (then the component answers it), does
it come after the one it names as its predecessor, does the stream's gate allow it. Only then the component sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from runtime.batch import Batch
from runtime.log.stream_log import StreamLog
from runtime.protocol.coverage import Coverage
from runtime.protocol.events import LogState
from runtime.records import record
from runtime.values import Value

RECOVER_ROWS = 262_144
"""Rows of a log that are read at once while a gate learns what was published before."""

RETRY_BUSY_MS = 20
"""What a publisher is told to wait when the stream has more to write than it may hold."""

RETRY_STOPPED_MS = 250
"""... when the stream is about to start again: its log could not be written, or the broker is starting."""

Columns = tuple[Sequence[Value], ...]


class Gate(Protocol):
    """Rules about events that need earlier ones (`unique`, `late`), and ranges. Made by whoever knows the program."""

    def reason_to_refuse(self, columns: Columns) -> str | None:
        """None if these rows may be published now."""

    def note(self, columns: Columns) -> None:
        """These rows are in the log, or will be unless the log fails."""

    def forget(self) -> None:
        """Start again from nothing: the log is read anew."""

    @property
    def remembers(self) -> bool:
        """Do the rules depend on earlier events? Otherwise the log need not be read."""

    @property
    def needs_all(self) -> bool:
        """Do they depend on every earlier event? Then the log is never trimmed."""


@record(frozen=True, slots=True)
class PublishOutcome:
    """What a publisher is told. `code` is empty if the rows are durable at `ticks`."""

    stream: str
    producer: str
    sequence: int
    ticks: Sequence[int] = ()
    repeated: bool = False
    code: str = ""
    reason: str = ""
    uncertain: bool = False
    retry_after_ms: int | None = None
    """Set: the same publish may succeed after so long. None: it will not, or nobody knows."""


Answer = Callable[[PublishOutcome, bytes | None], None]


@dataclass(slots=True)
class _Stream:
    gate: Gate | None
    newest: dict[str, int] = field(default_factory=dict)  # producer -> highest sequence accepted
    askers: dict[tuple[str, int], bytes | None] = field(default_factory=dict)  # publishes under way -> who waits


class Publishing:
    """Streams by name; the host adds one when it starts and tells what becomes of publishes."""

    def __init__(self, answer: Answer) -> None:
        self._streams: dict[str, _Stream] = {}
        self._answer = answer

    def add(self, stream: str, gate: Gate | None) -> None:
        self._streams[stream] = _Stream(gate)

    def recover(self, stream: str, log: StreamLog, state: LogState) -> None:
        """The stream starts (again): only the log knows what is in it."""
        known = self._streams[stream]
        known.newest, known.askers = {}, {}
        for producer, sequence, _ in state.publishes:
            known.newest[producer] = max(sequence, known.newest.get(producer, -1))
        if known.gate is not None:
            known.gate.forget()
            if known.gate.remembers:
                _read_history(known.gate, log, state.last_tick)

    def may_trim(self, stream: str) -> bool:
        gate = self._streams[stream].gate
        return gate is None or not gate.needs_all

    def reason_to_refuse(
        self, stream: str, producer: str, sequence: int, previous: int | None, columns: Columns
    ) -> PublishOutcome | None:
        """For a publish that is no repeat; None if the component shall have it."""
        known = self._streams[stream]
        newest = known.newest.get(producer, -1)
        if previous is not None and newest != previous:
            reason = f"publish {sequence} follows {previous}, and the newest of its producer here is {newest}"
            return PublishOutcome(stream, producer, sequence, code="order", reason=reason, retry_after_ms=0)
        broken = None if known.gate is None else known.gate.reason_to_refuse(columns)
        if broken is not None:
            return PublishOutcome(stream, producer, sequence, code="rule", reason=broken)
        return None

    def under_way(self, stream: str, producer: str, sequence: int, source: bytes | None) -> None:
        """This publish waits for the log; whoever sent it last is told."""
        self._streams[stream].askers[producer, sequence] = source

    def accepted(
        self, stream: str, producer: str, sequence: int, columns: Columns, forgotten: tuple[str, ...] = ()
    ) -> None:
        """The component has taken it: the next one is judged as if it were in the log already, and what it has
        `forgotten` for it is not known here either."""
        known = self._streams[stream]
        for gone in forgotten:
            known.newest.pop(gone, None)
        if sequence > known.newest.get(producer, -1):
            known.newest[producer] = sequence
        if known.gate is not None:
            known.gate.note(columns)

    def settle(self, outcome: PublishOutcome) -> None:
        """The component has said what became of it."""
        source = self._streams[outcome.stream].askers.pop((outcome.producer, outcome.sequence), None)
        self._answer(outcome, source)

    def refuse(self, outcome: PublishOutcome, source: bytes | None) -> None:
        self._answer(outcome, source)


def _read_history(gate: Gate, log: StreamLog, last_tick: int) -> None:
    wanted = Coverage.prefix(last_tick)
    while wanted:
        cover, rows, trimmed = log.read(wanted, RECOVER_ROWS)
        wanted = wanted.difference(cover).difference(trimmed)
        if len(rows):
            gate.note(_payload(rows))


def _payload(rows: Batch) -> Columns:
    return rows.columns[1:]
