"""Goal: no pass changes the rows of any view, on random programs over random events.

Each program is evaluated by the reference interpreter as it was written, and again after every pass alone and after all
passes together. A pass may make errors of rows disappear, with what nobody looks at; it may never make one appear, so a
program whose evaluation fails as written is left out, and one that works must go on working. Kinds may become
stronger, never weaker.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from compiler.graph import TransformGraph, build_graph, validate
from compiler.passes import PASSES, Pass, optimise
from mpl.check import Checked, check
from mpl.failures import EvaluationError
from mpl.knowledge import Kind, Path
from mpl.source import Source
from tests.generator.program import generate
from tests.reference.data import python_stand_ins, random_events, random_tables
from tests.reference.relations import KeyBroken, Row, evaluate_program

PROGRAMS = 60
EVENTS = 14

Rows = dict[str, frozenset[Row]]


def checked(seed: int) -> Checked:
    return check(Source(f"seed-{seed}", generate(seed).text)).require()


def as_sets(graph: TransformGraph, seed: int) -> Rows | None:
    """The rows of every output, or None if some expression fails on these events."""
    rng = Random(f"events {seed}")
    events = random_events(graph.program, rng, EVENTS)
    tables = random_tables(graph.program, rng, 4)
    # The stand-ins are those of the program as written: a pass may have removed calls, not added any.
    python = python_stand_ins(graph.program)
    try:
        rows = evaluate_program(graph.as_program(), events, tables, python)
    except EvaluationError:
        return None
    return {view: frozenset(rows[output.id]) for view, output in graph.outputs.items()}


def programs(cases: int) -> Iterator[tuple[int, TransformGraph, Rows]]:
    for seed in range(PROGRAMS * cases):
        graph = validate(build_graph(checked(seed)))
        try:
            expected = as_sets(graph, seed)
        except KeyBroken:
            continue  # a wrong promise of the checker; passes are judged on programs whose keys hold as written
        if expected is not None:
            yield seed, graph, expected


def check_pass(graph: TransformGraph, seed: int, expected: Rows, each: Pass) -> None:
    after = validate(each(graph))
    assert list(after.outputs) == list(graph.outputs), f"seed {seed}"
    actual = as_sets(after, seed)
    assert actual is not None, f"seed {seed}: an expression fails that did not fail before"
    for view, rows in expected.items():
        assert actual[view] == rows, f"seed {seed}: rows of {view}"


@pytest.mark.parametrize("each", dict.fromkeys(PASSES), ids=lambda each: each.__name__)
def test_each_pass_alone_keeps_rows(each: Pass, cases: int) -> None:
    compared = 0
    for seed, graph, expected in programs(cases):
        check_pass(graph, seed, expected, each)
        compared += 1
    assert compared > PROGRAMS * cases // 2, "too many programs fail as written to show anything"


def test_all_passes_together_keep_rows(cases: int) -> None:
    for seed, graph, expected in programs(cases):
        check_pass(graph, seed, expected, optimise)


_STRENGTH = {Kind.FINAL: 3, Kind.UP: 2, Kind.DOWN: 2, Kind.INTERVAL: 2, Kind.PN: 1, Kind.DOM: 1, Kind.VERSIONED: 0}


def test_passes_never_weaken_what_is_known(cases: int) -> None:
    for seed in range(PROGRAMS * cases):
        graph = build_graph(checked(seed))
        after = optimise(graph)
        for view, output in graph.outputs.items():
            before, now = graph.knowledge[output.id], after.knowledge[after.outputs[view].id]
            for old, new in zip(before.columns, now.columns, strict=True):
                assert _STRENGTH[new.kind] >= _STRENGTH[old.kind], f"seed {seed}: {view}: {old.kind} became {new.kind}"
            if now.path is Path.VERSIONED:
                assert before.path is Path.VERSIONED, f"seed {seed}: rows of {view} became versioned"
