"""Goal: one seed is one run: the same trace in another process, whatever its hash seed, and when it is replayed."""

from __future__ import annotations

import os
import subprocess
import sys

from runtime.simulation.decisions import Schedule
from runtime.simulation.random_source import RandomSource
from runtime.simulation.schedules import draw_schedule
from runtime.simulation.simulator import run_schedule

PROGRAM = """
from runtime.simulation.schedules import GRAPHS, draw_schedule
from runtime.simulation.simulator import run_schedule
for graph in GRAPHS:
    for seed in range(3):
        print(run_schedule(draw_schedule(seed, graph)).trace_hash)
"""


def trace_hashes(hash_seed: str) -> list[str]:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=True)
    return done.stdout.split()


def test_the_hash_seed_of_the_process_changes_nothing() -> None:
    first, second = trace_hashes("1"), trace_hashes("4242")
    assert len(first) == 9
    assert len(set(first)) == 9
    assert first == second


def test_a_replay_with_recorded_fates_is_the_same_run() -> None:
    for seed in range(6):
        schedule = draw_schedule(seed, "small")
        first = run_schedule(schedule)
        assert schedule.fates is None
        assert first.schedule.fates is not None
        assert run_schedule(first.schedule).trace_hash == first.trace_hash


def test_streams_of_randomness_are_independent() -> None:
    source = RandomSource(7)
    numbers = [source.stream("faults").random() for _ in range(2)]
    assert numbers[0] == numbers[1]
    source.stream("workload").random()
    assert source.stream("faults").random() == numbers[0]
    assert source.stream("workload").random() != numbers[0]


def test_other_seeds_are_other_schedules() -> None:
    drawn: list[Schedule] = [draw_schedule(seed, "random") for seed in range(8)]
    assert len({repr(schedule.decisions) for schedule in drawn}) == 8
