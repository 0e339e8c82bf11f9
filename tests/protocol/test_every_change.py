"""Edges that tell every change of a step in order, and the leaf that hands all of them on."""

from dataclasses import replace

from runtime.batch import Batch
from runtime.plan import Emit, Mode, Tuning
from runtime.protocol.events import Deliver, MessageArrived, ReceiverAttached, Stepped, WatchBegun
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Knowledge
from tests.protocol.graphs import copy, small, total
from tests.protocol.net import Net, leaf, state, stream


def changes(*rows: tuple[str, int], step: int = 1, visible: list[bool] | None = None) -> Knowledge:
    """As a sender tells them that knows what happened within a step."""
    seen = visible or [True] * len(rows)
    ticks = list(range(step * 10, step * 10 + len(rows)))
    coverage = LineageCoverage.prefix(1, step * 10 + 9)
    return Knowledge(1, step - 1, step, coverage, Batch.of_rows(2, rows, ticks, seen))


def adopted(*components: object) -> Net:
    """A sum S that covers something, so that its receivers have adopted it at step 1."""
    net = Net(stream("s"), total("S", "s"), *components)  # type: ignore[arg-type]
    net.publish("s", 1, "A", 1)
    net.settle()
    return net


def told(net: Net) -> list[tuple[object, list[bool]]]:
    return [(step.rows.rows(), list(step.rows.visible)) for step in net.did("L", Stepped)]


def test_a_step_is_told_at_once_though_others_are_gathered() -> None:
    net = Net(stream("s"), total("S", "s", tuning=Tuning(gather_us=1_000)), copy("X", "S"), copy("Y", "S"))
    net.handle("S", ReceiverAttached("S>X", Mode.PULL, every_change=True))
    for at in (1, 2):
        net.publish("s", at, "A", 1)
        net.pass_on("s>S")
    assert [(k.from_step, k.to_step) for k in net.find(Knowledge, "S>X")] == [(0, 1), (1, 2)]
    assert not net.find(Knowledge, "S>Y")


def test_tombstones_are_told_too() -> None:
    net = Net(stream("s"), total("S", "s"), small("W", "S"), copy("X", "W"))
    net.handle("W", ReceiverAttached("W>X", every_change=True))
    net.publish("s", 1, "A", 3)
    net.publish("s", 2, "B", 9)
    net.publish("s", 3, "A", 3)
    net.settle()
    sent = [(k.rows.rows(), list(k.rows.visible)) for k in net.sent("W", Knowledge)]
    assert sent == [([("A", 3)], [True]), ([("B", 9)], [False]), ([("A", 6)], [False])]


def test_an_answer_lists_each_row_once_as_it_is() -> None:
    net = adopted(copy("X", "S"))
    net.handle("S", ReceiverAttached("S>X", every_change=True))
    for at in (2, 3, 4):
        net.publish("s", at, "A", 1)
    net.pass_on("s>S")
    net.take("S>X")
    net.sync("X")
    assert net.rows("X") == {"A": (4,)}
    assert [len(k.rows) for k in net.sent("S", Knowledge)] == [1, 1, 1, 1, 1]


def test_of_a_row_that_occurs_several_times_the_last_one_counts() -> None:
    """Whatever the operator: a selection computes with it once, a copy changes several times and ends the same."""
    for receiver in (small("W", "S"), copy("W", "S")):
        net = adopted(receiver)
        step = net.state_edge("W", "S>W").applied_step
        message = changes(("A", 9), ("B", 1), ("A", 3), ("B", 2), step=step + 1)
        net.handle("W", MessageArrived("S>W", message))
        assert net.rows("W") == {"A": (3,), "B": (2,)}
        assert net.state("W").step == 2


