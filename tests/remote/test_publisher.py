"""Goal: calls gather while an acknowledgement is outstanding, keep their order, and stay all in or all out each."""

from __future__ import annotations

import json
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import smile
from runtime.client.errors import ConnectionClosed, PublishRefused
from smile.remote import publisher
from smile.remote.publisher import GATHER_ROWS, LARGE_ROWS, WINDOW, Lane
from smile.streams import StreamInput

PROGRAM = smile.compile("stream S (a int, b text) unique a;")


@dataclass
class Wire:
    """Messages as they were sent; the test answers them."""

    sent: list[tuple[list[list[object]], Future[Any], object]] = field(default_factory=list)

    def __call__(self, stream: str, columns: Any, producer: tuple[str, int] | None = None) -> Future[Any]:
        assert stream == "S"
        future: Future[Any] = Future()
        self.sent.append(([list(column) for column in columns], future, producer))
        return future

    def sent_keys(self) -> list[list[object]]:
        return [columns[0] for columns, _, _ in self.sent]

    def acknowledge(self, number: int, first: int = 100) -> None:
        columns, future, _ = self.sent[number]
        future.set_result(range(first, first + 10 * len(columns[0]), 10))

    def refuse(self, number: int, row: int | None = None, *, code: str = "rule", uncertain: bool = False) -> None:
        reason = "no" if row is None else json.dumps({"problems": [["a", "is taken", row]], "more": False})
        self.sent[number][1].set_exception(PublishRefused(code, reason, uncertain))


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def lane(wire: Wire) -> Lane:
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


def test_large_calls_do_not_wait(lane: Lane, wire: Wire) -> None:
    for first in range(0, (WINDOW + 2) * LARGE_ROWS, LARGE_ROWS):
        put(lane, *range(first, first + LARGE_ROWS))
    assert [len(keys) for keys in wire.sent_keys()] == [LARGE_ROWS] * WINDOW
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


def test_nothing_overtakes_a_gathered_message(lane: Lane, wire: Wire) -> None:
    put(lane, 1)
    put(lane, 2)
    put(lane, 3)
    wire.acknowledge(0)
    put(lane, *range(10, 10 + LARGE_ROWS))
    assert wire.sent_keys() == [[1], [2, 3]]
    wire.acknowledge(1)
    assert len(wire.sent) == 3


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


def test_arrays_stay_arrays() -> None:
    found: list[Any] = []
    program = smile.compile("stream N (a int, f float);")

    def send(stream: str, columns: Any, producer: object = None) -> Future[Any]:
        found.append(columns)
        return Future()

    lane = Lane(StreamInput(program.checked.program.streams["N"], program.streams["N"]), send, 1.0)
    for _ in range(3):
        columns, rows = lane.stream.encode_many({"a": np.arange(LARGE_ROWS), "f": np.ones(LARGE_ROWS)})
        lane.submit(columns, rows, single=False)
    lane = Lane(lane.stream, send, 1.0)
    for _ in range(1 + 2 * GATHER_ROWS // LARGE_ROWS):
        columns, rows = lane.stream.encode_many({"a": np.arange(LARGE_ROWS // 2), "f": np.ones(LARGE_ROWS // 2)})
        lane.submit(columns, rows, single=False)
    assert [len(columns[0]) for columns in found] == [LARGE_ROWS] * 3 + [LARGE_ROWS // 2, GATHER_ROWS]
    assert all(isinstance(column, np.ndarray) for columns in found for column in columns)
    assert found[-1][0].tolist() == [*range(LARGE_ROWS // 2)] * (2 * GATHER_ROWS // LARGE_ROWS)


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
    wire.sent[0][1].set_exception(ConnectionClosed("by us"))
    with pytest.raises(smile.PublishUncertain, match="before these rows were acknowledged"):
        sent.result(0)
    with pytest.raises(smile.Closed):
        waits.result(0)
    with pytest.raises(smile.Closed):
        put(lane, 3)
    assert wire.sent_keys() == [[1]]
