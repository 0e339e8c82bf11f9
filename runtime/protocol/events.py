"""What goes into a component and what comes out of it.

A shell (broker, embedded engine or simulator) turns the world into events, calls `component.handle(event)`, and carries
out the returned instructions in order. All time comes in with events; all effects go out as instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from runtime.batch import Batch
from runtime.plan import Mode
from runtime.protocol.checkpoint import Checkpoint
from runtime.protocol.coverage import Coverage
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Message
from runtime.records import record
from runtime.values import Value

# Events


@record(frozen=True, slots=True)
class LogState:
    """What opening a stream's log showed. Opening it with an epoch fences off all older epochs.

    `publishes`: (producer, sequence, ticks) for the newest `producer_window` publishes of each producer, oldest first.
    They outlive the trimming of their events: a producer may repeat itself long after.
    """

    last_tick: int
    reserved_tick: int
    trimmed_tick: int
    publishes: tuple[tuple[str, int, Sequence[int]], ...] = ()


@record(frozen=True, slots=True)
class Restarted:
    """A new incarnation begins. Always the first event; a later one discards everything and begins again (C2).

    The shell has made `epoch` durable, and it is higher than any this component ever had. `checkpoint` is one written
    by this component, not older than the newest whose `Durable` was sent (C4), or None. `acknowledged_horizon` is the
    highest horizon ever acknowledged as durable: a bulk install below it is refused (C6). `log` is for streams only.
    """

    epoch: int
    now_us: int = 0
    checkpoint: Checkpoint | None = None
    acknowledged_horizon: int = -1
    log: LogState | None = None


@record(frozen=True, slots=True)
class MessageArrived:
    """A message on one of the component's edges, in either direction: the edge's name says which."""

    edge: str
    message: Message


@record(frozen=True, slots=True)
class TimerFired:
    """A timer that an ArmTimer instruction of this incarnation armed. Firing late, or twice, is harmless."""

    name: str
    now_us: int


@record(frozen=True, slots=True)
class ReceiverAttached:
    """Somebody listens on this out-edge from now on. The plan's own edges are attached from the start.

    `every_change`: what is sent as it happens lists all changes of a step in order, so a row may occur several times in
    one message, last as it is then. State edges only: events are told one by one anyway. Attaching again changes it.
    """

    edge: str
    mode: Mode = Mode.PULL
    every_change: bool = False


@record(frozen=True, slots=True)
class ReceiverDetached:
    """Nobody will ask on this out-edge again, or only after attaching anew."""

    edge: str


@record(frozen=True, slots=True)
class WatchBegun:
    """Somebody in this very process wants to see what each step changes, without an edge: Stepped, from now on.

    `latest`: only how the rows are after it. Both may be wanted at once.
    """

    latest: bool = False


@record(frozen=True, slots=True)
class WatchEnded:
    """Nobody watches any more, in this way."""

    latest: bool = False


@record(frozen=True, slots=True)
class Published:
    """Rows for a stream: payload columns without the tick, all in or all out. (producer, sequence) identifies them.

    `is_checked`: whoever made this has asked `StreamComponent.check_publish` already.
    """

    producer: str
    sequence: int
    columns: tuple[Sequence[Value], ...]
    now_us: int
    is_checked: bool = False


@record(frozen=True, slots=True)
class LogWritten:
    """All writes up to this number are durable."""

    number: int


@record(frozen=True, slots=True)
class LogFailed:
    """A write or a read failed, or nobody knows whether it did. `fenced`: a newer incarnation has opened the log."""

    reason: str
    fenced: bool = False


@record(frozen=True, slots=True)
class LogRead:
    """The answer to ReadLog: `rows` are all events in `cover`, `trimmed` are asked ticks that have left the log.

    Asked ticks in neither were beyond the row bound. `cover` and `trimmed` never contain ticks that were not asked for.
    """

    edge: str
    cover: Coverage
    rows: Batch
    trimmed: Coverage


@record(frozen=True, slots=True)
class CheckpointDue:
    """Write a checkpoint now."""


@record(frozen=True, slots=True)
class CheckpointWritten:
    """The checkpoint is durable, and an older one will not be loaded again (C4)."""

    number: int


@record(frozen=True, slots=True)
class CheckpointFailed:
    """It is not, or nobody knows. The previous one still counts."""

    number: int
    reason: str


Event = (
    Restarted
    | MessageArrived
    | TimerFired
    | ReceiverAttached
    | ReceiverDetached
    | WatchBegun
    | WatchEnded
    | Published
    | LogWritten
    | LogFailed
    | LogRead
    | CheckpointDue
    | CheckpointWritten
    | CheckpointFailed
)


# Instructions


@record(frozen=True, slots=True)
class Send:
    """Give the message to the other end of the edge. A full queue may drop it: the protocol repairs that."""

    edge: str
    message: Message


@record(frozen=True, slots=True)
class ArmTimer:
    """Fire TimerFired(name) after the delay. Arming again replaces the earlier one."""

    name: str
    delay_us: int


@record(frozen=True, slots=True)
class AppendToLog:
    """Write these events with (producer, sequence), durably, in the order of numbers. The log refuses older epochs.

    `forgotten`: by the same write the log forgets all publishes of these producers, before it remembers this one.
    """

    epoch: int
    number: int
    rows: Batch
    producer: str
    sequence: int
    forgotten: tuple[str, ...] = ()


@record(frozen=True, slots=True)
class ReserveSilence:
    """Write durably that no later incarnation logs anything at or below this tick (E3)."""

    epoch: int
    number: int
    tick: int


@record(frozen=True, slots=True)
class ReadLog:
    """Read the events in `ticks`, lowest first, at most `rows_max`; answer with LogRead for the same edge."""

    edge: str
    ticks: Coverage
    rows_max: int


@record(frozen=True, slots=True)
class TrimLog:
    """Events at or below this tick may go (C5)."""

    tick: int


@record(frozen=True, slots=True)
class PersistCheckpoint:
    """Write it, then report. The store refuses older epochs; a newer checkpoint replaces an older one atomically.

    `make` gives the checkpoint, until the component handles its next event: whoever carries this out calls it before,
    or in a process that was forked before.
    """

    number: int
    make: Callable[[], Checkpoint]


@record(frozen=True, slots=True)
class AcknowledgePublish:
    """The rows are durable at these ticks. `repeated`: they already were when this publish arrived."""

    producer: str
    sequence: int
    ticks: Sequence[int]
    repeated: bool


@record(frozen=True, slots=True)
class RefusePublish:
    """Nothing is promised about these rows. `uncertain`: they may have been logged; repeating them finds out."""

    producer: str
    sequence: int
    reason: str
    uncertain: bool = False


@record(frozen=True, slots=True)
class Token:
    """What a subscriber resumes with; valid only together with the rows it kept (C7)."""

    epoch: int
    step: int
    coverage: LineageCoverage


@record(frozen=True, slots=True)
class Deliver:
    """Something for the subscriber (leaf).

    snapshot: `rows` are all there is. changes: `rows` replace what the subscriber has by key; visible = False means the
    row is gone. `low` and `high` are bounds for each row and shown column as of `horizon` (emit bounds only); `final`
    says for each row whether it can still change.
    """

    kind: Literal["snapshot", "changes"]
    rows: Batch
    horizon: int
    final: tuple[bool, ...]
    token: Token
    low: tuple[tuple[Value, ...], ...] | None = None
    high: tuple[tuple[Value, ...], ...] | None = None


@record(frozen=True, slots=True)
class Stepped:
    """For whoever watches: what the step just made changed, in order. A row may occur more than once, unless they are
    `latest`: then each is as it is now. `max_ticks` say nothing here. `horizon` is that of this step: one message may
    bring several, and what an earlier one changed does not include what a later one covers."""

    rows: Batch
    latest: bool
    horizon: int


@record(frozen=True, slots=True)
class ReportTrimmed:
    """Ticks this component needs have left the log: only a bulk install or an archive can help."""

    edge: str
    ranges: LineageCoverage


@record(frozen=True, slots=True)
class ReportFailed:
    """A message was understood but could not be computed (overflow and the like). Nothing of it was applied; the view
    stays where it is, true, and the edge asks again, slowly. `code` and `reason` are the operator's."""

    edge: str
    code: str
    reason: str


@record(frozen=True, slots=True)
class RestartMe:
    """This incarnation has stopped because it can no longer know what is durable. Start a new one."""

    reason: str


@record(frozen=True, slots=True)
class Stopped:
    """This incarnation has stopped because a newer one exists. Do not start another."""

    reason: str


Instruction = (
    Send
    | ArmTimer
    | AppendToLog
    | ReserveSilence
    | ReadLog
    | TrimLog
    | PersistCheckpoint
    | AcknowledgePublish
    | RefusePublish
    | Deliver
    | Stepped
    | ReportTrimmed
    | ReportFailed
    | RestartMe
    | Stopped
)
