"""Control records: what brokers and clients say to each other apart from the protocol's messages.

One frozen dataclass each; requests have a number that the asker chose and the answer repeats. `fields.py` says how each
kind of field travels, the table at the end of this file which fields a record has. What a record makes somebody do is
no matter of this file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

import msgpack

from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.records import record
from runtime.values import Value
from runtime.wire import fields as f
from runtime.wire.columns import Form, progression
from runtime.wire.errors import WireError, WireGarbage
from runtime.wire.framing import INT_MAX, VERSION, Buffer, Incoming, Outgoing, name_out, open_frames


@dataclass(frozen=True, slots=True)
class Hello:
    """Who is there, repeated as a keep-alive. `kind` is "broker" or "client"; a restart changes the incarnation."""

    request: int
    name: str
    kind: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class Welcome:
    """Answer to `Hello`. `digest` is the deployment's, empty while there is none."""

    request: int
    broker: str
    incarnation: int
    data_address: str
    digest: str
    wire_version: int = VERSION


@dataclass(frozen=True, slots=True)
class Describe:
    """Asks for the deployment."""

    request: int


@dataclass(frozen=True, slots=True)
class Described:
    """Answer to `Describe`: plain data."""

    request: int
    deployment: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Deploy:
    """Asks the broker to run this deployment, signature included: plain data."""

    request: int
    deployment: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Check:
    """Asks whether the broker would run this deployment, signature included. Nothing changes."""

    request: int
    deployment: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Done:
    request: int


@dataclass(frozen=True, slots=True)
class Refused:
    request: int
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Attach:
    """Asks to be told what `component` says on `edge`. `kind` is "plan" or "guest"; `digest` is the component's as the
    asker knows it."""

    request: int
    edge: str
    component: str
    kind: str
    digest: str


@dataclass(frozen=True, slots=True)
class Attached:
    """Answer to `Attach`: subscribe to `topic`."""

    request: int
    edge: str
    topic: bytes
    epoch: int


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The broker has seen the subscription: from now on nothing is missed for want of one."""

    edge: str
    topic: bytes


@dataclass(frozen=True, slots=True)
class Detach:
    edge: str


@dataclass(frozen=True, slots=True)
class Unattached:
    """You are not attached on this edge, or not any more: attach again."""

    edge: str


@record(frozen=True, slots=True)
class Publish:
    """Events by column. `previous` is the sequence of this producer's publish before it, -1 if there was none, None if
    their order does not matter."""

    stream: str
    producer: str
    sequence: int
    columns: tuple[Sequence[Value], ...]
    previous: int | None = None


@record(frozen=True, slots=True)
class Acknowledged:
    """The events are durable at these ticks. `repeated`: they had been before."""

    producer: str
    sequence: int
    ticks: range | tuple[int, ...]
    repeated: bool


@dataclass(frozen=True, slots=True)
class PublishRefused:
    """`uncertain`: the events may be in the log all the same. `retry_after_ms` 0: do not try again."""

    producer: str
    sequence: int
    code: str
    reason: str
    uncertain: bool
    retry_after_ms: int


@dataclass(frozen=True, slots=True)
class CoverageOf:
    request: int
    components: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Coverages:
    """Answer to `CoverageOf`; `failures` has (code, reason) of components that have stopped."""

    request: int
    coverages: Mapping[str, LineageCoverage]
    failures: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Status:
    request: int


@dataclass(frozen=True, slots=True)
class StatusReply:
    request: int
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """Asks for a fault, on a broker that was started to allow them."""

    request: int
    kind: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Stop:
    request: int


@dataclass(frozen=True, slots=True)
class Hold:
    """Asks the broker to get ready for a state of this component that is being computed: nothing is trimmed that such a
    state would need. Repeated as a sign of life. `digest` is the component's as the asker knows it."""

    request: int
    component: str
    digest: str


@dataclass(frozen=True, slots=True)
class Install:
    """A part of an encoded checkpoint of `total` bytes, in order. With the last one it is installed; how far that is,
    the status tells."""

    request: int
    component: str
    offset: int
    total: int
    data: Buffer


@dataclass(frozen=True, slots=True)
class Release:
    """Gives up what `Hold` began."""

    request: int
    component: str


