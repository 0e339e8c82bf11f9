"""Programs written for the passes: every operator below conditions, projections and columns that nobody needs.

The random programs of `tests/generator` seldom put a condition over a particular operator; these always do.
"""

from __future__ import annotations

STREAMS = """
stream S (id int, k int, v int[0..100], w int, t text null, at time) unique id event time at late 4 s;
stream R (k int, p int[0..100], q text null) unique k;
stream E (k int, v int[0..100], at time) event time at late 2 s;
stream W (k int, v int[0..100]) tick offer phase 0 of 2;
stream O (k int, v int[0..100]) tick offer phase 1 of 2;
table T (k int, name text) key k;
table D (k int, label text) key k;
"""

PIPELINES: tuple[str, ...] = (
    "from S |> where v > 1 and k <> 3 |> extend x := v * 2 |> where x > 4 and t = 'a' |> project k, x",
    "from S |> project k, v |> extend s := k + v |> rename s as total |> where total > 3 and v < 60 |> project total",
    "from S |> extend c := 1, d := k |> where c = 1 and d < 3 |> extend e := d + c |> project e, id",
    "from S |> join R using k |> where v > 1 and p < 60 and k <> 2 and v < p |> project id, p",
    "from S |> left join R using k default p := 7 |> where v > 1 and p = 7 and k <> 2",
    "from S |> left join R using k |> where v > 1 and q is null",
    "from S as A |> join R as B on A.k = B.k and B.p > 1 and A.v > 1 and A.v < B.p |> project id, p",
    "from S as A |> left join R as B on A.k = B.k and B.p > 1 and A.v > 1 |> where A.v < 61",
    "from S as A |> join E as B on A.k = B.k and A.v <= B.v |> where B.v > 1 and A.k < 5 |> project id, B.v",
    (
        "from (from S |> aggregate n := count() group by k) |> full join (from E |> aggregate m := sum(v) group by k) "
        "using k default n := 0, m := 0 |> where k < 5 and n >= m"
    ),
    "from S |> extend x := nullif(case when true then 3 else 5 end, 3), y := nullif(minute(nullif(at, at)), k)",
    "from E as A |> full join W as B on A.k = B.k |> project A.k, A.v",
    "from S |> join T using k |> where name <> 'b' and k < 9 |> project id, name",
    "from S |> matching R using k |> where v > 1 and k < 5 |> project id",
    "from S as A |> matching E as B on A.k = B.k and B.v > 1 and A.v > 1 and A.v < B.v |> where A.k < 5",
    "from S |> not matching R using k |> where v > 1 and k < 5 |> project id, v",
    "from S as A |> not matching E as B on A.k = B.k and B.v > 1 and A.v > 1 |> where A.k < 5",
    "from S |> asof join E as B using k |> where v > 1 and k < 5 and B.v > 1 |> project id, B.v",
    "from S |> asof left join E as B using k |> where v > 1 and k < 5 |> project id, B.v",
    (
        "from S |> aggregate n := count(), s := sum(v), f := first(v), l := last(t), a := any(v > 2) group by k, t "
        "|> where k < 5 and n > 1 |> project k, t, l"
    ),
    "from S |> aggregate n := count(), s := sum(v) |> where n > 1 |> project s",
    (
        "from S |> aggregate lo := min(w), hi := max(w), m := avg(v), d := count(distinct v), b := count() where w > 1 "
        "group by k |> where hi > lo and k < 60 |> project k, m, d"
    ),
    "from S |> top 2 per k by v desc, w |> where k < 5 and v > 1 |> project id",
    "from S |> top 2 per k by v desc with rank place |> where k < 5 and place = 1 |> project id, place",
    "from S |> top 1 per k by v desc with ties |> where k < 5 |> project id, v",
    "from S |> latest per k |> where k < 5 and v > 1 |> project k, v",
    "from S |> first per k by at |> where k < 5 and v > 1 |> project k, w",
    "from S |> project k, t |> distinct |> where k < 5 and t is not null",
    (
        "from (from S |> project k, v |> distinct) |> union (from R |> rename p as v |> project k, v |> distinct) "
        "|> where k < 5 and v > 1 |> project k"
    ),
    (
        "from (from S |> project k, v |> distinct) |> minus (from R |> rename p as v |> project k, v |> distinct) "
        "|> where k < 5 and v > 1"
    ),
    "merge W, O |> where v > 1 and k < 5 |> extend x := v + 1 |> project x, k |> where x > 3",
    "merge (from W |> where v > 1), O |> aggregate s := sum(v) group by k |> where k < 5",
    (
        "from S |> window tumble(at, 10 s) |> where v > 1 and k < 5 |> aggregate n := count() group by k, wstart, wend "
        "|> where n > 1 and k <> 2"
    ),
    (
        "from S |> window hop(at, 20 s every 10 s) |> where v > 1 |> aggregate n := count() group by k, wstart, wend "
        "|> project k, wstart, n"
    ),
    "from S |> window session(at, gap 9 s per k) |> where k < 5 and v > 1 |> project id, wstart",
    "from S |> where w <> 0 |> extend y := k + 1 |> where 10 / w > 1 and k > 1 |> project id",
    "from S |> where w > 0 and 10 / w > 1 |> join R using k |> where p > 1 |> project id, p",
    "from S |> where t <> 'a' |> where w <> 0 |> extend z := v + 1 |> where 10 / w > 1",
    "from S |> aggregate n := count() group by k |> aggregate groups := count(), most := max(n)",
    "from (from S |> aggregate n := count() group by k) |> join R using k |> where n > 1 and p > 1 |> project k, n",
    "from S |> project k |> distinct |> extend double := k * 2 |> where double > 2 and k < 5 |> project double",
    "from (from S |> aggregate s := sum(w) group by k) |> top 2 by s desc |> where k < 5",
    "from S |> window session(at, gap 4 s) |> where v > 1 |> project id, wstart, wend",
    # A condition that is false for all rows must not make the one row of an aggregate without groups appear.
    (
        "from (from S |> aggregate n := count() |> where false) "
        "|> union (from S |> aggregate n := count() |> extend m := n + 1 |> project m |> rename m as n)"
    ),
    # Sides that an outer join fills, over tables: there even their columns are fixed.
    "from S |> left join T using k |> where name is null or name = 'a' |> project id, name",
    "from T |> full join D using k |> where name is null or label = 'a'",
    "from T |> full join D using k default name := 'b' |> where name = 'b'",
    # Errors that only rows without a partner, or with a null, would make.
    "from S as A |> join (from R |> where k <> 0) as B on A.w = B.k |> where 10 / A.w > 1 |> project id",
    "from S as A |> matching (from R |> where k <> 0) as B on A.w = B.k |> where 10 / A.w > 1",
    "from S |> where nullif(w, 0) > -100 |> where 10 / w > 1 |> project id",
    "from S |> where nullif(w, 0) > -100 |> extend x := v + 1 |> where 10 / w > 1 |> project x",
    "from S |> top 2 per k by abs(w) desc |> where k < 100 and 10 / nullif(w, 0) > 1",
    # Order by tick where the tick is neither shown nor the key.
    "from T |> join S using k |> aggregate f := first(w), l := last(v) group by k |> project k, l, f",
    "from T |> join S using k |> extend one := 1 |> latest per k by one |> aggregate s := sum(w * k)",
    "from T |> join S using k |> first per k |> project k, w",
    (
        "from E as A |> asof join (from T |> join S using k |> extend day := date(at)) as B "
        "on A.k = B.k and B.day <= A.at |> project A.v, w"
    ),
    # Logic with nulls that are not conditions of rows.
    "from S |> extend a := nullif(true, true) and v > 1, o := nullif(true, true) or v > 1 |> project id, a, o",
    "from S |> extend c := case when t = 'a' then 1 when false then 2 else 3 end |> where c <> 2 |> project id, c",
)

