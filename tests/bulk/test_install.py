"""Goal: a component that starts from a state made by Spark goes on as if it had been fed every event.

Each program publishes events, has the states of its components made as of then, publishes more, and starts components
from these states on the same logs; rows, coverage and what subscribers are told must be those of components that start
from nothing, and of the reference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import smile
from compiler.bulk.writer import NotInBulk
from runtime.protocol.checkpoint import Checkpoint
from runtime.protocol.coverage import Coverage
from runtime.protocol.messages import NO_EPOCH
from runtime.protocol.receiver import Receiver
from smile.bulk.install import Making, make_checkpoints, needing_state, not_in_bulk
from smile.bulk.sources import Sources
from smile.bulk.verify import cut_of
from tests.bulk.installing import InstalledEngine, check_runs, in_text, random_runs, star_runs
from tests.bulk.test_recompute import TICKETS, traffic
from tests.smile.test_against_reference import Run, Told

DECLARED = """
stream A (k int[0..3], x int[-5..5], w int null, f float, s text(2) null, d decimal(8,2), t time) event time t late 1 h;
stream B (k int[0..3], x int[-5..5], w int null, f float, s text(2) null, d decimal(8,2), t time) event time t late 1 h;
table T (k int[0..3], name text(1) null) key k;
view Both = merge A, B;
view Few = from A |> where x > 0 |> extend y := x * 2;
view Total = from A |> aggregate total := sum(x), n := count() group by k;
"""

VIEWS = {
    "signed": "from Both |> aggregate total := sum(x), small := sum(d) where x > 1 group by k, s",
    "averages": "from Both |> aggregate a := avg(x), b := avg(w), c := avg(d), e := avg(f) group by k",
    "extremes": "from Few |> aggregate a := min(w), b := max(s), c := any(w > 2), e := all(w > 2) group by y",
    "witnesses": "from Both |> aggregate a := first(w), b := last(s), c := last(x) where w > 1 group by k",
    "different": "from A |> aggregate a := count(distinct w), b := sum(distinct x), c := avg(distinct f) group by s",
    "floats": "from B |> aggregate a := sum(f), b := sum(f) where x > 0 group by k",
    "one row": "from A |> where x > 100 |> aggregate n := count(), m := max(w), f := first(s), t := sum(f)",
    "shown average": "from A |> aggregate a := avg(x) group by k |> where a > 0",
    "set": "from Both |> project s, k |> distinct",
    "union": "from (from A |> project k, w |> distinct) |> union (from B |> project k, w |> distinct)",
    "latest": "from Both |> latest per k",
    "latest by": "from A |> latest per k by w",
    "first by": "from A |> first per s by t",
    "top": "from Both |> top 3 per k by w desc, s",
    "top with rank": "from A |> top 2 by f desc with rank place",
    "top with ties": "from A |> top 2 by x with ties",
    "top by computed": "from A |> top 2 per k by x * x - w",
    "matching": "from A |> matching B using k, x",
    "without": "from A |> not matching B using k",
    "matching if": "from A |> matching B as B on A.k = B.k and A.x < B.x",
    "pairs": "from A |> join B as B on A.k = B.k and A.x < B.x",
    "left pairs": "from A |> left join B as B on A.k = B.k and A.x < B.x",
    "full pairs": "from A |> full join B as B on A.k = B.k and A.x < B.x default w := -1",
    "asof": "from A |> asof left join B as B using k",
    "minus": "from (from A |> project w |> distinct) |> minus (from B |> project w |> distinct)",
    "events with totals": "from B |> join Total using k |> where total > x",
    "events without totals": "from B |> not matching (from Total |> where total > 3) using k",
    "asof of latest": "from B |> asof join (from A |> latest per x) as L on B.k = L.k and L.t <= B.t",
    "with a table": "from A |> left join T using k default name := 'x' |> aggregate n := count() group by name",
    "table alone": "from T |> where k > 0 |> aggregate n := count(), f := max(name)",
    "best of a table": "from T |> top 1 by name desc",
    "totals of a table": "from T |> not matching A using k |> aggregate n := count() group by name",
}
OPERATORS = DECLARED + "".join(f"view V{number} = {text};\n" for number, text in enumerate(VIEWS.values()))


STARS = ("totals", "two columns")


def test_every_operator_goes_on_from_its_state(spark: SparkSession, cases: int) -> None:
    counts: Counter[str] = Counter()
    runs = [*star_runs(STARS, range(cases)), *random_runs(range(2 * cases))]
    runs += [(f"operators {seed}", Run(seed, OPERATORS)) for seed in range(cases)]
    wrong = list(check_runs(spark, runs, counts))
    assert not wrong, wrong[0]
    assert counts["stopped"] <= 1 + counts["programs"] // 4
    assert counts["kernels"] >= 3
    assert counts["components"] >= 50
    assert counts["rows"] >= 100


def test_a_state_is_a_restart_at_its_horizon(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the log of a real folder; with subscribers in every mode, and a further restart from the new component."""
    program, rng = smile.compile(TICKETS), Random(5)
    with smile.run(program, data=tmp_path) as system:
        traffic(system, rng, 80)
        as_of, _ = cut_of(system, "Available")
        traffic(system, rng, 40)
    names = needing_state(program, ["Available"])
    made = make_checkpoints(spark, program, names, Sources(None, (tmp_path,)), as_of)
    for checkpoint in made.values():
        assert (checkpoint.bulk_horizon, checkpoint.drop_floor, checkpoint.in_floor) == (as_of, as_of, as_of)
        for edge in checkpoint.edges:
            assert (edge.adopted_epoch, edge.applied_step) == (NO_EPOCH, 0)
            assert all(coverage == Coverage.prefix(as_of) for coverage in edge.coverage)
    told: list[dict[str, list[str]]] = []
    later: dict[str, Checkpoint] = {}  # of the components that were installed, when they have gone on for a while
    for checkpoints in (made, later, {}):
        with monkeypatch.context() as patched:
            engines = start_with(patched, checkpoints)
            with smile.run(program, data=tmp_path) as system:
                modes = ("changes", "bounds", "as of horizon")
                seen = {emit: Told(system.subscribe("Available", emit=emit)) for emit in modes}
                if checkpoints is made:
                    traffic(system, rng, 60)
                system.settle()
                for one in seen.values():
                    one.read()
                told.append({emit: in_text(one.rows.values()) for emit, one in seen.items()})
                assert told[-1]["changes"] == in_text(system.rows("Available"))
                assert engines[0].early == 0
                if checkpoints is made:
                    later.update({name: checkpoint_of(engines[0], name) for name in names})
    assert all(checkpoint.bulk_horizon is None and checkpoint.in_floor == as_of for checkpoint in later.values())
    assert told[0] == told[1] == told[2]
    assert len(told[0]["bounds"]) >= 3


