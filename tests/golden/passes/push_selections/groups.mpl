stream S (k int, v int[0..100], t text);
view Group = from S |> aggregate total := sum(v) group by k |> where k < 9 and total > 5;
view One = from S |> aggregate total := sum(v) |> where 1 > 2;
view Best = from S |> top 3 per k by v desc |> where k < 9 and v > 5;
view Last = from S |> latest per k |> where k < 9 and v > 5;
view Set = from S |> project t, k |> distinct |> where k < 9;
