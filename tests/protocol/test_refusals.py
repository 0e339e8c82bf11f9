"""Bad input is refused with a typed error that says what and where, is counted, and changes nothing."""

import copy
from dataclasses import replace

import pytest

from runtime.batch import Batch
from runtime.plan import Column, Plan, PlanError, Relation, StreamSpec, Tuning, ValueType
from runtime.protocol.build import build_component
from runtime.protocol.coverage import Coverage
from runtime.protocol.errors import (
    BadEpoch,
    BadRange,
    BadShape,
    BadType,
    NotStarted,
    ProtocolError,
    TooLarge,
    UnexpectedMessage,
    UnknownEdge,
)
from runtime.protocol.events import (
    CheckpointDue,
    Event,
    LogRead,
    LogWritten,
    MessageArrived,
    Published,
    ReceiverDetached,
    ReportFailed,
    Restarted,
    TimerFired,
)
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
    Quench,
    Snapshot,
    Trimmed,
)
from tests.protocol.graphs import copy as copy_of
from tests.protocol.graphs import merge, total
from tests.protocol.net import EVENT_COLUMNS, Net, leaf, state, stream

K = LineageCoverage([Coverage.prefix(5)])
K2 = LineageCoverage([Coverage.prefix(5), Coverage.prefix(5)])
EVENT = Batch.events([3], [["A"], [1]])
ROW = Batch.of_rows(2, [("A", 9)], [3], [True])
KNOWLEDGE = Knowledge(1, 1, 2, K, ROW)
SNAPSHOT = Snapshot(2, 0, K, -1, False, -1, ROW)


def running() -> Net:
    """s -> m -> S -> X, with one event everywhere."""
    net = Net(stream("s"), merge("m", "s"), total("S", "m"), copy_of("X", "S"), leaf("L", "X"))
    net.publish("s", 1, "A", 2)
    net.settle()
    return net


def rows_of(*rows: tuple[object, ...], ticks: list[int] | None = None, visible: list[bool] | None = None) -> Batch:
    count = len(rows)
    return Batch.of_rows(len(rows[0]), rows, ticks or [3] * count, visible or [True] * count)  # type: ignore[arg-type]


