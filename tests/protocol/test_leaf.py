"""The subscriber's leaf: snapshot, then changes; four emit modes; resuming with what was kept (C7, section 8)."""

import pytest

from runtime.plan import Column, Emit, Finality, Relation, ValueType
from runtime.protocol.events import Deliver, WatchBegun, WatchEnded
from tests.protocol.graphs import merge, small, total
from tests.protocol.net import EVENT_COLUMNS, Net, leaf, stream

FINAL_EVENTS = Relation("events", EVENT_COLUMNS, 1, finality=Finality.VISIBLE)
FIRSTS = Relation("firsts", (Column("k", ValueType.TEXT), Column("v")), 1, finality=Finality.HORIZON)


def deliveries(net: Net) -> list[tuple[str, list[tuple[object, ...]], list[bool]]]:
    return [(d.kind, list(d.rows.rows()), list(d.rows.visible)) for d in net.did("L", Deliver)]


def test_a_snapshot_comes_first_then_what_changes() -> None:
    net = Net(stream("s"), total("S", "s"), leaf("L", "S"), start=False)
    net.restart("s")
    net.restart("S")
    net.settle()
    net.publish("s", 1, "A", 2)
    net.publish("s", 2, "B", 3)
    net.settle(without=lambda mail: mail.edge == "S>L")
    net.restart("L")
    net.settle()
    net.publish("s", 3, "B", 1)
    net.settle()
    assert deliveries(net) == [("snapshot", [("A", 2), ("B", 3)], [True, True]), ("changes", [("B", 4)], [True])]
    token = net.did("L", Deliver)[-1].token
    assert (token.epoch, token.step, token.coverage.show()) == (1, 2, "0..3")


def test_a_vanished_row_is_told_as_invisible() -> None:
    net = Net(stream("s"), total("S", "s"), small("W", "S"), leaf("L", "W"))
    net.publish("s", 1, "A", 2)
    net.publish("s", 2, "A", 2)
    net.settle()
    assert deliveries(net)[-1] == ("changes", [("A", 4)], [False])


def test_c7_resuming_costs_only_what_changed() -> None:
    net = Net(stream("s"), total("S", "s"), leaf("L", "S"))
    net.publish("s", 1, "A", 2)
    net.publish("s", 2, "B", 3)
    net.settle()
    kept = net.checkpoint("L")
    net.publish("s", 3, "B", 1)
    net.settle(without=lambda mail: mail.edge == "S>L")
    net.done["L"].clear()
    net.restart("L", kept)
    net.settle()
    assert deliveries(net) == [("changes", [("B", 4)], [True])]
    assert net.rows("L") == {"A": (2,), "B": (4,)}


def two_streams(emit: Emit) -> Net:
    return Net(stream("s", 0, 2), stream("t", 1, 2), merge("m", "s", "t"), total("S", "m"), leaf("L", "S", emit=emit))


def test_as_of_horizon_delivers_only_consistent_cuts() -> None:
    net = two_streams(Emit.AS_OF_HORIZON)
    net.publish("s", 2, "A", 2)
    net.settle()
    net.publish("s", 6, "B", 3)
    net.settle()
    assert deliveries(net) == [], "t may still have something at or below 6"
    net.publish("t", 3, "A", 5)
    net.settle()
    assert deliveries(net) == []
    net.silence("t", 8)
    net.settle()
    assert deliveries(net) == [("snapshot", [("A", 7), ("B", 3)], [True, True])]
    assert net.did("L", Deliver)[-1].horizon == 6
    net.publish("t", 9, "B", 1)
    net.settle()
    assert len(deliveries(net)) == 1
    net.silence("s", 20)
    net.settle()
    assert deliveries(net)[1:] == [("changes", [("B", 4)], [True])]


def test_bounds_are_as_of_the_horizon() -> None:
    net = two_streams(Emit.BOUNDS)
    net.publish("s", 2, "A", 2)
    net.settle()
    last = net.did("L", Deliver)[-1]
    assert last.horizon == -1
    # s covers the even ticks 0 and 2 above the horizon, each of which may have contributed up to 100
    assert (last.low, last.high) == ((("A", 0),), (("A", 2),))
    net.silence("t", 2)
    net.publish("s", 4, "B", 1)
    net.publish("s", 6, "B", 300)
    net.settle()
    last = net.did("L", Deliver)[-1]
    assert (last.horizon, last.rows.rows()) == (2, [("B", 301)])
    assert (last.low, last.high) == ((("B", 101),), (("B", 301),))
    net.silence("t", 9)
    net.settle()
    last = net.did("L", Deliver)[-1]
    assert (last.horizon, last.low, last.high) == (6, (("B", 301),), (("B", 301),)), "settled: told, though unchanged"
    net.publish("t", 11, "B", 1)
    net.silence("s", 30)
    net.settle()
    last = net.did("L", Deliver)[-1]
    assert last.horizon == 11
    net.publish("s", 32, "A", 1)
    net.silence("t", 40)
    net.settle()
    last = net.did("L", Deliver)[-2]
    assert last.horizon == 11
    assert (last.low, last.high) == ((("A", 0),), (("A", 3),))


