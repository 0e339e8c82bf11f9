"""Goal: the key that a view is given always identifies its rows, and is no larger than the checker can see it must be.

The second half is an oracle: random small tables are joined, grouped and projected by a few lines of plain Python, and
no two rows of the result may agree on what the checker calls a key.
"""

from collections.abc import Sequence
from itertools import product
from random import Random

import pytest

from mpl.relations.keys import closure, identifies, minimal, move_all, move_determined
from mpl.typed import Column, JoinNode, Schema
from mpl.types import IntType
from tests.mpl.shown import checked, errors, view

DECLARED = """
stream L (k int, a int);
stream R (k int, b int);
stream LU (k int, a int) unique k;
stream RU (k int, b int) unique k;
table TU (k int, c int) key k;
table TT (k int, c int) key k, c;
view LA = from L |> aggregate n := count() group by k;
view RA = from R |> aggregate m := count() group by k;
stream LN (k int null, a int);
view NA = from LN |> aggregate n := count() group by k;
"""

# Join, and the key of what comes out. The tick of the left comes before that of the right.
JOINS = {
    "N:M": ("from L |> join R as r on L.k = r.k", "~tick, ~tick"),
    "N:1 to a table": ("from L |> join TU using k", "~tick"),
    "N:1 to a unique stream": ("from L |> join RU as r on L.k = r.k", "~tick"),
    "N:1 by only a part of the other's key": ("from L |> join TT using k", "~tick, c"),
    "N:1 with the rest of the key": ("from L |> join TT as t on L.k = t.k and a = c", "~tick"),
    "1:N": ("from TU |> join L using k", "~tick"),
    "1:1 offers either key": ("from LU |> join RU using k", "k or ~tick or ~tick"),
    "left N:1": ("from L |> left join RU as r on L.k = r.k", "~tick"),
    "left 1:N needs both": ("from LU |> left join R using k", "k, ~tick"),
    "left N:M": ("from L |> left join R as r on L.k = r.k", "~tick, ~tick"),
    "full 1:1 using": ("from LA |> full join RA using k", "k"),
    "full 1:1 on has two keys, either of them null": ("from LA |> full join RA as r on LA.k = r.k", "k, r.k"),
    "full 1:1 using what may be null: null equals nothing, so two rows may have it": (
        "from NA |> full join RA using k",
        "k, n, m",
    ),
    "full 1:1 using, with a condition: partners that fail it stand alone with the same k": (
        "from LA as l |> full join RA as r on l.k = r.k and l.n > r.m",
        "k, r.k",
    ),
    "full N:1 needs both": ("from L |> full join RU using k", "k, ~tick"),
    "a comparison that is no equality changes nothing": ("from L |> join TU using k |> where a < c", "~tick"),
}


@pytest.mark.parametrize(("relation", "key"), JOINS.values(), ids=JOINS)
def test_join_key(relation: str, key: str) -> None:
    assert view(f"{DECLARED} view V = {relation};").partition("; key ")[2] == key


@pytest.mark.parametrize(
    ("key", "relation", "expected"),
    [
        ("k", "from LA", []),
        ("k, n", "from LA", []),
        ("n", "from LA", ["MPL0209"]),
        ("k", "from L", ["MPL0209"]),
        ("nobody", "from LA", ["MPL0202"]),
        ("k, k", "from LA", ["MPL0204"]),
        ("k", "from L |> latest per k", []),
        ("k", "from LU |> left join TU using k", []),
        ("k", "from L |> join TU using k", ["MPL0209"]),
        ("a", "from L |> project a |> distinct", []),
        ("n", "from L |> aggregate n := count()", []),
        ("rank", "from L |> top 3 by a with rank rank", []),
        ("a, rank", "from L |> top 3 per a by k with rank rank", []),
        ("rank", "from L |> top 3 per a by k with rank rank", ["MPL0209"]),
        ("place", "from L |> top 3 by a with rank place |> where a > 0", []),
    ],
)
def test_declared_key(key: str, relation: str, expected: list[str]) -> None:
    assert errors(f"{DECLARED} view V key {key} = {relation};") == expected


