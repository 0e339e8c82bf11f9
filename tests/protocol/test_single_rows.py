"""Goal: the quick look at a single change says yes only to what the long one accepts, and does say yes to the usual."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from runtime.batch import Batch
from runtime.columns import Same
from runtime.plan import Column, Relation, ValueType
from runtime.protocol import state_receiver
from runtime.protocol.coverage import NO_TICK, TICK_MAX, Coverage
from runtime.protocol.errors import ProtocolError
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.protocol.messages import Knowledge
from runtime.protocol.state_component import StateComponent
from runtime.protocol.state_in_edge import StateInEdge
from runtime.protocol.validation import Place, is_plain_row, types_by_column
from tests.protocol.graphs import copy as copy_of
from tests.protocol.graphs import merge, total
from tests.protocol.net import Net, stream

RELATION = Relation(
    "r",
    (Column("k"), Column("x", ValueType.FLOAT), Column("t", ValueType.TEXT), Column("b", ValueType.BOOL)),
    1,
)
ROW = Batch(([1], [0.5], ["a"], [True]), [3], Same(True, 1))
CELLS: list[Any] = [1, -7, 0.5, "a", True, None, b"a", (1,)]
COLUMNS: list[Any] = [*([cell] for cell in CELLS), [], [1, 1], ["a", "a"], (1,), "a"]
TICKS: list[Any] = [[NO_TICK], [TICK_MAX], [-2], [TICK_MAX + 1], [True], [None], [1, 2], [], (1,)]
SEEN: list[Any] = [Same(False, 1), Same(1, 1), Same(True, 2), Same(True, 0), Same(None, 1), [True], [1], []]


def variants(row: Batch) -> Iterator[Batch]:
    """The row with one thing about it changed."""
    columns = row.columns
    for at in range(len(columns)):
        for column in COLUMNS:
            yield replace(row, columns=(*columns[:at], column, *columns[at + 1 :]))
    yield replace(row, columns=(*columns, [1]))
    yield replace(row, columns=columns[:-1])
    for ticks in TICKS:
        yield replace(row, max_ticks=ticks)
    for visible in SEEN:
        yield replace(row, visible=visible)
    for lineages in ([0], Same(0, 1)):
        yield replace(row, lineages=lineages)


def test_a_plain_row_is_one_that_is_accepted() -> None:
    types, place = types_by_column(RELATION), Place("c", "e")
    plain = 0
    for one in variants(ROW):
        for row in (one, *variants(one)):
            if is_plain_row(row, types):
                place.check_changes(row, RELATION)
                plain += 1
    assert plain > 100


def test_single_changes_are_plain() -> None:
    types = types_by_column(RELATION)
    assert is_plain_row(ROW, types)
    assert is_plain_row(replace(ROW, visible=Same(False, 1), max_ticks=[NO_TICK]), types)
    assert not is_plain_row("no batch", types)  # type: ignore[arg-type]


K = LineageCoverage([Coverage.prefix(5)])
KNOWLEDGE = Knowledge(1, 1, 2, K, Batch((["A"], [9]), [3], Same(True, 1)))
NUMBERS: list[Any] = [-2, -1, 0, 1, 2, 3, True, None, 1.0, TICK_MAX, TICK_MAX + 1]
COVERAGES: list[Any] = [LineageCoverage([Coverage.prefix(5)] * 2), None, Coverage.prefix(5)]
CHANGES: list[dict[str, Any]] = [
    *({name: number} for name in ("epoch", "from_step", "to_step", "floor", "filtered_for") for number in NUMBERS),
    *({"coverage": coverage} for coverage in COVERAGES),
]


def copying() -> tuple[StateComponent, StateInEdge]:
    net = Net(stream("s"), merge("m", "s"), total("S", "m"), copy_of("X", "S"))
    component = net.state("X")
    edge = component.in_edges["S>X"]
    assert isinstance(edge, StateInEdge)
    return component, edge


def verdict(component: StateComponent, edge: StateInEdge, message: Knowledge) -> str:
    try:
        component._check_knowledge(edge, message)
    except ProtocolError as refusal:
        return str(refusal)
    return "accepted"


def test_the_quick_look_refuses_what_the_long_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [replace(KNOWLEDGE, **(one | other)) for one in CHANGES for other in CHANGES]
    component, edge = copying()
    quick = [verdict(component, edge, message) for message in messages]
    monkeypatch.setattr(state_receiver, "_is_plain_head", lambda *_: False)
    monkeypatch.setattr(state_receiver, "is_plain_row", lambda *_: False)
    assert quick == [verdict(component, edge, message) for message in messages]
    assert 100 < quick.count("accepted") < len(quick) // 2


def test_usual_messages_are_looked_at_quickly() -> None:
    assert state_receiver._is_plain_head(KNOWLEDGE, 1)
    assert not state_receiver._is_plain_head(KNOWLEDGE, 2)