def test_final_delivers_events_once_and_sums_never() -> None:
    net = Net(stream("s"), leaf("L", "s", relation=FINAL_EVENTS, emit=Emit.FINAL))
    net.publish("s", 1, "A", 2)
    net.settle()
    net.sync("L")
    net.publish("s", 4, "A", 3)
    net.settle()
    assert [rows for _, rows, _ in deliveries(net)] == [[(1, "A", 2)], [(4, "A", 3)]]
    assert all(all(delivery.final) for delivery in net.did("L", Deliver))
    net = Net(stream("s"), total("S", "s"), leaf("L", "S", emit=Emit.FINAL))
    net.publish("s", 1, "A", 2)
    net.settle()
    assert [rows for _, rows, _ in deliveries(net)] == [[]]


def test_final_at_the_horizon_waits_for_it() -> None:
    net = Net(
        stream("s", 0, 2),
        stream("t", 1, 2),
        merge("m", "s", "t"),
        total("S", "m"),
        leaf("L", "S", relation=FIRSTS, emit=Emit.FINAL),
    )
    net.publish("s", 2, "A", 2)
    net.settle()
    assert [rows for _, rows, _ in deliveries(net)] == [[]]
    net.silence("t", 4)
    net.settle()
    assert [rows for _, rows, _ in deliveries(net)][1:] == [[("A", 2)]]
    kept = net.checkpoint("L")
    net.done["L"].clear()
    net.restart("L", kept)
    net.publish("s", 6, "B", 1)
    net.settle()
    net.silence("t", 6)
    net.settle()
    assert [rows for _, rows, _ in deliveries(net)] == [[("B", 1)]], "what was final before is not told again"


def test_changes_tell_when_a_row_becomes_final() -> None:
    net = Net(
        stream("s", 0, 2), stream("t", 1, 2), merge("m", "s", "t"), total("S", "m"), leaf("L", "S", relation=FIRSTS)
    )
    net.publish("s", 2, "A", 2)
    net.settle()
    net.silence("t", 4)
    net.settle()
    told = [(d.rows.rows(), d.final) for d in net.did("L", Deliver)]
    assert told == [([("A", 2)], (False,)), ([("A", 2)], (True,))]


def test_changes_say_which_rows_are_final() -> None:
    net = Net(stream("s"), leaf("L", "s", relation=FINAL_EVENTS))
    net.publish("s", 1, "A", 2)
    net.settle()
    assert net.did("L", Deliver)[-1].final == (True,)


def test_a_row_that_vanished_between_two_cuts_is_told_at_the_next() -> None:
    net = Net(
        stream("s", 0, 2),
        stream("t", 1, 2),
        merge("m", "s", "t"),
        total("S", "m"),
        small("W", "S"),
        leaf("L", "W", emit=Emit.AS_OF_HORIZON),
    )
    net.publish("s", 2, "A", 2)
    net.silence("t", 4)
    net.settle()
    assert deliveries(net)[-1] == ("snapshot", [("A", 2)], [True])
    net.publish("s", 6, "A", 9)
    net.settle()
    assert len(deliveries(net)) == 1, "no cut yet, so the tombstone must wait"
    net.silence("t", 8)
    net.settle()
    assert deliveries(net)[1:] == [("changes", [("A", 11)], [False])]
    assert len(net.state("L").operator.rows) == 0


@pytest.mark.parametrize("emit", [Emit.CHANGES, Emit.BOUNDS, Emit.AS_OF_HORIZON])
def test_what_is_gone_is_told_once(emit: Emit) -> None:
    net = Net(stream("s"), total("S", "s"), small("W", "S"), leaf("L", "W", emit=emit))
    net.publish("s", 1, "A", 2)
    net.settle()
    kept = net.checkpoint("W")
    net.publish("s", 2, "A", 9)
    net.settle()
    assert deliveries(net)[-1] == ("changes", [("A", 11)], [False])
    net.done["L"].clear()
    net.publish("s", 3, "A", 1)  # it changes where nobody sees it
    net.publish("s", 4, "B", 1)
    net.settle(without=lambda mail: mail.edge == "W>L")
    net.restart("W", kept)
    net.settle()
    assert [row for _, rows, _ in deliveries(net) for row in rows] == [("B", 1)]


def test_changes_go_on_where_somebody_watched() -> None:
    net = Net(stream("s"), total("S", "s"), small("W", "S"), leaf("L", "W"))
    net.handle("L", WatchBegun())
    net.publish("s", 1, "A", 2)
    net.settle()
    net.handle("L", WatchEnded())
    net.done["L"].clear()
    net.publish("s", 2, "A", 2)
    net.settle()
    assert deliveries(net) == [("changes", [("A", 4)], [False])]