def test_a_watched_leaf_delivers_its_snapshot_and_then_every_change() -> None:
    net = Net(stream("s"), total("S", "s"), leaf("L", "S"), start=False)
    net.restart("s")
    net.restart("S")
    net.publish("s", 1, "A", 1)
    net.settle(without=lambda mail: mail.edge == "S>L")
    net.restart("L")
    net.handle("L", WatchBegun())
    net.settle()
    assert [(d.kind, d.rows.rows()) for d in net.did("L", Deliver)] == [("snapshot", [("A", 1)])]
    assert told(net) == []
    step = net.state_edge("L", "S>L").applied_step
    message = changes(("A", 5), ("B", 1), ("A", 6), ("A", 6), ("C", 1), ("C", 1), step=step + 1)
    gone = replace(message.rows, visible=[True, True, True, False, False, False])
    net.handle("L", MessageArrived("S>L", replace(message, rows=gone)))
    assert told(net) == [([("A", 5), ("B", 1), ("A", 6), ("A", 6)], [True, True, True, False])]
    assert len(net.did("L", Deliver)) == 1
    assert net.rows("L") == {"B": (1,)}


def test_a_leaf_that_nobody_watches_delivers_each_row_once() -> None:
    net = adopted(leaf("L", "S"))
    step = net.state_edge("L", "S>L").applied_step
    net.done["L"].clear()
    net.handle("L", MessageArrived("S>L", changes(("A", 5), ("A", 6), step=step + 1)))
    assert [d.rows.rows() for d in net.did("L", Deliver)] == [[("A", 6)]]


def test_what_is_told_twice_is_no_change() -> None:
    net = adopted(leaf("L", "S"))
    net.handle("L", WatchBegun())
    step = net.state_edge("L", "S>L").applied_step
    rows = replace(changes(("A", 1), step=step + 1).rows, max_ticks=[1])
    net.handle("L", MessageArrived("S>L", replace(changes(("A", 1), step=step + 1), rows=rows)))
    assert told(net) == []


def test_a_relay_passes_on_what_happened_within_a_step() -> None:
    net = adopted(copy("X", "S"), state("Y", copy("Y", "X").operator, "X"))
    net.handle("X", ReceiverAttached("X>Y", every_change=True))
    step = net.state_edge("X", "S>X").applied_step
    net.handle("X", MessageArrived("S>X", changes(("A", 5), ("A", 6), step=step + 1)))
    assert [k.rows.rows() for k in net.find(Knowledge, "X>Y")] == [[("A", 5), ("A", 6)]]


def test_each_step_is_told_with_its_own_horizon() -> None:
    """One message may release those that were held back for it: what came first does not include what came last."""
    net = adopted(leaf("L", "S"))
    net.handle("L", WatchBegun())
    net.done["L"].clear()
    for at in (2, 3, 4):
        net.publish("s", at, "A", 1)
    net.pass_on("s>S")
    first, *others = net.take("S>L", Knowledge)
    net.deliver(*others)
    assert told(net) == []
    net.deliver(first)
    assert [(step.rows.rows(), step.horizon) for step in net.did("L", Stepped)] == [
        ([("A", 2)], 2),
        ([("A", 3)], 3),
        ([("A", 4)], 4),
    ]


def test_a_row_that_only_got_a_later_tick_is_no_news() -> None:
    """It must reach the next hop, but whoever watches has been told its values."""
    net = adopted(leaf("L", "S"))
    net.handle("L", WatchBegun())
    net.done["L"].clear()
    step = net.state_edge("L", "S>L").applied_step
    net.handle("L", MessageArrived("S>L", changes(("A", 1), step=step + 1)))
    assert [tick for step in net.did("L", Stepped) for tick in step.rows.max_ticks] == []
    assert list(net.state("L").operator.rows.max_tick) == [(step + 1) * 10]
    net.handle("L", MessageArrived("S>L", changes(("A", 2), step=step + 2)))
    assert [step.rows.rows() for step in net.did("L", Stepped) if len(step.rows)] == [[("A", 2)]]


def test_nor_in_a_cut() -> None:
    """The horizon has moved, which is told; the row is what it was."""
    net = adopted(leaf("L", "S", emit=Emit.AS_OF_HORIZON))
    net.done["L"].clear()
    step = net.state_edge("L", "S>L").applied_step
    for number, amount in enumerate((1, 2, 2), 1):
        net.handle("L", MessageArrived("S>L", changes(("A", amount), step=step + number)))
    assert [cut.rows.rows() for cut in net.did("L", Deliver)] == [[], [("A", 2)], []]
    assert list(net.state("L").operator.rows.max_tick) == [(step + 3) * 10]