def test_a_declared_key_becomes_the_key() -> None:
    """What the checker knew stays known: a join with V by `k` alone still finds one row."""
    assert view(f"{DECLARED} view V key n, k = from LA;") == "k int, n int; key k, n or k"


def test_closure_follows_dependencies() -> None:
    determined = (((0,), 1), ((1, 2), 3))
    assert closure((0,), determined) == {0, 1}
    assert closure((0, 2), determined) == {0, 1, 2, 3}
    assert minimal((0, 1, 2, 3), determined) == (0, 2)
    assert minimal((1, 0), determined) == (0,)


def test_moving_keeps_what_is_whole() -> None:
    where = {0: 2, 1: 0}
    assert move_all(((0, 1), (0, 3), (1,)), where) == ((0, 2), (0,))
    assert move_determined((((0,), 1), ((1,), 3)), where) == (((2,), 0),)


def test_identifies_uses_every_unique_set() -> None:
    columns = tuple(Column(name, IntType()) for name in "abc")
    schema = Schema(columns, (0,), ((1, 2),), (((2,), 1),))
    assert identifies(schema, (0,))
    assert identifies(schema, (2,))
    assert not identifies(schema, (1,))


# The oracle

Row = tuple[int | None, ...]
SIDES = {
    "L": (("k", "a"), ()),
    "LU": (("k", "a"), ("k",)),
    "TU": (("k", "c"), ("k",)),
    "TT": (("k", "c"), ("k", "c")),
    "R": (("k", "b"), ()),
}


def random_rows(rng: Random, name: str) -> list[Row]:
    """Rows that respect the declared key; streams have a tick as their last value."""
    columns, unique = SIDES[name]
    rows: dict[Row, Row] = {}
    for tick in range(rng.randint(0, 6)):
        row: Row = tuple(rng.randint(0, 2) for _ in columns)
        if not name.startswith("T"):
            row = (*row, tick)
        identity = tuple(row[columns.index(column)] for column in unique) or row
        rows.setdefault(identity, row)
    return list(rows.values())


def joined(node: JoinNode, left: list[Row], right: list[Row]) -> list[Row]:
    """What the join means, written naively."""

    def agree(one: Row, other: Row) -> bool:
        return all(one[i] == other[j] for i, j in node.equal)

    kept = node.right_kept
    rows = [(*one, *(other[j] for j in kept)) for one, other in product(left, right) if agree(one, other)]
    if node.side != "inner":
        rows += [(*one, *(None for _ in kept)) for one in left if not any(agree(one, other) for other in right)]
    if node.side == "full":
        shared = {i: j for i, j in node.equal if j not in kept}
        rows += [
            (
                *(other[shared[i]] if i in shared else None for i in range(len(node.left.schema.columns))),
                *(other[j] for j in kept),
            )
            for other in right
            if not any(agree(one, other) for one in left)
        ]
    return rows


def assert_identified(rows: Sequence[Row], schema: Schema) -> None:
    for key in (schema.key, *schema.unique):
        values = [tuple(row[position] for position in key) for row in rows]
        assert len(set(values)) == len(values), f"{key} does not identify {rows}"
    for deciding, decided in schema.determined:
        seen: dict[Row, int | None] = {}
        for row in rows:
            value = seen.setdefault(tuple(row[position] for position in deciding), row[decided])
            assert value == row[decided]


@pytest.mark.parametrize("side", ["", "left ", "full "])
@pytest.mark.parametrize("right", ["R", "TU", "TT"])
@pytest.mark.parametrize("left", ["L", "LU"])
@pytest.mark.parametrize("condition", ["using k", "on {l}.k = r.k", "on {l}.k = r.k and a = r.{c}", "on a = r.k"])
def test_join_keys_identify_rows(left: str, right: str, side: str, condition: str, cases: int) -> None:
    written = condition.format(l=left, c=SIDES[right][0][1])
    program = checked(f"{DECLARED} view V = from {left} |> {side}join {right} as r {written};")
    assert program.ok
    node = program.program.views["V"].relation
    assert isinstance(node, JoinNode)
    for seed in range(40 * cases):
        rng = Random(seed)
        rows = joined(node, random_rows(rng, left), random_rows(rng, right))
        assert_identified(rows, node.schema)
