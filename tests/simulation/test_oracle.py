"""Goal: the oracle itself, on examples small enough to work out by hand."""

from __future__ import annotations

from runtime.simulation.descriptor import (
    Aggregate,
    Distinct,
    Extend,
    Graph,
    Group,
    Join,
    Latest,
    Match,
    Merge,
    Node,
    Operator,
    Project,
    Select,
    Stream,
    Top,
    Union,
)
from runtime.simulation.oracle import Oracle, Relation

EVENTS = {  # k, g, v, w
    "a": [(16, (0, 0, 2, -1)), (32, (1, 0, 5, 3)), (48, (0, 1, 4, 2))],
    "b": [(17, (0, 0, 7, 0))],
}


def view(operator: Operator, *inputs: str, more: tuple[Node, ...] = ()) -> Relation:
    nodes = (Node("a", Stream()), Node("b", Stream()), *more, Node("view", operator, inputs))
    oracle = Oracle(Graph("test", nodes))
    for stream, events in EVENTS.items():
        for tick, row in events:
            oracle.record(stream, tick, row)
    return oracle.view("view", oracle.everything("view"))


TOTAL = Node("total", Group(("k",), (Aggregate("sum", "v", "total"),)), ("a",))


def test_events() -> None:
    assert list(view(Merge(), "a", "b")) == [(16,), (32,), (48,), (17,)]
    assert list(view(Select(("less", "v", 5)), "a")) == [(16,), (48,)]


def test_aggregates() -> None:
    functions = ("sum", "min", "max", "avg", "count_distinct")
    aggregates = (*(Aggregate(name, "v", name) for name in functions), Aggregate("signed_sum", "w", "s"))
    assert view(Group(("k",), (*aggregates, Aggregate("count", "", "n"))), "a") == {
        (0,): (6, 2, 4, (6, 2), 2, (2, 1), 2),
        (1,): (5, 5, 5, (5, 1), 1, (3, 0), 1),
    }


def test_joins() -> None:
    assert view(Join((("k", "k"), ("g", "g"))), "a", "b") == {(16, 17): (0, 0, 2, -1, 7, 0)}
    few = Node("few", Select(("less", "total", 6)), ("total",))
    assert view(Join((("k", "k"),), outer=True, defaults=(0,)), "a", "few", more=(TOTAL, few)) == {
        (16,): (0, 0, 2, -1, 0),
        (32,): (1, 0, 5, 3, 5),
        (48,): (0, 1, 4, 2, 0),
    }
    assert list(view(Match((("k", "k"),)), "a", "b")) == [(16,), (48,)]
    assert list(view(Match((("k", "k"),), negated=True), "a", "b")) == [(32,)]


def test_rows() -> None:
    assert view(Project(("v",)), "total", more=(Node("total", Latest(("k",)), ("a",)),)) == {(0,): (4,), (1,): (5,)}
    assert view(Latest(("k",), first=True), "a")[(0,)] == (16, 0, 2, -1)
    assert view(Distinct(("k",)), "a") == {(0,): (), (1,): ()}
    assert list(view(Top(1, "v", ("k",)), "a")) == [(48,), (32,)]
    assert view(Extend("e", ("plus", ("column", "total"), ("constant", 1))), "total", more=(TOTAL,))[(1,)] == (5, 6)
    assert view(Extend("e", ("difference", "total", "total")), "total", more=(TOTAL,))[(1,)] == (5, (5, 5))
    assert sorted(view(Union(), "total", "total", more=(TOTAL,))) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_view_of_exactly_the_covered_ticks_for_each_lineage() -> None:
    nodes = (Node("a", Stream()), Node("pairs", Join((("k", "k"),)), ("a", "a")))
    oracle = Oracle(Graph("self-join", nodes))
    for tick, row in EVENTS["a"]:
        oracle.record("a", tick, row)
    left, right = oracle.mask("a", [(0, 20)]), oracle.mask("a", [(40, 50)])
    assert list(oracle.view("pairs", (left, right))) == [(16, 48)]
    assert oracle.view("pairs", (left, 0)) == {}
    assert oracle.up_to("pairs", 32) == (3, 3)
