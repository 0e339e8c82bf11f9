"""Messages and records for the tests of the wire: hypothesis strategies of every kind, fixed samples, plain forms.

Decoding gives arrays and ranges where lists went in; `plainly` turns both sides into what they mean, with the types of
all cells, so that 1, 1.0 and True are three things.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from runtime.batch import Batch
from runtime.columns import Same, flags, numbers
from runtime.protocol.coverage import NO_TICK, TICK_MAX, Coverage
from runtime.protocol.lineage_coverage import LineageCoverage
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
from runtime.wire import control
from runtime.wire.control import ControlRecord, encode_control
from runtime.wire.messages import encode_message

INT_MIN = -(2**63)


def plainly(value: object) -> object:
    """What a message means, comparable: every cell with its type, columns as lists."""
    if isinstance(value, LineageCoverage):
        return value.key()
    if is_dataclass(value) and not isinstance(value, type):
        return (type(value).__name__, *(plainly(getattr(value, field.name)) for field in fields(value)))
    if isinstance(value, dict):
        return {key: plainly(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | range | np.ndarray | Same):
        return [plainly(inner) for inner in value]
    return type(value), repr(value)


# Strategies

ints = st.one_of(st.integers(-5, 300), st.integers(INT_MIN, TICK_MAX))
floats = st.floats()
texts = st.one_of(st.sampled_from(["", "a", "\0", "b\0c", "Ärger", "\U0001f3ab"]), st.text(max_size=12))
whole = st.one_of(st.integers(0, 200), st.integers(0, TICK_MAX))
ticks = st.one_of(st.integers(NO_TICK, 200), st.integers(NO_TICK, TICK_MAX))
names = st.text(max_size=20)
counts = st.one_of(st.integers(0, 3), st.integers(15, 18), st.integers(60, 140))


def _array_of(dtype: str, values: list[Any]) -> Sequence[Any]:
    return numbers(np.array(values, dtype))


@st.composite
def columns(draw: st.DrawFn, count: int) -> Sequence[Any]:
    def some(cells: st.SearchStrategy[Any]) -> list[Any]:
        few = draw(st.booleans())  # of few different values, as texts in real columns are
        cells = st.sampled_from(draw(st.lists(cells, min_size=1, max_size=4))) if few else cells
        return draw(st.lists(cells, min_size=count, max_size=count))

    kind = draw(
        st.sampled_from(["int", "float", "text", "bool", "null", "any", "ints", "floats", "flags", "range", "same"])
    )
    match kind:
        case "int":
            return some(ints)
        case "float":
            return some(floats)
        case "text":
            return some(texts)
        case "bool":
            return some(st.booleans())
        case "null":
            return some(st.one_of(st.none(), draw(st.sampled_from([ints, floats, texts, st.booleans()]))))
        case "ints":
            return _array_of("i8", some(ints))
        case "floats":
            return _array_of("f8", some(floats))
        case "flags":
            return flags(np.array(some(st.booleans()), np.bool_))
        case "same":
            return Same(draw(st.one_of(ints, floats, texts, st.none(), st.booleans())), count)
        case "range":
            first, step = draw(st.integers(-(10**6), 10**15)), draw(st.sampled_from([-7, 1, 3, 1024]))
            return range(first, first + step * count, step)
        case _:
            return some(st.one_of(st.none(), ints, floats, texts, st.booleans()))


@st.composite
def batches(draw: st.DrawFn, *, events: bool) -> Batch:
    count = draw(counts)
    found = tuple(draw(columns(count)) for _ in range(draw(st.integers(0, 4))))
    max_ticks: Any = draw(
        st.one_of(
            st.integers(0, 10**15).map(lambda first: range(first, first + 1024 * count, 1024)),
            st.integers(0, 10**15).map(lambda first: list(range(first, first + 1024 * count, 1024))),
            st.lists(ticks, min_size=count, max_size=count),
            st.lists(ticks, min_size=count, max_size=count).map(lambda values: _array_of("i8", values)),
        )
    )
    if not events:
        seen = st.lists(st.booleans(), min_size=count, max_size=count)
        arrays = seen.map(lambda values: flags(np.array(values, np.bool_)))
        visible = draw(st.one_of(seen, arrays, st.just(Same(True, count)), st.just([False] * count)))
        return Batch(found, max_ticks, visible)
    lineages = draw(
        st.one_of(st.none(), st.just([2] * count), st.lists(st.integers(0, 3), min_size=count, max_size=count))
    )
    return Batch.events(max_ticks, found, lineages)


@st.composite
def coverages(draw: st.DrawFn) -> LineageCoverage:
    made = []
    for _ in range(draw(st.integers(1, 3))):
        coverage = Coverage.of(
            *(
                (first, min(first + length, TICK_MAX))
                for first, length in draw(st.lists(st.tuples(whole, st.just(3)), max_size=3))
            )
        )
        if draw(st.booleans()):
            gap = draw(st.integers(2, 10**12))
            coverage = Coverage.of(*((i * gap, i * gap) for i in range(draw(st.sampled_from([5, 64, 65, 200])))))
        made.append(coverage)
    return LineageCoverage(made)


filtered = st.one_of(st.none(), whole)
knowledges = st.builds(Knowledge, whole, whole, whole, coverages(), batches(events=False), filtered, ticks)
snapshots = st.builds(Snapshot, whole, whole, coverages(), ticks, st.booleans(), ticks, batches(events=False), filtered)


@st.composite
def keys(draw: st.DrawFn) -> tuple[tuple[Any, ...], ...]:
    width = draw(st.integers(0, 3))
    count = draw(counts)
    return tuple(tuple(draw(st.one_of(ints, texts, st.none())) for _ in range(width)) for _ in range(count))


messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(Events, coverages(), batches(events=True)),
    st.builds(Trimmed, coverages()),
    knowledges,
    snapshots,
    st.builds(Heartbeat, whole, whole, coverages()),
    st.builds(Part, whole, whole, whole, whole, st.one_of(knowledges, snapshots)),
    st.builds(EventCuriosity, whole, coverages()),
    st.builds(Curiosity, whole, whole, whole, coverages()),
    st.builds(EventAck, whole, coverages()),
    st.builds(Ack, whole, whole, whole, ticks),
    st.builds(Quench, whole, keys()),
    st.builds(Durable, whole, ticks),
)

plain_data = st.dictionaries(
    names,
    st.recursive(
        st.one_of(st.none(), st.booleans(), ints, floats, texts, st.binary(max_size=300)),
        lambda inner: st.one_of(st.lists(inner, max_size=20), st.dictionaries(names, inner, max_size=20)),
        max_leaves=30,
    ),
    max_size=5,
)


@st.composite
def publishes(draw: st.DrawFn) -> control.Publish:
    count = draw(counts)
    found = tuple(draw(columns(count)) for _ in range(draw(st.integers(1, 3))))
    previous = draw(st.one_of(st.none(), st.integers(-1, 100)))
    return control.Publish(draw(names), draw(names), draw(whole), found, previous)


long_texts = st.one_of(texts, st.integers(200, 600).map(lambda n: "é" * n))
topics = st.binary(max_size=24)
records: st.SearchStrategy[ControlRecord] = st.one_of(
    st.builds(control.Hello, whole, names, names, whole),
    st.builds(control.Welcome, whole, names, whole, names, names, whole),
    st.builds(control.Describe, whole),
    st.builds(control.Described, whole, plain_data),
    st.builds(control.Deploy, whole, plain_data),
    st.builds(control.Check, whole, plain_data),
    st.builds(control.Done, whole),
    st.builds(control.Refused, whole, names, long_texts),
    st.builds(control.Attach, whole, names, names, names, names),
    st.builds(control.Attached, whole, names, topics, whole),
    st.builds(control.Confirmed, names, topics),
    st.builds(control.Detach, names),
    st.builds(control.Unattached, names),
    publishes(),
    st.builds(
        control.Acknowledged,
        names,
        whole,
        st.one_of(
            st.lists(ticks, max_size=40).map(tuple),
            st.builds(lambda first, count: range(first, first + 1024 * count, 1024), st.integers(0, 10**15), counts),
        ),
        st.booleans(),
    ),
    st.builds(control.PublishRefused, names, whole, names, long_texts, st.booleans(), whole),
    st.builds(control.CoverageOf, whole, st.lists(names, max_size=40).map(tuple)),
    st.builds(
        control.Coverages,
        whole,
        st.dictionaries(names, coverages(), max_size=3),
        st.dictionaries(names, st.tuples(names, long_texts), max_size=3),
    ),
    st.builds(control.Status, whole),
    st.builds(control.StatusReply, whole, plain_data),
    st.builds(control.Fault, whole, names, plain_data),
    st.builds(control.Stop, whole),
    st.builds(control.Hold, whole, names, names),
    st.builds(control.Install, whole, names, whole, whole, st.binary(max_size=3_000)),
    st.builds(control.Release, whole, names),
)


# Fixed samples: for golden bytes, for damage of every kind, and as a fuzzer's first corpus

_COVERAGE = LineageCoverage([Coverage.prefix(5_000), Coverage.of((0, 99), (200, 299))])
_TICKS = [1, 5, 7, 9, 100, 1_000, 4_000, 4_500, 5_000, *range(6_000, 6_011)]
_ROWS = len(_TICKS)
_BATCH = Batch(
    (
        numbers(np.arange(_ROWS) * 3),
        numbers(np.arange(_ROWS) / 4),
        [f"text {i % 3}" for i in range(_ROWS)],
        [None if i % 4 == 0 else i for i in range(_ROWS)],
        [i % 2 == 0 for i in range(_ROWS)],
        [1, 2.5, *["x"] * (_ROWS - 3), None],
    ),
    _TICKS,
    [i != 3 for i in range(_ROWS)],
)
_EVENTS = Batch.events(range(17, 17 + 1024 * 100, 1024), [[f"item {i % 5}" for i in range(100)], list(range(100))])
_KNOWLEDGE = Knowledge(3, 17, 18, _COVERAGE, _BATCH, filtered_for=4, floor=12)

MESSAGES: dict[str, Message] = {
    "one row": Knowledge(3, 17, 18, LineageCoverage.prefix(1, 5_000), Batch(([7], ["x"], [2.5]), [4_999], [True])),
    "knowledge": _KNOWLEDGE,
    "snapshot": Snapshot(3, 18, _COVERAGE, 99, True, NO_TICK, _BATCH),
    "part": Part(1, 4, 80, 2, _KNOWLEDGE),
    "heartbeat": Heartbeat(3, 18, _COVERAGE),
    "events": Events(LineageCoverage.prefix(1, 200_000), _EVENTS),
    "trimmed": Trimmed(_COVERAGE),
    "event curiosity": EventCuriosity(2, LineageCoverage([Coverage.of((5, 9), (100, TICK_MAX))])),
    "curiosity": Curiosity(2, 3, 18, LineageCoverage([Coverage.of(*((i * 9, i * 9) for i in range(80)))])),
    "event ack": EventAck(2, _COVERAGE),
    "ack": Ack(2, 3, 18, 99),
    "quench": Quench(2, ((1, "a"), (2, None))),
    "durable": Durable(2, NO_TICK),
}
RECORDS: dict[str, ControlRecord] = {
    "hello": control.Hello(1, "west", "broker", 17),
    "welcome": control.Welcome(1, "west", 17, "tcp://127.0.0.1:7071", "sha256:00", 1),
    "described": control.Described(2, {"program": "tickets.mpl", "files": {"plan.json": b"{}"}, "residues": {"S": 1}}),
    "refused": control.Refused(3, "not-allowed", "no right to publish to S" * 60),
    "attach": control.Attach(4, "guests:Available", "Available", "guest", "sha256:01"),
    "attached": control.Attached(4, "guests:Available", bytes(range(24)), 5),
    "publish one": control.Publish("S", "a1b2", 6, ([7], ["x"], [2.5]), 5),
    "publish": control.Publish("S", "a1b2", 7, (numbers(np.arange(_ROWS)), ["y"] * _ROWS), None),
    "acknowledged": control.Acknowledged("a1b2", 7, range(17, 17 + 1024 * 20, 1024), repeated=False),
    "publish refused": control.PublishRefused("a1b2", 7, "busy", "too much waits", uncertain=False, retry_after_ms=50),
    "coverage of": control.CoverageOf(8, ("A", "B")),
    "coverages": control.Coverages(8, {"A": _COVERAGE}, {"B": ("overflow", "a sum beyond 64 bits")}),
    "hold": control.Hold(10, "Available", "sha256:01"),
    "install": control.Install(11, "Available", 4_096, 10_000, bytes(range(256)) * 5),
    "status": control.StatusReply(9, {"components": [{"name": "A", "gaps": 0, "rate": 1.5}]}),
}


def sample_frames() -> dict[str, list[bytes]]:
    """Every fixed sample as frames."""
    made = {name: encode_message("an edge", message) for name, message in MESSAGES.items()}
    return made | {name: encode_control(record) for name, record in RECORDS.items()}
