"""The shortest schedule that still fails: delta debugging over decisions and fates.

Called with a failing schedule and a function that runs one and says whether it fails in the same way. Whole chunks go
first, halves of halves after; what remains cannot lose any single decision or fate without passing. The number of
runs is bounded, so a shrunk schedule may be a little longer than the shortest when the bound is reached.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from runtime.simulation.decisions import Decision, Fate, FateName, Schedule

RUNS_MAX = 2_000

T = TypeVar("T")


@dataclass
class _Budget:
    left: int


def shrink(schedule: Schedule, fails: Callable[[Schedule], bool], runs_max: int = RUNS_MAX) -> Schedule:
    """Take away decisions, then fates, then decisions again, as long as the failure stays."""
    assert schedule.fates is not None, "shrinking needs the recorded fates"
    budget = _Budget(runs_max)

    for _ in range(2):
        before = schedule
        fates = _minimise(list((schedule.fates or {}).items()), _fails_with_fates(schedule, fails), budget)
        schedule = replace(schedule, fates=dict(fates))
        decisions = _minimise(list(schedule.decisions), _fails_with_decisions(schedule, fails), budget)
        schedule = replace(schedule, decisions=tuple(decisions))
        if schedule == before:
            break
    return schedule


def _fails_with_fates(
    schedule: Schedule, fails: Callable[[Schedule], bool]
) -> Callable[[list[tuple[FateName, Fate]]], bool]:
    return lambda kept: fails(replace(schedule, fates=dict(kept)))


def _fails_with_decisions(schedule: Schedule, fails: Callable[[Schedule], bool]) -> Callable[[list[Decision]], bool]:
    return lambda kept: fails(replace(schedule, decisions=tuple(kept)))


def _minimise(items: list[T], fails: Callable[[list[T]], bool], budget: _Budget) -> list[T]:
    """Zeller's ddmin, complements only: what is kept still fails."""
    chunks = 1
    while items and budget.left > 0:
        size = max(1, len(items) // chunks)
        for start in range(0, len(items), size):
            if budget.left <= 0:
                return items
            budget.left -= 1
            kept = items[:start] + items[start + size :]
            if fails(kept):
                items = kept
                chunks = max(chunks - 1, 1)
                break
        else:
            if size == 1:
                return items
            chunks = min(len(items), chunks * 2)
    return items
