"""Goal: calls gather while an acknowledgement is outstanding, keep their order, and stay all in or all out each."""

from __future__ import annotations

import json
import random
import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import pytest

import smile
from runtime.client import lanes
from runtime.client.errors import ConnectionClosed, PublishRefused
from runtime.client.lanes import BROUGHT_BACK, Done, Entry
from runtime.wire import control
from smile.remote import publisher
from smile.remote.publisher import GATHER_ROWS, WINDOW, Lane
from smile.streams import StreamInput

PROGRAM = smile.compile("stream S (a int, b text) unique a;")


@dataclass
class Wire:
    """Messages as they were sent; the test answers them."""

    sent: list[tuple[list[list[object]], Done, object]] = field(default_factory=list)

    def __call__(
        self,
        stream: str,
        columns: Any,
        done: Done,
        producer: tuple[str, int] | None = None,
        *,
        chain: int = 0,
        is_joint: bool = False,
    ) -> None:
        assert (stream, chain > 0) == ("S", True)
        self.sent.append(([list(column) for column in columns], done, producer))

    def sent_keys(self) -> list[list[object]]:
        return [columns[0] for columns, _, _ in self.sent]

    def acknowledge(self, number: int, first: int = 100) -> None:
        columns, done, _ = self.sent[number]
        done(range(first, first + 10 * len(columns[0]), 10), None)

    def refuse(self, number: int, row: int | None = None, *, code: str = "rule", uncertain: bool = False) -> None:
        reason = "no" if row is None else json.dumps({"problems": [["a", "is taken", row]], "more": False})
        self.sent[number][1](None, PublishRefused(code, reason, uncertain))


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def lane(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> Lane:
    """One that gathers as soon as anything is under way."""
    monkeypatch.setattr(publisher, "SINGLES_MAX", 1)
    return Lane(StreamInput(PROGRAM.checked.program.streams["S"], PROGRAM.streams["S"]), wire, timeout=0.05)


def put(lane: Lane, *keys: int, single: bool = False) -> Future[Any]:
    return lane.submit(([*keys], ["x"] * len(keys)), len(keys), single=single)


def test_the_first_goes_at_once_and_the_next_gather(lane: Lane, wire: Wire) -> None:
    one, two, three = put(lane, 1, single=True), put(lane, 2, single=True), put(lane, 3, 4)
    assert wire.sent_keys() == [[1]]
    wire.acknowledge(0)
    assert wire.sent_keys() == [[1], [2, 3, 4]]
    assert (one.result(0), two.done()) == (100, False)
    wire.acknowledge(1, first=200)
    assert two.result(0) == 200
    assert list(three.result(0)) == [210, 220]
    assert lane.last_tick == 220


def test_enough_rows_for_a_message_do_not_wait(lane: Lane, wire: Wire) -> None:
    half = GATHER_ROWS // 2
    for first in range(0, (2 * WINDOW + 2) * half, half):
        put(lane, *range(first, first + half))
    assert [len(keys) for keys in wire.sent_keys()] == [half] + [GATHER_ROWS] * (WINDOW - 1)
    wire.acknowledge(0)
    assert len(wire.sent) == WINDOW + 1


def test_a_refused_message_of_several_calls_is_sent_again_one_by_one(lane: Lane, wire: Wire) -> None:
    put(lane, 1)
    calls = [put(lane, 2, single=True), put(lane, 3, 4), put(lane, 5)]
    wire.acknowledge(0)
    late = put(lane, 6)
    assert wire.sent_keys()[1:] == [[2, 3, 4, 5]]
    wire.refuse(1, row=2)
    assert wire.sent_keys()[2:] == [[2], [3, 4], [5]], "in order, and nothing overtakes them"
    wire.acknowledge(2)
    wire.refuse(3, row=1)
    wire.acknowledge(4)
    assert wire.sent_keys()[5:] == [[6]]
    assert (calls[0].result(0), list(calls[2].result(0)), late.done()) == (100, [100], False)
    with pytest.raises(smile.PublishError, match="column `a`: 4 is taken") as caught:
        calls[1].result(0)
    assert (caught.value.problems[0].row, caught.value.value) == (1, 4)


def test_a_few_small_calls_go_at_once_before_any_gather(
    lane: Lane, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "SINGLES_MAX", 3)
    for key in range(6):
        put(lane, key)
    assert wire.sent_keys() == [[0], [1], [2]]
    wire.acknowledge(0)
    assert wire.sent_keys()[3:] == [[3, 4, 5]]


def test_what_follows_a_refused_message_of_several_calls_comes_back_with_it(lane: Lane, wire: Wire) -> None:
    put(lane, 1)
    put(lane, 2)
    put(lane, 3)
    wire.acknowledge(0)
    put(lane, *range(10, 10 + GATHER_ROWS))
    assert [len(keys) for keys in wire.sent_keys()] == [1, 2, GATHER_ROWS]
    wire.refuse(1, row=1)
    assert len(wire.sent) == 3, "first everything has to be back"
    wire.refuse(2, code=BROUGHT_BACK)
    assert wire.sent_keys()[3:] == [[2], [3], [*range(10, 10 + GATHER_ROWS)]]


def test_a_name_waits_for_messages_of_several_calls(lane: Lane, wire: Wire) -> None:
    put(lane, 1)
    put(lane, 2)
    put(lane, 3)
    wire.acknowledge(0)
    lane.submit(([4], ["x"]), 1, single=True, once=("till", 7))
    assert wire.sent_keys() == [[1], [2, 3]]
    wire.acknowledge(1)
    assert wire.sent_keys()[2:] == [[4]]


class Loose:
    """A connection and a broker's stream, between which anything is lost: a client's lane, its publishes and their
    answers under way, and the rules of `runtime/broker/publishing.py`. Keys that are negative break a rule."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.logged: list[int] = []
        self.joint = 0
        self._newest = -1
        self._ticks: dict[int, range] = {}
        self._handed: deque[Entry] = deque()  # to the connection's thread
        self._sent: deque[control.Publish] = deque()
        self._lane = lanes.Lane(self._put)
        self._numbers = count()
        self._now_us = 0

    def __call__(
        self, stream: str, columns: Any, done: Done, producer: object = None, *, chain: int = 0, is_joint: bool = False
    ) -> None:
        self.joint += is_joint
        self._handed.append(Entry(stream, "p", next(self._numbers), columns, True, done, chain, is_joint))

    def _put(self, publish: control.Publish) -> bool:
        self._sent.append(publish)
        return True

    def go_on(self) -> None:
        self._now_us += 200_000
        for _ in range(self.chance.randrange(4)):
            if self._handed:
                entry = self._handed.popleft()
                if self._lane.is_broken(entry):
                    entry.done(None, self._lane.broken(entry))
                else:
                    self._lane.add(entry, self._now_us)
        self._lane.pump(self._now_us)
        while self._sent and self.chance.random() < 0.8:
            publish = self._sent.popleft()
            answer = self._judged(publish) if self.chance.random() < 0.9 else None
            if self.chance.random() < 0.1:
                answer = None
            if isinstance(answer, control.Acknowledged):
                found = self._lane.acknowledged(answer)
                if found is not None:
                    found.done(answer.ticks, None)
            elif answer is not None:
                for entry, error in self._lane.refused(answer, self._now_us):
                    entry.done(None, error)

    def _judged(self, publish: control.Publish) -> control.Acknowledged | control.PublishRefused:
        name, keys = (publish.producer, publish.sequence), [key for key in publish.columns[0] if isinstance(key, int)]
        if publish.sequence in self._ticks:
            return control.Acknowledged(*name, self._ticks[publish.sequence], True)
        if publish.previous is not None and publish.previous != self._newest:
            return control.PublishRefused(*name, "order", "", False, 1)
        if min(keys) < 0:
            return control.PublishRefused(*name, "rule", "bad", False, 0)
        self._ticks[publish.sequence] = range(len(self.logged), len(self.logged) + len(keys))
        self.logged += keys
        self._newest = publish.sequence
        return control.Acknowledged(*name, self._ticks[publish.sequence], False)


def test_whatever_is_lost_or_refused_calls_are_logged_once_and_in_order() -> None:
    joint = 0
    for seed in range(15):
        loose = Loose(seed)
        lane = Lane(StreamInput(PROGRAM.checked.program.streams["S"], PROGRAM.streams["S"]), loose, timeout=1.0)
        keys = [key if loose.chance.random() > 0.05 else -key for key in range(1, 100)]
        futures = []
        for key in keys:
            futures.append(put(lane, key, single=True))
            while loose.chance.random() < 0.3:
                loose.go_on()
        for _ in range(5_000):
            loose.go_on()
            if futures[-1].done() and all(future.done() for future in futures):
                break
        assert loose.logged == [key for key in keys if key > 0], seed
        for key, future in zip(keys, futures, strict=True):
            if key > 0:
                assert loose.logged[future.result(0)] == key
            else:
                assert isinstance(future.exception(0), smile.PublishError)
        joint += loose.joint
    assert joint > 15, "most calls were gathered, and some of these messages refused"


def test_refusals_have_the_classes_of_the_embedded_system(lane: Lane, wire: Wire) -> None:
    expected: list[tuple[dict[str, Any], type[smile.SmileError]]] = [
        ({"row": 0}, smile.PublishError),
        ({"code": "not-allowed"}, smile.NotAllowed),
        ({"code": "shape"}, smile.SmileError),
        ({"code": "log", "uncertain": True}, smile.PublishUncertain),
    ]
    for number, (said, kind) in enumerate(expected):
        future = put(lane, number, single=True)
        wire.refuse(number, **said)
        with pytest.raises(smile.SmileError) as caught:
            future.result(0)
        assert type(caught.value) is kind


def test_a_name_is_sent_alone_and_with_its_name(lane: Lane, wire: Wire) -> None:
    put(lane, 1)
    put(lane, 2)
    named = lane.submit(([3], ["x"]), 1, single=True, once=("till", 7))
    put(lane, 4)
    wire.acknowledge(0)
    wire.acknowledge(1)
    assert [(columns[0], producer) for columns, _, producer in wire.sent[1:3]] == [([2], None), ([3], ("till", 7))]
    wire.acknowledge(2)
    assert named.result(0) == 100
    assert wire.sent_keys()[3] == [4]


def test_arrays_stay_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    program = smile.compile("stream N (a int, f float);")

    def send(
        stream: str, columns: Any, done: Done, producer: object = None, *, chain: int = 0, is_joint: bool = False
    ) -> None:
        found.append(columns)

    lane = Lane(StreamInput(program.checked.program.streams["N"], program.streams["N"]), send, 1.0)
    monkeypatch.setattr(publisher, "SINGLES_MAX", 1)
    part = GATHER_ROWS // 8
    for _ in range(1 + 8):
        columns, rows = lane.stream.encode_many({"a": np.arange(part), "f": np.ones(part)})
        lane.submit(columns, rows, single=False)
    assert [len(columns[0]) for columns in found] == [part, GATHER_ROWS]
    assert all(isinstance(column, np.ndarray) for columns in found for column in columns)
    assert found[-1][0].tolist() == [*range(part)] * 8


def test_a_full_lane_makes_the_publisher_wait(lane: Lane, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "PENDING_ROWS_MAX", 3)
    put(lane, 1)
    put(lane, 2, 3)
    assert not lane.has_room(2)
    with pytest.raises(smile.TimedOut, match="2 rows wait"):
        put(lane, 4, 5)
    lane._timeout = 5.0
    waiting = threading.Thread(target=put, args=(lane, 4, 5))
    waiting.start()
    wire.acknowledge(0)
    waiting.join(5)
    assert not waiting.is_alive()
    assert wire.sent_keys() == [[1], [2, 3]]


def test_what_was_not_sent_can_be_taken_back(lane: Lane, wire: Wire) -> None:
    sent, waits = put(lane, 1), put(lane, 2)
    assert not sent.cancel()
    assert waits.cancel()
    wire.acknowledge(0)
    assert wire.sent_keys() == [[1]]


def test_closing_ends_what_waits(lane: Lane, wire: Wire) -> None:
    sent = put(lane, 1)
    waits = put(lane, 2)
    lane.close()
    wire.sent[0][1](None, ConnectionClosed("by us"))
    with pytest.raises(smile.PublishUncertain, match="before these rows were acknowledged"):
        sent.result(0)
    with pytest.raises(smile.Closed):
        waits.result(0)
    with pytest.raises(smile.Closed):
        put(lane, 3)
    assert wire.sent_keys() == [[1]]
