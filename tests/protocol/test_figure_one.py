"""The paper's ticket subscription runs, and its worked example costs one answer with one row."""

from runtime.protocol.messages import Events, Knowledge
from tests.protocol.graphs import merge, total
from tests.protocol.net import Net, leaf, stream


def test_events_of_two_streams_reach_the_subscriber_as_one_sum() -> None:
    net = Net(stream("west", 0, 2), stream("east", 1, 2), merge("m", "west", "east"), total("S", "m"), leaf("L", "S"))
    assert net.publish("west", 4, "A", 3) == (4,)
    assert net.publish("east", 6, "A", 4) == (7,)
    net.publish("east", 8, "B", 1)
    net.settle()
    assert net.rows("L") == {"A": (7,), "B": (1,)}
    assert net.covers("L") == "0..4 | 0..9"
    net.silence("west", 9)
    net.settle()
    assert net.components["L"].horizon() == 9


def test_worked_example_one_row_repairs_three_lost_messages() -> None:
    """Ticks 20000, 20003 and 20005 feed one item; all three messages to the subscriber are lost."""
    net = Net(stream("s"), total("S", "s"), leaf("L", "S"))
    for tick, quantity in ((20000, 2), (20003, 5), (20005, 1)):
        net.publish("s", tick, "A", quantity)
        net.pass_on("s>S", Events)
    assert len(net.take("S>L", Knowledge)) == 3
    net.sync("L")
    repair = net.sent("S", Knowledge)[3:]
    assert [(m.from_step, m.to_step, m.rows.rows()) for m in repair] == [(0, 3, [("A", 8)])]
    assert net.rows("L") == {"A": (8,)}
    assert net.covers("L") == "0..20005"


def test_ten_thousand_lost_updates_of_one_row_cost_one_row() -> None:
    net = Net(stream("s"), total("S", "s"), leaf("L", "S"))
    for tick in range(10_000):
        net.publish("s", tick, "A", 1)
        net.pass_on("s>S", Events)
        net.take("S>L")
    net.done["S"].clear()
    net.sync("L")
    assert [len(message.rows) for message in net.sent("S", Knowledge)] == [1]
    assert net.rows("L") == {"A": (10_000,)}
    assert len(net.state("S").operator.rows.journal_steps) < 3_000
