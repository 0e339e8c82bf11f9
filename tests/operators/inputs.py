"""Relations of every temper to feed an operator with: events, rows that only rise, that vanish, that come and go.

Each function adds stages on top of sources and gives the last one. Their naive views are written here, without the
engine.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from hypothesis import strategies as st

from runtime.operators.group_by import GroupBySpec
from runtime.operators.latest import LatestSpec
from runtime.operators.match import MatchSpec
from runtime.operators.select import SelectSpec
from runtime.operators.totals import SignedSumSpec, SumSpec
from tests.operators.histories import DOM, FINAL, UP, Network, Source, Stage, View, relation

Maker = Callable[[list[Stage], Source, Source], Source | Stage]

generators = st.integers(0, 2**32).map(random.Random)


def attack(generator: random.Random, build: Callable[..., Stage], *makers: Maker) -> None:
    """Run random histories through the inputs and a stage on top of them. Inputs may share their sources."""
    sources = [Source(), Source()]
    stages: list[Stage] = []
    inputs = []
    for number, make in enumerate(makers):
        first = number if generator.random() < 0.7 else 0
        inputs.append(make(stages, sources[first % 2], sources[1 - first % 2]))
    stages.append(build(*inputs))
    Network(sources, stages).run(generator)


def events(_stages: list[Stage], source: Source, _other: Source) -> Source:
    """(tick) -> k, g, v, w."""
    return source


def totals(stages: list[Stage], source: Source, _other: Source) -> Stage:
    """k -> sum of v: rises, never vanishes."""

    def compute(events: View) -> View:
        return {(k,): (sum(row[2] for row in events.values() if row[0] == k),) for k, *_ in events.values()}

    spec = GroupBySpec((1,), (SumSpec(lambda tick, k, g, v, w: v),))
    stages.append(Stage(spec, relation("totals", 1, (UP,)), compute, source))
    return stages[-1]


def small(stages: list[Stage], source: Source, other: Source) -> Stage:
    """k -> total while it is below 6: appears, rises, vanishes for good."""
    spec = SelectSpec(lambda k, total: total < 6)
    made = Stage(spec, relation("small", 1, (UP,)), _small, totals(stages, source, other))
    stages.append(made)
    return made


def _small(rows: View) -> View:
    return {key: row for key, row in rows.items() if row[0] < 6}


def middle(stages: list[Stage], source: Source, other: Source) -> Stage:
    """k -> total while it is 3 to 5: may be skipped altogether."""

    def compute(rows: View) -> View:
        return {key: row for key, row in rows.items() if row[0] >= 3}

    spec = SelectSpec(lambda k, total: total >= 3)
    made = Stage(spec, relation("middle", 1, (UP,)), compute, small(stages, source, other))
    stages.append(made)
    return made


def positive(stages: list[Stage], source: Source, _other: Source) -> Stage:
    """k -> (p, n) while p > n: comes and goes, versioned."""

    def compute(events: View) -> View:
        result = {}
        for k, *_ in events.values():
            signed = [row[3] for row in events.values() if row[0] == k]
            result[(k,)] = (sum(w for w in signed if w > 0), -sum(w for w in signed if w < 0))
        return result

    def select(rows: View) -> View:
        return {key: row for key, row in rows.items() if row[0] > row[1]}

    balance = Stage(
        GroupBySpec((1,), (SignedSumSpec(lambda tick, k, g, v, w: w),)), relation("pn", 1, (UP, UP)), compute, source
    )
    above = Stage(SelectSpec(lambda k, p, n: p > n), relation("positive", 1, (UP, UP), versioned=True), select, balance)
    stages += [balance, above]
    return above


def last(stages: list[Stage], source: Source, _other: Source) -> Stage:
    """k -> (tick, g, v) of the latest event: replaced by later ones."""

    def compute(events: View) -> View:
        result = {}
        for (tick,), (k, g, v, _) in sorted(events.items()):
            result[(k,)] = (tick, g, v)
        return result

    stages.append(Stage(LatestSpec((1, 0, 2, 3)), relation("last", 1, (DOM,) * 3), compute, source))
    return stages[-1]


def alone(stages: list[Stage], source: Source, other: Source) -> Stage:
    """Events of the source whose k and g the other one lacks: final columns, rows vanish for good."""

    def compute(left: View, right: View) -> View:
        return {key: row for key, row in left.items() if row[:2] not in {r[:2] for r in right.values()}}

    spec = MatchSpec(((1, 1), (2, 2)), negated=True)
    stages.append(Stage(spec, relation("alone", 1, (FINAL,) * 4), compute, source, other))
    return stages[-1]


def allowed(stages: list[Stage], source: Source, other: Source) -> Stage:
    """Events of the source whose k is positive in the other one: final columns, rows come and go."""

    def compute(left: View, right: View) -> View:
        return {key: row for key, row in left.items() if row[:1] in right}

    right = positive(stages, other, source)
    made = Stage(MatchSpec(((1, 0),)), relation("allowed", 1, (FINAL,) * 4, versioned=True), compute, source, right)
    stages.append(made)
    return made
