"""The protocol's messages as frames, and back: one case a kind in each direction.

Whether a message fits its edge (columns, types, lineages, epochs) is checked by the component that gets it; here every
field only has its type and 64 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, assert_never

from runtime.protocol.coverage import NO_TICK
from runtime.protocol.messages import (
    Ack,
    Curiosity,
    Durable,
    EventAck,
    EventCuriosity,
    Events,
    Heartbeat,
    Knowledge,
    Message,
    Part,
    Quench,
    Snapshot,
    Trimmed,
)
from runtime.values import Key
from runtime.wire.batches import read_batch, write_batch
from runtime.wire.columns import read_columns, write_columns
from runtime.wire.coverages import read_coverage, write_coverage
from runtime.wire.errors import WireError, WireGarbage, WireTooLarge
from runtime.wire.framing import Buffer, Incoming, Outgoing, name, name_out, open_frames, whole
from runtime.wire.limits import KEYS_MAX


class Kind:
    """The number of each kind of message. Control records start above `MESSAGE_MAX`."""

    EVENTS: Final = 1
    TRIMMED: Final = 2
    KNOWLEDGE: Final = 3
    SNAPSHOT: Final = 4
    HEARTBEAT: Final = 5
    PART: Final = 6
    EVENT_CURIOSITY: Final = 7
    CURIOSITY: Final = 8
    EVENT_ACK: Final = 9
    ACK: Final = 10
    QUENCH: Final = 11
    DURABLE: Final = 12
    MESSAGE_MAX: Final = 31


def encode_message(edge: str, message: Message) -> list[bytes]:
    """Frames to send; the list is the caller's. `WireTooLarge` or `WireGarbage` for what no peer would accept."""
    out = Outgoing()
    kind, fields = _write_state(message, out) if type(message) is Knowledge else _write(message, out)
    return out.frames(kind, [name_out(edge), *fields])


def decode_message(frames: Sequence[Buffer]) -> tuple[str, Message]:
    """The edge's name and the message; `WireError` for anything that no encoder made. Arrays in it share the frames'
    memory."""
    return read_message(open_frames(frames))


def read_message(incoming: Incoming) -> tuple[str, Message]:
    """As `decode_message`, once the header is open."""
    fields = incoming.fields
    try:
        edge = name(fields[0])
        message = _read(incoming.kind, fields[1:], incoming)
        incoming.finish()
    except WireError:
        raise
    except (ValueError, TypeError, IndexError) as broken:  # fields that are missing, too many, or of another type
        raise WireGarbage(f"a message of kind {incoming.kind} with other fields: {broken}") from None
    return edge, message


def _write(message: Message, out: Outgoing) -> tuple[int, list[object]]:
    match message:
        case Events(cover, rows):
            return Kind.EVENTS, [write_coverage(cover, out), write_batch(rows, out)]
        case Trimmed(ranges):
            return Kind.TRIMMED, [write_coverage(ranges, out)]
        case Knowledge() | Snapshot():
            return _write_state(message, out)
        case Heartbeat(epoch, step, coverage):
            return Kind.HEARTBEAT, [epoch, step, write_coverage(coverage, out)]
        case Part(index, count, rows_count, revision, whole_message):
            kind, fields = _write_state(whole_message, out)
            return Kind.PART, [index, count, rows_count, revision, kind, fields]
        case EventCuriosity(receiver_epoch, wanted):
            return Kind.EVENT_CURIOSITY, [receiver_epoch, write_coverage(wanted, out)]
        case Curiosity(receiver_epoch, adopted_epoch, applied_step, coverage):
            return Kind.CURIOSITY, [receiver_epoch, adopted_epoch, applied_step, write_coverage(coverage, out)]
        case EventAck(receiver_epoch, coverage):
            return Kind.EVENT_ACK, [receiver_epoch, write_coverage(coverage, out)]
        case Ack(receiver_epoch, adopted_epoch, applied_step, horizon):
            return Kind.ACK, [receiver_epoch, adopted_epoch, applied_step, horizon]
        case Quench(receiver_epoch, keys):
            return Kind.QUENCH, [receiver_epoch, *_write_keys(keys, out)]
        case Durable(receiver_epoch, horizon):
            return Kind.DURABLE, [receiver_epoch, horizon]
        case _:
            assert_never(message)


