"""Goal: no pass changes rows, on programs that put conditions and projections over every operator.

As `test_pass_meaning.py`, with hand-written programs instead of random ones and many histories of events for each.
"""

from __future__ import annotations

from random import Random

import pytest

from compiler.graph import TransformGraph, build_graph, validate
from compiler.passes import PASSES, optimise
from mpl.check import check
from mpl.failures import EvaluationError
from mpl.source import Source
from tests.compiler.programs import PIPELINES, TWINS, program, twins
from tests.reference.data import random_events, random_tables
from tests.reference.relations import Row, evaluate_program

HISTORIES = 6
EVENTS = 40


def graph_of(text: str) -> TransformGraph:
    return validate(build_graph(check(Source("program", text))))


def rows(graph: TransformGraph, seed: int) -> dict[str, frozenset[Row]] | None:
    rng = Random(f"history {seed}")
    events = random_events(graph.program, rng, EVENTS)
    tables = random_tables(graph.program, rng, 6)
    try:
        found = evaluate_program(graph.as_program(), events, tables)
    except EvaluationError:
        return None
    return {view: frozenset(found[output.id]) for view, output in graph.outputs.items()}


@pytest.mark.parametrize("number", range(len(PIPELINES)))
def test_one_view(number: int, cases: int) -> None:
    graph = graph_of(program(number))
    after = [each(graph) for each in dict.fromkeys(PASSES)] + [optimise(graph)]
    compared = shown = 0
    for seed in range(HISTORIES * cases):
        expected = rows(graph, seed)
        if expected is None:
            continue
        compared += 1
        shown += sum(len(found) for found in expected.values())
        for optimised in after:
            assert rows(validate(optimised), seed) == expected
    assert compared, "every history fails: nothing was compared"
    assert shown, "no history gives a row: nothing was compared"


@pytest.mark.parametrize("number", range(len(TWINS)))
def test_twins_stay_apart(number: int) -> None:
    graph = graph_of(twins(number))
    after = optimise(graph)
    told_apart = False
    for seed in range(HISTORIES):
        expected = rows(graph, seed)
        assert expected is not None
        assert rows(after, seed) == expected
        told_apart |= expected["A"] != expected["B"]
    assert told_apart, "no history shows a difference between the two"


def test_many_views_together(cases: int) -> None:
    for seed in range(4 * cases):
        numbers = Random(seed).sample([n for n in range(len(PIPELINES)) if " / " not in PIPELINES[n]], 8)
        graph = graph_of(program(*numbers))
        expected = rows(graph, seed)
        assert expected is not None
        assert rows(optimise(graph), seed) == expected, f"seed {seed}"
