stream S (k int, v int[0..100]);
view Sums = from S |> aggregate total := sum(v) group by k;
view One = from Sums |> where k = 1;
view Two = from Sums |> where k = 2;
