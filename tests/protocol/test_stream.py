"""Rule E3: ticks, the log before everything else, reserved silence, repeats, and a log that fails."""

import numpy as np

from runtime.columns import Numbers, numbers
from runtime.plan import Tuning
from runtime.protocol.events import (
    AcknowledgePublish,
    AppendToLog,
    LogFailed,
    LogWritten,
    Published,
    RefusePublish,
    ReserveSilence,
    Restarted,
    RestartMe,
    Stopped,
    TimerFired,
)
from runtime.protocol.messages import Events
from runtime.protocol.stream import StreamComponent
from tests.protocol.graphs import total
from tests.protocol.net import Net, stream


def of_net(net: Net) -> StreamComponent:
    component = net.components["s"]
    assert isinstance(component, StreamComponent)
    return component


def test_ticks_stay_in_the_streams_class_and_never_decrease_whatever_the_clock_does() -> None:
    net = Net(stream("s", 3, 8))
    ticks = [net.publish("s", at)[0] for at in (0, 100, 100, 5, 0, 1_000, 999, 1_001)]
    assert ticks == sorted(set(ticks))
    assert {tick % 8 for tick in ticks} == {3}
    assert ticks[1] >= 100
    assert ticks[5] >= 1_000


def test_a_batch_gets_one_tick_per_row() -> None:
    net = Net(stream("s", 3, 8))
    net.handle("s", Published("p", 1, (["A", "B", "C"], [1, 2, 3]), 10))
    assert net.did("s", AcknowledgePublish)[-1].ticks == range(11, 35, 8)


def test_nothing_is_told_or_acknowledged_before_the_log_has_it() -> None:
    net = Net(stream("s"), total("S", "s"))
    net.holds_log = True
    done = net.handle("s", Published("p", 1, (["A"], [1]), 5))
    assert [type(i) for i in done] == [AppendToLog]
    assert net.covers("s") == "none"
    done = net.handle("s", LogWritten(1))
    assert [tuple(i.ticks) for i in done if isinstance(i, AcknowledgePublish)] == [(5,)]
    assert [message.cover.show() for message in net.find(Events)] == ["0..5"]


def test_writes_become_known_in_order_when_one_commit_covers_several() -> None:
    net = Net(stream("s"), total("S", "s"))
    net.holds_log = True
    for sequence in (1, 2, 3):
        net.handle("s", Published("p", sequence, (["A"], [1]), sequence * 10))
    net.handle("s", LogWritten(2))
    assert net.covers("s") == "0..20"
    net.handle("s", LogWritten(3))
    assert [m.cover.show() for m in net.find(Events)] == ["0..20", "21..30"]


def test_publishes_that_became_durable_together_are_told_at_once_and_acknowledged_one_by_one() -> None:
    """Arrays stay arrays, so that a kernel downstream takes them as they are."""
    net = Net(stream("s"), total("S", "s"))
    net.holds_log = True
    for sequence in (1, 2):
        values = numbers(np.array([sequence, 10 * sequence]))
        net.handle("s", Published("p", sequence, (["A", "B"], values), 10 * sequence))
    done = net.handle("s", LogWritten(2))
    (told,) = net.find(Events)
    assert told.rows.rows() == [(10, "A", 1), (11, "B", 10), (20, "A", 2), (21, "B", 20)]
    assert isinstance(told.rows.columns[2], Numbers)
    acks = [i for i in done if isinstance(i, AcknowledgePublish)]
    assert [(ack.sequence, ack.ticks) for ack in acks] == [(1, range(10, 12)), (2, range(20, 22))]
    net.settle()
    assert net.rows("S") == {"A": (3,), "B": (30,)}


def test_a_reservation_between_two_publishes_keeps_its_place() -> None:
    net = Net(stream("s"), total("S", "s"))
    net.holds_log = True
    net.handle("s", TimerFired("silence", 5))
    net.handle("s", Published("p", 1, (["A"], [1]), 10))
    net.handle("s", LogWritten(2))
    assert [m.cover.show() for m in net.find(Events)] == ["0..4", "5..10"]


def test_a_repeat_is_known_from_the_moment_it_is_on_its_way() -> None:
    """So that a shell asks its own rules about new events only."""
    net = Net(stream("s"))
    net.holds_log = True
    component = of_net(net)
    assert not component.is_repeat("p", 7)
    net.handle("s", Published("p", 7, (["A"], [1]), 5))
    assert component.is_repeat("p", 7)
    net.handle("s", LogWritten(1))
    assert component.is_repeat("p", 7)
    assert not component.is_repeat("p", 8)
    assert not component.is_repeat("q", 7)


