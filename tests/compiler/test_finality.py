"""Goal: what can never matter again is not kept, and not heard of again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import smile
from compiler.plan.build import build_plan

TICKETS = """
stream Sellers (item int, offered int[0..100]) unique item;
stream Buys (item int, qty int[0..100]);
view Sold = from Buys |> aggregate total := sum(qty) group by item;
view Joined = from Sellers |> join Sold using item;
view Available = from Joined |> where total < offered;
view Bought = from Joined |> where total > 3;
"""


@pytest.fixture
def system() -> Iterator[smile.System]:
    """Operator by operator: a kernel has no edge on which anything could be quenched."""
    program = smile.compile(TICKETS)
    program.__dict__["plan"] = build_plan(program.graph, kernels=False)
    with smile.run(program) as made:
        made.publish_many("Sellers", [{"item": item, "offered": 10} for item in range(5)])
        made.subscribe("Available")
        made.subscribe("Bought")
        made.publish_many("Buys", [{"item": item, "qty": 1} for item in range(5)])
        yield made


def test_rows_that_are_rejected_for_good_are_dropped_and_quenched(system: smile.System) -> None:
    system.publish_many("Buys", [{"item": item, "qty": 20} for item in range(3)])
    system.settle()
    assert [row["item"] for row in system.rows("Available")] == [3, 4]
    running: dict[str, Any] = dict(system._engine.running)
    selection, join = running["Available"], running["Joined"]
    gone = {(0,), (1,), (2,)}
    assert join.out_edges["Joined->Available#0"].quenched == gone
    assert len(selection.operator.rows) == 2
    assert len(selection.operator.inputs[0]) == 2
    step = selection.step
    system.publish_many("Buys", [{"item": 0, "qty": 1}])
    system.settle()
    assert len(selection.operator.inputs[0]) == 2, "the sender does not even mention it"
    assert selection.step > step, "but that the tick is known"


def test_rows_that_may_come_back_are_kept_and_heard_of(system: smile.System) -> None:
    """`Bought` rejects rows whose total may still rise."""
    system.settle()
    assert system.rows("Bought") == []
    running: dict[str, Any] = dict(system._engine.running)
    assert running["Joined"].out_edges["Joined->Bought#0"].quenched == set()
    assert len(running["Bought"].operator.inputs[0]) == 5
    system.publish_many("Buys", [{"item": 0, "qty": 5}])
    assert [row["item"] for row in system.rows("Bought")] == [0]


def test_a_kernel_looks_no_further_at_what_is_gone() -> None:
    program = smile.compile(TICKETS)
    with smile.run(program) as system:
        system.publish_many("Sellers", [{"item": 1, "offered": 10}])
        system.publish_many("Buys", [{"item": 1, "qty": 20}])
        assert system.rows("Available") == []
        assert "if dead[slot] != 0:" in program.modules["Available"]
        assert "if dead[slot] != 0:" not in program.modules["Bought"]
