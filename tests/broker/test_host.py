"""The shell without sockets: what a host does with events, instructions, timers, logs and peers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

import smile
from runtime.batch import Batch
from runtime.broker.host import GUEST_GRACE_US, Host
from runtime.broker.hosted import RUNNING, STOPPED, WAITING, Told, guests_edge
from runtime.broker.status import component_status
from runtime.broker.traffic import _cut
from runtime.broker.tuning import BROKER
from runtime.log.stream_log import LogCorrupt, LogError
from runtime.protocol.coverage import Coverage
from runtime.protocol.events import Deliver
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Curiosity, Events, Heartbeat, Knowledge, Part, Snapshot
from runtime.protocol.parts import Assembly
from runtime.protocol.producers import Producers
from runtime.protocol.stream import StreamComponent
from tests.broker.hosts import PROGRAM, Net

ALL = {"Buys": "a", "Items": "a", "Sold": "b", "Big": "b", "Large": "a"}


@pytest.fixture(scope="module")
def program() -> smile.Program:
    return smile.compile(PROGRAM)


@pytest.fixture
def net(program: smile.Program) -> Net:
    made = Net()
    made.deploy(program, ALL)
    return made


def publish(net: Net, sequence: int, rows: list[tuple[int, int]], **more: int | None) -> None:
    columns = tuple(list(column) for column in zip(*rows, strict=True))
    net.hosts["a"].publish("Buys", "p", sequence, columns, source=b"me", **more)


def test_a_publish_is_acknowledged_to_its_sender_and_reaches_a_subscriber_on_another_host(net: Net) -> None:
    told: list[Told] = []
    leaf = net.subscribe("Sold", told.append)
    publish(net, 0, [(1, 5), (2, 7), (1, 4)])
    net.carry()
    ((outcome, source),) = net.outcomes
    assert (outcome.code, outcome.sequence, len(outcome.ticks), source) == ("", 0, 3, b"me")
    assert net.visible(leaf) == [(1, 9, 2), (2, 7, 1)]
    assert isinstance(told[0], Deliver)
    assert told[0].kind == "snapshot"


def test_everything_of_one_round_is_one_commit(program: smile.Program) -> None:
    net, blocks = Net(), []

    @contextmanager
    def group() -> Iterator[None]:
        blocks.append("begin")
        yield
        blocks.append("end")

    net.host("a").logs._group = group
    net.deploy(program, {"Buys": "a", "Items": "a"})
    blocks.clear()
    for sequence in range(5):
        publish(net, sequence, [(1, 1)])
    net.hosts["a"].publish("Items", "p", 0, ([1], ["one"]))
    net.hosts["a"].work()
    assert blocks == ["begin", "end"]
    assert [outcome.code for outcome, _ in net.outcomes] == [""] * 6


def test_a_slow_joiner_is_told_what_was_before_and_an_answer_goes_only_to_who_asked(net: Net) -> None:
    first = net.subscribe("Sold", lambda _: None, 0)
    publish(net, 0, [(1, 5)])
    net.carry()
    net.seen.clear()
    second = net.subscribe("Sold", lambda _: None, 1)
    answers = [one for one in net.seen if isinstance(one.message, Snapshot | Knowledge) and one.edge == "guests:Sold"]
    assert {one.to for one in answers} == {b"leaf Sold 1"}
    assert net.visible(second) == net.visible(first) == [(1, 5, 1)]


def test_a_guest_that_lost_messages_asks_and_gets_the_present_state(net: Net) -> None:
    leaf = net.subscribe("Sold", lambda _: None)
    net.lose = lambda letter: letter.edge == "guests:Sold"
    for sequence in range(20):
        publish(net, sequence, [(1, 1)])
    net.carry()
    assert net.visible(leaf) == []
    net.lose = lambda _: False
    net.pass_time(1_000_000)
    assert net.visible(leaf) == [(1, 20, 20)]


def test_guests_of_event_relations_share_an_edge_too(net: Net) -> None:
    leaf = net.subscribe("Large", lambda _: None)
    publish(net, 0, [(1, 5), (2, 7)])
    net.carry()
    other = net.subscribe("Large", lambda _: None, 1)
    assert [row[1:] for row in net.visible(leaf)] == [(2, 7)]
    assert net.visible(other) == net.visible(leaf)
    assert len(net.hosts["a"].hosted["Large"].component.out_edges) == 1


def test_nothing_is_made_for_nobody(net: Net) -> None:
    net.subscribe("Big", lambda _: None)
    net.hosts["b"].detach_guests("Big")
    net.seen.clear()
    publish(net, 0, [(1, 50)])
    net.pass_time(500_000)
    edges = {letter.edge for letter in net.seen}
    assert guests_edge("Big") not in edges
    assert edges  # others were told


def test_tombstones_go_after_the_grace_time(net: Net) -> None:
    program = smile.compile(PROGRAM + "view Small = from Sold |> where total < 10;")
    net = Net()
    net.deploy(program, {"Buys": "a", "Sold": "a", "Small": "a"})
    leaf = net.subscribe("Small", lambda _: None)
    publish(net, 0, [(1, 5)])
    net.pass_time(500_000)
    publish(net, 1, [(1, 50)])
    net.pass_time(500_000)
    rows = net.rows_of("a", "Small")
    assert net.visible(leaf) == []
    assert len(rows.slots()) == 1
    net.pass_time(GUEST_GRACE_US + 5_000_000, 500_000)
    assert len(rows.slots()) == 0
    late = net.subscribe("Small", lambda _: None, 1)
    assert net.visible(late) == []


def test_repeats_are_acknowledged_with_their_first_ticks(net: Net) -> None:
    publish(net, 0, [(1, 1)])
    net.carry()
    publish(net, 0, [(1, 1)])
    net.carry()
    first, second = (outcome for outcome, _ in net.outcomes)
    assert list(first.ticks) == list(second.ticks)
    assert (first.repeated, second.repeated) == (False, True)


def test_publishes_of_one_producer_keep_their_order(net: Net) -> None:
    publish(net, 0, [(1, 1)], previous=-1)
    publish(net, 2, [(1, 3)], previous=1)
    publish(net, 1, [(1, 2)], previous=0)
    publish(net, 2, [(1, 3)], previous=1)
    net.carry()
    codes = [(outcome.sequence, outcome.code) for outcome, _ in net.outcomes]
    assert codes[0] == (2, "order")
    assert sorted(codes[1:]) == [(0, ""), (1, ""), (2, "")]
    rows = net.stores["Buys"].read(net.hosts["a"].coverages(["Buys"])["Buys"][0], 100)[1]
    assert list(rows.columns[2]) == [1, 2, 3]


def test_a_producer_that_a_stream_has_forgotten_begins_anew(net: Net) -> None:
    host = net.hosts["a"]
    hosted = host.hosted["Buys"]
    assert isinstance(hosted.component, StreamComponent)
    hosted.component.producers = Producers(window=8, producers_max=1)
    publish(net, 0, [(1, 1)], previous=-1)
    net.carry()
    host.publish("Buys", "q", 0, ([1], [2]))
    net.carry()
    assert "too many producers" in net.outcomes[-1][0].reason
    net.now_us += BROKER.producer_idle_us + 1
    host.publish("Buys", "q", 0, ([1], [2]))
    net.carry()
    assert net.outcomes[-1][0].code == ""
    assert component_status(hosted)["producers"] == 1
    net.now_us += BROKER.producer_idle_us + 1
    publish(net, 0, [(1, 1)], previous=-1)
    net.carry()
    outcome, _ = net.outcomes[-1]
    assert (outcome.code, outcome.repeated) == ("", False), "neither the order nor the repeat is known any more"


@pytest.mark.parametrize(
    ("columns", "code"),
    [(([1],), "shape"), (([1], ["x"]), "shape"), (([], []), "shape"), (([1, 2], [1]), "shape")],
)
def test_what_does_not_fit_is_refused_and_nothing_is_logged(net: Net, columns: tuple[list[object]], code: str) -> None:
    net.hosts["a"].publish("Buys", "p", 0, columns)  # type: ignore[arg-type]
    net.carry()
    assert [outcome.code for outcome, _ in net.outcomes] == [code]
    assert net.stores["Buys"].last_tick == -1


class OneToTen:
    """A gate: values from 1 to 10, each once."""

    remembers = True
    needs_all = True

    def __init__(self) -> None:
        self.seen: set[object] = set()

    def reason_to_refuse(self, columns: tuple[list[object], ...]) -> str | None:
        return "no" if any(v in self.seen or v not in range(1, 11) for v in columns[0]) else None

    def note(self, columns: tuple[list[object], ...]) -> None:
        self.seen.update(columns[0])

    def forget(self) -> None:
        self.seen.clear()


def test_a_gate_judges_new_publishes_only_also_within_one_round_and_learns_from_the_log(net: Net) -> None:
    gate = OneToTen()
    host = net.hosts["a"]
    host._publishing._streams["Buys"].gate = gate  # type: ignore[assignment]
    publish(net, 0, [(1, 1)])
    publish(net, 1, [(1, 1)])
    publish(net, 2, [(11, 1)])
    publish(net, 0, [(1, 1)])
    net.carry()
    codes = [(outcome.sequence, outcome.code) for outcome, _ in net.outcomes]
    assert codes == [(1, "rule"), (2, "rule"), (0, "")]
    gate.note(([5],))  # as if noted and then lost
    host._cannot_go_on(host.hosted["Buys"], "test")
    net.pass_time(1_000_000)
    assert gate.seen == {1}


def test_a_log_that_fails_refuses_as_uncertain_and_the_stream_starts_again(net: Net) -> None:
    host, store = net.hosts["a"], net.stores["Buys"]
    leaf = net.subscribe("Sold", lambda _: None)
    good = store.append

    def bad(*_: object) -> None:
        raise LogError("disk full")

    store.append = bad  # type: ignore[method-assign,assignment]
    publish(net, 0, [(1, 1)])
    net.carry()
    ((outcome, _),) = net.outcomes
    assert (outcome.code, outcome.uncertain) == ("log", True)
    assert host.hosted["Buys"].state == WAITING
    assert "disk full" in component_status(host.hosted["Buys"])["reason"]
    publish(net, 0, [(1, 1)])
    assert net.outcomes[-1][0].code == "stopped"
    assert net.outcomes[-1][0].retry_after_ms
    store.append = good  # type: ignore[method-assign]
    net.pass_time(1_000_000)
    assert host.hosted["Buys"].state == RUNNING
    publish(net, 0, [(1, 1)])
    net.pass_time(3_000_000)
    assert net.outcomes[-1][0].code == ""
    assert net.visible(leaf) == [(1, 1, 1)]


def test_a_damaged_log_stops_its_stream_for_good_and_nothing_else(net: Net) -> None:
    host, store = net.hosts["a"], net.stores["Buys"]

    def bad(*_: object) -> None:
        raise LogCorrupt("batch 7 is damaged")

    store.read = bad  # type: ignore[method-assign,assignment]
    net.pass_time(1_000_000)
    net.subscribe("Buys", lambda _: None)
    net.pass_time(10_000_000, 500_000)
    assert host.hosted["Buys"].state == STOPPED
    assert "batch 7" in host.hosted["Buys"].reason
    publish(net, 0, [(1, 1)])
    assert net.outcomes[-1][0].retry_after_ms is None
    host.publish("Items", "p", 0, ([1], ["one"]))
    net.carry()
    assert net.outcomes[-1][0].code == ""


def test_input_that_no_correct_peer_sends_is_counted_and_harms_nobody(net: Net) -> None:
    host = net.hosts["b"]
    edge = next(edge for edge in net.ends if net.ends[edge][1] == "Sold")
    coverage = host.hosted["Sold"].component.coverage()
    host.arrived("Sold", edge, Heartbeat(1, 1, coverage), None)
    host.arrived("Sold", "no such edge", Heartbeat(1, 1, coverage), None)
    host.arrived("Nobody", edge, Heartbeat(1, 1, coverage), None)
    assert sum(host.hosted["Sold"].refused.values()) == 2
    assert host.counters["message_for_nobody"] == 1
    publish(net, 0, [(1, 1)])
    net.carry()
    assert len(net.rows_of("b", "Sold").slots()) == 1


def test_a_component_that_breaks_starts_again_alone(net: Net) -> None:
    host = net.hosts["b"]
    leaf = net.subscribe("Sold", lambda _: None)
    publish(net, 0, [(1, 1)])
    net.carry()
    epoch = host.hosted["Sold"].component.epoch

    def bad(*_: object) -> None:
        raise RuntimeError("our own mistake")

    host.hosted["Sold"].component.operator.take = bad  # type: ignore[union-attr,method-assign]
    publish(net, 1, [(1, 1)])
    net.carry()
    assert host.hosted["Sold"].state == WAITING
    assert host.hosted["Big"].state == RUNNING
    net.pass_time(4_000_000)
    assert host.hosted["Sold"].state == RUNNING
    assert host.hosted["Sold"].component.epoch > epoch
    assert net.visible(leaf) == [(1, 2, 2)]


def test_a_checkpoint_that_cannot_be_read_now_is_waited_for(net: Net) -> None:
    """Too many open files, say. Without it a component would begin with nothing, and its logs may have been trimmed."""
    host = net.hosts["b"]
    answers: list[OSError | None] = [None, OSError("too many open files")]

    class Shelf:
        def load(self, component: str, digest: str) -> tuple[None, int]:
            if component == "Sold" and (error := answers.pop()) is not None:
                raise error
            return None, -1

        def begin(self, due: object) -> None:
            raise AssertionError

    host._checkpoints = Shelf()
    publish(net, 0, [(1, 1)])
    net.carry()
    host._cannot_go_on(host.hosted["Sold"], "a test")
    net.pass_time(150_000)
    assert (host.hosted["Sold"].state, len(answers)) == (WAITING, 1)
    assert "too many open files" in host.hosted["Sold"].reason
    net.pass_time(1_000_000)
    assert (host.hosted["Sold"].state, answers) == (RUNNING, [])


def test_what_cannot_be_computed_is_reported_and_the_view_stays_true(program: smile.Program) -> None:
    program = smile.compile("stream S (k int, v int); view T = from S |> aggregate t := sum(v) group by k;")
    net = Net()
    net.deploy(program, {"S": "a", "T": "a"})
    leaf = net.subscribe("T", lambda _: None)
    host = net.hosts["a"]
    host.publish("S", "p", 0, ([1], [2**62]))
    net.carry()
    host.publish("S", "p", 1, ([1], [2**62]))
    net.carry()
    failure = host.hosted["T"].failure
    assert failure is not None
    assert failure.code == "overflow"
    assert [row[:2] for row in net.visible(leaf)] == [(1, 2**62)]


def test_questions_wait_their_turn_one_per_asker(net: Net) -> None:
    host: Host = net.hosts["b"]
    publish(net, 0, [(n, 1) for n in range(100)])
    net.carry()
    net.subscribe("Sold", lambda _: None)
    question = Curiosity(7, 0, 0, LineageCoverage.empty(1))
    for asker in range(50):
        for _ in range(3):
            host.arrived("Sold", guests_edge("Sold"), question, b"guest %d" % asker)
    assert host.next_due_us() == 0
    while host.next_due_us() == 0:
        host.work()
    answers = [letter for letter in net.letters if isinstance(letter.message, Snapshot)]
    assert len({letter.to for letter in answers}) == len(answers) == 50


def test_events_told_in_one_round_are_one_message(net: Net) -> None:
    net.seen.clear()
    for sequence in range(10):
        publish(net, sequence, [(1, 1)])
    net.carry()
    told = [(one.edge, len(one.message.rows)) for one in net.seen if isinstance(one.message, Events)]
    assert [
        told.count((edge, 10))
        for edge, (sender, _) in net.ends.items()
        if sender == "Buys" and not edge.startswith("Buys->Large#0")
    ] == [1, 1]


def test_messages_too_large_for_any_peer_are_cut() -> None:
    rows = Batch.of_rows(2, [(n, "x" * 50) for n in range(200)], [1] * 200, [True] * 200)
    whole = Snapshot(1, 1, LineageCoverage.empty(1), -1, True, -1, rows)
    pieces = _cut(whole)
    assembly = Assembly()
    found = [assembly.add(piece) for piece in pieces if isinstance(piece, Part)]
    assert len(pieces) > 10
    assert isinstance(found[-1], Snapshot)
    assert found[-1].rows.rows() == rows.rows()
    assert len(_cut(replace(whole, rows=rows.slice(0, 2)))) == 2
    assert not _cut(replace(whole, rows=rows.slice(0, 1)))
    events = Batch.events(range(0, 2048, 1024), ([1, 2],))
    cut = _cut(Events(LineageCoverage([Coverage.prefix(2047)]), events))
    assert [len(one.rows) for one in cut if isinstance(one, Events)] == [1, 1]


def test_rows_that_arrive_make_a_checkpoint_worth_while(net: Net) -> None:
    net.carry()
    large = net.hosts["a"].hosted["Large"]
    before = large.rows_since_checkpoint
    publish(net, 0, [(1, 5), (2, 7), (1, 4)])
    net.carry()
    assert large.rows_since_checkpoint == before + 3
