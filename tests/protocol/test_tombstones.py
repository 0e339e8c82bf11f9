"""Rules T1 to T5: rows that became invisible, who must know of it before it is forgotten, and keys nobody wants."""

from runtime.plan import Emit, Tuning
from runtime.protocol.events import Deliver, MessageArrived, ReceiverDetached
from runtime.protocol.messages import Ack, Knowledge, Quench, Snapshot
from tests.protocol.graphs import copy, small, total
from tests.protocol.net import Net, leaf, stream

UNQUENCHED = Tuning(quench_keys=False)


def hidden(*, until_leaf: bool = True) -> Net:
    """A:2 makes A visible in W and L, A:3 hides it again; L may have missed that."""
    net = Net(stream("s"), total("S", "s"), small("W", "S", tuning=UNQUENCHED), leaf("L", "W"))
    net.publish("s", 1, "A", 2)
    net.settle()
    assert net.rows("L") == {"A": (2,)}
    net.publish("s", 2, "A", 3)
    net.settle(without=lambda mail: mail.edge == "W>L" and not until_leaf)
    assert net.rows("W") == {}
    return net


def test_t1_an_invisible_row_stays_and_is_told_like_any_other() -> None:
    net = hidden(until_leaf=False)
    net.sync("L")
    assert net.rows("L") == {}


def test_t1_a_row_that_was_never_visible_here_is_told_to_who_saw_it() -> None:
    """Mistake 17, with a select: W restarts empty and sees A only when it is already too large."""
    net = hidden(until_leaf=False)
    net.restart("W")
    net.settle()
    assert net.state("W").operator.rows.tombstones() == [0]
    net.sync("L")
    assert net.rows("L") == {}


def test_t2_a_tombstone_stays_until_every_receiver_has_acknowledged_it() -> None:
    """Mistake 14."""
    net = Net(stream("s"), total("S", "s"), small("W", "S", tuning=UNQUENCHED), leaf("L", "W"), leaf("K", "W"))
    net.publish("s", 1, "A", 2)
    net.settle()
    net.publish("s", 2, "A", 3)
    net.settle(without=lambda mail: mail.edge == "W>K")
    net.acknowledge("L")
    assert len(net.state("W").operator.rows) == 1
    net.sync("K")
    net.acknowledge("K")
    assert len(net.state("W").operator.rows) == 0
    assert net.state("W").drop_floor == 2
    assert net.rows("K") == {}


def test_t2_an_acknowledgement_of_another_epoch_does_not_count() -> None:
    net = hidden()
    net.restart("W", net.checkpoint("W"))
    net.take()
    net.handle("W", MessageArrived("W>L", Ack(1, adopted_epoch=1, applied_step=2, horizon=2)))
    assert len(net.state("W").operator.rows) == 1


def test_t2_a_detached_receiver_does_not_block() -> None:
    net = Net(stream("s"), total("S", "s"), small("W", "S", tuning=UNQUENCHED), leaf("L", "W"), leaf("K", "W"))
    net.publish("s", 1, "A", 5)
    net.settle()
    net.acknowledge("L")
    assert len(net.state("W").operator.rows) == 1
    net.handle("W", ReceiverDetached("W>K"))
    assert len(net.state("W").operator.rows) == 0


def test_t2_whoever_falls_back_below_the_floor_gets_a_complete_snapshot() -> None:
    """Mistake 15: L checkpoints with A visible; A is hidden, acknowledged, forgotten; L restarts from that."""
    net = Net(stream("s"), total("S", "s"), small("W", "S", tuning=UNQUENCHED), leaf("L", "W"))
    net.publish("s", 1, "A", 2)
    net.settle()
    old = net.checkpoint("L")
    net.publish("s", 2, "A", 3)
    net.settle()
    net.acknowledge("L")
    assert len(net.state("W").operator.rows) == 0
    net.restart("L", old)
    assert net.rows("L") == {"A": (2,)}
    net.settle()
    assert net.sent("W", Snapshot)[-1].complete
    assert net.rows("L") == {}
    assert (net.state("L").in_floor, net.state("L").drop_floor) == (2, 2)


def test_t3_the_floor_is_inherited_with_a_complete_snapshot() -> None:
    """Mistake 16: W -> X -> L; X acknowledges, W forgets, X restarts empty; L still shows A."""
    net = Net(stream("s"), total("S", "s"), small("W", "S", tuning=UNQUENCHED), copy("X", "W"), leaf("L", "X"))
    net.publish("s", 1, "A", 2)
    net.settle()
    net.publish("s", 2, "A", 3)
    net.settle(without=lambda mail: mail.edge == "X>L")
    net.acknowledge("X")
    assert len(net.state("W").operator.rows) == 0
    net.restart("X")
    net.settle()
    assert net.state("X").drop_floor == 2
    net.sync("L")
    assert net.sent("X", Snapshot)[-1].complete
    assert net.rows("L") == {}


def test_s5_a_complete_snapshot_lists_the_tombstones_that_are_still_held() -> None:
    """W -> X -> L: W has forgotten B (F = 2) but not A; X restarts empty, L still shows A and is above F."""
    net = Net(stream("s"), total("S", "s"), small("W", "S", tuning=UNQUENCHED), copy("X", "W"), leaf("L", "X"))
    net.publish("s", 1, "B", 1)
    net.publish("s", 2, "B", 9)
    net.publish("s", 3, "A", 1)
    net.settle()
    net.acknowledge("X")
    assert net.state("W").drop_floor == 2
    assert net.rows("L") == {"A": (1,)}
    net.publish("s", 4, "A", 9)
    net.settle(without=lambda mail: mail.edge in ("W>X", "X>L"))
    net.restart("X")
    net.settle()
    assert net.sent("W", Snapshot)[-1].complete
    net.sync("L")
    assert net.rows("L") == {}


