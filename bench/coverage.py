"""How fast coverages are: in-order growth, and every question about one place among 10 to 10,000 gaps.

    python -m bench.coverage [--extensions 1000000] [--gaps 10 100 1000 10000] [--turns 5]

Prints the best of several turns: on a shared machine the minimum is the code, the rest is the neighbours.
"""

import argparse
import gc
import random
import time
import tracemalloc
from collections.abc import Callable
from functools import partial

import msgpack

from runtime.protocol.coverage import Coverage
from runtime.protocol.gap_list import GapList

TICK_START = 1_750_000_000_000_000 * 1024
"""A tick of our days (microseconds x 1024), so that ints have their real size."""

TICKS_PER_PERIOD = 20 * 1024
"""A scattered coverage alternates between half a period known and half a period missing."""

PLACES = 1_000
"""How many visits one turn of a scattered measurement makes."""

Prepare = Callable[[], Callable[[], None]]
"""Prepares one turn and returns what to time."""


def scattered(gaps: int) -> Coverage:
    half = TICKS_PER_PERIOD // 2
    starts = (TICK_START + period * TICKS_PER_PERIOD for period in range(1, gaps + 1))
    return Coverage.of((0, TICK_START + half), *((start, start + half) for start in starts))


def places_in(gaps: int) -> list[int]:
    """A tick inside each gap, at most `PLACES` of them, in an order that jumps about."""
    visited = random.Random(gaps).sample(range(gaps), min(gaps, PLACES))
    return [TICK_START + (gap + 1) * TICKS_PER_PERIOD - 1024 for gap in visited]


def best_seconds(turns: int, prepare: Prepare) -> float:
    """No collection of garbage meanwhile, as in `timeit`."""
    seconds = []
    for _ in range(turns):
        run = prepare()
        gc.disable()
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
        gc.enable()
    return min(seconds)


def extend_in_order(extensions: int, start: Coverage) -> Prepare:
    def prepare() -> Callable[[], None]:
        coverage = start.copy()
        first = coverage.highest() + 1

        def run() -> None:
            add = coverage.add
            for tick in range(first, first + extensions * 1024, 1024):
                add(tick, tick + 1023)

        return run

    return prepare


def scattered_work(gaps: int) -> dict[str, Prepare]:
    """Each visits `PLACES` places; few gaps are visited several times, and filled in a fresh copy each time."""
    base, places = scattered(gaps), places_in(gaps)
    rounds = PLACES // len(places)
    questions = [Coverage.of((tick, tick + 100)) for tick in places]

    def prepare_add() -> Callable[[], None]:
        copies = [base.copy() for _ in range(rounds)]

        def run() -> None:
            for coverage in copies:
                for tick in places:
                    coverage.add(tick, tick + 100)

        return run

    def ask_tick() -> None:
        for tick in places * rounds:
            _ = tick in base

    def ask_contains() -> None:
        for question in questions * rounds:
            base.contains(question)

    def ask_missing() -> None:
        for tick in places * rounds:
            base.missing_within((tick - TICKS_PER_PERIOD, tick))

    def ask_new() -> None:
        for question in questions * rounds:
            question.difference(base)

    return {
        "add": prepare_add,
        "tick in": lambda: ask_tick,
        "contains": lambda: ask_contains,
        "missing_within": lambda: ask_missing,
        "difference": lambda: ask_new,
    }


def bytes_held(make: Callable[[], object]) -> int:
    tracemalloc.start()
    made = make()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del made
    return held


def whole_work(gaps: int) -> dict[str, Prepare]:
    """Operations that must look at every range."""
    base = scattered(gaps)
    shifted = base.missing_up_to(base.highest() + 5 * 1024)
    wire = base.to_wire()
    return {
        "copy": lambda: lambda: _drop(base.copy()),
        "union": lambda: lambda: _drop(base.union(shifted)),
        "gaps": lambda: lambda: _drop(base.gaps()),
        "to_wire": lambda: lambda: _drop(base.to_wire()),
        "from_wire": lambda: lambda: _drop(Coverage.from_wire(wire, gaps + 1)),
        "gap list, 2": lambda: lambda: _drop(GapList.of([base, shifted]).questions()),
    }


def _drop(_value: object) -> None:
    """Keeps a result from looking unused."""


def print_table(title: str, columns: list[str], rows: list[tuple[int, list[float]]]) -> None:
    print(f"\n{title}")
    print(f"{'gaps':>8}" + "".join(f"{column:>16}" for column in columns))
    for gaps, cells in rows:
        print(f"{gaps:>8,}" + "".join(f"{cell:>16,.2f}" for cell in cells))


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"needs 1 or more, not {number}")
    return number


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure coverages: growth, scattered gaps, memory, wire size.")
    parser.add_argument("--extensions", type=positive, default=1_000_000, help="in-order additions per turn")
    parser.add_argument("--gaps", type=positive, nargs="+", default=[10, 100, 1_000, 10_000])
    parser.add_argument("--turns", type=positive, default=5, help="the best of this many turns is printed")
    options = parser.parse_args()

    print("in-order extensions per second (one `add` per message)")
    for name, start in [("no gaps", Coverage.prefix(TICK_START)), ("10,000 gaps below", scattered(10_000))]:
        seconds = best_seconds(options.turns, extend_in_order(options.extensions, start))
        print(f"{name:>24}{options.extensions / seconds:>16,.0f}")

    rows, whole_rows, sizes = [], [], []
    for gaps in options.gaps:
        work, whole = scattered_work(gaps), whole_work(gaps)
        visits = PLACES // min(gaps, PLACES) * min(gaps, PLACES)
        rows.append((gaps, [best_seconds(options.turns, one) / visits * 1e6 for one in work.values()]))
        whole_rows.append((gaps, [best_seconds(options.turns, one) * 1e6 for one in whole.values()]))
        coverage = scattered(gaps)
        held = bytes_held(partial(scattered, gaps)) / gaps
        wire = len(msgpack.packb(coverage.to_wire()))
        sizes.append((gaps, [held, bytes_held(coverage.copy) / gaps, wire, wire / gaps]))
    print_table("one place, microseconds each (gaps visited in jumping order)", list(work), rows)
    print_table("the whole coverage, microseconds each", list(whole), whole_rows)
    print_table("bytes", ["held per gap", "copy per gap", "wire", "wire per gap"], sizes)


if __name__ == "__main__":
    main()
