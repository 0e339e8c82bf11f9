"""Goal: bags of rows are compared as bags, floats with tolerance, and differing rows of one key are told together; and
the columns of a view are followed to its streams. Without Spark."""

from __future__ import annotations

import pytest

import smile
from compiler.bulk.origins import Origin, origins_of
from smile.bulk.differences import Shape

KEYED = Shape(("k", "x"), (0,), frozenset({1}))
BAG = Shape(("a", "b"), None, frozenset())


def test_rows_of_one_key_are_one_difference() -> None:
    assert KEYED.differing([(1, 1.0), (2, 2.0)], [(2, 2.5), (3, 3.0)]) == [
        ((1, 1.0), None),
        ((2, 2.0), (2, 2.5)),
        (None, (3, 3.0)),
    ]


def test_floats_may_differ_in_their_last_digits_only() -> None:
    assert KEYED.differing([(1, 0.1 + 0.2), (2, 1e9)], [(1, 0.3), (2, 1e9 + 1e-3)]) == []
    assert KEYED.differing([(1, 0.3001)], [(1, 0.3)]) == [((1, 0.3001), (1, 0.3))]
    assert not Shape(("k", "n"), (0,), frozenset()).is_same((1, 10**15), (1, 10**15 + 1))


def test_equal_rows_count() -> None:
    assert BAG.differing([(1, 1), (1, 1), (2, 2)], [(1, 1), (1, 1), (1, 1)]) == [(None, (1, 1)), ((2, 2), None)]
    assert BAG.only_live([(1, 1), (1, 1)], [(1, 1)]) == [((1, 1), None)]


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ("from S |> where b > 1 |> aggregate n := count() group by a", [Origin("S", ((0, 0),))]),
        ("from S |> extend c := a |> aggregate n := count() group by c", [Origin("S", ((0, 0),))]),
        ("from S |> extend c := a + 1 |> aggregate n := count() group by c", [Origin("S", ())]),
        ("from S |> project a, b |> distinct", [Origin("S", ((0, 0), (1, 1)))]),
        (
            "from S |> aggregate n := count() group by a |> join (from T |> latest per a) using a",
            [Origin("S", ((0, 0),)), Origin("T", ((0, 0),))],
        ),
        ("from S |> aggregate n := count()", [Origin("S", ())]),
        (
            "from S |> project a |> distinct |> union (from T |> project a |> distinct)",
            [Origin("S", ((0, 0),)), Origin("T", ((0, 0),))],
        ),
        ("from S |> aggregate m := max(b) group by a |> top 2 by m desc", [Origin("S", ((0, 0),))]),
    ],
)
def test_columns_are_followed_to_the_streams(view: str, expected: list[Origin]) -> None:
    program = smile.compile(f"stream S(a int, b int); stream T(a int, c int); view V = {view};").checked.program
    assert list(origins_of(program, "V", program.views["V"].schema.key)) == expected
