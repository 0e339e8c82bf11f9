stream Sellers (item int, price decimal(10,2), qty int[0..1000]) unique item;
stream Buys (item int, qty int[0..1000], state text);
view Sold = from Buys |> where state = 'paid' |> aggregate total := sum(qty) group by item;
view Left = from Sellers |> left join Sold using item default total := 0 |> extend avail := qty - total |> where avail > 0;
