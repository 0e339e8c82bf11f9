"""Goal: small graphs hold in every order of messages, losses, crashes and checkpoints, as far as a few seconds go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtime.protocol.state_component import StateComponent
from runtime.simulation.explore import NARROW, WIDE, Space, explore
from runtime.simulation.mistakes import MISTAKES
from runtime.simulation.planting import planted


@pytest.mark.parametrize("space", WIDE, ids=[space.graph.title for space in WIDE])
def test_every_space_holds_for_a_while(space: Space) -> None:
    found = explore(space, seconds=60.0, states_max=600)
    assert found.violation is None, found.line()
    assert found.converged == 600
    assert found.states > 600


def test_two_events_and_a_crash_are_exhausted() -> None:
    found = explore(NARROW[0], seconds=60.0)
    assert found.violation is None, found.line()
    assert found.exhausted
    assert found.states == found.converged
    assert found.states > 2_000


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("2 gap accepted", "sum"),
        ("3 stale accepted", "sum"),
        ("9 no domination", "sum"),
        ("11 before the snapshot", "sum"),
        ("12 one side", "join"),
        ("20 union of edges", "diamond"),
    ],
)
def test_exploration_finds_planted_mistakes(name: str, title: str) -> None:
    mistake = next(mistake for mistake in MISTAKES if mistake.name == name)
    space = next(space for space in NARROW if space.graph.title == title)
    with planted(mistake):
        found = explore(space, seconds=60.0, states_max=3_000)
    assert found.violation is not None
    assert len(found.path) > 1, "the way to the violation is told"


def test_a_component_that_never_converges_is_noticed() -> None:
    deaf = replace(MISTAKES[0], patches=((StateComponent, "_answer", lambda *_: None),))
    with planted(deaf):
        found = explore(NARROW[0], seconds=60.0, states_max=1_000)
    assert found.violation is not None
    assert found.violation.rule == "I7"
