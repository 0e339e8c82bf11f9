"""Goal: the quick look at a single change says yes only to what the long one accepts, and does say yes to the usual."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.batch import Batch
from runtime.columns import Same
from runtime.plan import Column, Relation, ValueType
from runtime.protocol import state_receiver
from runtime.protocol.coverage import NO_TICK, TICK_MAX, Coverage, LineageCoverage
from runtime.protocol.errors import ProtocolError
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
CELLS: st.SearchStrategy[Any] = st.sampled_from([1, -7, 0.5, "a", True, None, b"a", (1,)])
COLUMNS: st.SearchStrategy[Any] = st.one_of(CELLS.map(lambda cell: [cell]), st.sampled_from([[], [1, 1], (1,), "a"]))


@st.composite
def rows(draw: st.DrawFn) -> Any:
    """The usual row with one or two things about it changed."""
    made: Any = ROW
    for what in draw(st.lists(st.sampled_from(["column", "width", "ticks", "visible", "lineages"]), max_size=2)):
        columns = list(made.columns)
        match what:
            case "column":
                columns[draw(st.integers(0, len(columns) - 1))] = draw(COLUMNS)
                made = replace(made, columns=tuple(columns))
            case "width":
                made = replace(made, columns=(*columns, [1]) if draw(st.booleans()) else tuple(columns[:-1]))
            case "ticks":
                ticks = [[NO_TICK], [TICK_MAX], [-2], [TICK_MAX + 1], [True], [None], [1, 2], []]
                made = replace(made, max_ticks=draw(st.sampled_from(ticks)))
            case "visible":
                seen: list[Any] = [
                    Same(False, 1),
                    Same(1, 1),
                    Same(True, 2),
                    Same(None, 1),
                    [True],
                    [1],
                    [],
                    Same(True, 0),
                ]
                made = replace(made, visible=draw(st.sampled_from(seen)))
            case _:
                made = replace(made, lineages=draw(st.sampled_from([None, [0], Same(0, 1)])))
    return made


@given(rows())
def test_a_plain_row_is_one_that_is_accepted(row: Batch) -> None:
    if is_plain_row(row, types_by_column(RELATION)):
        Place("c", "e").check_changes(row, RELATION)


def test_single_changes_are_plain() -> None:
    types = types_by_column(RELATION)
    assert is_plain_row(ROW, types)
    assert is_plain_row(replace(ROW, visible=Same(False, 1), max_ticks=[NO_TICK]), types)
    assert not is_plain_row("no batch", types)  # type: ignore[arg-type]


K = LineageCoverage([Coverage.prefix(5)])
KNOWLEDGE = Knowledge(1, 1, 2, K, Batch((["A"], [9]), [3], Same(True, 1)))
NUMBERS: st.SearchStrategy[Any] = st.sampled_from([-2, -1, 0, 1, 2, 3, True, None, 1.0, TICK_MAX, TICK_MAX + 1])
CHANGES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "epoch": NUMBERS,
        "from_step": NUMBERS,
        "to_step": NUMBERS,
        "floor": NUMBERS,
        "filtered_for": NUMBERS,
        "coverage": st.sampled_from([K, LineageCoverage([Coverage.prefix(5)] * 2), None, Coverage.prefix(5)]),
    },
)


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


COPYING = copying()


@given(CHANGES)
def test_the_quick_look_refuses_what_the_long_one_does(changes: dict[str, Any]) -> None:
    message = replace(KNOWLEDGE, **changes)
    quick = verdict(*COPYING, message)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(state_receiver, "_is_plain_head", lambda *_: False)
        patched.setattr(state_receiver, "is_plain_row", lambda *_: False)
        assert quick == verdict(*COPYING, message)


def test_usual_messages_are_looked_at_quickly() -> None:
    assert state_receiver._is_plain_head(KNOWLEDGE, 1)
    assert not state_receiver._is_plain_head(KNOWLEDGE, 2)
