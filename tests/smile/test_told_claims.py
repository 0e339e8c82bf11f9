"""Goal: nothing that a subscriber is told turns out false, in any emit mode, whatever the program.

After every few events the reference computes all views, also as of earlier ticks. A row that was marked as final must
never be told otherwise and be there in the end; bounds must contain the value as of their tick; a cut must be the view
as of its tick; what was put together from changes must be the view. Random programs, and programs that went wrong once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import smile
from mpl.failures import EvaluationError
from runtime.embedded.tuning import EMBEDDED
from smile.subscription import Change
from smile.values import decode
from tests.generator.program import generate
from tests.reference.relations import KeyBroken, Row, evaluate_program
from tests.smile.test_against_reference import Run, as_dict

PROGRAMS = 100
FIRST = 100_000
HISTORIES = 6
STEPS = 10
MODES = ("changes", "bounds", "final", "as of horizon")

Keyed = list[tuple[tuple[object, ...], dict[str, Any]]]


class Claims(Run):
    """A run that knows what was true at any tick."""

    def __init__(self, seed: int, text: str) -> None:
        super().__init__(seed, text)
        self._truths: dict[int, dict[str, Keyed] | None] = {}

    def truth(self, as_of: int | None = None) -> dict[str, Keyed] | None:
        """Every view's rows by key as of a tick, or now; None if it has none."""
        if as_of is None:
            return self._evaluate({stream: list(rows) for stream, rows in self.events.items()})
        if as_of not in self._truths:  # nothing is published at a tick that is settled
            known = {
                stream: [row for row in rows if int(row[-1] or 0) <= as_of] for stream, rows in self.events.items()
            }
            self._truths[as_of] = self._evaluate(known)
        return self._truths[as_of]

    def _evaluate(self, known: dict[str, list[Row]]) -> dict[str, Keyed] | None:
        try:
            found = evaluate_program(self.typed, known, self.tables, self.python)
        except (EvaluationError, KeyBroken):
            return None
        made: dict[str, Keyed] = {}
        for view, rows in found.items():
            schema = self.typed.views[view].schema
            keys = [tuple(decode(row[at], schema.columns[at].type) for at in schema.key) for row in rows]
            made[view] = [(key, as_dict(schema, row)) for key, row in zip(keys, rows, strict=True)]
        return made


class Listener:
    """One subscriber, who believes what it is told."""

    def __init__(self, run: Claims, view: str, mode: str) -> None:
        self.run, self.view, self.mode = run, view, mode
        self.subscription = run.system.subscribe(view, emit=mode)
        self.rows: dict[tuple[object, ...], dict[str, Any]] = {}
        self.final: dict[tuple[object, ...], dict[str, Any]] = {}

    def listen(self) -> None:
        told = self.subscription.ready()
        for change in told:
            if change.key in self.final:
                assert (change.kind != "gone", change.row) == (True, self.final[change.key]), f"was final: {change}"
            if change.kind == "gone":
                self.rows.pop(change.key, None)
                continue
            self.rows[change.key] = change.row
            if change.final:
                self.final[change.key] = change.row
            if change.bounds is not None:
                self._judge_bounds(change)
        if self.mode == "as of horizon" and told:
            truth = self.run.truth(told[-1].as_of)
            assert truth is None or shown(self.rows) == shown(dict(truth[self.view])), f"{self.view}: a cut"

    def _judge_bounds(self, change: Change) -> None:
        truth = self.run.truth(change.as_of) or {}
        row = dict(truth.get(self.view, ())).get(change.key)
        for name, (low, high) in (change.bounds or {}).items() if row is not None else ():
            value: Any = row[name] if row is not None else None
            place = f"{self.view}.{name} was {value} as of {change}"
            if value is None:
                assert low is None or low != high, place
            else:
                assert low is None or low <= value, place
                assert high is None or value <= high, place

    def judge(self, truth: Keyed) -> None:
        now = dict(truth)
        if self.mode != "final":
            assert shown(self.rows) == shown(now), f"{self.view} as told by {self.mode}"
        there = shown(now)
        assert all(repr(row) in there for row in self.final.values()), f"{self.view}: final rows that are not there"


def shown(rows: dict[tuple[object, ...], dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows.values()))


