"""Two live incarnations of one component: each is a sender and a receiver of its own; the newer one wins for good."""

from runtime.protocol.build import build_component
from runtime.protocol.events import Instruction, LogFailed, MessageArrived, Restarted, Send, Stopped
from runtime.protocol.messages import Ack, Curiosity, Heartbeat, Knowledge, Message, Quench, Snapshot
from tests.protocol.graphs import small, total
from tests.protocol.net import Net, leaf, stream


def sent(instructions: list[Instruction], kind: type[Message]) -> list[Message]:
    return [i.message for i in instructions if isinstance(i, Send) and isinstance(i.message, kind)]


def two_sums() -> tuple[Net, object]:
    """S has epoch 1 and goes on; a second incarnation with epoch 2 starts from S's checkpoint."""
    net = Net(stream("s"), total("S", "s"), leaf("L", "S"))
    net.publish("s", 1, "A", 2)
    net.settle()
    second = build_component(net.plan, "S")
    second.handle(Restarted(2, checkpoint=net.checkpoint("S")))
    return net, second


def test_the_receiver_moves_to_the_newer_incarnation_and_never_back() -> None:
    net, second = two_sums()
    assert hasattr(second, "handle")
    edge = net.state_edge("L", "S>L")
    answer = second.handle(MessageArrived("S>L", Curiosity(1, 1, edge.applied_step, edge.coverage.copy())))
    (snapshot,) = sent(answer, Snapshot)
    net.handle("L", MessageArrived("S>L", snapshot))
    assert edge.adopted_epoch == 2
    net.publish("s", 2, "A", 3)
    net.pass_on("s>S")
    (old,) = net.take("S>L", Knowledge)
    net.deliver(old)
    assert net.rows("L") == {"A": (2,)}, "S7: the older incarnation is over for this receiver"
    net.handle("L", MessageArrived("S>L", Heartbeat(1, 99, edge.coverage.copy())))
    assert edge.adopted_epoch == 2


def test_the_older_incarnation_does_not_answer_who_has_left_it() -> None:
    net, _ = two_sums()
    edge = net.state_edge("L", "S>L")
    assert net.handle("S", MessageArrived("S>L", Curiosity(1, 2, 5, edge.coverage.copy()))) == []
    assert net.components["S"].counters["dropped.replaced_sender"] == 1


def test_messages_of_a_replaced_receiver_are_not_answered_and_do_not_count() -> None:
    net = Net(stream("s"), total("S", "s"), small("W", "S"))
    net.publish("s", 1, "A", 5)
    net.settle()
    coverage = net.components["S"].coverage()
    out_edge = net.state("S").out_edges["S>W"]
    assert out_edge.quenched == {("A",)}
    net.handle("S", MessageArrived("S>W", Ack(5, 0, 0, -1)))  # a newer incarnation speaks up
    assert out_edge.quenched == set()
    old: tuple[Message, ...] = (Curiosity(1, 0, 0, coverage), Ack(1, 1, 1, 1), Quench(1, (("A",),)))
    for message in old:
        assert net.handle("S", MessageArrived("S>W", message)) == []
    assert (out_edge.quenched, out_edge.acked_step) == (set(), None)
    assert net.components["S"].counters["dropped.replaced_receiver"] == 3


def test_only_one_incarnation_of_a_stream_appends() -> None:
    """The log refuses the older epoch; the older incarnation stops and its silence stays true."""
    net = Net(stream("s"))
    net.silence("s", 10)
    reserved = net.logs["s"].reserved
    second = build_component(net.plan, "s")
    second.handle(Restarted(2, log=net.logs["s"].state()))
    assert second.coverage().horizon() == reserved
    net.silence("s", 20)  # within its own reservation: still allowed, still true
    assert net.components["s"].coverage().horizon() == 20
    done = net.handle("s", LogFailed("epoch 2 has opened the log", fenced=True))
    assert [type(i) for i in done] == [Stopped]
