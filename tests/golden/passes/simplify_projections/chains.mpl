stream S (a int[0..9], b int[0..9], c text);
view Chain = from S |> project a, b |> extend s := a + b |> rename s as total |> project total, a |> extend d := total * 2;
view Twice = from S |> project a, b, c |> project c, a;
view Merged = from S |> extend x := a + 1 |> extend y := b + 1, z := 7;
view Apart = from S |> extend x := a * b |> extend y := x * x;
view Names = from S |> rename a as first, b as second;
