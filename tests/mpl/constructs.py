"""A program that uses every construct of the language once, for tests of the parser and the formatter.

It is about syntax only: names and types make no sense.
"""

EVERY_CONSTRUCT = """
stream S (a int, b decimal(10,2)[0.00..99.50] null, c text(40), d enum('x', 'it''s'), e float[..1e3], f bool, g text)
  tick n every 1 ms phase 0 of 2 unique a, b event time t late 4 s live closes a at t
  until time '2026-01-31 12:00:00' retain 7 d;
stream T (a duration[-1 s..2 s], b time null) event time b until -5;
stream U (a int, b text default 'it''s', c decimal(5,2)[-1..] default -0.50, d duration default -1 s,
  default bool default true);
table side (key int, value text) key key, value from "side.csv";
table bare (key int) key key;
view a = from S;
view b key x, y = merge S, T as U, (from V) |> distinct materialize;
view c = from (from S |> union T |> minus (from U as W)) as X inline;
view d = from S |> where a = 1 |> project a, B.c |> project all but a |> project all |> extend x := 1, y := -2
  |> rename a as b, X.c as d |> window tumble(t, 10 s) |> window hop(B.t, 10 s every 2 s)
  |> window session(t, gap 1 min) |> window session(t, gap 1 min per a, B.c);
view e = from S |> aggregate n := count(), m := sum(a),
    o := count(distinct a + 1) where a > 1, p := any(f) group by a, B.c
  |> aggregate n := count();
view f = from S |> join T using a, b |> left join T as U on a = U.a default x := 0, y := 'n' |> full join T using a
  |> asof join T on a = b |> asof left join (from T) on a = b |> matching T using a |> not matching T on a = b;
view g = from S |> top 1 by a |> top 2 per a, B.c by a + 1 desc, b asc, c with rank r |> top 3 by a with ties
  |> latest per a |> first per a, b by B.t;
view h = from S |> where not (a or b) and (c or not d) or e |> where a + b * c - d / e % f || 'g' <> -(h + 1) * - -i
  |> where a in (1, 2 + 3, 'x') and b not in (null) and c between 1 and 2 and d not between a + 1 and -2
  |> where a like 'x%' and b not like c || '%' and c is null and d is not null and (a = b) = true
  |> where a < b or a <= b or a > b or a >= b or a <> b or false
  |> extend x := case when a then 1 when b then 2 else 3 end, y := case when a = 1 then 2 end,
       z := cast(a + 1 as text(3)), w := f(), v := coalesce(a, g(b, 1.50), 1e3, 2.5e-3, time '2026-01-01', 3 h)
  |> extend l := (a - b) - (c - d), m := a * (b + c), n := -(-a), o := (not a) = b, p := (a || b) || c;
subscribe a to b;
subscribe c to (from d |> where x > 1) emit changes at hub every 1 s within 2 s snapshot on;
subscribe e to f emit bounds snapshot off durable;
subscribe g to h emit final;
subscribe i to j emit as of horizon;
function f(s text, c decimal(3,1) null) returns int null = length(s) - 1 monotone up, down;
function g() returns float python "scores:score";
broker hub at "tcp://h:7001" cpu 8 memory 16 GiB edge;
broker plain at "tcp://p:7001";
link a - b latency 20 ms bandwidth 100 Mbps loss 0.5%;
link c - d loss 1 %;
publish S at hub;
place a on b;
place a near b;
place a with b;
place a avoid b;
protect a by upstream;
protect a by passive every 1 s;
protect all by active on hub;
protect all by semiactive lag 2 s on hub;
tune all gap 200 ms idle 2 s pull push quench on quench off checkpoint every 30 s;
tune a gap 1 s;
drop view a;
drop subscribe a;
drop stream a;
view `größe` = from `select *` |> project `from`, `plain`, `null`.`Key` |> aggregate x := max(`distinct`);
"""
