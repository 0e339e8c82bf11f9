"""Rules S1 to S8: state edges go in order, by step; a gap costs one question and one answer with superseding rows."""

from dataclasses import replace
from itertools import pairwise

from runtime.operators.union import UnionAllSpec
from runtime.plan import Column, Relation, Tuning
from runtime.protocol.events import MessageArrived, TimerFired
from runtime.protocol.messages import Curiosity, Heartbeat, Knowledge, Snapshot
from tests.protocol.graphs import copy, total
from tests.protocol.net import TOTALS, Net, leaf, state, stream


def sum_to_leaf() -> Net:
    return Net(stream("s"), total("S", "s"), leaf("L", "S"))


def publish_up_to_sum(net: Net, *events: tuple[int, str, int]) -> None:
    for tick, key, value in events:
        net.publish("s", tick, key, value)
        net.pass_on("s>S")


def test_s1_each_message_that_adds_ticks_is_one_step_with_the_touched_rows() -> None:
    net = sum_to_leaf()
    publish_up_to_sum(net, (1, "A", 2), (2, "B", 3))
    sent = net.find(Knowledge, "S>L")
    assert [(m.from_step, m.to_step, m.rows.rows(), m.coverage.show()) for m in sent] == [
        (0, 1, [("A", 2)], "0..1"),
        (1, 2, [("B", 3)], "0..2"),
    ]


def test_s1_silence_is_a_step_without_rows() -> None:
    net = sum_to_leaf()
    net.silence("s", 5)
    net.pass_on("s>S")
    (sent,) = net.find(Knowledge, "S>L")
    assert (sent.from_step, sent.to_step, len(sent.rows), sent.coverage.show()) == (0, 1, 0, "0..5")


def test_s1_gathered_steps_travel_as_one_message_with_each_row_once() -> None:
    net = Net(stream("s"), total("S", "s", tuning=Tuning(gather_us=1000)), leaf("L", "S"))
    publish_up_to_sum(net, (1, "A", 2), (2, "B", 3), (3, "A", 4))
    assert not net.find(Knowledge)
    assert net.timers["S"]["gather"] == 1000
    net.handle("S", TimerFired("gather", 0))
    (sent,) = net.find(Knowledge, "S>L")
    assert (sent.from_step, sent.to_step, sorted(sent.rows.rows())) == (0, 3, [("A", 6), ("B", 3)])
    net.settle()
    assert net.rows("L") == {"A": (6,), "B": (3,)}


def test_s2_a_message_after_a_lost_one_is_held_not_applied() -> None:
    """Mistake 2: events 1, 2 for A and 3 for B; the first message to L is lost."""
    net = sum_to_leaf()
    publish_up_to_sum(net, (1, "A", 1), (2, "A", 1), (3, "B", 1))
    net.take("S>L", Knowledge, count=1)
    net.pass_on("S>L", Knowledge)
    assert net.rows("L") == {}
    assert net.covers("L") == "none"
    assert len(net.state_edge("L", "S>L").held) == 2
    assert len(net.find(Curiosity)) == 1, "one question, however many messages came too early"
    net.settle()
    assert net.rows("L") == {"A": (2,), "B": (1,)}
    assert net.state_edge("L", "S>L").held == []


def test_s2_held_messages_follow_by_themselves_when_the_missing_one_arrives() -> None:
    net = sum_to_leaf()
    publish_up_to_sum(net, (1, "A", 1), (2, "A", 1), (3, "B", 1))
    first, second, third = net.take("S>L", Knowledge)
    net.deliver(third, second, third, first)
    assert net.rows("L") == {"A": (2,), "B": (1,)}
    assert net.state_edge("L", "S>L").applied_step == 3


def test_s2_the_hold_back_buffer_is_bounded_and_repaired_by_the_answer() -> None:
    tuning = Tuning(held_messages_max=2)
    net = Net(stream("s"), total("S", "s"), copy("X", "S", tuning=tuning))
    publish_up_to_sum(net, *((tick, "A", 1) for tick in range(1, 7)))
    net.take("S>X", Knowledge, count=1)
    net.pass_on("S>X", Knowledge)
    assert len(net.state_edge("X", "S>X").held) == 2
    assert net.components["X"].counters["dropped.no_room"] == 3
    net.settle()
    assert net.rows("X") == {"A": (6,)}


def test_s2_a_stale_message_is_dropped() -> None:
    """Mistake 3: delivered in reverse after repair, the sum must not fall from 3 to 1."""
    net = sum_to_leaf()
    publish_up_to_sum(net, (1, "A", 1), (2, "A", 2))
    first, second = net.take("S>L", Knowledge)
    net.sync("L")
    net.deliver(second, first)
    assert net.rows("L") == {"A": (3,)}
    assert net.components["L"].counters["dropped.stale"] == 2