ControlRecord = (
    Hello
    | Welcome
    | Describe
    | Described
    | Deploy
    | Check
    | Done
    | Refused
    | Attach
    | Attached
    | Confirmed
    | Detach
    | Unattached
    | Publish
    | Acknowledged
    | PublishRefused
    | CoverageOf
    | Coverages
    | Status
    | StatusReply
    | Fault
    | Stop
    | Hold
    | Install
    | Release
)

# The number of each kind of record, and how its fields travel. Numbers are never given twice; messages are below 32.
_LAYOUTS: tuple[tuple[int, type[Any], tuple[f.Field, ...]], ...] = (
    (32, Hello, (f.WHOLE, f.NAME, f.NAME, f.WHOLE)),
    (33, Welcome, (f.WHOLE, f.NAME, f.WHOLE, f.NAME, f.NAME, f.WHOLE)),
    (34, Describe, (f.WHOLE,)),
    (35, Described, (f.WHOLE, f.PLAIN)),
    (36, Deploy, (f.WHOLE, f.PLAIN)),
    (37, Done, (f.WHOLE,)),
    (38, Refused, (f.WHOLE, f.NAME, f.TEXT)),
    (39, Attach, (f.WHOLE, f.NAME, f.NAME, f.NAME, f.NAME)),
    (40, Attached, (f.WHOLE, f.NAME, f.TOPIC, f.WHOLE)),
    (41, Confirmed, (f.NAME, f.TOPIC)),
    (42, Detach, (f.NAME,)),
    (43, Unattached, (f.NAME,)),
    (44, Publish, (f.NAME, f.NAME, f.WHOLE, f.COLUMNS, f.PREVIOUS)),
    (45, Acknowledged, (f.NAME, f.WHOLE, f.TICKS, f.FLAG)),
    (46, PublishRefused, (f.NAME, f.WHOLE, f.NAME, f.TEXT, f.FLAG, f.WHOLE)),
    (47, CoverageOf, (f.WHOLE, f.NAMES)),
    (48, Coverages, (f.WHOLE, f.COVERAGES, f.FAILURES)),
    (49, Status, (f.WHOLE,)),
    (50, StatusReply, (f.WHOLE, f.PLAIN)),
    (51, Fault, (f.WHOLE, f.NAME, f.PLAIN)),
    (52, Stop, (f.WHOLE,)),
    (53, Hold, (f.WHOLE, f.NAME, f.NAME)),
    (54, Install, (f.WHOLE, f.NAME, f.WHOLE, f.WHOLE, f.BYTES)),
    (55, Release, (f.WHOLE, f.NAME)),
    (56, Check, (f.WHOLE, f.PLAIN)),
)


def _getters(record: type[Any], layout: tuple[f.Field, ...]) -> tuple[Any, ...]:
    names = tuple(record.__dataclass_fields__)
    assert len(names) == len(layout), record
    return tuple((attrgetter(name), field.write) for name, field in zip(names, layout, strict=True))


_WRITERS = {record: (kind, _getters(record, layout)) for kind, record, layout in _LAYOUTS}
_READERS = {kind: (record, tuple(field.read for field in layout)) for kind, record, layout in _LAYOUTS}
_ACKNOWLEDGED: Final = _WRITERS[Acknowledged][0]
_PUBLISH: Final = _WRITERS[Publish][0]
_SINGLES: Final = frozenset((int, float, str))
_PROGRESS_ROWS_MAX: Final = 1 << 16
_PROGRESS_TICK_MAX: Final = INT_MAX >> 1  # so that no tick is beyond 64 bits
_SINGLE_COLUMNS_MAX: Final = 16
_SINGLE_NAMES_MAX: Final = 128  # far below any bound, whatever the characters


def encode_control(record: ControlRecord) -> list[bytes]:
    """Frames to send; the list is the caller's. `WireTooLarge` or `WireGarbage` for what no peer would accept."""
    if type(record) is Publish:
        frame = _encode_single(record)
        if frame is not None:
            return [frame]
    out = Outgoing()
    if type(record) is Acknowledged and type(record.ticks) is range:
        return out.frames(_ACKNOWLEDGED, _progress(record, record.ticks))
    kind, writers = _WRITERS[type(record)]
    return out.frames(kind, [write(get(record), out) for get, write in writers])


