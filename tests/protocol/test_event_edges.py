"""Rules E1 and E2: ticks in any order, each once; what is missing is asked for, and trimmed is never silence."""

from random import Random

from runtime.plan import Tuning
from runtime.protocol.coverage import TICK_MAX, Coverage
from runtime.protocol.event_component import EventComponent
from runtime.protocol.event_in_edge import EventInEdge
from runtime.protocol.events import MessageArrived, ReportTrimmed, TimerFired
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import EventCuriosity, Events, Trimmed
from runtime.protocol.receiver import Receiver
from tests.protocol.graphs import large_events, merge, total
from tests.protocol.net import Net, stream


def test_e1_repeated_and_reordered_events_count_once() -> None:
    net = Net(stream("s"), total("S", "s"))
    for tick, quantity in ((1, 2), (4, 3), (6, 5)):
        net.publish("s", tick, "A", quantity)
    first, second, third = net.take("s>S", Events)
    net.deliver(third, first, first, second, third)
    assert net.rows("S") == {"A": (10,)}
    assert net.covers("S") == "0..6"
    assert net.state("S").step == 3


def test_e1_ticks_already_known_are_ignored_inside_a_larger_message() -> None:
    net = Net(stream("s"), total("S", "s"))
    net.publish("s", 1, "A", 2)
    net.settle()
    net.publish("s", 4, "A", 3)
    net.take("s>S")
    net.sync("S")  # the answer covers from tick 2 on; a full one from 0 must not count tick 1 again
    whole = net.logs["s"].read("s>S", Coverage.prefix(4))
    net.handle("S", MessageArrived("s>S", Events(LineageCoverage([whole.cover]), whole.rows)))
    assert net.rows("S") == {"A": (5,)}


def test_e2_a_gap_is_asked_for_at_once_and_only_the_gap() -> None:
    net = Net(stream("s"), total("S", "s"))
    net.publish("s", 1, "A", 2)
    net.pass_on("s>S")
    net.publish("s", 4, "A", 3)
    net.take("s>S")
    net.publish("s", 6, "A", 5)
    net.pass_on("s>S")
    assert [q.wanted.show() for q in net.find(EventCuriosity)] == ["2..4"]
    assert net.rows("S") == {"A": (7,)}, "a sum goes on accumulating beyond a gap"
    net.settle()
    assert net.rows("S") == {"A": (10,)}
    assert net.covers("S") == "0..6"


def test_e2_trimmed_ticks_are_reported_and_never_taken_for_silence() -> None:
    """Mistake 23."""
    net = Net(stream("s"), total("S", "s"))
    net.publish("s", 1, "A", 2)
    net.take()
    net.logs["s"].trimmed = 1
    net.publish("s", 4, "A", 3)
    net.settle()
    assert net.covers("S") == "2..4"
    assert [report.ranges.show() for report in net.did("S", ReportTrimmed)] == ["0..1"]
    net.handle("S", TimerFired("ask:s>S", 0))
    assert not net.find(EventCuriosity), "what nobody can tell is not asked for again"


def test_e2_a_merge_answers_from_what_it_holds() -> None:
    net = Net(stream("s", 0, 2), stream("t", 1, 2), merge("m", "s", "t"), total("S", "m"))
    net.publish("s", 2, "A", 2)
    net.publish("t", 3, "A", 5)
    net.settle(without=lambda mail: mail.edge == "m>S")
    net.done["s"].clear()
    net.sync("S")
    assert net.rows("S") == {"A": (7,)}
    assert not [message for message in net.sent("s", Events) if len(message.rows)]


def test_e2_a_merge_asks_upstream_once_for_all_its_receivers() -> None:
    net = Net(stream("s"), merge("m", "s"), total("S", "m"), total("T", "m"))
    net.publish("s", 2, "A", 2)
    net.take("s>m")
    net.publish("s", 4, "A", 3)
    net.pass_on("s>m")  # the merge sees its own gap and asks; the receivers ask it too
    net.pass_on("m>S")
    net.pass_on("m>T")
    net.pass_on("m>S", EventCuriosity)
    net.pass_on("m>T", EventCuriosity)
    assert len(net.find(EventCuriosity, "s>m")) == 1
    net.settle()
    assert net.rows("S") == net.rows("T") == {"A": (5,)}


def test_e2_a_merge_passes_on_what_it_has_trimmed_itself() -> None:
    net = Net(stream("s"), merge("m", "s"), total("S", "m"))
    net.publish("s", 2, "A", 2)
    net.publish("s", 4, "B", 3)
    net.settle()
    net.checkpoint("S")
    net.settle()
    held = net.components["m"]
    assert isinstance(held, EventComponent)
    assert (held.trimmed_tick, len(held.held)) == (4, 0)
    assert net.logs["s"].trimmed == -1, "only direct receivers of the log count, and the merge wrote no checkpoint"
    net.restart("S")  # from nothing, although it acknowledged: the log still has everything
    net.settle()
    assert net.rows("S") == {"A": (2,), "B": (3,)}


