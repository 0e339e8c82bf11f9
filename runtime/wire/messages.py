"""The protocol's messages as frames, and back: one case a kind in each direction.

Whether a message fits its edge (columns, types, lineages, epochs) is checked by the component that gets it; here every
field only has its type and 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from runtime.wire.framing import Buffer, Incoming, Outgoing, check_wholes, name, name_out, open_frames, whole
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
        read = _READERS.get(incoming.kind)
        if read is None:
            raise WireGarbage(f"a message of unknown kind {incoming.kind}")
        message = read(fields[1:], incoming)
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


def _read_events(fields: list[Any], incoming: Incoming) -> Events:
    cover, rows = fields
    return Events(read_coverage(cover, incoming), read_batch(rows, incoming))


def _read_trimmed(fields: list[Any], incoming: Incoming) -> Trimmed:
    (ranges,) = fields
    return Trimmed(read_coverage(ranges, incoming))


def _read_knowledge(fields: list[Any], incoming: Incoming) -> Knowledge:
    epoch, from_step, to_step, coverage, rows, filtered_for, floor = fields
    check_wholes(epoch, from_step, to_step)
    return Knowledge(
        epoch,
        from_step,
        to_step,
        read_coverage(coverage, incoming),
        read_batch(rows, incoming),
        None if filtered_for is None else whole(filtered_for),
        whole(floor, NO_TICK),
    )


def _read_snapshot(fields: list[Any], incoming: Incoming) -> Snapshot:
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


def _read_heartbeat(fields: list[Any], incoming: Incoming) -> Heartbeat:
    epoch, step, coverage = fields
    check_wholes(epoch, step)
    return Heartbeat(epoch, step, read_coverage(coverage, incoming))


def _read_part(fields: list[Any], incoming: Incoming) -> Part:
    index, count, rows_count, revision, kind, inner = fields
    message: Knowledge | Snapshot
    if kind == Kind.KNOWLEDGE:
        message = _read_knowledge(inner, incoming)
    elif kind == Kind.SNAPSHOT:
        message = _read_snapshot(inner, incoming)
    else:
        raise WireGarbage(f"a part of a message of kind {kind}")
    return Part(whole(index), whole(count), whole(rows_count), whole(revision), message)


def _read_event_curiosity(fields: list[Any], incoming: Incoming) -> EventCuriosity:
    receiver_epoch, wanted = fields
    return EventCuriosity(whole(receiver_epoch), read_coverage(wanted, incoming))


def _read_curiosity(fields: list[Any], incoming: Incoming) -> Curiosity:
    receiver_epoch, adopted_epoch, applied_step, coverage = fields
    check_wholes(receiver_epoch, adopted_epoch, applied_step)
    return Curiosity(receiver_epoch, adopted_epoch, applied_step, read_coverage(coverage, incoming))


def _read_event_ack(fields: list[Any], incoming: Incoming) -> EventAck:
    receiver_epoch, coverage = fields
    return EventAck(whole(receiver_epoch), read_coverage(coverage, incoming))


def _read_ack(fields: list[Any], _incoming: Incoming) -> Ack:
    receiver_epoch, adopted_epoch, applied_step, horizon = fields
    check_wholes(receiver_epoch, adopted_epoch, applied_step)
    return Ack(receiver_epoch, adopted_epoch, applied_step, whole(horizon, NO_TICK))


def _read_quench(fields: list[Any], incoming: Incoming) -> Quench:
    receiver_epoch, count, columns = fields
    return Quench(whole(receiver_epoch), _read_keys(count, columns, incoming))


def _read_durable(fields: list[Any], _incoming: Incoming) -> Durable:
    receiver_epoch, horizon = fields
    return Durable(whole(receiver_epoch), whole(horizon, NO_TICK))


def _read_keys(count: Any, descriptions: Any, incoming: Incoming) -> tuple[Key, ...]:
    if whole(count) > KEYS_MAX:
        raise WireTooLarge(f"{count} keys, the bound is {KEYS_MAX}")
    columns = read_columns(descriptions, count, incoming)
    return tuple(zip(*columns, strict=True)) if columns else ((),) * count


_READERS: Final[dict[int, Callable[[list[Any], Incoming], Message]]] = {
    Kind.EVENTS: _read_events,
    Kind.TRIMMED: _read_trimmed,
    Kind.KNOWLEDGE: _read_knowledge,
    Kind.SNAPSHOT: _read_snapshot,
    Kind.HEARTBEAT: _read_heartbeat,
    Kind.PART: _read_part,
    Kind.EVENT_CURIOSITY: _read_event_curiosity,
    Kind.CURIOSITY: _read_curiosity,
    Kind.EVENT_ACK: _read_event_ack,
    Kind.ACK: _read_ack,
    Kind.QUENCH: _read_quench,
    Kind.DURABLE: _read_durable,
}
"""A message from its fields, without the edge's name."""