def hold_to_it(run: Claims) -> int:
    """Publishes, listens and judges; how often there was something to judge."""
    judged = 0
    with run.system as system:
        comes_late = run.rng.random() < 0.3
        listeners: list[Listener] = []
        for step in range(STEPS):
            if step == (STEPS // 2 if comes_late else 0):
                views = [view for view in run.program.plan.views if view not in run.typed.subscriptions]
                listeners = [Listener(run, view, mode) for view in views for mode in MODES]
            run.publish(run.rng.choice((1, 1, 2, 4)))
            truth = run.truth()
            if truth is None:
                break
            for listener in listeners:
                listener.listen()
                listener.judge(truth[listener.view])
                judged += 1
            for view in run.program.plan.views:
                assert sorted(map(repr, system.rows(view))) == shown(dict(truth[view])), f"rows of {view}"
    return judged


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Views that fail say so. And components check each other's messages, which they need not do in one process."""
    monkeypatch.setattr("runtime.embedded.engine.EMBEDDED", replace(EMBEDDED, trusts_peers=False))
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


def test_random_programs(cases: int) -> None:
    judged = 0
    for seed in range(FIRST, FIRST + PROGRAMS * cases):
        try:
            run = Claims(seed, generate(seed).text)
        except smile.MplError:  # windows
            continue
        judged += hold_to_it(run)
    assert judged > PROGRAMS * cases * STEPS


WENT_WRONG = {
    "a pair whose right key is null looks like a row without partner": """
        stream X (k int[0..3], live int null);
        stream L (k int[0..3], m int);
        view F = from X |> project live, k |> distinct;
        view One = from X |> left join (from X |> first per live) as B using k;
        view Two = from L |> left join F as B using k;
        view Three = from L |> full join F as B using k;
        view Four = from F |> full join L as B using k;
    """,
    "rows of either side of a full join have the defaults of the other as their key": """
        stream P (x int[0..3], v int[0..3]) unique x;
        stream Q (y int[0..3], v int[0..3]) unique y;
        view V = from P |> full join Q as B on v = B.v default x := 0, y := 0;
    """,
    "outer joins of relations of one row": """
        stream X (n int[-5..5]);
        stream Y (k int[0..3], n int[-5..5]);
        view A = from X |> aggregate m := max(n), c := count();
        view B = from Y |> aggregate u := sum(n), t := max(n);
        view One = from A |> left join Y on m = Y.n;
        view Two = from A |> left join Y on m = Y.n default k := 7;
        view Three = from One |> aggregate c := count(), d := count(k);
        view Four = from A |> full join Y on m = Y.n default k := 7;
        view Five = from Y |> left join A on n = A.m default c := 7;
        view Six = from A |> left join B on m = B.u;
        view Seven = from A |> full join B on m = B.u;
    """,
    "ties are broken by the key that an inline view declares": """
        stream S (a int[0..9], b int[0..1]) tick n unique a;
        view E key n = from S inline;
        view One = from E |> top 1 by b;
        view Two = from E |> top 2 per b by 1 with rank place;
    """,
    "a difference in a row that is gone": """
        stream S (k int[0..3], v int[0..5]);
        stream U (k int[0..3], v int[0..5]) unique k;
        view V = from S |> full join U as O using k |> extend w := coalesce(v, 0) - coalesce(O.v, 0);
    """,
    "partners that vanish for good": """
        stream X (m int[0..5]) unique m;
        stream Y (m int[0..5]);
        view Left = from X |> project m |> not matching Y using m;
        view One = from X |> matching Left on m = Left.m;
        view Two = from X |> matching (from X |> project m |> minus (from Y |> project m)) as B on m = B.m;
        view Three = from X |> not matching Left on m = Left.m;
        view Four = from One |> aggregate n := count(), s := sum(m);
    """,
    "rows that are not visible have no value": """
        stream X (a int[0..9], k int[0..3]);
        stream Z (k int[0..3], b int[1..5]) unique k;
        view Sums = from X |> aggregate n := count(), s := sum(a) group by k, a;
        view One = from X |> where a > 0 |> matching Z using k |> extend q := 10 / a;
        view Two = from Sums |> where s > 3 |> extend q := 10 / a, r := a + 1;
        view Three = from Two |> aggregate n := count() group by q;
        view Four = from Two |> project q |> distinct;
        view Five = from Two |> join Z on q = Z.b;
        view Six = from Two |> top 2 by q desc;
        view Seven = from Sums |> where s > 3 |> latest per k by a |> extend q := 10 / a |> where q < 9;
        view Big = from X |> aggregate n := count() group by k |> where n > 2 |> extend q := k * 4611686018427387904;
        view Eight = from (merge (from X |> project k), (from Z |> project k)) |> minus (from Z |> project k)
            |> extend o := 1 |> aggregate f := first(o) group by o |> project f |> extend g := f + 1;
    """,
}


@pytest.mark.parametrize("text", WENT_WRONG.values(), ids=WENT_WRONG)
def test_programs_that_went_wrong(text: str, cases: int) -> None:
    judged = sum(hold_to_it(Claims(seed, text)) for seed in range(HISTORIES * cases))
    assert judged > HISTORIES * cases * STEPS
