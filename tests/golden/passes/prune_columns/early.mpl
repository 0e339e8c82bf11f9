stream Orders (id int, item int, qty int[0..100], note text, extra text) unique id;
stream Items (item int, price int[0..1000], kind text, descr text) unique item;
view Value = from Orders |> join Items using item |> extend worth := qty * price, unused := length(note) |> project item, worth;
view High = from Orders |> aggregate low := min(qty), high := max(qty) group by item |> project item, high;
view Count = from Orders |> where qty > 1 |> extend shout := upper(note) |> aggregate n := count() group by item;
view Groups = from Orders |> aggregate n := count(), most := max(qty) group by item |> project item;
