"""Random programs by command: check many, or print one.

python -m tests.generator --cases 100000 --start 500000     programs and mutants with these numbers
python -m tests.generator --print 7 --size 40               the program of seed 7, large
"""

from __future__ import annotations

import argparse
import sys
from time import monotonic

from tests.generator.cases import MUTANTS_PER_PROGRAM, failure_of_mutant, failure_of_program
from tests.generator.program import SIZE, generate

FAILURES_MAX = 5


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.generator", description="Check random MPL programs.")
    parser.add_argument("--cases", type=int, default=20_000, help="how many; one in five is a program")
    parser.add_argument("--start", type=int, default=0, help="the number of the first case")
    parser.add_argument("--size", type=int, default=SIZE, help="about how many views a program has at most")
    parser.add_argument("--print", type=int, metavar="SEED", help="print one program and stop")
    options = parser.parse_args()
    if options.print is not None:
        print(generate(options.print, options.size).text)
        return 0
    began = monotonic()
    failures = 0
    for case in range(options.start, options.start + options.cases):
        failure = failure_of_program(case, options.size) if case % 5 == 0 else failure_of_mutant(case, options.size)
        if failure is not None:
            print(failure)
            failures += 1
            if failures == FAILURES_MAX:
                break
    seconds = monotonic() - began
    print(
        f"{options.cases:,} cases from {options.start:,} ({MUTANTS_PER_PROGRAM} mutants of each program), "
        f"{failures} failures, {seconds:.1f} s"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