BAD: list[tuple[str, str, Message, type[ProtocolError]]] = [
    ("S", "nowhere", Events(K, EVENT), UnknownEdge),
    ("m", "nowhere", Events(K, EVENT), UnknownEdge),
    ("s", "s>m", Events(K, EVENT), UnknownEdge),
    ("X", "X>L", KNOWLEDGE, UnknownEdge),
    ("S", "m>S", KNOWLEDGE, UnexpectedMessage),
    ("m", "s>m", Heartbeat(1, 1, K), UnexpectedMessage),
    ("X", "S>X", Events(K, EVENT), UnexpectedMessage),
    ("X", "S>X", Trimmed(K), UnexpectedMessage),
    ("S", "S>X", EventCuriosity(1, K), UnexpectedMessage),
    ("S", "S>X", EventAck(1, K), UnexpectedMessage),
    ("S", "S>X", Durable(1, 3), UnexpectedMessage),
    ("m", "m>S", Curiosity(1, 0, 0, K), UnexpectedMessage),
    ("m", "m>S", Quench(1, ()), UnexpectedMessage),
    ("s", "s>m", Ack(1, 0, 0, 0), UnexpectedMessage),
    # events
    ("S", "m>S", Events(K2, EVENT), BadShape),
    ("S", "m>S", Events(K, Batch.events([9], [["A"], [1]])), BadRange),
    ("S", "m>S", Events(K, Batch.events([3, 3], [["A", "B"], [1, 1]])), BadRange),
    ("S", "m>S", Events(K, Batch.events([3], [["A"]])), BadShape),
    ("S", "m>S", Events(K, Batch.events([3], [["A", "B"], [1]])), BadShape),
    ("S", "m>S", Events(K, Batch.events([3], [[7], [1]])), BadType),
    ("S", "m>S", Events(K, Batch.events([3], [["A"], ["1"]])), BadType),
    ("S", "m>S", Events(K, Batch.events([3], [["A"], [True]])), BadType),
    ("S", "m>S", Events(K, Batch.events([3], [["A"], [None]])), BadType),
    ("S", "m>S", Events(K, Batch.events([3], [["A"], [1]], [1])), BadShape),
    ("S", "m>S", Events(K, Batch.events([-7], [["A"], [1]])), BadRange),
    ("S", "m>S", Events(K, replace(EVENT, lineages=None)), BadShape),
    ("S", "m>S", Events(K, replace(EVENT, visible=[False])), BadShape),
    ("S", "m>S", Events(K, replace(EVENT, max_ticks=[4])), BadShape),
    ("m", "s>m", Events(K, Batch.events([9], [["A"], [1]])), BadRange),
    ("m", "s>m", Trimmed(K2), BadShape),
    ("m", "m>S", EventCuriosity(1, K2), BadShape),
    ("m", "m>S", EventCuriosity(0, K), BadEpoch),
    ("m", "m>S", Durable(1, -2), BadRange),
    # state
    ("X", "S>X", replace(KNOWLEDGE, epoch=0), BadEpoch),
    ("X", "S>X", replace(KNOWLEDGE, from_step=2), BadRange),
    ("X", "S>X", replace(KNOWLEDGE, from_step=-1), BadRange),
    ("X", "S>X", replace(KNOWLEDGE, coverage=K2), BadShape),
    ("X", "S>X", replace(KNOWLEDGE, coverage=LineageCoverage.empty(1)), BadRange),
    ("X", "S>X", replace(KNOWLEDGE, filtered_for=0), BadEpoch),
    ("X", "S>X", replace(KNOWLEDGE, rows=rows_of(("A",))), BadShape),
    ("X", "S>X", replace(KNOWLEDGE, rows=rows_of((1, 1))), BadType),
    ("X", "S>X", replace(KNOWLEDGE, rows=rows_of(("A", 1.5))), BadType),
    ("X", "S>X", replace(KNOWLEDGE, rows=rows_of(("A", None))), BadType),
    ("X", "S>X", replace(KNOWLEDGE, rows=rows_of((None, 1), visible=[False])), BadType),
    ("X", "S>X", replace(KNOWLEDGE, rows=rows_of(("A", 1), ticks=[2**63])), BadRange),
    ("X", "S>X", replace(KNOWLEDGE, rows=replace(ROW, lineages=[0])), BadShape),
    ("X", "S>X", replace(KNOWLEDGE, rows=replace(ROW, visible=[1])), BadType),  # type: ignore[list-item]
    ("X", "S>X", replace(SNAPSHOT, rows=rows_of(("A", 1), ("A", 2))), BadShape),
    ("X", "S>X", replace(SNAPSHOT, horizon=-2), BadRange),
    ("X", "S>X", replace(SNAPSHOT, floor=2**63), BadRange),
    ("X", "S>X", replace(SNAPSHOT, complete=1), BadType),  # type: ignore[arg-type]
    ("X", "S>X", Heartbeat(1, -1, K), BadRange),
    ("X", "S>X", Heartbeat(True, 1, K), BadEpoch),
    ("S", "S>X", Curiosity(1, -1, 0, K), BadEpoch),
    ("S", "S>X", Curiosity(1, 1, 99, K), BadRange),
    ("S", "S>X", Curiosity(1, 1, 0, LineageCoverage([Coverage.prefix(99)])), BadRange),
    ("S", "S>X", Ack(1, 1, 0, 99), BadRange),
    ("S", "S>X", Quench(1, (("A", "B"),)), BadShape),
    ("S", "S>X", Quench(1, ((5,),)), BadType),
]


def picture(net: Net, name: str) -> object:
    """All that a refusal must leave alone."""
    component = net.components[name]
    edges = {n: (e.coverage.show(), e.asker.waiting) for n, e in getattr(component, "in_edges", {}).items()}
    out = {n: copy.copy(e.__dict__) for n, e in getattr(component, "out_edges", {}).items()}
    shown = {n: {key: str(value) for key, value in e.items()} for n, e in out.items()}
    rows = (
        component.operator.export() if hasattr(component, "operator") and hasattr(component.operator, "export") else 0
    )
    return component.epoch, component.coverage().show(), edges, shown, rows, getattr(component, "step", 0)


