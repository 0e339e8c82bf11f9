stream S (k int, v int, b bool null);
view Always = from S |> where true or v > 1;
view Never = from S |> where nullif(true, true) and v > 1 |> extend w := 1;
view Partly = from S |> where true and v > 1 and (false or k > 2);
view Kept = from S |> where 100 / v > 1 and false;
view Counted = from S |> aggregate n := count() where true, m := sum(case when false then 1 else v end) group by k;