TWINS: tuple[tuple[str, str], ...] = (
    ("from S |> where v > 1", "from S |> where v > 2"),
    ("from S |> where v > 1", "from S |> where v >= 1"),
    ("from S |> extend x := w + 1", "from S |> extend x := w + 2"),
    ("from S |> extend x := w / 2", "from S |> extend x := w / 2.0"),
    ("from S |> project k, v", "from S |> project v, k"),
    ("from S |> project k, v |> distinct", "from S |> project k, w |> distinct"),
    ("from S |> join R using k", "from S |> left join R using k"),
    (
        "from S |> join R using k |> aggregate n := count() group by id",
        "from S |> left join R using k |> aggregate n := count() group by id",
    ),
    ("from S |> left join R using k", "from S |> left join R using k default p := 0"),
    ("from T |> left join D using k", "from T |> full join D using k"),
    ("from S as A |> join R as B on A.k = B.k", "from S as A |> join R as B on A.v = B.k"),
    ("from S as A |> join R as B on A.k = B.k", "from S as A |> join R as B on A.k = B.k and A.v < B.p"),
    ("from S |> matching R using k", "from S |> not matching R using k"),
    ("from S |> asof join E as B using k", "from S |> asof left join E as B using k"),
    ("from S |> aggregate n := count() group by k", "from S |> aggregate n := count() where v > 1 group by k"),
    ("from S |> aggregate n := count(v) group by k", "from S |> aggregate n := count(distinct v) group by k"),
    ("from S |> aggregate n := min(v) group by k", "from S |> aggregate n := max(v) group by k"),
    ("from S |> aggregate n := sum(v) group by k", "from S |> aggregate n := sum(v) group by w"),
    ("from S |> top 1 per k by v", "from S |> top 2 per k by v"),
    ("from S |> top 1 per k by v", "from S |> top 1 per k by v desc"),
    ("from S |> top 1 per k by v", "from S |> top 1 per k by v with ties"),
    ("from S |> top 1 per k by v", "from S |> top 1 by v"),
    ("from S |> latest per k by at", "from S |> first per k by at"),
    ("from S |> latest per k by at", "from S |> latest per k"),
    ("from S |> window tumble(at, 10 s)", "from S |> window tumble(at, 5 s)"),
    ("from S |> window session(at, gap 9 s per k)", "from S |> window session(at, gap 9 s)"),
    ("merge W, O", "merge O, W |> where v > 1"),
)
"""Pipelines that differ in one thing only: they must not be taken for the same."""


def program(*numbers: int) -> str:
    """Views V<n> of the given pipelines, one after the other."""
    return STREAMS + "".join(f"view V{number} = {PIPELINES[number]};\n" for number in numbers)


def twins(number: int) -> str:
    """Views A and B of a pair of twins."""
    first, second = TWINS[number]
    return f"{STREAMS} view A = {first}; view B = {second};"
