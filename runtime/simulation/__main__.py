"""`python -m runtime.simulation`: the simulator alone. Options only; the work is in `command.py`."""

from __future__ import annotations

import argparse
import sys

from runtime.simulation import command
from runtime.simulation.schedules import GRAPHS


def main(arguments: list[str] | None = None) -> int:
    """0 if everything held, 1 if something broke."""
    parser = argparse.ArgumentParser(prog="python -m runtime.simulation", description="Attack the protocol with seeds.")
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to run")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="run one seed and tell its story")
    parser.add_argument("--graph", default="all", choices=(*GRAPHS, "all"))
    parser.add_argument("--mistakes", action="store_true", help="plant every mistake and count the seeds to find it")
    parser.add_argument("--explore", action="store_true", help="explore the small spaces breadth-first")
    parser.add_argument("--seconds", type=float, default=30.0, help="time bound for each explored space")
    options = parser.parse_args(arguments)
    if options.mistakes:
        return 0 if command.mistakes(options.seeds) else 1
    if options.explore:
        return 0 if all(found.violation is None for found in command.explore_all(options.seconds)) else 1
    if options.seed is not None:
        graph = "random" if options.graph == "all" else options.graph
        return 0 if command.tell(options.seed, graph).violation is None else 1
    return 0 if command.run(options.seeds, options.start, options.graph).passed else 1


if __name__ == "__main__":
    sys.exit(main())