def checkpoint_of(engine: InstalledEngine, name: str) -> Checkpoint:
    engine.start(name)
    component = engine.running[name]
    assert isinstance(component, Receiver)
    return component.checkpoint()


def start_with(patched: pytest.MonkeyPatch, checkpoints: Mapping[str, Checkpoint]) -> list[InstalledEngine]:
    """Systems that are opened from now on start components from these."""
    made: list[InstalledEngine] = []

    def engine(components: Any, logs: Any, now_us: Any, next_epoch: Any, shown: Any) -> InstalledEngine:
        made.append(InstalledEngine(components, logs, dict(checkpoints), next_epoch))
        return made[-1]

    patched.setattr("smile.system.Engine", engine)
    return made


def test_what_spark_cannot_compute_is_named() -> None:
    text = """stream S (a int, f float);
    view V = from S |> extend t := cast(f as text) |> aggregate n := count() group by t;
    view W = from S |> aggregate n := count() group by a;
    view X = from V |> join W as W on V.n = W.n;"""
    program = smile.compile(text)
    assert set(needing_state(program, ["W"])) == {"W"}
    assert "X" not in needing_state(program, ["X"]), "it reads no events"
    names = needing_state(program, ["V", "W"])
    reasons = not_in_bulk(program, names)
    assert reasons
    assert "W" not in reasons
    assert all("floats as text" in reason for reason in reasons.values())
    with pytest.raises(NotInBulk, match="floats as text"):
        Making(program, names, 7, lambda name: name)