def test_s3_a_heartbeat_ahead_of_us_makes_us_ask() -> None:
    net = sum_to_leaf()
    publish_up_to_sum(net, (1, "A", 1))
    net.take("S>L", Knowledge)
    net.handle("S", TimerFired("heartbeat", 0))  # something was sent since the last one: stays quiet
    assert not net.find(Heartbeat)
    net.handle("S", TimerFired("heartbeat", 0))
    assert len(net.find(Heartbeat)) == 1
    net.settle()
    assert net.rows("L") == {"A": (1,)}


def test_s3_a_question_is_repeated_until_answered_ever_more_slowly() -> None:
    net = sum_to_leaf()
    net.take()
    publish_up_to_sum(net, (1, "A", 1), (2, "A", 1))
    net.take("S>L", Knowledge, count=1)
    net.pass_on("S>L")
    delays = []
    for _ in range(6):
        assert len(net.take("S>L", Curiosity)) == 1
        delays.append(net.timers["L"]["ask:S>L"])
        net.handle("L", TimerFired("ask:S>L", 0))
    assert all(later > 1.2 * sooner for sooner, later in pairwise(delays))
    for _ in range(9):
        net.handle("L", TimerFired("ask:S>L", 0))
    assert net.timers["L"]["ask:S>L"] <= Tuning().ask_delay_us_max * 5 // 4
    net.settle()
    net.handle("L", TimerFired("ask:S>L", 0))
    assert not net.mail, "answered: the timer has nothing left to ask"


def test_s4_the_answer_has_each_touched_row_once_and_only_those() -> None:
    net = sum_to_leaf()
    publish_up_to_sum(net, (1, "A", 1), (2, "B", 1))
    net.settle()
    publish_up_to_sum(net, (3, "A", 1), (4, "A", 1), (5, "C", 1))
    net.take("S>L")
    net.done["S"].clear()
    net.sync("L")
    (answer,) = net.sent("S", Knowledge)
    assert (answer.from_step, answer.to_step) == (2, 5)
    assert sorted(answer.rows.rows()) == [("A", 3), ("C", 1)]
    assert net.rows("L") == {"A": (3,), "B": (1,), "C": (1,)}


def test_s4_a_receiver_that_is_up_to_date_is_told_so_without_rows() -> None:
    net = sum_to_leaf()
    publish_up_to_sum(net, (1, "A", 1))
    net.settle()
    net.done["S"].clear()
    net.sync("L")
    assert (len(net.sent("S", Knowledge)), len(net.sent("S", Heartbeat))) == (0, 1)
    assert not net.state_edge("L", "S>L").is_behind


def test_s5_nothing_is_offered_before_the_sender_has_caught_up() -> None:
    """Mistake 9: S restarts empty and gets the newer tick first; the rising sum must not fall."""
    net = sum_to_leaf()
    publish_up_to_sum(net, (1, "A", 3))
    net.settle()
    net.restart("S")
    net.take()
    publish_up_to_sum(net, (2, "A", 2))
    net.take("s>S")
    net.sync("L")
    assert net.sent("S", Snapshot)[1:] == []
    assert net.rows("L") == {"A": (3,)}
    net.sync("S")
    net.sync("L")
    assert net.rows("L") == {"A": (5,)}


def test_s5_a_snapshot_has_the_rows_above_the_horizon_by_their_largest_tick() -> None:
    """Mistake 8: S catches up ticks 1 and 2 of one row in one answer; the row depends on tick 2."""
    net = sum_to_leaf()
    publish_up_to_sum(net, (0, "B", 7), (1, "A", 3))
    net.settle()
    net.restart("S")
    net.publish("s", 2, "A", 2)
    net.take("s>S")
    net.handle("S", TimerFired("ask:s>S", 0))  # the first question was lost as well
    net.settle()
    net.done["S"].clear()
    net.sync("L")
    assert net.rows("L") == {"A": (5,), "B": (7,)}
    net.restart("S")
    net.settle()
    offered = net.sent("S", Snapshot)
    assert all(snapshot.rows.rows() == [] for snapshot in offered[-1:]), "L has everything up to its horizon"


def test_s5_rows_that_the_receiver_has_are_not_repeated() -> None:
    net = sum_to_leaf()
    publish_up_to_sum(net, (1, "A", 3), (2, "B", 1))
    net.settle()
    net.restart("S")
    publish_up_to_sum(net, (3, "B", 1))
    net.done["S"].clear()
    net.settle()
    net.sync("S")
    net.sync("L")
    last = net.sent("S", Snapshot)[-1]
    assert (last.complete, last.horizon, last.rows.rows()) == (False, 2, [("B", 2)])
    assert net.rows("L") == {"A": (3,), "B": (2,)}


