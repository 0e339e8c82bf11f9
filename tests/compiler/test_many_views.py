"""Goal: hundreds of views over a few streams cost what is different about them, and compile quickly."""

from __future__ import annotations

import time

from compiler.graph import TransformGraph, build_graph, validate
from compiler.passes import optimise
from mpl.check import check
from mpl.source import Source

VIEWS = 500
DIFFERENT_VIEWS = 200
SECONDS_MAX = 10
"""Processor time for 500 views, graph and all passes; measured: 1 to 3 s."""

STREAMS = """
stream Orders (id int, item int, qty int[1..100], buyer int, note text) unique id;
stream Items (item int, price int[0..1000], kind text) unique item;
stream Clicks (item int, buyer int, at time) event time at late 4 s;
"""


def compiled(views: str) -> tuple[TransformGraph, TransformGraph, float]:
    checked = check(Source("many.mpl", STREAMS + views)).require()
    start = time.thread_time()
    written = validate(build_graph(checked))
    return written, optimise(written), time.thread_time() - start


def test_views_that_differ_in_one_constant_share_the_rest() -> None:
    views = "".join(
        f"view V{n} = from Orders |> join Items using item |> extend worth := qty * price"
        f" |> aggregate total := sum(worth) group by item |> where item = {n};\n"
        for n in range(VIEWS)
    )
    written, graph, seconds = compiled(views)
    assert len(written.nodes) == 4 * VIEWS
    # Join, extend, aggregate and a projection of each stream once; one selection for each view.
    assert len(graph.nodes) <= VIEWS + 5
    assert seconds < SECONDS_MAX


def test_equal_views_become_one() -> None:
    views = "".join(
        f"view V{n} = from Clicks |> rename buyer as b{n} |> aggregate n{n} := count() group by b{n};\n"
        for n in range(VIEWS)
    )
    _, graph, seconds = compiled(views)
    assert len(graph.nodes) <= 2
    assert len(graph.outputs) == VIEWS
    assert [column.name for column in graph.outputs["V7"].schema.columns] == ["b7", "n7"]
    assert seconds < SECONDS_MAX


def test_views_with_nothing_in_common() -> None:
    views = "".join(
        f"view V{n} = from Orders |> where qty > {n % 97} and buyer <> {n} |> left join Items using item"
        f" |> where price > {n} |> top {n % 7 + 1} per item by qty desc |> project item, qty;\n"
        for n in range(DIFFERENT_VIEWS)
    )
    _, graph, seconds = compiled(views)
    assert len(graph.outputs) == DIFFERENT_VIEWS
    assert seconds < SECONDS_MAX
