"""Nothing stays lost: pull by idle polls, push until acknowledged, heartbeats; and nothing storms."""

from runtime.operators.copy import CopySpec
from runtime.plan import Mode
from runtime.protocol.asking import Asker, jittered
from runtime.protocol.events import MessageArrived, TimerFired
from runtime.protocol.messages import Ack, Curiosity, EventAck, EventCuriosity, Events, Heartbeat, Knowledge
from tests.protocol.graphs import copy, merge, total
from tests.protocol.net import Net, leaf, state, stream


def test_pull_a_lost_tail_is_found_by_the_idle_poll() -> None:
    net = Net(stream("s"), total("S", "s"))
    net.publish("s", 3, "A", 2)
    net.take()
    net.handle("S", TimerFired("idle:s>S", 0))
    net.settle()
    assert net.rows("S") == {"A": (2,)}


def test_pull_an_edge_that_progressed_is_not_polled() -> None:
    net = Net(stream("s"), total("S", "s"))
    net.handle("S", TimerFired("idle:s>S", 0))
    net.settle()
    net.publish("s", 3, "A", 2)
    net.settle()
    net.handle("S", TimerFired("idle:s>S", 0))
    assert not net.mail
    net.handle("S", TimerFired("idle:s>S", 0))
    assert len(net.find(EventCuriosity)) == 1


def test_a_poll_travels_up_to_where_the_news_is() -> None:
    net = Net(stream("s"), merge("m", "s"), total("S", "m"))
    net.publish("s", 3, "A", 2)
    net.take("s>m")
    net.sync("S")
    assert net.rows("S") == {"A": (2,)}


def test_push_event_edges_repeat_until_acknowledged() -> None:
    net = Net(stream("s"), merge("m", "s", mode=Mode.PUSH), total("S", "m", mode=Mode.PUSH))
    net.publish("s", 3, "A", 2)
    for name, edge in (("s", "s>m"), ("m", "m>S")):
        assert len(net.take(edge, Events)) == 1
        net.handle(name, TimerFired(f"push:{edge}", 0))
        assert len(net.take(edge, Events)) == 1
        net.handle(name, TimerFired(f"push:{edge}", 0))
        net.pass_on(edge)
    assert net.rows("S") == {"A": (2,)}
    for name, edge in (("m", "s>m"), ("S", "m>S")):
        net.handle(name, TimerFired(f"ack:{edge}", 0))
        assert len(net.find(EventAck, edge)) == 1
    net.settle()
    net.handle("m", TimerFired("push:m>S", 0))
    net.handle("s", TimerFired("push:s>m", 0))
    assert not net.mail, "quenched"


def test_push_slows_down_while_nobody_answers() -> None:
    net = Net(stream("s"), merge("m", "s", mode=Mode.PUSH))
    net.publish("s", 3, "A", 2)
    delays = []
    for _ in range(4):
        net.handle("s", TimerFired("push:s>m", 0))
        delays.append(net.timers["s"]["push:s>m"])
    assert delays[3] > 4 * delays[0]


def test_push_state_edges_repeat_the_rows_since_the_acknowledged_step() -> None:
    net = Net(stream("s"), total("S", "s"), state("L", CopySpec(), "S", mode=Mode.PUSH))
    net.publish("s", 1, "B", 1)
    net.settle()
    net.handle("L", TimerFired("ack:S>L", 0))
    net.settle()
    for tick in (3, 4, 5):
        net.publish("s", tick, "A", 1)
        net.pass_on("s>S")
    net.take("S>L")
    net.handle("S", TimerFired("push:S>L", 0))
    (repeat,) = net.find(Knowledge)
    assert (repeat.from_step, repeat.to_step, repeat.rows.rows()) == (1, 4, [("A", 3)])
    net.settle()
    assert net.rows("L") == {"A": (3,), "B": (1,)}
    net.handle("L", TimerFired("ack:S>L", 0))
    assert [ack.applied_step for ack in net.find(Ack)] == [4]
    net.settle()
    net.handle("S", TimerFired("push:S>L", 0))
    assert not net.mail


def test_push_a_receiver_that_has_not_adopted_us_is_told_where_we_stand() -> None:
    net = Net(stream("s"), total("S", "s"), state("L", CopySpec(), "S", mode=Mode.PUSH))
    net.publish("s", 1, "B", 1)
    net.settle()
    net.restart("S")
    net.settle(without=lambda mail: mail.edge == "S>L")
    net.handle("S", TimerFired("push:S>L", 0))
    assert [beat.epoch for beat in net.find(Heartbeat)] == [2]
    net.settle()
    assert net.state_edge("L", "S>L").adopted_epoch == 2


def test_a_slow_receiver_that_lost_everything_gets_the_latest_state() -> None:
    net = Net(stream("s"), total("S", "s"), leaf("L", "S"))
    for tick in range(200):
        net.publish("s", tick, "AB"[tick % 2], 1)
        net.pass_on("s>S")
        net.take("S>L")
    net.done["S"].clear()
    net.sync("L")
    assert net.rows("L") == {"A": (100,), "B": (100,)}
    assert sum(len(message.rows) for message in net.sent("S", Knowledge)) == 2


def test_curiosity_does_not_storm() -> None:
    """A thousand early messages are a thousand reasons to ask, and one question."""
    net = Net(stream("s"), total("S", "s"), copy("X", "S"))
    for tick in range(1_000):
        net.publish("s", tick, "A", 1)
        net.pass_on("s>S")
    net.take("S>X", count=1)
    net.pass_on("S>X", Knowledge)
    assert len(net.find(Curiosity)) == 1


def test_two_incarnations_of_a_sender_do_not_make_the_receiver_ask_at_network_speed() -> None:
    net = Net(stream("s"), total("S", "s"), copy("X", "S"))
    net.publish("s", 1, "A", 1)
    net.settle()
    edge = net.state_edge("X", "S>X")
    current = Heartbeat(edge.adopted_epoch, edge.applied_step, edge.coverage)
    behind = Heartbeat(7, 0, type(edge.coverage).empty(1))
    net.done["X"].clear()
    for _ in range(50):
        net.handle("X", MessageArrived("S>X", behind))
        net.handle("X", MessageArrived("S>X", current))
    assert len(net.sent("X", Curiosity)) == 1


def test_jitter_spreads_and_repeats() -> None:
    delays = {jittered(1_000, "c", f"edge{i}", 1) for i in range(50)}
    assert len(delays) > 20
    assert min(delays) >= 750
    assert max(delays) <= 1_250
    assert jittered(1_000, "c", "e", 1) == jittered(1_000, "c", "e", 1)


def test_asking_backs_off_to_a_bound_and_recovers() -> None:
    asker = Asker(("c", "e"), 100, 1_000)
    waits = []
    for _ in range(12):
        waits.append(asker.asked())
        assert not asker.may_ask()
        asker.expired()
    assert waits[0] <= 125
    assert max(waits) <= 1_250
    asker.answered()
    assert asker.asked() <= 125
