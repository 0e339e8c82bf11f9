stream S (id int, k int, v int) unique id;
stream R (k int, w int) unique k;
view Guarded = from S |> where v <> 0 |> extend x := k + 1 |> where 100 / v > 3 and k > 1;
view NotBelowJoin = from S |> join R using k |> where 100 / v > 3 and k > 1;
view Stays = from S |> where id > 0 |> extend u := k * 2 |> where u > 4;
