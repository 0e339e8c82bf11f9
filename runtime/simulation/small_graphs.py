"""Small graphs on which one rule at a time is decisive: tombstones over two hops, diamonds, versioned groups, fan-out.

Random runs on them are short, so thousands of seeds are cheap (`--graph small`); the explorer takes the smallest of
them apart completely. `graphs.py` has the large ones.
"""

from __future__ import annotations

from runtime.simulation.descriptor import (
    Aggregate,
    Distinct,
    Graph,
    Group,
    Join,
    Latest,
    Leaf,
    Match,
    Merge,
    Node,
    Select,
    Stream,
    Top,
)

TOTAL = Group(("k",), (Aggregate("sum", "v", "total"),))
COUNT = Group(("k",), (Aggregate("count", "", "n"),))
HIGHEST = Group(("k",), (Aggregate("max", "v", "high"),))
ON_K = (("k", "k"),)


def _graph(title: str, *nodes: Node) -> Graph:
    return Graph(title, nodes)


SMALL_GRAPHS: tuple[Graph, ...] = (
    _graph("sum", Node("s", Stream()), Node("S", TOTAL, ("s",)), Node("L", Leaf(), ("S",))),
    _graph(
        "tombstones",
        Node("s", Stream()),
        Node("S", TOTAL, ("s",)),
        Node("W", Select(("less", "total", 9)), ("S",)),
        Node("X", Leaf(), ("W",)),
        Node("L", Leaf(), ("X",)),
    ),
    _graph(
        "four hops",
        Node("s", Stream()),
        Node("S", TOTAL, ("s",)),
        Node("W", Select(("less", "total", 9)), ("S",)),
        Node("X", Leaf(), ("W",)),
        Node("L", Leaf(), ("X",)),
        Node("M", Leaf(), ("L",)),
    ),
    _graph(
        "join",
        Node("a", Stream()),
        Node("b", Stream()),
        Node("J", Join(ON_K), ("a", "b")),
        Node("X", Leaf(), ("J",)),
        Node("L", Leaf(), ("X",)),
    ),
    _graph(
        "anti-join",
        Node("a", Stream()),
        Node("b", Stream()),
        Node("A", Match(ON_K, negated=True), ("a", "b")),
        Node("X", Leaf(), ("A",)),
        Node("L", Leaf(), ("X",)),
    ),
    _graph(
        "diamond",
        Node("s", Stream()),
        Node("S", TOTAL, ("s",)),
        Node("M", HIGHEST, ("s",)),
        Node("J", Join(ON_K), ("S", "M")),
        Node("L", Leaf(), ("J",)),
    ),
    _graph(
        "fan-out",
        Node("s", Stream()),
        Node("S", TOTAL, ("s",)),
        Node("W", Select(("less", "total", 9)), ("S",)),
        Node("L1", Leaf(), ("W",)),
        Node("L2", Leaf(), ("W",)),
        Node("L3", Leaf(), ("S",)),
    ),
    _graph(
        "top-1",
        Node("s", Stream()),
        Node("S", TOTAL, ("s",)),
        Node("W", Select(("less", "total", 12)), ("S",)),
        Node("T", Top(1, "total", ()), ("W",)),
        Node("X", Leaf(), ("T",)),
        Node("L", Leaf(), ("X",)),
    ),
    _graph(
        "vanishing",
        Node("s", Stream()),
        Node("S", TOTAL, ("s",)),
        Node("W", Select(("less", "total", 9)), ("S",)),
        Node("C", Group((), (Aggregate("count", "", "n"), Aggregate("max", "total", "high"))), ("W",)),
        Node("X", Leaf(), ("C",)),
        Node("L", Leaf(), ("X",)),
    ),
    _graph(
        "left join",
        Node("a", Stream()),
        Node("b", Stream()),
        Node("S", TOTAL, ("b",)),
        Node("W", Select(("less", "total", 9)), ("S",)),
        Node("J", Join(ON_K, outer=True, defaults=(0,)), ("a", "W")),
        Node("X", Leaf(), ("J",)),
        Node("L", Leaf(), ("X",)),
    ),
    _graph(
        "merge",
        Node("a", Stream()),
        Node("b", Stream()),
        Node("c", Stream()),
        Node("M", Merge(), ("a", "b", "c")),
        Node("F", Select(("less", "v", 7)), ("M",)),
        Node("L1", Leaf(), ("M",)),
        Node("L2", Leaf(), ("F",)),
        Node("C", COUNT, ("F",)),
        Node("L3", Leaf(), ("C",)),
    ),
    _graph(
        "events",
        Node("s", Stream()),
        Node("N", Latest(("k",)), ("s",)),
        Node("F", Latest(("k",), first=True), ("s",)),
        Node("T", Top(2, "v", ("k",)), ("s",)),
        Node("D", Distinct(("v",)), ("N",)),
        Node("L1", Leaf(), ("D",)),
        Node("L2", Leaf(), ("F",)),
        Node("L3", Leaf(), ("T",)),
    ),
    _graph(
        "threshold",
        Node("s", Stream()),
        Node("S", TOTAL, ("s",)),
        Node("W", Select(("at_least", "total", 9)), ("S",)),
        Node("X", Leaf(), ("W",)),
        Node("L", Leaf(), ("X",)),
    ),
    _graph(
        "wandering",
        Node("s", Stream()),
        Node("N", Latest(("g",)), ("s",)),
        Node("D", Distinct(("k",)), ("N",)),
        Node("X", Leaf(), ("D",)),
        Node("L", Leaf(), ("X",)),
    ),
    _graph(
        "aggregates",
        Node("s", Stream()),
        Node(
            "G",
            Group(
                ("k",),
                (Aggregate("avg", "v", "mean"), Aggregate("count_distinct", "v", "d"), Aggregate("min", "w", "low")),
            ),
            ("s",),
        ),
        Node("X", Leaf(), ("G",)),
        Node("L", Leaf(), ("X",)),
    ),
)
