"""`python -m tests.chaos --kills 1000`: the chaos test for as long as one likes; exit code 0 if everything held.

A seed that fails is named, and its folder with ledgers, records and the brokers' data is kept. The same seed makes
the same decisions again, which is as much of a replay as real processes allow.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.chaos.run import Run

KILLS_PER_RUN = 50
"""Longer commands consist of several runs, each with a seed of its own: a record should be short enough to read."""
EVENTS_PER_RUN = 100_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="brokers killed with -9, in all")
    parser.add_argument("--events", type=int, default=EVENTS_PER_RUN, help="published in each run")
    parser.add_argument("--seed", type=int, default=1, help="of the first run; each further run has the next one")
    parser.add_argument("--keep", action="store_true", help="keep the folders of runs in which everything held, too")
    options = parser.parse_args()
    left, seed, failed = options.kills, options.seed, 0
    while left > 0:
        kills = min(left, KILLS_PER_RUN)
        folder = Path(tempfile.mkdtemp(prefix=f"smile-chaos-{seed}-"))
        verdict = Run(seed, kills, options.events, folder)()
        print(verdict.summary(), flush=True)
        if verdict.wrong:
            failed += 1
            print("\n".join(f"  {text}" for text in verdict.wrong), f"  evidence: {folder}", sep="\n", flush=True)
        elif not options.keep:
            shutil.rmtree(folder)
        left, seed = left - kills, seed + 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
