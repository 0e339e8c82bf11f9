"""Three games, six players, three hundred rounds."""

from pathlib import Path
from random import Random

import smile

GAMES = ("chess", "darts", "go")
PLAYERS = ("ada", "bob", "cai", "dot", "eva", "fred")


def main() -> None:
    rng = Random(11)
    program = smile.compile(Path(__file__).with_name("leaderboard.mpl"))
    with smile.run(program) as arena:
        with arena.subscribe("leaders") as leaders:
            for _ in range(300):
                score = {"game": rng.choice(GAMES), "player": rng.choice(PLAYERS), "points": rng.randint(0, 100)}
                arena.publish("Scores", score)
            arena.settle()
            changes = sum(1 for _ in leaders.ready())
        for row in sorted(arena.rows("Leaders"), key=lambda row: (row["game"], row["place"])):
            print(
                f"{row['game']:6} {row['place']}. {row['player']:5} {row['points']:5} points in {row['rounds']} rounds"
            )
        print(f"the board changed while they played: {changes > len(GAMES) * 3}")


if __name__ == "__main__":
    main()
