"""Goal: a view of events stops at what cannot be computed (E5), in brokers as in one process, and asks for no more."""

from __future__ import annotations

import pytest

import smile
from runtime.operators.errors import NoValue
from runtime.operators.group_by import GroupBySpec
from runtime.operators.select import SelectSpec
from runtime.operators.totals import SumSpec
from runtime.plan import Component, Relation
from runtime.protocol.event_component import EventComponent
from runtime.protocol.events import ReportFailed
from runtime.protocol.messages import EventCuriosity, Events
from smile.views import ViewReader
from tests.broker.hosts import Net as Hosts
from tests.protocol.net import EVENT_COLUMNS, Net, state, stream


class Fussy:
    """A function of a row that fails for v = 13 until it is mended."""

    is_mended = False

    def __call__(self, tick: int, k: str, v: int) -> int:
        if v == 13 and not self.is_mended:
            raise NoValue("S", "13", "fussy")
        return v


def summing(fussy: Fussy, *senders: str) -> Component:
    return state("S", GroupBySpec((1,), (SumSpec(fussy),)), *senders)


def test_what_follows_a_failure_is_not_taken_nor_asked_for() -> None:
    net = Net(stream("s"), summing(Fussy(), "s"))
    for at, v in ((1, 1), (2, 13), (3, 1), (4, 1)):
        net.publish("s", at, "A", v)
        net.settle()
    net.silence("s", 9)
    net.settle()
    assert net.rows("S") == {"A": (1,)}
    assert net.covers("S") == "0..1"
    assert net.components["S"].counters["dropped.failed"] == 3
    net.done["S"].clear()
    net.done["s"].clear()
    net.sync("S")
    assert [question.wanted.show() for question in net.sent("S", EventCuriosity)] == ["2"]
    assert [len(answer.rows) for answer in net.sent("s", Events)] == [1], "not all that has come since"
    assert [report.code for report in net.did("S", ReportFailed)] == ["fussy"]


def test_what_comes_late_and_belongs_before_the_failure_is_taken() -> None:
    net = Net(stream("s"), summing(Fussy(), "s"))
    net.publish("s", 1, "A", 1)
    late = net.take("s>S", Events)
    net.publish("s", 2, "A", 13)
    net.settle(without=lambda mail: isinstance(mail.message, EventCuriosity))
    net.deliver(*late)
    assert net.rows("S") == {"A": (1,)}
    assert net.covers("S") == "0..1"


def test_other_streams_wait_too_and_all_goes_on_once_it_can_be_computed() -> None:
    fussy = Fussy()
    net = Net(stream("s", 0, 2), stream("t", 1, 2), summing(fussy, "s", "t"))
    net.publish("s", 2, "A", 13)
    net.settle()
    net.publish("t", 3, "B", 5)
    net.publish("s", 4, "A", 1)
    net.settle()
    assert net.rows("S") == {}
    fussy.is_mended = True
    net.sync("S", "s>S")
    net.settle()
    assert net.rows("S") == {"A": (14,), "B": (5,)}
    assert net.receiver("S").failed is None


def test_a_restart_tries_again() -> None:
    fussy = Fussy()
    net = Net(stream("s"), summing(fussy, "s"))
    net.publish("s", 1, "A", 13)
    net.settle()
    fussy.is_mended = True
    net.restart("S")
    net.settle()
    assert net.rows("S") == {"A": (13,)}


def test_a_selection_of_events_stops_too() -> None:
    relation = Relation("S", EVENT_COLUMNS, 1, is_event=True)
    net = Net(stream("s"), state("S", SelectSpec(lambda *row: Fussy()(*row) > 0), "s", relation=relation))
    for at, v in ((1, 1), (2, 13), (3, 1)):
        net.publish("s", at, "A", v)
        net.settle()
    selected = net.components["S"]
    assert isinstance(selected, EventComponent)
    assert selected.held.select(selected.coverage()).rows() == [(1, "A", 1)]


PROGRAM = """
stream S (k int, v int);
view Ratio = from S |> extend r := 100 / v;
view Large = from S |> where 100 / v > 10;
view Sums = from Ratio |> aggregate total := sum(r), n := count() group by k;
"""
EVENTS = [(1, 50), (2, 5), (3, 0), (1, 4), (2, 2)]


@pytest.mark.parametrize("home", ["near", "far"])
def test_brokers_show_what_one_process_shows(home: str) -> None:
    program = smile.compile(PROGRAM)
    views = ("Ratio", "Large", "Sums")
    net = Hosts()
    net.deploy(program, {"S": "near", **dict.fromkeys(views, home)})
    with smile.run(program) as system:
        told = {view: system.subscribe(view) for view in views}
        for sequence, (k, v) in enumerate(EVENTS):
            system.publish("S", {"k": k, "v": v})
            net.hosts["near"].publish("S", "p", sequence, ([k], [v]))
            net.carry()
        net.pass_time(5_000_000, 500_000)
        for view, subscription in told.items():
            rows = {change.key: change.row for change in subscription.ready()}
            assert rows, "some were told before"
            with pytest.raises(smile.ViewFailed):
                subscription.ready()
            assert shown(net, program, view, home) == sorted(
                ([value for name, value in row.items() if name != "tick"] for row in rows.values()), key=repr
            )


def shown(net: Hosts, program: smile.Program, view: str, home: str) -> list[list[object]]:
    component = net.hosts[home].hosted[view].component
    if isinstance(component, EventComponent):
        batch = component.held.select(component.coverage())
    else:
        rows = net.rows_of(home, view)
        batch = rows.select(rows.visible_slots())
    return sorted((list(row.values()) for row in ViewReader(program.plan.views[view]).rows(batch)), key=repr)
