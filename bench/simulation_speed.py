"""How many schedules a core simulates in a second, and what a schedule contains.

    python -m bench.simulation_speed [--seeds 60]

Processor time, all checks on. The loop at the end is a yardstick for the machine: five million turns of an empty-
handed Python loop, to compare runs on machines that are busy with something else.
"""

from __future__ import annotations

import argparse
import time

from runtime.simulation.command import run
from runtime.simulation.schedules import GRAPHS


def yardstick_s() -> float:
    """Processor time of a fixed amount of Python."""
    began = time.process_time()
    total = 0
    for i in range(5_000_000):
        total += i & 3
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description="Schedules for each core and second.")
    parser.add_argument("--seeds", type=int, default=60)
    options = parser.parse_args()
    print(f"yardstick: {yardstick_s():.2f} s")
    for graph in (*GRAPHS, "all"):
        summary = run(options.seeds, graph=graph, report=lambda _: None)
        speed, content, *_ = summary.lines()
        print(f"{graph:8} {speed}; {content}")


if __name__ == "__main__":
    main()
