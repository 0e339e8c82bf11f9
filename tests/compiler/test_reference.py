"""Goal: the reference interpreter is right, by examples that a person can work out.

Everything else is compared with it, so nothing here is computed: every expected row is written down.
"""

from __future__ import annotations

import pytest

from mpl.check import check
from mpl.failures import EvaluationError
from mpl.source import Source
from mpl.typed import Schema
from mpl.types import Value
from tests.reference.relations import KeyBroken, Row, by_key, evaluate_program

SECOND = 1_000_000

STREAMS = """
stream S (k int, v int null, at time) tick n;
stream R (k int null, name text) tick m;
stream U (k int, name text) unique k;
table T (k int, label text) key k;
"""

EVENTS: dict[str, list[Row]] = {
    "S": [(1, 10, 0, 1), (1, 30, 4 * SECOND, 4), (2, None, 5 * SECOND, 6), (2, 30, 11 * SECOND, 8)],
    "R": [(1, "a", 2), (None, "b", 3), (1, "c", 5), (3, "a", 9)],
    "U": [(1, "one", 7), (3, "three", 10)],
}
TABLES: dict[str, list[Row]] = {"T": [(1, "x"), (2, "y")]}


def rows(pipeline: str, streams: str = STREAMS) -> set[Row]:
    """The visible columns of a view of `pipeline`."""
    checked = check(Source("example", f"{streams} view V = {pipeline};")).require()
    found = evaluate_program(checked.program, EVENTS, TABLES)["V"]
    shown = [i for i, column in enumerate(checked.program.views["V"].schema.columns) if not column.hidden]
    visible = [tuple(row[i] for i in shown) for row in found]
    assert len(set(visible)) == len(visible), "a set would hide that rows repeat"
    return set(visible)


def s(row: int) -> tuple[Value, ...]:
    return EVENTS["S"][row]


def test_where_takes_null_for_false() -> None:
    assert rows("from S |> where v > 10") == {s(1), s(3)}
    assert rows("from S |> where not v > 10") == {s(0)}


def test_extend_project_rename() -> None:
    assert rows("from S |> extend w := v + k |> project n, w") == {(1, 11), (4, 31), (6, None), (8, 32)}
    assert rows("from S |> rename v as amount |> project amount, n") == {(10, 1), (30, 4), (None, 6), (30, 8)}


def test_project_that_drops_the_key_gives_a_set() -> None:
    counted = "from S |> aggregate n2 := count() group by k |> project n2"
    assert rows(counted) == {(2,)}


def test_merge() -> None:
    streams = STREAMS + "stream S2 (k int, v int null, at time) tick n;"
    assert rows("merge S, S2", streams) == set(EVENTS["S"])


def test_aggregates() -> None:
    assert rows("from S |> aggregate a := count(), b := count(v), c := sum(v), d := avg(v) group by k") == {
        (1, 2, 2, 40, 20_000_000),
        (2, 2, 1, 30, 30_000_000),
    }
    assert rows("from S |> aggregate a := min(v), b := max(v), c := first(v), d := last(v) group by k") == {
        (1, 10, 30, 10, 30),
        (2, 30, 30, 30, 30),
    }
    assert rows("from S |> aggregate a := any(v > 20), b := all(v > 20)") == {(True, False)}
    assert rows("from S |> aggregate a := count(distinct v), b := sum(distinct v)") == {(2, 40)}
    assert rows("from S |> aggregate a := count() where v > 10, b := min(v) where v > 10 group by k") == {
        (1, 1, 30),
        (2, 1, 30),
    }


def test_aggregate_of_nothing() -> None:
    nothing = "from S |> where k = 99"
    assert rows(f"{nothing} |> aggregate a := count(), b := sum(v), c := max(v), d := any(v > 1), e := all(v > 1)") == {
        (0, 0, None, False, True)
    }
    assert rows(f"{nothing} |> aggregate a := count() group by k") == set()


def test_average_rounds_half_away_from_zero() -> None:
    streams = "stream D (d decimal(4,2)) tick n;"
    checked = check(Source("example", f"{streams} view V = from D |> aggregate a := avg(d);")).require()
    events: dict[str, list[Row]] = {"D": [(-100, 1), (-100, 2), (0, 3)]}
    assert evaluate_program(checked.program, events)["V"] == [(-666_667,)]


def test_sum_beyond_64_bits_fails() -> None:
    checked = check(Source("example", "stream I (i int) tick n; view V = from I |> aggregate s := sum(i);")).require()
    with pytest.raises(EvaluationError):
        evaluate_program(checked.program, {"I": [(2**63 - 1, 1), (1, 2)]})


