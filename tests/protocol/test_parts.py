"""Messages in parts: bounded frames, applied wholly or not at all."""

from dataclasses import replace

import pytest

from runtime.batch import Batch
from runtime.plan import Tuning
from runtime.protocol import parts as parts_module
from runtime.protocol.coverage import Coverage
from runtime.protocol.errors import BadShape, TooLarge
from runtime.protocol.events import MessageArrived, TimerFired
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Knowledge, Part, Snapshot
from runtime.protocol.parts import Assembly, split_events, split_state
from tests.protocol.graphs import copy, total
from tests.protocol.net import Mail, Net, stream

KEYS = "ABCDE"


def five_rows(assembly_rows_max: int = 1_000) -> Net:
    """S has five rows, sends two per frame; X has seen nothing yet."""
    net = Net(
        stream("s"),
        total("S", "s", tuning=Tuning(message_rows_max=2)),
        copy("X", "S", tuning=Tuning(assembly_rows_max=assembly_rows_max)),
    )
    for tick, key in enumerate(KEYS):
        net.publish("s", tick, key, tick)
    net.settle(without=lambda mail: mail.edge == "S>X")
    return net


def ask(net: Net) -> list[Mail]:
    net.state_edge("X", "S>X").asker.answered()
    net.handle("X", TimerFired("idle:S>X", 0))
    net.handle("X", TimerFired("idle:S>X", 0))
    net.pass_on("S>X")
    return net.take("S>X")


def test_an_answer_is_applied_only_when_all_its_parts_are_there() -> None:
    """Mistake 25."""
    net = five_rows()
    parts = ask(net)
    assert [type(mail.message) for mail in parts] == [Part] * 3
    net.deliver(parts[2], parts[0], parts[0])
    assert net.rows("X") == {}
    assert net.covers("X") == "none"
    net.deliver(parts[1])
    assert len(net.rows("X")) == 5
    assert net.covers("X") == "0..4"


def test_pieces_have_fewer_rows_where_texts_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts_module, "CHARS_MAX", 10)
    lengths = [1, 2, 3, 20, 9, 1, 1, 0, 0, 0, 0]
    rows = Batch.of_rows(2, [(n, "x" * length or None) for n, length in enumerate(lengths)], [1] * 11, [True] * 11)
    pieces = split_state(Snapshot(1, 1, LineageCoverage.empty(1), -1, True, -1, rows), 5, 7, [1])
    assert all(isinstance(piece, Part) for piece in pieces)
    assert [list(piece.message.rows.columns[0]) for piece in pieces if isinstance(piece, Part)] == [
        [0, 1, 2],
        [3],
        [4],
        [5, 6, 7, 8, 9],
        [10],
    ]
    assembly = Assembly()
    found = [assembly.add(piece) for piece in pieces if isinstance(piece, Part)]
    assert isinstance(found[-1], Snapshot)
    assert found[-1].rows.rows() == rows.rows()


def test_parts_of_a_repeated_answer_complete_each_other() -> None:
    net = five_rows()
    net.deliver(ask(net)[0])
    net.deliver(*ask(net)[1:])
    assert len(net.rows("X")) == 5


def test_parts_of_different_answers_never_mix() -> None:
    net = five_rows()
    old = ask(net)
    net.deliver(old[0], old[1])
    net.publish("s", 9, "A", 100)
    net.pass_on("s>S")
    net.take("S>X")
    new = ask(net)
    net.deliver(new[0], old[2], new[1])
    assert net.rows("X") == {}
    net.deliver(new[2])
    assert net.rows("X")["A"] == (100,)


def test_an_answer_whose_rows_changed_without_a_step_is_another_answer() -> None:
    net = five_rows()
    part = ask(net)[0].message
    assert isinstance(part, Part)
    net.handle("X", MessageArrived("S>X", part))
    net.handle("X", MessageArrived("S>X", replace(part, index=1, revision=part.revision + 1)))
    assert net.state_edge("X", "S>X").assembly.rows_count() == 2


def test_a_message_beyond_the_bound_is_refused() -> None:
    net = five_rows(assembly_rows_max=4)
    part = ask(net)[0].message
    with pytest.raises(TooLarge):
        net.handle("X", MessageArrived("S>X", part))
    assert net.components["X"].counters["refused.too_large"] == 1


def test_parts_that_do_not_make_the_promised_rows_are_refused() -> None:
    net = five_rows()
    parts = [mail.message for mail in ask(net)]
    for i, part in enumerate(parts):
        assert isinstance(part, Part)
        lying = replace(part, rows_count=9)
        if i < 2:
            net.handle("X", MessageArrived("S>X", lying))
        else:
            with pytest.raises(BadShape):
                net.handle("X", MessageArrived("S>X", lying))
    assert net.rows("X") == {}


@pytest.mark.parametrize("index", [-1, 3])
def test_a_part_outside_its_count_is_refused(index: int) -> None:
    net = five_rows()
    part = ask(net)[0].message
    assert isinstance(part, Part)
    assert isinstance(part.message, Knowledge | Snapshot)
    with pytest.raises(BadShape):
        net.handle("X", MessageArrived("S>X", replace(part, index=index)))


def test_split_event_messages_are_true_one_by_one_and_complete_together() -> None:
    ticks = [1, 4, 5, 9, 12, 2, 8]
    rows = Batch.events(ticks, [list("abcdefg"), list(range(7))], [0, 0, 0, 0, 0, 1, 1])
    cover = LineageCoverage([Coverage.of((0, 6), (8, 20)), Coverage.of((0, 30))])
    pieces = split_events(cover, rows, 2)
    together = LineageCoverage.empty(2)
    seen: list[int] = []
    for piece in pieces:
        assert len(piece.rows) <= 2
        assert not together.intersection(piece.cover)
        together.update(piece.cover)
        assert piece.rows.lineages is not None
        for tick, lineage in zip(piece.rows.max_ticks, piece.rows.lineages, strict=True):
            assert tick in piece.cover[lineage]
        inside = [t for t, n in zip(ticks, rows.lineages or (), strict=True) if t in piece.cover[n]]
        assert sorted(inside) == sorted(piece.rows.max_ticks), "a covered tick without its event would be silence"
        seen += piece.rows.max_ticks
    assert together == cover
    assert sorted(seen) == sorted(ticks)
