"""Goal: the plan as text says how every view is computed, and if it is not one kernel, why."""

from __future__ import annotations

import pytest

from compiler.stages import explain_stage
from mpl.check import check
from mpl.source import Source

STREAM = "stream Sales (item int, qty int[0..10], weight float, note text(9) null) unique item;\n"


def way_of(view: str) -> str:
    text = explain_stage(check(Source("sales.mpl", f"{STREAM}view V = {view};")), "plan")
    (line,) = (line for line in text.splitlines() if line.startswith("view V: "))
    return line.partition(", ")[2]


@pytest.mark.parametrize(
    "view",
    [
        "from Sales |> aggregate n := sum(qty) group by item",
        "from Sales |> aggregate n := sum(qty) group by item |> where n > 3",
    ],
)
def test_a_view_that_is_one_kernel(view: str) -> None:
    assert way_of(view) == "one kernel"


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        ("from Sales", "it is a relation of events"),
        ("from Sales |> aggregate n := count()", "it has one row only"),
        ("from Sales |> aggregate w := sum(weight) group by item", "a sum of floats, which is kept exactly"),
        ("from Sales |> aggregate n := count() group by note", "the key `note` may be null or is a float"),
        ("from Sales |> top 3 by qty desc", "`V` is neither a group nor a join by the same key"),
    ],
)
def test_a_view_that_is_not_says_why(view: str, reason: str) -> None:
    assert way_of(view) == f"operator by operator: {reason}"


def test_the_text_of_a_kernel_is_left_to_the_stage_code() -> None:
    text = explain_stage(
        check(Source("sales.mpl", f"{STREAM}view V = from Sales |> aggregate n := count() group by qty;")), "plan"
    )
    assert "kernel(" in text
    assert "def loop_0" not in text
    assert max(map(len, text.splitlines())) < 200