def test_s6_a_snapshot_is_rejected_if_we_fell_back_since_we_asked() -> None:
    """Mistakes 10 and 18: L asks, S restarts and answers, L restarts empty, the answer arrives."""
    net = sum_to_leaf()
    publish_up_to_sum(net, (1, "A", 1))
    net.settle()
    net.restart("S")
    net.settle(without=lambda mail: mail.edge == "S>L")
    net.sync("S")
    net.handle("L", TimerFired("idle:S>L", 0))
    net.handle("L", TimerFired("idle:S>L", 0))
    net.pass_on("S>L", Curiosity)
    (late,) = net.take("S>L", Snapshot)
    assert isinstance(late.message, Snapshot)
    assert late.message.rows.rows() == []
    net.restart("L")
    net.take()
    net.deliver(late)
    assert net.covers("L") == "none"
    assert net.components["L"].counters["snapshots_rejected"] == 1
    net.handle("L", TimerFired("ask:S>L", 0))
    net.settle()
    assert net.rows("L") == {"A": (1,)}


def test_s6_an_incomparable_snapshot_is_rejected() -> None:
    net = sum_to_leaf()
    publish_up_to_sum(net, (1, "A", 1))
    net.settle()
    good = net.sent("S", Snapshot)[-1]
    behind = replace(good, epoch=9, to_step=4)  # says less than we have
    net.handle("L", MessageArrived("S>L", behind))
    assert net.state_edge("L", "S>L").adopted_epoch == 1
    assert net.rows("L") == {"A": (1,)}


def test_s7_messages_of_a_replaced_epoch_are_dropped_and_early_ones_of_the_new_epoch_too() -> None:
    """Mistake 11: a message of the new epoch, sent before the snapshot, arrives after it."""
    net = sum_to_leaf()
    publish_up_to_sum(net, (1, "A", 1))
    net.settle()
    publish_up_to_sum(net, (2, "A", 1))
    old = net.take("S>L", Knowledge)
    net.restart("S")
    publish_up_to_sum(net, (3, "B", 1))
    early = net.take("S>L", Knowledge)
    publish_up_to_sum(net, (4, "B", 1))
    net.settle(without=lambda mail: mail.edge == "S>L")
    net.sync("S")
    net.sync("L")
    assert net.rows("L") == {"A": (2,), "B": (2,)}
    net.deliver(*old, *early)
    assert net.rows("L") == {"A": (2,), "B": (2,)}


def test_s7_until_the_new_epoch_is_adopted_the_old_one_still_counts() -> None:
    net = sum_to_leaf()
    publish_up_to_sum(net, (1, "A", 1))
    net.settle()
    publish_up_to_sum(net, (2, "A", 1))
    old = net.take("S>L", Knowledge)
    net.restart("S")
    net.handle("S", TimerFired("heartbeat", 0))
    net.pass_on("S>L", Heartbeat)
    net.deliver(*old)
    assert net.rows("L") == {"A": (2,)}


def test_s8_a_senders_restart_changes_nothing_downstream_but_the_edge() -> None:
    """Mistake 26."""
    net = Net(stream("s"), total("S", "s"), copy("X", "S"), leaf("L", "X"))
    publish_up_to_sum(net, (1, "A", 1), (2, "B", 1))
    net.settle()
    step, coverage = net.state("X").step, net.covers("X")
    net.restart("S")
    net.settle()
    net.sync("X")
    assert net.state_edge("X", "S>X").adopted_epoch == 2
    assert (net.state("X").epoch, net.state("X").step, net.covers("X")) == (1, step, coverage)
    assert net.state_edge("L", "X>L").adopted_epoch == 1


def test_retries_are_hastened_once_when_a_new_epoch_has_caught_up() -> None:
    net = sum_to_leaf()
    publish_up_to_sum(net, (1, "A", 1))
    net.settle()
    net.restart("S")
    net.take()
    net.handle("S", TimerFired("heartbeat", 0))
    net.pass_on("S>L")  # behind us: L asks, in vain, and waits
    net.settle(without=lambda mail: mail.edge == "s>S")
    assert net.state_edge("L", "S>L").asker.waiting
    net.sync("S")  # its step towards L says that it has caught up now
    assert net.state_edge("L", "S>L").adopted_epoch == 2


def test_a_diamond_covers_a_tick_only_on_the_edge_that_has_it() -> None:
    """Mistake 20, with a component that gets one stream by two paths."""
    relation = Relation("J", (Column("input"), *TOTALS.columns), 2)
    net = Net(stream("s"), total("S", "s"), total("T", "s"), state("J", UnionAllSpec(), "S", "T", relation=relation))
    publish_up_to_sum(net, (1, "A", 1))
    net.pass_on("S>J")
    assert net.covers("J") == "0..1 | none"
    assert net.components["J"].horizon() == -1
    net.settle()
    assert net.covers("J") == "0..1 | 0..1"
    assert net.rows("J") == {0: ("A", 1), 1: ("A", 1)}
