"""Goal: what becomes a kernel and what does not, the text that comes out, and that no user's word is in it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from compiler.kernels.fuse import fused_or_reason
from runtime.kernels.spec import KernelSpec
from runtime.loops.safety import check_module
from tests.kernels.stars import STREAMS, VIEWS, case, fused, planned

TICKETS = Path(__file__).parents[2] / "examples" / "tickets" / "tickets.mpl"

REFUSED = {
    "view V = from Buys |> where qty > 1;": "it is a relation of events",
    "view V = from Buys |> aggregate n := count();": "it has one row only",
    "view V = from Buys |> aggregate n := count(distinct qty) group by item;": "distinct values are counted",
    "view V = from Buys |> aggregate w := sum(weight) group by item;": "a sum of floats, which is kept exactly",
    "view V = from Sell |> aggregate w := max(name) group by item;": "the smallest or largest text",
    "view V = from Buys |> aggregate m := min(qty) where qty > 3 group by item;": "`m` may be null",
    "view V = from Buys |> aggregate q := sum(mod(qty, 3)) group by item;": "the function `modulo`",
    "view V = from Buys |> where upper(kind) = 'A' |> aggregate n := count() group by item;": "the function `upper`",
    "view V = from Buys |> aggregate ok := all(qty > 0) where qty > 5 group by item;": "`all` with a condition",
    "view V = from Buys |> aggregate n := count() group by weight;": "the key `weight` may be null or is a float",
    "view V = from Buys |> where weight * 2.0 > 1.0 |> aggregate n := count() group by item;": "arithmetic with floats",
    "view W = from Buys |> aggregate n := count() group by item;view V = from W |> aggregate m := max(n) group by n;": (
        "`V` groups rows that are not events"
    ),
    "view A = from Buys |> aggregate n := count() group by item; view V = from Buys |> join A using item;": (
        "`V` joins by something else than the key"
    ),
    "view L = from Shop |> latest per shop by size |> latest per size;"
    "view V = from Shop |> extend long := abs(size) |> left join L using shop |> project long, L.item, name"
    " |> extend more := name;": "`V.extend_2` computes a part of the key",
    "view A = from Buys |> aggregate n := count() group by item;"
    "view V = from A |> where n > 1 |> extend m := item * 2;": (
        "a computed column that rows that are not shown may not have"
    ),
    "view A = from Buys |> aggregate mean := avg(qty) group by item; view V = from A |> where mean > 3;": (
        "computing with an average"
    ),
    "view A = from Pair |> aggregate n := count() group by item;"
    "view B = from Pair |> aggregate m := count() group by qty;"
    "view V = from A |> join B on A.item = B.qty;": "events of `Pair` reach several keys at once",
}


@pytest.mark.parametrize("text", REFUSED)
def test_says_why_it_is_not_a_kernel(text: str) -> None:
    graph, plan = planned(STREAMS + text)
    assert fused_or_reason(graph, plan, "V") == REFUSED[text]


def test_the_tickets_kernel(golden) -> None:  # type: ignore[no-untyped-def]
    star = fused(TICKETS.read_text(encoding="utf-8"), "Available")
    assert star.streams == ["Sellers", "BuyersWest", "BuyersEast"]
    assert star.spec.loops == (0, 1, 1), "merged streams share a loop"
    golden("kernels/tickets.py.txt", star.spec.text)


@pytest.mark.parametrize("name", VIEWS)
def test_the_text_is_checked_and_always_the_same(name: str) -> None:
    spec = case(name).spec
    check_module(spec.text)
    again = fused(STREAMS + VIEWS[name]).spec
    assert (again.text, again.digest) == (spec.text, spec.digest)


HOSTILE = ("'; import os", '"""', "\\n", "{{ 1 }}", "{% raw %}", "__class__", "\u2028", "x" * 5_000)


@pytest.mark.parametrize("word", HOSTILE)
def test_nothing_of_the_program_is_in_the_text(word: str) -> None:
    """Constants come in arrays and columns have numbers, so programs that differ in words only have one kernel."""
    stream = "stream S (a text, b int);"
    text = stream + "view V = from S |> where a <> '{}' |> aggregate n := sum(b) where b < {} group by a;"
    hostile = fused(text.format(word.replace("'", "''"), 77_123)).spec
    plain = fused(text.format("plain", 5)).spec
    assert hostile.text == plain.text
    assert hostile.texts != plain.texts
    constants = {node.value for node in ast.walk(ast.parse(hostile.text)) if isinstance(node, ast.Constant)}
    assert 77_123 not in constants
    assert 77_123 in hostile.integers


def test_views_with_other_constants_share_machine_code() -> None:
    views = [f"view V = from Buys |> aggregate n := count() where qty > {n} group by item;" for n in (1, 2)]
    first, second = (fused(STREAMS + view).spec for view in views)
    assert isinstance(first, KernelSpec)
    assert first.digest == second.digest
    assert first.integers != second.integers
