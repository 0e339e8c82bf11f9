-- What the chaos test runs: Figure 1 of the paper, with an id on every buy, spread over three brokers so that every event
-- crosses at least two links before a subscriber hears of it.

stream Sellers (item_id int, qty int[0..1000000]) unique item_id;
stream BuyersWest (item_id int, buy_id int, qty int[0..9]) tick offer_id phase 0 of 2;
stream BuyersEast (item_id int, buy_id int, qty int[0..9]) tick offer_id phase 1 of 2;

view Buyers = merge BuyersWest, BuyersEast;
view Sold = from Buyers |> aggregate total := sum(qty), bought := count() group by item_id;
view Available = from Sellers
  |> left join Sold using item_id default total := 0, bought := 0
  |> extend avail := qty - total
  |> where avail > 0
  |> project item_id, avail;

broker west at "tcp://w:7001";
broker east at "tcp://e:7001";
broker hub at "tcp://h:7001";
publish BuyersWest at west;
publish BuyersEast at east;
publish Sellers at hub;
place Sold on hub;
place Available on east;