def quenched() -> Net:
    net = Net(stream("s"), total("S", "s"), small("W", "S"), leaf("L", "W"))
    net.publish("s", 1, "A", 2)
    net.settle()
    return net


def test_t4_a_dead_key_is_filtered_but_its_ticks_are_still_told() -> None:
    net = quenched()
    net.publish("s", 2, "A", 3)
    net.settle()
    assert net.sent("W", Quench) == [Quench(1, (("A",),))]
    net.done["S"].clear()
    net.publish("s", 3, "A", 1)
    net.settle()
    (message,) = net.sent("S", Knowledge)
    assert (message.rows.rows(), message.coverage.show(), message.filtered_for) == ([], "0..3", 1)
    assert net.covers("W") == "0..3"
    assert net.rows("S") == {"A": (6,)}, "T5: the sender goes on computing the row"


def test_t4_a_quench_dies_with_the_incarnation_that_sent_it() -> None:
    """Mistake 19: W restarts from a checkpoint in which A was still visible."""
    net = quenched()
    old = net.checkpoint("W")
    net.publish("s", 2, "A", 3)
    net.settle()
    net.publish("s", 3, "A", 1)
    net.pass_on("s>S")
    filtered = net.take("S>W", Knowledge)
    net.restart("W", old)
    net.deliver(*filtered)
    assert net.components["W"].counters["dropped.filtered"] == 1
    assert net.rows("W") == {"A": (2,)}
    net.settle()
    assert net.rows("W") == net.rows("L") == {}


def test_t5_a_receiver_attached_later_gets_the_row() -> None:
    net = Net(stream("s"), total("S", "s"), small("W", "S"), copy("X", "S"))
    net.publish("s", 1, "A", 5)
    net.settle()
    net.restart("X")
    net.publish("s", 2, "A", 1)
    net.settle()
    assert net.rows("X") == {"A": (6,)}


def test_a_leaf_forgets_what_it_has_told() -> None:
    net = hidden()
    assert len(net.state("L").operator.rows) == 0
    net.publish("s", 3, "B", 1)
    net.settle()
    assert net.rows("L") == {"B": (1,)}


def test_a_forgotten_key_that_comes_back_is_a_new_row() -> None:
    net = hidden()
    net.acknowledge("L")
    rows = net.state("W").operator.rows
    assert (len(rows), rows.free) == (0, [0])
    net.publish("s", 3, "B", 1)
    net.settle()
    assert (rows.slot_of(("B",)), rows.free) == (0, [])
    assert net.rows("L") == {"B": (1,)}


def test_t3_what_an_operator_dropped_unseen_raises_the_floor_that_is_told() -> None:
    """A row that was not in its table may be visible below: nobody may take silence about it for its end."""
    net = Net(stream("s"), total("S", "s"), copy("C", "S"), leaf("L", "C"))
    net.publish("s", 1, "A", 2)
    net.settle()
    before = net.state("C").told_floor
    net.state("C").operator.hidden_tick = 1
    net.publish("s", 2, "A", 3)
    net.settle()
    assert (before, net.state("C").told_floor) == (-1, 1)
    assert [message.floor for message in net.sent("C", Knowledge)][-1] == 1


def test_t3_who_is_told_a_floor_claims_nothing_about_a_horizon_below_it() -> None:
    """A row that nobody here has held may be in the view at that horizon: a cut without it would be false."""
    net = Net(stream("s"), total("S", "s"), copy("C", "S"), leaf("L", "C", emit=Emit.AS_OF_HORIZON))
    net.publish("s", 1, "A", 2)
    net.settle()
    net.state("C").operator.hidden_tick = 3
    net.publish("s", 2, "A", 3)
    net.settle()
    assert [net.state(name).in_floor for name in "CL"] == [3, 3]
    assert [told.horizon for told in net.did("L", Deliver)] == [1]
    net.publish("s", 3, "A", 3)
    net.settle()
    assert [told.horizon for told in net.did("L", Deliver)] == [1, 3]


def test_s4_what_was_hidden_costs_those_who_follow_no_complete_snapshot() -> None:
    """They hold what this incarnation held. Whoever knew another one gets everything."""
    net = Net(stream("s"), total("S", "s"), copy("C", "S"), leaf("L", "C"))
    for tick, key in enumerate("AB", 1):
        net.publish("s", tick, key, 2)
    net.settle()
    adopted = len(net.sent("C", Snapshot))
    net.state("C").operator.hidden_tick = 3
    net.publish("s", 3, "A", 2)
    net.settle(without=lambda mail: mail.edge == "C>L")
    net.sync("L")
    assert len(net.sent("C", Snapshot)) == adopted
    assert list(net.sent("C", Knowledge)[-1].rows.rows()) == [("A", 4)]
    assert net.rows("L") == {"A": (4,), "B": (2,)}
    net.restart("C", net.checkpoint("C"))
    net.state("C").operator.hidden_tick = 4
    net.publish("s", 4, "A", 2)
    net.settle()
    assert net.sent("C", Snapshot)[-1].complete