@pytest.mark.parametrize(("name", "edge", "message", "refusal"), BAD)
def test_a_bad_message_is_refused_counted_and_changes_nothing(
    name: str, edge: str, message: Message, refusal: type[ProtocolError]
) -> None:
    net = running()
    before = picture(net, name)
    with pytest.raises(refusal) as caught:
        net.handle(name, MessageArrived(edge, message))
    assert (caught.value.component, caught.value.place) == (name, edge)
    assert net.components[name].counters[f"refused.{refusal.code}"] == 1
    assert picture(net, name) == before


@pytest.mark.parametrize(
    ("event", "refusal"),
    [
        (Published("p", 9, (["A"],), 5), BadShape),
        (Published("p", 9, (["A"], [1, 2]), 5), BadShape),
        (Published("p", 9, ([], []), 5), BadShape),
        (Published("p", 9, ([1], [1]), 5), BadType),
        (Published("p", 9, (["A"], [None]), 5), BadType),
        (Published("p", 9, (["A", "B"], [1, None]), 5), BadType),
        (Published("p", -1, (["A"], [1]), 5), BadType),
        (Published(3, 1, (["A"], [1]), 5), BadType),  # type: ignore[arg-type]
        (Published("p", 9, (["A"] * 70_000, [1] * 70_000), 5), TooLarge),
        (LogWritten(99), BadRange),
        (ReceiverDetached("nowhere"), UnknownEdge),
        (TimerFired("nonsense", 0), UnexpectedMessage),
        (Restarted(0), BadEpoch),
        (Restarted(1), BadEpoch),
    ],
)
def test_a_bad_event_of_a_stream_is_refused(event: Event, refusal: type[ProtocolError]) -> None:
    net = running()
    before = picture(net, "s")
    with pytest.raises(refusal):
        net.handle("s", event)
    assert picture(net, "s") == before
    assert net.publish("s", 9) == (9,), "and it goes on working"


def test_a_log_that_answers_what_was_not_asked_is_refused() -> None:
    net = running()
    component = net.components["s"]
    component.handle(MessageArrived("s>m", EventCuriosity(1, K)))
    read = LogRead("s>m", Coverage.prefix(4), Batch.empty(3, events=True), Coverage())
    with pytest.raises(BadRange):
        component.handle(read)


def test_only_streams_have_a_log_and_unknown_timers_are_refused() -> None:
    net = running()
    for event in (LogWritten(1), Published("p", 1, ([],), 0), TimerFired("idle:nowhere", 0), TimerFired("what:m>S", 0)):
        with pytest.raises(UnexpectedMessage):
            net.handle("S", event)


def test_nothing_is_accepted_before_the_first_restart() -> None:
    net = running()
    fresh = build_component(net.plan, "S")
    with pytest.raises(NotStarted):
        fresh.handle(CheckpointDue())
    assert fresh.counters["refused.not_started"] == 1


def test_what_cannot_be_computed_is_reported_and_not_covered() -> None:
    """Overflow: the view stays at its last true state, and says so."""
    net = Net(stream("s"), total("S", "s"), leaf("L", "S"))
    net.publish("s", 1, "A", 2**63 - 1)
    net.settle()
    net.publish("s", 2, "A", 5)
    net.pass_on("s>S")
    (report,) = net.did("S", ReportFailed)
    assert (report.edge, report.code) == ("s>S", "overflow")
    assert net.rows("S") == {"A": (2**63 - 1,)}
    assert net.covers("S") == "0..1"


@pytest.mark.parametrize(
    "components",
    [
        (stream("s"), stream("s")),
        (stream("s"), stream("t")),  # one residue twice
        (stream("s", 0, 2), stream("t", 1, 3)),
        (stream("s", 5, 2),),
        (total("S", "s"), stream("s")),
        (stream("s"), merge("m", "s", "s")),
        (stream("s"), total("S", "s"), merge("m", "S")),
        (stream("s"), total("S")),
        (replace(stream("s"), relation=Relation("s", EVENT_COLUMNS, 2, is_event=True)),),
        (replace(stream("s"), relation=Relation("s", EVENT_COLUMNS, 1)),),
        (replace(stream("s"), relation=Relation("s", (Column("k", ValueType.TEXT),), 2)),),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(components: tuple[object, ...]) -> None:
    with pytest.raises(PlanError):
        Plan(components)  # type: ignore[arg-type]


def test_a_stream_has_no_operator() -> None:
    with pytest.raises(PlanError):
        StreamSpec(0).build((), stream("s").relation)
    assert state("S", StreamSpec(0), "s", tuning=Tuning()).is_stream
