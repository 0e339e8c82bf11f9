stream Orders (id int, item int, qty int[0..100], note text null) unique id;
stream Items (item int, price int[0..1000], kind text) unique item;
view Inner = from Orders |> join Items using item |> where qty > 3 and kind = 'book' and qty < price and item <> 7;
view Left = from Orders |> left join Items using item |> where qty > 3 and kind = 'book';
view Condition = from Orders as O |> join Items as I on O.item = I.item and I.price > 5 and O.qty > 1 and O.qty < I.price;
view Without = from Orders |> not matching Items using item |> where qty > 3 and item <> 7;
