stream S (k int, v int);
view Unread = from S |> where v > 1 |> extend w := v + 1 inline;
view Read = from S |> where v > 2 inline;
view Asked = from Read |> aggregate n := count() group by k;
view Subscribed = from S |> where v > 3 inline;
subscribe it to Subscribed;