def test_join_ignores_nulls_and_makes_all_pairs() -> None:
    assert rows("from S |> join R using k |> project n, m, name") == {
        (1, 2, "a"),
        (1, 5, "c"),
        (4, 2, "a"),
        (4, 5, "c"),
    }
    assert rows("from S as A |> join R as B on A.k = B.k and A.n < B.m |> project n, m") == {(1, 2), (1, 5), (4, 5)}
    assert rows("from S |> join T using k |> project n, label") == {(1, "x"), (4, "x"), (6, "y"), (8, "y")}


def test_left_join_fills_with_defaults_or_nulls() -> None:
    assert rows("from S |> left join U using k default name := 'none' |> project n, name") == {
        (1, "one"),
        (4, "one"),
        (6, "none"),
        (8, "none"),
    }
    assert rows("from T |> left join U as X on k = X.k and X.name <> 'one'") == {
        (1, "x", None, None),
        (2, "y", None, None),
    }


def test_full_join_keeps_both_sides() -> None:
    assert rows("from T |> full join U using k default label := '-'") == {
        (1, "x", "one"),
        (2, "y", None),
        (3, "-", "three"),
    }


def test_asof_join_takes_the_latest_not_later() -> None:
    streams = """
    stream A (k int, at time) tick n event time at;
    stream B (k int, x int, at time) tick m event time at;
    """
    checked = check(
        Source(
            "example",
            f"{streams} view V = from A |> asof join B as B using k |> project n, x;"
            "view L = from A |> asof left join B as B using k |> project n, x;",
        )
    ).require()
    events: dict[str, list[Row]] = {
        "A": [(1, 5, 1), (1, 9, 2), (1, 1, 3), (2, 9, 4)],
        "B": [(1, 10, 3, 5), (1, 20, 5, 6), (1, 30, 5, 7), (1, 40, 20, 8)],
    }
    found = evaluate_program(checked.program, events)
    # The tick of the right row comes along, hidden by the projection.
    assert set(found["V"]) == {(1, 30, 7), (2, 30, 7)}
    assert set(found["L"]) == {(1, 30, 7), (2, 30, 7), (3, None, None), (4, None, None)}


def test_matching() -> None:
    assert rows("from S |> matching U using k |> project n") == {(1,), (4,)}
    assert rows("from S |> not matching U using k |> project n") == {(6,), (8,)}
    assert rows("from R |> not matching U using k |> project m") == {(3,)}
    assert rows("from S as A |> matching R as B on A.k = B.k and B.m > 4 and A.n > 1 |> project n") == {(4,)}


def test_top() -> None:
    assert rows("from S |> top 1 per k by v desc |> project n") == {(4,), (8,)}
    # Nulls last, also when ascending; ties by key.
    assert rows("from S |> top 3 by v with rank place |> project n, place") == {(1, 1), (4, 2), (8, 3)}
    assert rows("from S |> top 4 by v desc with rank place |> project n, place") == {(4, 1), (8, 2), (1, 3), (6, 4)}
    assert rows("from S |> top 1 by v desc with ties |> project n") == {(4,), (8,)}


def test_latest_and_first() -> None:
    assert rows("from S |> latest per k |> project n") == {(4,), (8,)}
    assert rows("from S |> first per k |> project n") == {(1,), (6,)}
    assert rows("from S |> latest per k by v |> project n") == {(4,), (8,)}
    assert rows("from R |> first per name by k |> project m") == {(2,), (3,), (5,)}


def test_sets() -> None:
    assert rows("from R |> project name |> distinct") == {("a",), ("b",), ("c",)}
    names = "(from U |> project name |> distinct)"
    assert rows(f"from R |> project name |> distinct |> union {names}") == {
        (name,) for name in ("a", "b", "c", "one", "three")
    }
    labels = "(from T |> rename k as kk |> extend name := 'a' |> project name |> distinct)"
    assert rows(f"from R |> project name |> distinct |> minus {labels}") == {("b",), ("c",)}


def test_windows() -> None:
    group = "|> aggregate c := count() group by k, wstart, wend"
    assert rows(f"from S |> window tumble(at, 5 s) {group}") == {
        (1, 0, 5 * SECOND, 2),
        (2, 5 * SECOND, 10 * SECOND, 1),
        (2, 10 * SECOND, 15 * SECOND, 1),
    }
    assert rows("from S |> where n = 6 |> window hop(at, 10 s every 5 s) |> project n, wstart, wend") == {
        (6, 0, 10 * SECOND),
        (6, 5 * SECOND, 15 * SECOND),
    }
    assert rows("from S |> window session(at, gap 6 s per k) |> project n, wstart, wend") == {
        (1, 0, 10 * SECOND),
        (4, 0, 10 * SECOND),
        (6, 5 * SECOND, 11 * SECOND),
        (8, 11 * SECOND, 17 * SECOND),
    }


def test_keys_are_checked() -> None:
    schema = Schema((), (0,))
    with pytest.raises(KeyBroken):
        by_key(schema, [(1, 2), (1, 3)])
