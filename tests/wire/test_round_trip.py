"""Goal: every kind of message and record survives the wire with all its fields and the types of all its cells, in few
frames and few bytes, and numbers stay arrays that nobody copied."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.batch import Batch
from runtime.columns import Numbers, numbers
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Events, Knowledge, Message
from runtime.wire import control
from runtime.wire.control import ControlRecord, Publish, decode_control, encode_control
from runtime.wire.errors import WireGarbage, WireTooLarge
from runtime.wire.frames import decode_frames
from runtime.wire.limits import FRAMES_MAX, NAME_BYTES_MAX, ROWS_MAX
from runtime.wire.messages import decode_message, encode_message
from tests.wire.samples import MESSAGES, RECORDS, messages, names, plainly, records


@given(names, messages)
def test_messages_survive(edge: str, message: Message) -> None:
    frames = encode_message(edge, message)
    assert len(frames) <= FRAMES_MAX
    assert plainly(decode_message(frames)) == plainly((edge, message))
    assert plainly(decode_frames([memoryview(frame) for frame in frames])) == plainly((edge, message))


@given(records)
def test_records_survive(record: ControlRecord) -> None:
    frames = encode_control(record)
    assert len(frames) <= FRAMES_MAX
    assert plainly(decode_control(frames)) == plainly(record)
    assert plainly(decode_frames(frames)) == plainly(record)


whole = st.integers(-(2**63) - 1, 2**63)


@given(names, st.one_of(names, st.just("\ud800")), st.lists(whole, max_size=20), st.one_of(st.none(), st.just(7)))
def test_single_rows_of_numbers_are_written_as_any_others(
    stream: str, producer: str, row: list[int], previous: int | None
) -> None:
    publish = Publish(stream, producer, 8, tuple([value] for value in row), previous)

    def outcome() -> object:
        try:
            return encode_control(publish)
        except (WireTooLarge, WireGarbage) as error:
            return type(error), str(error)

    short = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(control, "_encode_single", lambda _: None)
        assert short == outcome()


def test_samples_are_of_every_kind_of_message() -> None:
    assert {type(message) for message in MESSAGES.values()} == set(get_args(Message))
    assert {type(record) for record in RECORDS.values()} <= set(get_args(ControlRecord))


def test_a_message_is_not_a_record() -> None:
    with pytest.raises(WireGarbage, match="unknown kind"):
        decode_message(encode_control(RECORDS["publish one"]))
    with pytest.raises(WireGarbage, match="unknown kind"):
        decode_control(encode_message("e", MESSAGES["ack"]))


def _knowledge(columns: tuple[Any, ...], ticks: Any) -> Knowledge:
    return Knowledge(1, 2, 3, LineageCoverage.prefix(1, 10**6), Batch(columns, ticks, [True] * len(ticks)))


def test_numbers_are_views_of_the_frame() -> None:
    rows = 1_000
    sent = _knowledge((numbers(np.arange(rows)), numbers(np.arange(rows) / 2)), numbers(np.arange(rows) ** 2))
    frames = encode_message("e", sent)
    _, got = decode_message(frames)
    assert isinstance(got, Knowledge)
    body = np.frombuffer(frames[1], np.uint8)
    for column in (*got.rows.columns, got.rows.max_ticks):
        assert isinstance(column, Numbers)
        assert np.shares_memory(column, body)
        assert not column.flags.writeable
        assert column.flags.aligned


@pytest.mark.parametrize("offset", range(8))
def test_numbers_are_aligned_wherever_the_frame_lies(offset: int) -> None:
    rows = 200
    frames = encode_message("e", _knowledge((numbers(np.arange(rows)),), range(rows)))
    moved = memoryview(bytes(offset) + frames[1])[offset:]
    _, got = decode_message([frames[0], moved])
    assert isinstance(got, Knowledge)
    column: Any = got.rows.columns[0]
    assert column.flags.aligned
    assert column.tolist() == list(range(rows))


def test_what_is_nearly_always_the_same_costs_nothing() -> None:
    """Ticks in progression, visibility, lineages, the tick column: 1,000 events of one number are 8,000 bytes of it."""
    ticks = range(10**15, 10**15 + 1024 * 1000, 1024)
    events = Events(LineageCoverage.prefix(1, 10**16), Batch.events(ticks, [numbers(np.arange(1000))]))
    frames = encode_message("an edge", events)
    assert sum(map(len, frames)) < 8_000 + 64
    _, got = decode_message(frames)
    assert isinstance(got, Events)
    assert got.rows.max_ticks is got.rows.columns[0]
    assert got.rows.max_ticks == ticks


def test_one_row_is_one_small_frame() -> None:
    frames = encode_message("an edge", MESSAGES["one row"])
    assert [len(frame) for frame in frames] < [64]
    assert len(encode_control(RECORDS["publish one"])) == 1


def test_repeated_texts_are_sent_once() -> None:
    column = [f"a rather long text, number {i % 10}" for i in range(1_000)]
    frames = encode_message("e", _knowledge((column,), range(1_000)))
    assert sum(map(len, frames)) < 1_000 + 500
    many = [f"{i % 300}" for i in range(1_000)]
    assert plainly(decode_message(encode_message("e", _knowledge((many,), range(1_000))))) == plainly(
        ("e", _knowledge((many,), range(1_000)))
    )


def test_headers_do_not_overflow_with_long_texts_in_few_rows() -> None:
    message = _knowledge(tuple(["long " * 1_000] * 3 for _ in range(100)), [1, 5, 7])
    frames = encode_message("e", message)
    assert len(frames) == 2
    assert plainly(decode_message(frames)) == plainly(("e", message))


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        (([2**63],), WireTooLarge),
        (([2**63] * 100,), WireTooLarge),
        (([2**63, "x"] * 50,), WireTooLarge),
        ((range(2**63, 2**63 + 5),), WireTooLarge),
        (([b"bytes"],), WireGarbage),
        (([b"bytes"] * 100,), WireGarbage),
        ((["\ud800"],), WireGarbage),
        ((["\ud800"] * 100,), WireGarbage),
        ((["\ud800", 1] * 100,), WireGarbage),
        ((numbers(np.arange(100)).astype("i4"),), WireGarbage),  # type: ignore[attr-defined]
        (([1, 2], [1]), WireGarbage),
        ((range(ROWS_MAX + 1),), WireTooLarge),
        (tuple([1] for _ in range(1_025)), WireTooLarge),
    ],
)
def test_what_a_peer_would_refuse_is_not_sent(columns: tuple[Any, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        encode_control(Publish("S", "p", 1, columns))


def test_names_are_bounded() -> None:
    for name in ("x" * (NAME_BYTES_MAX + 1), "é" * NAME_BYTES_MAX):
        with pytest.raises(WireTooLarge):
            encode_message(name, MESSAGES["ack"])
    assert decode_message(encode_message("é" * (NAME_BYTES_MAX // 2), MESSAGES["ack"]))[1] == MESSAGES["ack"]
