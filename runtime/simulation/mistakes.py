"""The power of the simulator: every planted mistake, and how many seeds it takes to find it.

`hunt` runs seeds with one mistake planted until a check fails: mostly the short runs on small graphs, and now and then
a large one. The tests keep a list of where each was found, so that they need only look there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from runtime.simulation.mistakes_further import FURTHER
from runtime.simulation.mistakes_specified import SPECIFIED
from runtime.simulation.planting import Mistake, planted
from runtime.simulation.schedules import draw_schedule
from runtime.simulation.simulator import run_schedule

MISTAKES: tuple[Mistake, ...] = (*SPECIFIED, *FURTHER)
GROUNDS = ("small", "random")


@dataclass(frozen=True)
class Catch:
    """Where a mistake was found."""

    mistake: Mistake
    ground: str
    seed: int
    seeds_tried: int
    rule: str


def hunt(mistake: Mistake, seeds_max: int, start: int = 0) -> Catch | None:
    """The first seed that exposes a mistake."""
    tried = 0
    with planted(mistake):
        for seed in range(start, start + seeds_max):
            for ground in GROUNDS[: 1 if seed % 4 else 2]:  # a large run for every four small ones
                tried += 1
                violation = run_schedule(draw_schedule(seed, ground)).violation
                if violation is not None:
                    return Catch(mistake, ground, seed, tried, violation.rule)
                if tried >= seeds_max:
                    return None
    return None


def power_table(
    seeds_max: int, report: Callable[[str], None], mistakes: Iterable[Mistake] = MISTAKES
) -> list[tuple[Mistake, Catch | None]]:
    """Hunt all mistakes; one line for each as it is found."""
    table: list[tuple[Mistake, Catch | None]] = []
    for mistake in mistakes:
        catch = hunt(mistake, seeds_max)
        table.append((mistake, catch))
        found = "not found" if catch is None else f"{catch.seeds_tried:6}  {catch.ground} {catch.seed}  [{catch.rule}]"
        report(f"{mistake.name:32} {found}")
    return table


def as_markdown(table: list[tuple[Mistake, Catch | None]]) -> str:
    """The table as the documentation keeps it."""
    lines = ["| mistake | what is wrong | seeds to find | found by |", "|---|---|---|---|"]
    for mistake, catch in table:
        found = "- | -" if catch is None else f"{catch.seeds_tried} | {catch.rule} ({catch.ground} {catch.seed})"
        lines.append(f"| {mistake.name} | {mistake.what} | {found} |")
    return "\n".join(lines) + "\n"