def test_e2_a_merge_passes_trimmed_on() -> None:
    net = Net(stream("s"), merge("m", "s"), total("S", "m"))
    net.publish("s", 2, "A", 2)
    net.settle()
    net.checkpoint("S")
    net.settle()
    net.checkpoint("m")
    net.settle()
    assert net.logs["s"].trimmed == 2
    net.restart("S")
    net.settle(without=lambda mail: isinstance(mail.message, Events) and not mail.message.rows)
    assert len(net.did("S", ReportTrimmed)) == 1
    assert net.covers("S") == "none"


def test_a_merge_shows_which_source_is_missing_where() -> None:
    net = Net(stream("s", 0, 2), stream("t", 1, 2), merge("m", "s", "t"))
    net.publish("s", 2, "A", 2)
    net.publish("t", 3, "A", 5)
    net.take("s>m")
    net.settle()
    merged = net.components["m"]
    assert isinstance(merged, EventComponent)
    assert [(e.first, e.last, e.knows(0), e.knows(1)) for e in merged.gap_list().entries] == [(0, 3, False, True)]


def test_select_on_events_turns_rejects_into_silence() -> None:
    net = Net(stream("s"), large_events("f", "s"), total("S", "f"))
    net.publish("s", 1, "A", 10)
    net.publish("s", 2, "A", 9)
    net.settle()
    assert net.rows("S") == {"A": (10,)}
    assert net.covers("S") == "0..2"


def test_a_question_is_bounded_and_keeps_the_lowest_ranges_and_the_open_end() -> None:
    net = Net(stream("s"), total("S", "s"))
    edge = net.event_edge("S", "s>S")
    for tick in range(2, 100, 2):
        edge.coverage[0].add(tick, tick)
    asked = edge.question(open_end=True, ranges_max=3)[0]
    assert list(asked) == [(0, 1), (3, 3), (99, TICK_MAX)]


def test_an_answer_that_is_too_large_is_cut_and_asked_for_again() -> None:
    tuning = Tuning(message_rows_max=2, answer_rows_max=4)
    net = Net(stream("s"), merge("m", "s", tuning=tuning), total("S", "m"))
    for tick in range(10):
        net.publish("s", tick, "A", 1)
    net.settle(without=lambda mail: mail.edge == "m>S")
    net.done["m"].clear()
    net.sync("S")
    assert max(len(answer.rows) for answer in net.sent("m", Events)) == 2
    assert sum(len(answer.rows) for answer in net.sent("m", Events)) == 4
    for _ in range(4):
        net.sync("S")
    assert net.rows("S") == {"A": (10,)}


def test_trimmed_about_known_ticks_changes_nothing() -> None:
    net = Net(stream("s"), total("S", "s"))
    net.publish("s", 2, "A", 2)
    net.settle()
    before = net.covers("S")
    cover = net.components["S"].coverage()
    assert net.components["S"].handle(MessageArrived("s>S", Trimmed(cover))) == []
    assert net.covers("S") == before


def test_a_coverage_is_that_of_all_edges_whichever_has_grown() -> None:
    """It is put together from what is known of each; what was told before stays as it was."""
    net = Net(stream("s", 0, 3), stream("t", 1, 3), total("A", "s"), merge("m", "t"), total("S", "s", "m"))
    random = Random(4)
    asked: list[tuple[LineageCoverage, str]] = []
    for tick in range(3, 300, 3):
        net.publish(random.choice("st"), tick)
        net.pass_on("t>m")
        net.pass_on(random.choice(("s>S", "m>S.1")))
        if random.random() < 0.4:
            component = net.components["S"]
            assert isinstance(component, Receiver)
            coverage = component.coverage()
            assert coverage == LineageCoverage.concat(edge.coverage for edge in component.in_edges.values())
            assert component.coverage() is coverage
            asked.append((coverage, coverage.show()))
    assert all(coverage.show() == shown for coverage, shown in asked)
    assert len({shown for _, shown in asked}) > 20


def test_what_receivers_want_is_a_reason_to_ask_again() -> None:
    net = Net(stream("s"), merge("m", "s"))
    component = net.components["m"]
    assert isinstance(component, Receiver)
    edge = component.in_edges["s>m"]
    assert isinstance(edge, EventInEdge)
    net.publish("s", 5)
    net.settle()
    assert not edge.needs_answer()
    edge.relay.update(LineageCoverage.of_range(2, 3))
    assert edge.needs_answer()
