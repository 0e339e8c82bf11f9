-- Figure 1 of the SMILE paper: which tickets are still for sale?
--
-- Sellers post items. Two independent streams of accepted buys are merged, summed per item, and set against what was
-- posted. An item is shown while some of it is left; once sold out it never comes back.

stream Sellers (item_id int, price decimal(10,2), qty int[0..1000]) unique item_id;
stream BuyersWest (item_id int, qty int[0..1000]) tick offer_id phase 0 of 2;
stream BuyersEast (item_id int, qty int[0..1000]) tick offer_id phase 1 of 2;

view Buyers = merge BuyersWest, BuyersEast;
view Sold = from Buyers |> aggregate total := sum(qty) group by item_id;  -- total only rises
view Joined = from Sellers
  |> left join Sold using item_id default total := 0  -- nothing sold yet counts as 0
  |> extend avail := qty - total;  -- a pair: qty known, total rising
view Available = from Joined |> where avail > 0 |> project item_id, price, avail;

broker west at "tcp://w:7001" edge;
broker east at "tcp://e:7001" edge;
broker hub at "tcp://h:7001" cpu 8;
link west - hub latency 20 ms loss 1%;
link east - hub latency 35 ms loss 1%;

publish BuyersWest at west;
publish BuyersEast at east;
publish Sellers at hub;

place Sold on hub;
protect Sold by semiactive lag 2 s on east;
tune all gap 200 ms idle 2 s pull checkpoint every 30 s;

subscribe tickets to Available emit bounds at west;
