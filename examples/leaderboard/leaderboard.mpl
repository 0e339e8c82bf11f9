-- Players score in several games; who leads each?

stream Scores (game text, player text, points int[0..100]);

view Totals = from Scores
  |> aggregate points := sum(points), rounds := count() group by game, player;
view Leaders = from Totals |> top 3 per game by points desc with rank place;
view Champions = from Leaders |> where place = 1 |> project game, player, points;

subscribe leaders to Leaders;