def _write_state(message: Knowledge | Snapshot, out: Outgoing) -> tuple[int, list[object]]:
    coverage, rows = write_coverage(message.coverage, out), write_batch(message.rows, out)
    epoch, to_step, floor, filtered_for = message.epoch, message.to_step, message.floor, message.filtered_for
    if isinstance(message, Knowledge):
        return Kind.KNOWLEDGE, [epoch, message.from_step, to_step, coverage, rows, filtered_for, floor]
    horizon, complete = message.horizon, message.complete
    return Kind.SNAPSHOT, [epoch, to_step, coverage, horizon, complete, floor, rows, filtered_for]


def _write_keys(keys: tuple[Key, ...], out: Outgoing) -> list[object]:
    """Column by column: keys of one relation have the same types."""
    if len(keys) > KEYS_MAX:
        raise WireTooLarge(f"{len(keys)} keys, the bound is {KEYS_MAX}")
    return [len(keys), write_columns(list(zip(*keys, strict=True)), len(keys), out)]


def _read(kind: int, fields: list[Any], incoming: Incoming) -> Message:
    match kind:
        case Kind.EVENTS:
            cover, rows = fields
            return Events(read_coverage(cover, incoming), read_batch(rows, incoming))
        case Kind.KNOWLEDGE | Kind.SNAPSHOT:
            return _read_state(kind, fields, incoming)
        case Kind.HEARTBEAT:
            epoch, step, coverage = fields
            return Heartbeat(whole(epoch), whole(step), read_coverage(coverage, incoming))
        case Kind.PART:
            index, count, rows_count, revision, inner, inner_fields = fields
            message = _read_state(inner, inner_fields, incoming)
            return Part(whole(index), whole(count), whole(rows_count), whole(revision), message)
        case Kind.TRIMMED:
            (ranges,) = fields
            return Trimmed(read_coverage(ranges, incoming))
        case _:
            return _read_upstream(kind, fields, incoming)


def _read_state(kind: int, fields: list[Any], incoming: Incoming) -> Knowledge | Snapshot:
    if kind == Kind.KNOWLEDGE:
        epoch, from_step, to_step, coverage, rows, filtered_for, floor = fields
        return Knowledge(
            whole(epoch),
            whole(from_step),
            whole(to_step),
            read_coverage(coverage, incoming),
            read_batch(rows, incoming),
            None if filtered_for is None else whole(filtered_for),
            whole(floor, NO_TICK),
        )
    if kind != Kind.SNAPSHOT:
        raise WireGarbage(f"a part of a message of kind {kind}")
    epoch, to_step, coverage, horizon, complete, floor, rows, filtered_for = fields
    if type(complete) is not bool:
        raise WireGarbage("a snapshot is complete or not")
    return Snapshot(
        whole(epoch),
        whole(to_step),
        read_coverage(coverage, incoming),
        whole(horizon, NO_TICK),
        complete,
        whole(floor, NO_TICK),
        read_batch(rows, incoming),
        None if filtered_for is None else whole(filtered_for),
    )


def _read_upstream(kind: int, fields: list[Any], incoming: Incoming) -> Message:
    match kind:
        case Kind.EVENT_CURIOSITY:
            receiver_epoch, wanted = fields
            return EventCuriosity(whole(receiver_epoch), read_coverage(wanted, incoming))
        case Kind.CURIOSITY:
            receiver_epoch, adopted_epoch, applied_step, coverage = fields
            epochs = whole(receiver_epoch), whole(adopted_epoch)
            return Curiosity(*epochs, whole(applied_step), read_coverage(coverage, incoming))
        case Kind.EVENT_ACK:
            receiver_epoch, coverage = fields
            return EventAck(whole(receiver_epoch), read_coverage(coverage, incoming))
        case Kind.ACK:
            receiver_epoch, adopted_epoch, applied_step, horizon = fields
            return Ack(whole(receiver_epoch), whole(adopted_epoch), whole(applied_step), whole(horizon, NO_TICK))
        case Kind.QUENCH:
            receiver_epoch, count, columns = fields
            return Quench(whole(receiver_epoch), _read_keys(count, columns, incoming))
        case Kind.DURABLE:
            receiver_epoch, horizon = fields
            return Durable(whole(receiver_epoch), whole(horizon, NO_TICK))
        case _:
            raise WireGarbage(f"a message of unknown kind {kind}")


def _read_keys(count: Any, descriptions: Any, incoming: Incoming) -> tuple[Key, ...]:
    if whole(count) > KEYS_MAX:
        raise WireTooLarge(f"{count} keys, the bound is {KEYS_MAX}")
    columns = read_columns(descriptions, count, incoming)
    return tuple(zip(*columns, strict=True)) if columns else ((),) * count
