"""Goal: the simulator would notice. Every planted mistake is found by the seed that is known to find it.

`python -m runtime.simulation --mistakes` hunts them anew; when the generator of schedules changes, the list in
known_seeds.py is to be replaced by what that finds.
"""

from __future__ import annotations

import pytest

from runtime.simulation.mistakes import MISTAKES, Catch, as_markdown, hunt
from runtime.simulation.planting import planted, replaced
from runtime.simulation.schedules import draw_schedule
from runtime.simulation.simulator import run_schedule
from tests.simulation.known_seeds import KNOWN_SEEDS


def test_there_are_enough_mistakes_and_each_has_a_seed() -> None:
    names = [mistake.name for mistake in MISTAKES]
    assert len(names) == len(set(names))
    assert len(names) >= 40
    numbered = {name.split()[0].rstrip("b") for name in names}
    assert numbered >= {str(number) for number in range(1, 30)}
    assert sorted(KNOWN_SEEDS) == sorted(names)


@pytest.mark.parametrize("mistake", MISTAKES, ids=[mistake.name for mistake in MISTAKES])
def test_the_known_seed_finds_it_and_passes_without_it(mistake: object) -> None:
    found = next(candidate for candidate in MISTAKES if candidate is mistake)
    graph, seed = KNOWN_SEEDS[found.name]
    schedule = draw_schedule(seed, graph)
    with planted(found):
        assert run_schedule(schedule).violation is not None
    assert run_schedule(schedule).violation is None


def test_planting_leaves_nothing_behind() -> None:
    class Rule:
        def holds(self) -> bool:
            return True

    class Stricter(Rule):
        pass

    with replaced(Stricter, "holds", lambda _: False):
        assert not Stricter().holds()
        assert Rule().holds()
    assert Stricter().holds()
    assert "holds" not in vars(Stricter)


def test_a_hunt_says_where_it_found_the_mistake() -> None:
    mistake = MISTAKES[0]
    catch = hunt(mistake, seeds_max=50)
    assert catch is not None
    with planted(mistake):
        violation = run_schedule(draw_schedule(catch.seed, catch.ground)).violation
    assert violation is not None
    assert violation.rule == catch.rule
    assert f"| {mistake.name} |" in as_markdown([(mistake, catch)])
    assert "| - | -" in as_markdown([(mistake, None)])
    assert catch == Catch(mistake, catch.ground, catch.seed, catch.seeds_tried, catch.rule)
