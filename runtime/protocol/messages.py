"""The messages between components, one frozen dataclass each.

`docs/protocol.md` explains them rule by rule. Downstream messages carry knowledge, upstream ones curiosity,
acknowledgement and quench. Anything here may be lost, repeated, delayed or reordered. Coverages and batches inside a
message belong to the message: senders put copies in, receivers copy before they change anything. How messages become
bytes is not decided here.
"""

from __future__ import annotations

from typing import Final, get_args

from runtime.batch import Batch
from runtime.protocol.coverage import NO_TICK
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.records import record
from runtime.values import Key

NO_EPOCH = 0
"""Epochs start at 1; a receiver that has adopted nothing says 0."""


# Event edges, downstream


@record(frozen=True, slots=True)
class Events:
    """`cover` = the ticks made known by this message, `rows` = exactly the events in it; the rest is silence (E1)."""

    cover: LineageCoverage
    rows: Batch


@record(frozen=True, slots=True)
class Trimmed:
    """These ticks have left the log. They are neither silence nor answerable here (E2)."""

    ranges: LineageCoverage


# State edges, downstream


@record(frozen=True, slots=True)
class Knowledge:
    """Rows touched in steps (from_step, to_step], with their values as of `to_step`; `coverage` is the sender's then.

    A row may occur several times, as it changed within the step (`ReceiverAttached.every_change`): the last one counts.

    `filtered_for`: the receiver's epoch whose key quench was applied to the rows, None if no key is quenched (T4).
    `floor`: rows that the sender never held may have vanished up to this tick (T3): whoever follows in order knows as
    little about them.
    """

    epoch: int
    from_step: int
    to_step: int
    coverage: LineageCoverage
    rows: Batch
    filtered_for: int | None = None
    floor: int = NO_TICK


@record(frozen=True, slots=True)
class Snapshot:
    """The sender's state at `to_step` for a receiver that comes from another epoch (S5).

    complete: all rows held, tombstones included, and what is not listed is not visible. Otherwise: all rows, visible or
    not, with max_tick > horizon, for a receiver that covers everything up to `horizon`.
    """

    epoch: int
    to_step: int
    coverage: LineageCoverage
    horizon: int
    complete: bool
    floor: int
    rows: Batch
    filtered_for: int | None = None


@record(frozen=True, slots=True)
class Heartbeat:
    """Where the sender stands; says nothing about rows."""

    epoch: int
    step: int
    coverage: LineageCoverage


@record(frozen=True, slots=True)
class Part:
    """Piece `index` of `count` of a message whose rows were too many for one frame.

    The pieces of one answer differ only in their rows. `revision` tells apart answers that would otherwise look
    alike: it changes whenever the sender's answer to the same question may list other rows (T2, T4).
    """

    index: int
    count: int
    rows_count: int
    revision: int
    message: Knowledge | Snapshot


# Upstream


@record(frozen=True, slots=True)
class EventCuriosity:
    """Ticks that the receiver of an event edge wants to know about. TICK_MAX as last tick = "and whatever is new"."""

    receiver_epoch: int
    wanted: LineageCoverage


@record(frozen=True, slots=True)
class Curiosity:
    """What the receiver of a state edge has: the question is "and since then?" (S3)."""

    receiver_epoch: int
    adopted_epoch: int
    applied_step: int
    coverage: LineageCoverage


@record(frozen=True, slots=True)
class EventAck:
    """What the receiver of an event edge has in memory: stops pushes of these ticks."""

    receiver_epoch: int
    coverage: LineageCoverage


@record(frozen=True, slots=True)
class Ack:
    """What the receiver of a state edge has in memory: stops pushes and lets tombstones go (T2)."""

    receiver_epoch: int
    adopted_epoch: int
    applied_step: int
    horizon: int


@record(frozen=True, slots=True)
class Quench:
    """Rows with these keys are of no more interest to this incarnation of the receiver (T4)."""

    receiver_epoch: int
    keys: tuple[Key, ...]


@record(frozen=True, slots=True)
class Durable:
    """The edge's horizon in the receiver's newest durable checkpoint: what a log may be trimmed by (C4, C5)."""

    receiver_epoch: int
    horizon: int


Downstream = Events | Trimmed | Knowledge | Snapshot | Heartbeat | Part
Upstream = EventCuriosity | Curiosity | EventAck | Ack | Quench | Durable
Message = Downstream | Upstream

DOWNSTREAM: Final[frozenset[type]] = frozenset(get_args(Downstream))
"""For a quick look at which way a message goes."""
