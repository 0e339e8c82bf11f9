stream S (a int[0..9], b int[0..9], c text);
view Narrow = from S |> project a, b;
view One = from Narrow |> extend x := a + 1;
view Two = from Narrow |> extend y := b + 1 |> project y, a;
