"""How long it takes to check a large program: 5,000 lines, 500 views, in under 2 s.

    python -m bench.check_speed               a table; the best of 5 runs
    python -m bench.check_speed --profile     where the time goes

The program is made here from several kinds of views as people write them, reading streams and each other; it is the
same every time. Times are those of the processor: on a shared machine the clock measures the neighbours.
`tests/mpl/test_check_speed.py` holds the limit.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
from dataclasses import dataclass
from time import thread_time

from mpl.checker import check_program
from mpl.diagnostic import Diagnostics
from mpl.knowledge import analyse
from mpl.parser import parse
from mpl.render import render_all
from mpl.source import Source

VIEWS = 500
LINES = 5_000
SECONDS_MAX = 2.0
RUNS = 5

STREAMS = """\
-- Region {n}: what is sold there, and who looks at it.
stream Person{n} (
  id int, name text, email text, card text(19), city text,
  state text, ts time, extra text null
) unique id event time ts late 4 s;
stream Auction{n} (
  id int, item text, descr text, initial int[0..], reserve int[0..],
  ts time, expires time, seller int, category int[10..14], extra text null
) unique id event time ts late 4 s closes id at expires;
stream Bid{n} (
  auction int, bidder int, price int[0..100000000], channel text, url text, ts time,
  fee decimal(10,2) [0..], kind enum('web', 'app', 'phone'), extra text null
) event time ts late 4 s;
table Side{n} (key int, value text, rate decimal(8,4)) key key from "side{n}.csv";

"""

# {n} is the region, {i} the number of the view.
KINDS = (
    """\
-- The price in another currency, and when it was offered.
view euro{i} = from Bid{n}
  |> where auction % 123 = 0 or kind in ('web', 'app') and price between 100 and 100000
  |> extend euro := cast(price as decimal(18,3)) * 0.908,
            part := case when hour(ts) between 8 and 18 then 'day'
                         when hour(ts) between 6 and 20 then 'edge'
                         else 'night' end,
            slashes := length(url) - length(replace(url, '/', ''))
  |> project auction, bidder, euro, part, ts, slashes;

""",
    """\
-- Who sells in some states?
view sellers{i} = from Auction{n}
  |> where category = 10 and initial < reserve
  |> join (from Person{n}
           |> where state in ('OR', 'ID', 'CA') and not name like 'A%'
          ) as P on seller = P.id
  |> extend place := city || ', ' || upper(state)
  |> project name, place, id, P.id;

""",
    """\
-- Bids inside their auction's time, and the best of them.
view closing{i} = from Auction{n} as A
  |> join Bid{n} as B on A.id = B.auction and B.ts between A.ts and A.expires
  |> where price >= reserve;
view best{i} = from closing{i}
  |> top 1 per id by price desc, B.ts asc
  |> project id, item, price, bidder, B.ts
  |> extend paid := price + 5;

""",
    """\
-- Statistics by day.
view stats{i} = from Bid{n}
  |> extend day := date(ts)
  |> aggregate total := count(), low := count() where price < 10000,
               bidders := count(distinct bidder), cheapest := min(price),
               dearest := max(price), mean := avg(price), turnover := sum(price)
     group by auction, day
  |> where total > 3 and dearest - cheapest > 100;

""",
    """\
-- The hot auctions of the last ten seconds.
view counts{i} = from Bid{n}
  |> window hop(ts, 10 s every 2 s)
  |> aggregate num := count(), fees := sum(fee) group by auction, wstart, wend;
view hot{i} = from counts{i}
  |> top 1 per wstart, wend by num desc with ties
  |> project auction, num, fees, wstart
  |> extend share := fees / (num + 1);

""",
    """\
-- A side table, and what is not in it.
view sides{i} = from Bid{n}
  |> extend k := auction % 10000
  |> left join Side{n} as S on k = S.key default value := 'none'
  |> extend shown := coalesce(lower(value), '?'), due := price * coalesce(rate, 1.0)
  |> project auction, bidder, price, ts, shown, due;
view odd{i} = from sides{i}
  |> not matching Side{n} as S on auction = S.key;

""",
    """\
-- Sessions of bidders, and the sum of them.
view sessions{i} = from Bid{n}
  |> window session(ts, gap 10 s per bidder)
  |> aggregate bids := count(), spent := sum(price) where kind = 'app' group by bidder, wstart, wend
  |> extend lasted := (wend - wstart) / 1 s;
view loyal{i} = from sessions{i}
  |> aggregate visits := count(), longest := max(lasted), spent := sum(spent) group by bidder
  |> where visits > 10;

""",
    """\
-- The latest bid of each bidder with a channel number from its address.
view latest{i} = from Bid{n}
  |> latest per bidder, auction by ts
  |> extend channel_id := case when lower(channel) = 'apple' then '0'
                               when lower(channel) = 'google' then '1'
                               else regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) end
  |> where channel_id <> '' and extra is not null
  |> project bidder, auction, price, channel_id;

""",
)


def large_program() -> str:
    """500 views in at least 5,000 lines."""
    parts: list[str] = []
    views = 0
    number = 0
    while views < VIEWS:
        region = number // len(KINDS)
        if number % len(KINDS) == 0:
            parts.append(STREAMS.format(n=region))
        kind = KINDS[number % len(KINDS)].replace("{n}", str(region)).replace("{i}", str(number))
        parts.append(kind)
        views += kind.count("view ")
        if "view hot" in kind:
            parts.append(f"subscribe watch{number} to hot{number} emit changes every 100 ms;\n")
        number += 1
    lines = sum(part.count("\n") for part in parts)
    # People leave room between things; the limit is stated in lines.
    parts += ["-- more to come\n"] * max(LINES - lines, 0)
    return "".join(parts)


@dataclass(frozen=True)
class Times:
    """Seconds of one run, by stage."""

    parse: float
    check: float
    analyse: float

    @property
    def total(self) -> float:
        return self.parse + self.check + self.analyse


def timed(text: str) -> Times:
    """Checks the text; it must be without errors."""
    diagnostics = Diagnostics()
    began = thread_time()
    syntax = parse(Source("large.mpl", text), diagnostics)
    parsed = thread_time()
    program = check_program(syntax, diagnostics)
    checked = thread_time()
    assert not diagnostics.has_errors, render_all(diagnostics)
    analyse(program, diagnostics)
    return Times(parsed - began, checked - parsed, thread_time() - checked)


def best_of(text: str, runs: int) -> Times:
    return min((timed(text) for _ in range(runs)), key=lambda times: times.total)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.check_speed")
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    options = parser.parse_args()
    text = large_program()
    lines = text.count("\n")
    timed("stream Warm (up int);")
    if options.profile:
        with cProfile.Profile() as profile:
            timed(text)
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
        return
    times = best_of(text, RUNS)
    print(f"{lines:,} lines, {text.count('view '):,} views, {len(text):,} characters; best of {RUNS}")
    for stage in ("parse", "check", "analyse", "total"):
        seconds: float = getattr(times, stage)
        print(f"  {stage:8} {seconds:6.3f} s  {lines / seconds:10,.0f} lines/s")
    print(f"  limit    {SECONDS_MAX:6.3f} s")


if __name__ == "__main__":
    main()
