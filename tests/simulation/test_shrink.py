"""Goal: a failing run is cut down to the few decisions that matter, and its story tells them."""

from __future__ import annotations

from runtime.simulation.command import tell
from runtime.simulation.decisions import Schedule
from runtime.simulation.mistakes import MISTAKES
from runtime.simulation.planting import Mistake, planted
from runtime.simulation.schedules import draw_schedule
from runtime.simulation.shrink import shrink
from runtime.simulation.simulator import run_schedule


def mistake_called(name: str) -> Mistake:
    return next(mistake for mistake in MISTAKES if mistake.name == name)


def first_failure() -> tuple[int, Schedule, str]:
    for seed in range(200):
        result = run_schedule(draw_schedule(seed, "small"))
        if result.violation is not None:
            return seed, result.schedule, result.violation.rule
    raise AssertionError("the planted mistake was not found")


def fails_by(schedule: Schedule, rule: str) -> bool:
    violation = run_schedule(schedule).violation
    return violation is not None and violation.rule == rule


def test_a_planted_mistake_shrinks_to_a_few_decisions() -> None:
    with planted(mistake_called("2 gap accepted")):
        _, schedule, rule = first_failure()
        shrunk = shrink(schedule, lambda tried: fails_by(tried, rule), runs_max=250)
        assert fails_by(shrunk, rule)
        assert len(shrunk.decisions) + len(shrunk.fates or {}) <= 8
        assert len(shrunk.decisions) < len(schedule.decisions)
        for i in range(len(shrunk.decisions)):  # nothing left over
            fewer = shrunk.decisions[:i] + shrunk.decisions[i + 1 :]
            assert not fails_by(Schedule(**{**vars(shrunk), "decisions": fewer}), rule)
    assert run_schedule(shrunk).violation is None


def test_the_story_of_a_failure_names_what_happened() -> None:
    lines: list[str] = []
    with planted(mistake_called("14 forgotten early")):
        seed, _, rule = first_failure()
        result = tell(seed, "small", lines.append)
    assert result.violation is not None
    text = "\n".join(lines)
    assert f"seed {seed} (small) fails: [{rule}]" in text
    assert "shrunk to" in text
    assert "publish s" in text
    assert "VIOLATION" in text
    assert "covers" in text
