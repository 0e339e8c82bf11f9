-- Nexmark: an auction site. The queries of the benchmark that stream processors are measured by, as MPL views.

stream Person (id int, name text, email text, card text, city text, state text, ts time, extra text)
  unique id
  event time ts late 4 s;
stream Auction (
  id int,
  item text,
  descr text,
  initial int[0..],
  reserve int[0..],
  ts time,
  expires time,
  seller int,
  category int[10..14],
  extra text
)
  unique id
  event time ts late 4 s
  closes id at expires;
stream Bid (
  auction int,
  bidder int,
  price int[0..100000000],
  channel text,
  url text,
  ts time,
  extra text
)
  event time ts late 4 s;
table side (key int, value text) key key from "side.csv";

function count_char(s text, c text) returns int = length(s) - length(replace(s, c, ''));

-- q1, q2: one event in, one event out.
view q1 = from Bid
  |> extend euro := cast(price as decimal(18,3)) * 0.908
  |> project auction, bidder, euro, ts;
view q2 = from Bid |> where auction % 123 = 0 |> project auction, price;

-- q3: who sells in category 10 in these states?
view q3 = from Auction
  |> where category = 10
  |> join (from Person |> where state in ('OR', 'ID', 'CA')) as P on seller = P.id
  |> project name, city, state, id;

-- Bids inside their auction's time; shared by q4, q6 and q9.
view closing = from Auction as A
  |> join Bid as B on A.id = B.auction and B.ts between A.ts and A.expires;

-- q4: the average closing price per category.
view q4 = from closing
  |> aggregate final := max(price) group by id, category
  |> aggregate avg_final := avg(final) group by category;

-- q5: hot auctions, most bids in the last ten seconds, every two seconds.
view counts = from Bid
  |> window hop(ts, 10 s every 2 s)
  |> aggregate num := count() group by auction, wstart, wend;
view q5 = from counts
  |> top 1 per wstart, wend by num desc with ties
  |> project auction, num, wstart;

-- q8: people who opened an auction in the same ten seconds in which they arrived.
view q8 = from Person
  |> window tumble(ts, 10 s)
  |> matching (from Auction |> window tumble(ts, 10 s)) as A on id = A.seller and wstart = A.wstart
  |> project id, name, wstart;

-- q9: the winning bid of every auction.
view q9 = from closing |> top 1 per id by price desc, B.ts;

-- q11: bids per bidder and session.
view q11 = from Bid
  |> window session(ts, gap 10 s per bidder)
  |> aggregate bids := count() group by bidder, wstart, wend;

-- q13: a side table joined in.
view q13 = from Bid
  |> extend k := auction % 10000
  |> join side on k = side.key
  |> project auction, bidder, price, ts, value;

-- q14: a computed column and a function of our own.
view q14 = from Bid
  |> extend
      euro := cast(price as decimal(18,3)) * 0.908,
      part := case
          when hour(ts) between 8 and 18 then 'day'
          when hour(ts) between 6 and 20 then 'edge'
          else 'night'
        end,
      c_count := count_char(extra, 'c')
  |> where euro > 1000000 and euro < 50000000
  |> project auction, bidder, euro, part, ts, c_count;

-- q15: bidding statistics by day.
view q15 = from Bid
  |> extend day := date(ts)
  |> aggregate
      total_bids := count(),
      rank1_bids := count() where price < 10000,
      total_bidders := count(distinct bidder),
      rank1_bidders := count(distinct bidder) where price < 10000
    group by day;

-- q17: auction statistics by day.
view q17 = from Bid
  |> extend day := date(ts)
  |> aggregate
      total_bids := count(),
      min_price := min(price),
      max_price := max(price),
      avg_price := avg(price),
      sum_price := sum(price)
    group by auction, day;

-- q18, q19: the last bid of each bidder, the best ten of each auction.
view q18 = from Bid |> latest per bidder, auction by ts;
view q19 = from Bid |> top 10 per auction by price desc with rank rank_number;

-- q21: a channel id from the url.
view q21 = from Bid
  |> extend
      channel_id := case
          when lower(channel) = 'apple' then '0'
          when lower(channel) = 'google' then '1'
          else regexp_extract(url, '(&|^)channel_id=([^&]*)', 2)
        end
  |> where channel_id <> '';

-- q22: parts of the url.
view q22 = from Bid
  |> extend
      dir1 := split_part(url, '/', 4),
      dir2 := split_part(url, '/', 5),
      dir3 := split_part(url, '/', 6)
  |> project auction, bidder, price, channel, dir1, dir2, dir3;

-- RisingWave's q104: auctions that no popular set of bids touches.
view q104 = from Auction
  |> not matching (from Bid |> aggregate n := count() group by auction |> where n < 20) as S
    on id = S.auction;

broker hub at "tcp://127.0.0.1:7001";

subscribe winners to q9 emit final;  -- one row per auction, sent when its close is certain
subscribe hot to q5 emit changes at hub;