def _encode_single(publish: Publish) -> bytes | None:
    """A publish of one row of a few whole numbers, as below and in a quarter of the time: latency is about these."""
    columns = publish.columns
    if len(columns) > _SINGLE_COLUMNS_MAX or len(publish.stream) + len(publish.producer) > _SINGLE_NAMES_MAX:
        return None
    described = []
    for column in columns:
        if type(column) is not list or len(column) != 1:
            return None
        value = column[0]
        if type(value) is not int or not -INT_MAX <= value <= INT_MAX:
            return None
        described.append([Form.VALUES, column])
    if not described:
        return None
    names = (publish.stream, publish.producer)
    fields = [*names, publish.sequence, [1, described], publish.previous]
    try:
        header: bytes = msgpack.packb([VERSION, _PUBLISH, *fields, b""])
    except UnicodeEncodeError:  # the other way has words for it
        return None
    return header


def _progress(record: Acknowledged, ticks: range) -> list[object]:
    """The fields of nearly every answer to a publish, as their layout says."""
    described = [len(ticks), progression(ticks)]
    return [name_out(record.producer), record.sequence, described, record.repeated]


def decode_control(frames: Sequence[Buffer]) -> ControlRecord:
    """The record; `WireError` for anything that no encoder made. Arrays in it share the frames' memory."""
    return read_control(open_frames(frames))


def read_control(incoming: Incoming) -> ControlRecord:
    """As `decode_control`, once the header is open."""
    if incoming.kind == _PUBLISH and (single := _read_single_publish(incoming)) is not None:
        return single
    if incoming.kind == _ACKNOWLEDGED and (progress := _read_progress(incoming)) is not None:
        return progress
    found = _READERS.get(incoming.kind)
    if found is None:
        raise WireGarbage(f"a record of unknown kind {incoming.kind}")
    made, readers = found
    if len(incoming.fields) != len(readers):
        raise WireGarbage(f"a {made.__name__} with {len(incoming.fields)} fields")
    try:
        values = [read(value, incoming) for read, value in zip(readers, incoming.fields, strict=True)]
        incoming.finish()
    except WireError:
        raise
    except (ValueError, TypeError, IndexError) as broken:  # a field of another type or with missing parts
        raise WireGarbage(f"a {made.__name__} with other fields: {broken}") from None
    record: ControlRecord = made(*values)
    return record


def _read_progress(incoming: Incoming) -> Acknowledged | None:
    """What `_progress` wrote, if a publisher's rows are few; None: anything else is looked at field by field."""
    try:
        producer, sequence, (count, (form, first, step)), repeated = incoming.fields
    except (ValueError, TypeError):
        return None
    if not (
        type(producer) is str
        and len(producer) <= _SINGLE_NAMES_MAX
        and type(repeated) is bool
        and type(sequence) is type(count) is type(first) is type(step) is int
        and form == Form.RANGE
        and 0 <= sequence <= INT_MAX
        and 0 < count <= _PROGRESS_ROWS_MAX
        and 0 <= first <= _PROGRESS_TICK_MAX
        and 0 < step <= _PROGRESS_ROWS_MAX
        and incoming.is_finished
    ):
        return None
    return Acknowledged(producer, sequence, range(first, first + step * (count - 1) + 1, step), repeated)


def _read_single_publish(incoming: Incoming) -> Publish | None:
    """A publish of one row of numbers and short texts, as the layout says: single events are what latency is about.
    None: it is another one, or none at all, and is looked at field by field."""
    try:
        stream, producer, sequence, (count, descriptions), previous = incoming.fields
        if not (
            type(stream) is type(producer) is str
            and len(stream) <= _SINGLE_NAMES_MAX >= len(producer)
            and type(sequence) is type(count) is int
            and 0 <= sequence <= INT_MAX
            and count == 1
            and type(descriptions) is list
            and (previous is None or (type(previous) is int and -1 <= previous <= INT_MAX))
            and incoming.is_finished
        ):
            return None
        columns = []
        for form, values in descriptions:
            (value,) = values
            if form != Form.VALUES or type(values) is not list or type(value) not in _SINGLES:
                return None
            if type(value) is int and value > INT_MAX:
                return None
            columns.append(values)
    except (ValueError, TypeError):
        return None
    return Publish(stream, producer, sequence, tuple(columns), previous)
