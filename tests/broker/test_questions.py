"""Goal: whoever asks a lot is answered in turn with everybody else, and what waits is bounded, also for one peer."""

from __future__ import annotations

import smile
from runtime.broker.hosted import guests_edge
from runtime.broker.questions import QUESTIONS_MAX, QUESTIONS_PER_PEER_MAX, Questions
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Curiosity
from tests.broker.hosts import PROGRAM, Net


def question(step: int) -> Curiosity:
    return Curiosity(1, 0, step, LineageCoverage.empty(1))


def test_peers_take_turns() -> None:
    questions = Questions()
    for epoch in range(3):
        assert questions.put("V", "e", epoch, question(epoch), b"loud")
    assert questions.put("V", "e", 0, question(7), b"quiet")
    assert questions.put("V", "e", 1, question(8), b"loud")  # in the place of the older one
    assert len(questions) == 4
    taken = [questions.take() for _ in range(4)]
    assert taken[0] == ("V", "e", question(0), b"loud")
    assert [source for *_, source in taken] == [b"loud", b"quiet", b"loud", b"loud"]
    assert [message.applied_step for _, _, message, _ in taken if isinstance(message, Curiosity)] == [0, 7, 8, 2]
    assert not questions


def test_what_waits_is_bounded_for_each_and_for_all() -> None:
    questions = Questions()
    of_one = [questions.put("V", "e", epoch, question(0), b"one") for epoch in range(QUESTIONS_PER_PEER_MAX + 5)]
    assert of_one.count(True) == len(questions) == QUESTIONS_PER_PEER_MAX
    assert questions.put("V", "e", 0, question(1), b"one"), "a newer one needs no room"
    for peer in range(1, QUESTIONS_MAX // QUESTIONS_PER_PEER_MAX):
        for epoch in range(QUESTIONS_PER_PEER_MAX):
            assert questions.put("V", "e", epoch, question(0), b"%d" % peer)
    assert not questions.put("V", "e", 0, question(0), b"last")
    assert len(questions) == QUESTIONS_MAX


def test_one_guest_cannot_keep_another_from_being_answered() -> None:
    net = Net()
    net.deploy(smile.compile(PROGRAM), {"Buys": "a", "Items": "a", "Sold": "a", "Big": "a", "Large": "a"})
    net.carry()
    host = net.hosts["a"]
    host.attach_guests("Sold")
    net.letters.clear()
    edge = guests_edge("Sold")
    for epoch in range(2, 100_000):
        host.arrived("Sold", edge, Curiosity(epoch, 0, 0, LineageCoverage.empty(1)), b"loud")
    host.arrived("Sold", edge, Curiosity(2, 0, 0, LineageCoverage.empty(1)), b"quiet")
    host.work()
    host.work()
    assert any(letter.to == b"quiet" for letter in net.letters)
    assert host.counters["questions_dropped"]
