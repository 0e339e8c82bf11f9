"""Goal: a row that cannot be computed stops the views that need it, by name and reason, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import smile

PROGRAM = """
stream S (k int, v int);
view Ratio = from S |> extend r := 100 / v;
view Sums = from S |> aggregate total := sum(v) group by k;
view Doubled = from Sums |> extend twice := total * 2;
view Counts = from S |> aggregate n := count() group by k;
view Means = from (from Ratio |> aggregate mean := avg(r)) |> extend twice := mean * 2;
"""
MOST = 2**63 - 1


@pytest.fixture
def system() -> Iterator[smile.System]:
    with smile.run(smile.compile(PROGRAM)) as running:
        yield running


def put(system: smile.System, k: int, v: int) -> None:
    system.publish("S", {"k": k, "v": v})


def test_an_expression_without_a_value(system: smile.System) -> None:
    changes, counts = system.subscribe("Ratio"), system.subscribe("Counts")
    assert system.rows("Means")
    put(system, 1, 50)
    put(system, 2, 0)
    put(system, 3, 10)
    with pytest.raises(smile.ViewFailed) as caught:
        system.rows("Ratio")
    failure = caught.value
    assert (failure.view, failure.code) == ("Ratio", "division-by-zero")
    assert "k=2, v=0" in failure.reason, "the row is named"
    assert failure.origin == "<text>:3:24", "and the place in the program"
    with pytest.raises(smile.ViewFailed, match="`Means`"):
        system.rows("Means")
    assert [change.row for change in changes.ready()] == [{"k": 1, "v": 50, "r": 2}], "first what was true"
    with pytest.raises(smile.ViewFailed):
        changes.ready()
    with pytest.raises(smile.ViewFailed):
        changes.wait()
    assert len(system.rows("Counts")) == len(counts.ready()) == 3
    assert len(system.rows("S")) == 3, "events are logged"
    with system.subscribe("Ratio") as late:
        assert [change.kind for change in late.ready()] == ["snapshot"]
        with pytest.raises(smile.ViewFailed):
            late.ready()


def test_overflow_names_the_group_and_applies_nothing(system: smile.System) -> None:
    sums = system.subscribe("Sums")
    put(system, 7, MOST)
    put(system, 8, 1)
    system.publish_many("S", [{"k": 8, "v": 1}, {"k": 7, "v": 1}])
    with pytest.raises(smile.ViewFailed, match=r"overflow.*7") as caught:
        system.rows("Sums")
    assert caught.value.view == "Sums"
    told = {change.key: change.row["total"] for change in sums.ready()}
    assert told == {(7,): MOST, (8,): 1}, "of a batch that cannot be computed nothing is applied"


def test_a_view_fails_alone(system: smile.System) -> None:
    put(system, 1, MOST)
    assert system.rows("Sums") == [{"k": 1, "total": MOST}]
    with pytest.raises(smile.ViewFailed, match="`Doubled`"):
        system.rows("Doubled")
    put(system, 2, 5)
    assert system.rows("Sums") == [{"k": 1, "total": MOST}, {"k": 2, "total": 5}]
    with pytest.raises(smile.ViewFailed, match="`Doubled`"):
        system.rows("Doubled")


def test_callbacks_of_failed_views_are_told_through_the_subscription(
    system: smile.System, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[smile.Change] = []
    subscription = system.subscribe("Ratio", seen.append)
    put(system, 1, 0)
    put(system, 1, 1)
    assert seen == []
    assert isinstance(subscription.failure, smile.ViewFailed)
    assert "division-by-zero" in caplog.text


def test_a_view_that_failed_before_anybody_asked(system: smile.System) -> None:
    put(system, 1, 0)
    put(system, 1, 5)
    assert system.rows("Counts") == [{"k": 1, "n": 2}]
    for _ in range(2):
        with pytest.raises(smile.ViewFailed, match="division-by-zero"):
            system.rows("Ratio")


@pytest.mark.parametrize(
    ("program", "rows", "said"),
    [
        pytest.param(
            "stream S (k text, at time, v int); view V = from S |> aggregate t := sum(v) group by k, at;",
            [{"k": "a", "at": "2026-01-01", "v": MOST}] * 2,
            f"k='a', at=2026-01-01 00:00:00+00:00, v={MOST}): the sum of a group is too large",
            id="kernel",
        ),
        pytest.param(
            "stream S (d decimal(8,2), n duration, v float); view V = from S |> aggregate t := sum(v) group by d, n;",
            [{"d": "1.25", "n": 1_500_000, "v": 1.5e308}] * 2,
            "the sum of group (d=1.25, n=0:00:01.500000) is beyond the largest float",
            id="floats",
        ),
        pytest.param(
            "stream S (at time null, v int); view V = from S |> aggregate t := sum(v), m := max(v) group by at;",
            [{"at": "2026-01-01", "v": MOST}] * 2,
            "group (at=2026-01-01 00:00:00+00:00) would have the total t+=18446744073709551614, t-=0",
            id="group by",
        ),
        pytest.param(
            "stream S (v int); view V = from S |> aggregate t := sum(v);",
            [{"v": MOST}] * 2,
            "the group of all rows would have the total t+=",
            id="one row",
        ),
        pytest.param(
            "stream S (at time, d decimal(8,2), v int); view V = from S |> extend r := 1 / v;",
            [{"at": 1_000_000, "d": "-0.05", "v": 0}],
            "at=1970-01-01 00:00:01+00:00, d=-0.05, v=0): division by zero",
            id="expression",
        ),
    ],
)
def test_rows_are_named_as_a_user_writes_them(program: str, rows: list[dict[str, object]], said: str) -> None:
    with smile.run(smile.compile(program)) as system:
        system.publish_many("S", rows)
        with pytest.raises(smile.ViewFailed, match="view `V`") as caught:
            system.rows("V")
        assert said in str(caught.value)
