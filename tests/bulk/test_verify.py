"""Goal: verify finds every kind of falsehood that a live view could tell, says which events are behind it, and nothing
else. The views run in this process; lies are planted into what a subscriber would see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import smile
from runtime.batch import Batch
from runtime.protocol.coverage import Coverage
from runtime.protocol.lineage_coverage import LineageCoverage
from runtime.values import Value
from smile.bulk.sources import Sources
from smile.bulk.verify import Kind, Verdict, verify
from smile.reading import Inspected, Reading
from smile.views import ViewReader

PROGRAM = """
stream S(a int, q int[0..9]);
view Totals = from S |> aggregate t := sum(q) group by a;
view Large = from S |> where q > 4 |> project a, q;
view Pairs = from S |> aggregate low := min(q), n := count() group by a |> join Totals using a;
"""


class Falsified(Reading):
    """Somebody between the view and its subscribers, who changes what they see."""

    def __init__(self, system: Reading, lie: Callable[[Inspected], Inspected]) -> None:
        super().__init__(system.program)
        self._system = system
        self._lie = lie

    def inspect(self, view: str) -> Inspected:
        return self._lie(self._system.inspect(view))

    def _read(self, view: str) -> tuple[ViewReader, Batch]:
        raise NotImplementedError


def with_rows(found: Inspected, rows: list[tuple[Value, ...]], final: tuple[bool, ...] | None = None) -> Inspected:
    """These rows instead, all settled and with exact bounds."""
    told = found.told
    columns = tuple(list(column) for column in zip(*rows, strict=True))
    batch = Batch(columns, [told.horizon] * len(rows), [True] * len(rows))
    final = final or (False,) * len(rows)
    return replace(found, told=replace(told, rows=batch, final=final, low=tuple(rows), high=tuple(rows)))


def kinds(verdict: Verdict) -> set[tuple[Kind, tuple[object, ...]]]:
    return {(one.kind, one.key) for one in verdict.differences}


def test_every_kind_of_lie_is_found_with_the_events_behind_it(spark: SparkSession, tmp_path: Path) -> None:
    program = smile.compile(PROGRAM)
    sources = Sources(None, (tmp_path,))
    with smile.run(program, data=tmp_path) as system:
        ticks = [system.publish("S", {"a": number % 5, "q": number % 10}) for number in range(20)]

        def lie(found: Inspected) -> Inspected:
            rows = [tuple(row) for row in found.told.rows.rows()]
            assert rows == [(0, 10), (1, 14), (2, 18), (3, 22), (4, 26)]
            rows = [(0, 10), (1, 15), (3, 22), (4, 26), (7, 1)]  # 1 is wrong, 2 is missing, 7 is extra
            lying = with_rows(found, rows, final=(True, False, False, False, False))
            low = ((0, 10), (1, 15), (3, 23), (4, 26), (7, 1))  # 3 is said to be at least 23
            return replace(lying, told=replace(lying.told, low=low, horizon=found.told.horizon + 1))

        verdict = verify(spark, Falsified(system, lie), "Totals", sources)
        assert kinds(verdict) == {
            (Kind.WRONG, (1,)),
            (Kind.MISSING, (2,)),
            (Kind.EXTRA, (7,)),
            (Kind.OUT_OF_BOUNDS, (1,)),
            (Kind.OUT_OF_BOUNDS, (3,)),
            (Kind.FALSE_FINAL, (0,)),
            (Kind.HORIZON, ()),
        }
        assert not verdict.is_right
        by_key = {one.key: one for one in verdict.differences if one.kind in (Kind.WRONG, Kind.MISSING, Kind.EXTRA)}
        (behind,) = by_key[(1,)].behind
        assert (behind.stream, behind.events, behind.ticks, behind.by_key) == ("S", 4, tuple(ticks[1::5]), True)
        assert by_key[(2,)].behind[0].ticks == tuple(ticks[2::5])
        assert by_key[(7,)].behind == ()
        assert by_key[(2,)].truth == {"a": 2, "t": 18}
        assert verify(spark, system, "Pairs", sources).is_right


def test_equal_rows_are_counted_and_finals_are_for_ever(spark: SparkSession, tmp_path: Path) -> None:
    program = smile.compile(PROGRAM)
    sources = Sources(None, (tmp_path,))
    with smile.run(program, data=tmp_path) as system:
        system.publish_many("S", [{"a": 1, "q": 7}] * 3)
        before = system.inspect("Large")
        assert before.told.final == (True, True, True)
        system.publish_many("S", [{"a": 2, "q": 9}])
        # An earlier moment is still true of itself, and what was final then is there now.
        assert verify(spark, Falsified(system, lambda _: before), "Large", sources).is_right

        def lie(found: Inspected) -> Inspected:
            fewer = found.told.rows.take([0, 1, 3])
            return replace(found, told=replace(found.told, rows=fewer, final=(True,) * 3, low=None, high=None))

        (one,) = verify(spark, Falsified(system, lie), "Large", sources).differences
        assert (one.kind, one.live, one.truth) == (Kind.MISSING, None, {"a": 1, "q": 7})
        assert [(each.stream, each.events) for each in one.behind] == [("S", 3)]

        def foresee(_: Inspected) -> Inspected:
            """As of before the last event, but with a final row that never was."""
            rows = [tuple(row) for row in before.told.rows.rows()]
            return with_rows(before, [*rows[:2], (rows[2][0], 1, 8)], final=(True, True, True))

        found = verify(spark, Falsified(system, foresee), "Large", sources)
        assert (Kind.FALSE_FINAL, (1, 8)) in kinds(found)


def test_gaps_and_rows_ahead_of_the_horizon_are_checked_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    program = smile.compile(PROGRAM)
    with smile.run(program, data=tmp_path) as system:
        ticks = [system.publish("S", {"a": a, "q": q}) for a, q in ((1, 1), (2, 2), (1, 4), (3, 8))]
        complete = system.inspect("Totals")

    def without_second(horizon: int) -> Inspected:
        """A subscriber who lacks the second event: sums of the others, none of which is settled but the first."""
        coverage = LineageCoverage([Coverage.of((0, ticks[0]), (ticks[1] + 1, complete.told.horizon))])
        told = replace(complete.told, horizon=horizon, token=replace(complete.told.token, coverage=coverage))
        rows = Batch(([1, 3], [5, 8]), [ticks[2], ticks[3]], [True, True])
        told = replace(told, rows=rows, final=(False, False), low=((1, 0), (3, 0)), high=((1, 5), (3, 8)))
        return replace(complete, told=told)

    class Held(Falsified):
        def __init__(self, found: Inspected) -> None:
            Reading.__init__(self, program)
            self._found = found

        def inspect(self, view: str) -> Inspected:
            return self._found

    sources = Sources(None, (tmp_path,))
    right = verify(spark, Held(without_second(ticks[0])), "Totals", sources)
    assert right.differences == ()
    assert right.unsettled == 2
    # The same rows with a horizon beyond the gap: now they claim to be all there is.
    wrong = verify(spark, Held(without_second(ticks[3])), "Totals", sources)
    assert kinds(wrong) == {(Kind.HORIZON, ())}
    # Bounds that do not hold as of the horizon: 1 had 1 then.
    told = without_second(ticks[0])
    narrow = replace(told, told=replace(told.told, low=((1, 3), (3, 0))))
    assert kinds(verify(spark, Held(narrow), "Totals", sources)) == {(Kind.OUT_OF_BOUNDS, (1,))}


def test_what_cannot_be_compared_is_said(spark: SparkSession, tmp_path: Path) -> None:
    with smile.run(smile.compile("stream T(a int); view V = from T;"), data=tmp_path / "other") as other:
        other.publish("T", {"a": 1})
    with smile.run(smile.compile(PROGRAM), data=tmp_path / "data") as system:
        system.publish("S", {"a": 1, "q": 1})
        with pytest.raises(smile.SmileError, match=r"no events of stream `S` in .*other"):
            verify(spark, system, "Totals", Sources(None, (tmp_path / "other",)))
