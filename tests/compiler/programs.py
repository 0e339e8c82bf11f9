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
    "from S |> window session(at, gap 5 s per k) |> where k < 5 and v > 1 |> project id, wstart",
    "from S |> where w <> 0 |> extend y := k + 1 |> where 10 / w > 1 and k > 1 |> project id",
    "from S |> where w > 0 and 10 / w > 1 |> join R using k |> where p > 1 |> project id, p",
    "from S |> where t <> 'a' |> where w <> 0 |> extend z := v + 1 |> where 10 / w > 1",
    "from S |> aggregate n := count() group by k |> aggregate groups := count(), most := max(n)",
    "from (from S |> aggregate n := count() group by k) |> join R using k |> where n > 1 and p > 1 |> project k, n",
    "from S |> project k |> distinct |> extend double := k * 2 |> where double > 2 and k < 5 |> project double",
    "from (from S |> aggregate s := sum(w) group by k) |> top 2 by s desc |> where k < 5",
)


def program(*numbers: int) -> str:
    """Views V<n> of the given pipelines, one after the other."""
    return STREAMS + "".join(f"view V{number} = {PIPELINES[number]};\n" for number in numbers)
