stream S (k int, v int[0..]);
view A = from S |> where v > 1 |> aggregate n := count() group by k;
view B = from S |> where v > 1 |> aggregate total := sum(v) group by k;
view C = from S |> where v > 1 |> aggregate how_many := count() group by k;
view D = from A |> where n > 10;
view E = from C |> where how_many > 10;
view Alias = from A;
