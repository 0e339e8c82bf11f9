"""Publishes of a client: order, repeats, and those after a refused one, against a broker of a few lines."""

from __future__ import annotations

import random
from collections import deque

import pytest

from runtime.client.errors import PublishRefused
from runtime.client.lanes import RETRY_US, Entry, Lane, Ticks, Unsendable, both
from runtime.wire import control
from runtime.wire.errors import WireTooLarge


class Stream:
    """Takes what follows what it has, refuses the rest: the rules of `runtime/broker/publishing.py`."""

    def __init__(self) -> None:
        self.logged: list[int] = []
        self.bad: set[int] = set()

    def take(self, publish: control.Publish) -> control.Acknowledged | control.PublishRefused:
        name = (publish.producer, publish.sequence)
        if publish.sequence in self.logged:
            return control.Acknowledged(*name, (publish.sequence,), True)
        newest = self.logged[-1] if self.logged else -1
        if publish.previous is not None and publish.previous != newest:
            return control.PublishRefused(*name, "order", "", False, 1)
        if publish.sequence in self.bad:
            return control.PublishRefused(*name, "rule", "bad", False, 0)
        self.logged.append(publish.sequence)
        return control.Acknowledged(*name, (publish.sequence,), False)


Answers = dict[int, object]
"""By sequence: the ticks, or what went wrong."""


def entry(sequence: int, answers: Answers | None = None) -> Entry:
    def done(ticks: Ticks | None, error: BaseException | None) -> None:
        assert answers is not None
        assert sequence not in answers, "once"
        answers[sequence] = ticks if error is None else error

    return Entry("S", "p", sequence, ([sequence],), is_ordered=True, done=done)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_lost_or_refused_the_rest_is_logged_once_and_in_order(seed: int) -> None:
    chance = random.Random(seed)
    stream, sent = Stream(), deque[control.Publish]()
    answers: deque[control.Acknowledged | control.PublishRefused] = deque()
    stream.bad = set(chance.sample(range(60), 5))
    is_down = False

    def send(publish: control.Publish) -> bool:
        if not is_down:
            sent.append(publish)
        return not is_down

    lane = Lane(send)
    told: Answers = {}
    entries = [entry(n, told) for n in range(60)]
    waiting, now_us = deque(entries), 0
    for _ in range(3_000):
        now_us += 20_000
        is_down = chance.random() < 0.1
        if chance.random() < 0.03:  # the connection breaks
            sent.clear()
            answers.clear()
            lane.send_all_again()
        for _ in range(chance.randrange(4)):
            if waiting:
                lane.add(waiting.popleft(), now_us)
        lane.pump(now_us)
        while sent and chance.random() < 0.8:
            publish = sent.popleft()
            if chance.random() > 0.1:
                answers.append(stream.take(publish))
        while answers and chance.random() < 0.8:
            answer = answers.popleft()
            if chance.random() < 0.1:
                continue
            if isinstance(answer, control.Acknowledged):
                found = lane.acknowledged(answer)
                if found is not None:
                    found.done(answer.ticks, None)
            else:
                for refused, error in lane.refused(answer, now_us):
                    refused.done(None, error)
    assert len(lane) == 0
    assert stream.logged == [n for n in range(60) if n not in stream.bad]
    assert len(told) == 60
    for sequence, outcome in told.items():
        if sequence in stream.bad:
            assert isinstance(outcome, PublishRefused)
            assert outcome.code == "rule"
        else:
            assert outcome == (sequence,)


def test_nothing_is_sent_twice_while_an_answer_is_on_its_way() -> None:
    sent: list[int] = []

    def send(publish: control.Publish) -> bool:
        sent.append(publish.sequence)
        return True

    lane = Lane(send)
    for n in range(3):
        lane.add(entry(n), 0)
    assert lane.pump(RETRY_US - 1) == RETRY_US
    assert sent == [0, 1, 2]
    lane.pump(RETRY_US)
    assert sent == [0, 1, 2, 0, 1, 2]


def test_the_same_name_twice_is_one_publish() -> None:
    lane = Lane(lambda _: True)
    first, second = entry(7), entry(7)
    assert lane.add(first, 0) is first
    assert lane.add(second, 0) is first
    assert len(lane) == 1


def test_two_who_publish_the_same_are_both_told() -> None:
    told: list[object] = []
    done = both(
        lambda ticks, error: told.append((1, ticks, error)), lambda ticks, error: told.append((2, ticks, error))
    )
    done((5,), None)
    assert told == [(1, (5,), None), (2, (5,), None)]


def test_what_no_broker_would_take_ends_alone_once_there_is_one() -> None:
    """It is written only when there is a broker to send it to, which is long after the call."""
    sent: list[int] = []
    is_down, answers = True, Answers()

    def send(publish: control.Publish) -> bool:
        if is_down:
            return False
        if publish.sequence == 1:
            raise WireTooLarge("a body")
        sent.append(publish.sequence)
        return True

    lane = Lane(send)
    for sequence in range(3):
        lane.add(entry(sequence, answers), 0)
    is_down = False
    with pytest.raises(Unsendable) as found:
        lane.pump(RETRY_US)
    for one, error in lane.give_up(found.value.entry, found.value.cause):
        one.done(None, error)
    lane.pump(RETRY_US)
    assert sent == [0, 2]
    refusal = answers.pop(1)
    assert isinstance(refusal, PublishRefused)
    assert (refusal.code, refusal.uncertain, answers) == ("too-large", False, {})