def test_a_repeat_returns_the_first_tick_also_after_a_restart() -> None:
    """Mistake 24, second half."""
    net = Net(stream("s"))
    net.handle("s", Published("p", 7, (["A"], [1]), 5))
    net.handle("s", Published("p", 7, (["A"], [1]), 50))
    net.restart("s")
    net.handle("s", Published("p", 7, (["A"], [1]), 500))
    acks = net.did("s", AcknowledgePublish)
    assert [(tuple(ack.ticks), ack.repeated) for ack in acks] == [((5,), False), ((5,), True), ((5,), True)]
    assert net.logs["s"].rows == {5: ("A", 1)}


def test_a_repeat_while_the_write_is_pending_is_not_written_twice() -> None:
    net = Net(stream("s"))
    net.holds_log = True
    net.handle("s", Published("p", 7, (["A"], [1]), 5))
    assert net.handle("s", Published("p", 7, (["A"], [1]), 6)) == []
    done = net.handle("s", LogWritten(1))
    assert [tuple(i.ticks) for i in done if isinstance(i, AcknowledgePublish)] == [(5,)]


def test_repeats_from_before_the_window_are_refused_not_guessed() -> None:
    net = Net(stream("s", tuning=Tuning(producer_window=2)))
    for sequence in (1, 2, 3):
        net.handle("s", Published("p", sequence, (["A"], [1]), sequence))
    net.handle("s", Published("p", 1, (["A"], [1]), 9))
    assert [refusal.sequence for refusal in net.did("s", RefusePublish)] == [1]
    assert len(net.logs["s"].rows) == 3


FEW = Tuning(producers_max=2, producer_idle_us=100, producer_lasts_us=1_000)


def publish_as(net: Net, producer: str, at: int, sequence: int = 1) -> None:
    net.handle("s", Published(producer, sequence, (["A"], [1]), at))


def test_the_producer_idle_longest_makes_room_for_a_new_one_in_the_log_too() -> None:
    net = Net(stream("s", tuning=FEW))
    for producer, at in (("z", 10), ("a", 20), ("z", 30)):
        publish_as(net, producer, at, sequence=at)
    publish_as(net, "new", 120)
    assert [one[0] for one in net.logs["s"].publishes] == ["z", "a", "z"], "a was idle for exactly as long as allowed"
    (refusal,) = net.did("s", RefusePublish)
    assert "publish over fewer connections" in refusal.reason
    publish_as(net, "new", 121)
    assert net.did("s", AppendToLog)[-1].forgotten == ("a",)
    assert [one[0] for one in net.logs["s"].publishes] == ["z", "z", "new"]
    net.restart("s")
    publish_as(net, "a", 125, sequence=20)
    assert len(net.did("s", RefusePublish)) == 2, "z published at 30: after a restart, too, it is not idle for long"
    publish_as(net, "a", 131, sequence=20)
    assert net.did("s", AppendToLog)[-1].forgotten == ("z",)
    ack = net.did("s", AcknowledgePublish)[-1]
    assert (tuple(ack.ticks), ack.repeated) == ((131,), False), "a repeat of what was forgotten is new"


def test_producers_silent_for_long_go_when_a_new_one_comes_a_few_at_a_time() -> None:
    net = Net(stream("s", tuning=Tuning(producer_lasts_us=1_000)))
    for at in range(20):
        publish_as(net, f"p{at}", at)
    publish_as(net, "p0", 2_000, sequence=2)
    assert len(of_net(net).producers) == 20, "only a new one costs anything"
    publish_as(net, "new", 2_001)
    assert len(of_net(net).producers) == 20 - 16 + 1
    publish_as(net, "newer", 2_002)
    assert {one[0] for one in net.logs["s"].publishes} == {"p0", "new", "newer"}
    assert of_net(net).counters["producers_forgotten"] == 19


def test_a_producer_whose_publish_is_on_its_way_is_not_forgotten() -> None:
    net = Net(stream("s", tuning=FEW))
    publish_as(net, "a", 10)
    publish_as(net, "b", 20)
    net.holds_log = True
    publish_as(net, "a", 500, sequence=2)
    publish_as(net, "new", 501)
    publish_as(net, "new", 502, sequence=2)
    assert [write.forgotten for write in net.did("s", AppendToLog)[-3:]] == [(), ("b",), ()]
    publish_as(net, "newest", 503)
    net.handle("s", LogWritten(5))
    assert of_net(net).is_repeat("a", 1)
    assert of_net(net).is_repeat("new", 2)


def test_silence_is_reserved_durably_before_it_is_promised() -> None:
    """Mistake 24, first half: promise up to 3, restart, publish at 2."""
    net = Net(stream("s", tuning=Tuning(reserve_us=4)), total("S", "s"))
    net.holds_log = True
    done = net.handle("s", TimerFired("silence", 4))
    assert [i.tick for i in done if isinstance(i, ReserveSilence)] == [7]
    assert not net.find(Events)
    net.logs["s"].reserved = 7
    net.handle("s", LogWritten(1))
    assert [message.cover.show() for message in net.find(Events)] == ["0..3"]
    net.holds_log = False
    net.restart("s")
    assert net.covers("s") == "0..7", "every unlogged tick up to the reservation is silence"
    assert net.publish("s", 2) == (8,)


def test_within_the_reservation_silence_costs_no_write() -> None:
    net = Net(stream("s", tuning=Tuning(reserve_us=100)))
    net.silence("s", 3)
    net.done["s"].clear()
    net.silence("s", 50)
    assert not net.did("s", ReserveSilence)
    assert net.covers("s") == "0..50"
    assert net.publish("s", 20) == (51,), "above what was promised, not above what was reserved"


def test_silence_is_not_promised_past_a_pending_event() -> None:
    net = Net(stream("s"))
    net.handle("s", TimerFired("silence", 1))
    net.holds_log = True
    net.handle("s", Published("p", 1, (["A"], [1]), 5))
    net.handle("s", TimerFired("silence", 100))
    assert net.covers("s") == "0"


def test_a_clock_that_jumps_back_promises_nothing_and_breaks_nothing() -> None:
    net = Net(stream("s"))
    net.silence("s", 1_000)
    net.silence("s", 10)
    assert net.covers("s") == "0..1000"
    assert net.publish("s", 10) == (1001,)


def test_a_clock_outside_the_range_of_ticks_is_refused() -> None:
    net = Net(stream("s"))
    net.publish("s", 2**62)
    net.handle("s", Published("q", 1, (["A"], [1]), -5))
    assert len(net.did("s", RefusePublish)) == 2
    assert net.publish("s", 5) == (5,)


def test_after_a_failed_write_nothing_is_promised_until_a_restart() -> None:
    net = Net(stream("s"), total("S", "s"))
    net.holds_log = True
    net.handle("s", Published("p", 1, (["A"], [1]), 5))
    net.handle("s", Published("p", 2, (["A"], [1]), 6))
    done = net.handle("s", LogFailed("fsync failed"))
    refused = [(i.sequence, i.uncertain) for i in done if isinstance(i, RefusePublish)]
    assert refused == [(1, True), (2, True)]
    assert [i.reason for i in done if isinstance(i, RestartMe)] == ["fsync failed"]
    assert net.handle("s", LogWritten(2)) == [], "too late: this incarnation has stopped"
    assert not net.find(Events)
    assert [type(i) for i in net.handle("s", Published("p", 3, (["A"], [1]), 7))] == [RefusePublish]
    net.holds_log = False
    net.logs["s"].rows[5] = ("A", 1)  # the first write had happened after all
    net.logs["s"].publishes.append(("p", 1, (5,)))
    net.restart("s")
    net.handle("s", Published("p", 1, (["A"], [1]), 9))
    net.handle("s", Published("p", 2, (["A"], [1]), 9))
    acks = net.did("s", AcknowledgePublish)
    assert [(ack.sequence, tuple(ack.ticks), ack.repeated) for ack in acks] == [(1, (5,), True), (2, (9,), False)]


def test_a_fenced_stream_stops_and_does_not_ask_for_a_restart() -> None:
    net = Net(stream("s"))
    net.holds_log = True
    net.handle("s", Published("p", 1, (["A"], [1]), 5))
    done = net.handle("s", LogFailed("epoch 2 owns the log", fenced=True))
    assert [type(i) for i in done] == [RefusePublish, Stopped]
    assert net.handle("s", TimerFired("silence", 100)) == []


def test_too_many_waiting_publishes_are_refused_as_busy() -> None:
    net = Net(stream("s", tuning=Tuning(appends_max=2)))
    net.holds_log = True
    for sequence in (1, 2, 3):
        net.handle("s", Published("p", sequence, (["A"], [1]), 5))
    assert [refusal.sequence for refusal in net.did("s", RefusePublish)] == [3]
    assert len(net.did("s", AppendToLog)) == 2


def test_a_stream_restarts_from_its_log_alone() -> None:
    net = Net(stream("s"))
    net.publish("s", 5)
    component = of_net(net)
    epoch = net.epochs["s"] + 1
    component.handle(Restarted(epoch, log=net.logs["s"].state()))
    assert (component.epoch, component.coverage().show()) == (2, "0..5")
