"""Goal: what a program says with `tune` reaches the components it names."""

from __future__ import annotations

import smile
from runtime.broker.tuning import BROKER
from runtime.plan import Component, Mode
from smile.deploy.tuning import checkpoint_every_us, tuned, wish_for

PROGRAM = """
stream S(a int, b text);
view Sums = from S |> where a > 1 |> aggregate n := count() group by b |> where n > 2;
view Other = from S |> aggregate n := count();
tune all gap 200 ms idle 2 s pull checkpoint every 30 s;
tune Sums push quench off checkpoint every 5 s;
"""


def components(text: str = PROGRAM) -> tuple[smile.Program, dict[str, Component]]:
    program = smile.compile(text)
    return program, {name: tuned(program, one) for name, one in program.plan.components.items()}


def test_named_relations_have_their_own_tuning_and_others_that_of_all() -> None:
    program, made = components()
    sums = [name for name in made if name.startswith("Sums")]
    assert len(sums) > 1
    for name in sums:
        assert made[name].tuning.quench_keys is False
        assert all(edge.mode is Mode.PUSH for edge in made[name].in_edges)
        assert made[name].tuning.idle_us == program.plan.components[name].tuning.idle_us
    assert made["Other"].tuning.ask_delay_us == 200_000
    assert made["Other"].tuning.idle_us == 2_000_000
    assert all(edge.mode is Mode.PULL for edge in made["Other"].in_edges)


def test_the_shortest_wish_of_a_broker_decides_about_checkpoints() -> None:
    program, _ = components()
    assert checkpoint_every_us(program, ["Other"], 10_000_000) == 30_000_000
    assert checkpoint_every_us(program, ["Other", "Sums"], 10_000_000) == 5_000_000


def test_without_a_word_nothing_changes() -> None:
    program, made = components(PROGRAM.partition("tune")[0])
    assert made == dict(program.plan.components)
    assert wish_for(program, "Sums") is None
    assert checkpoint_every_us(program, made, 7) == 7
    assert BROKER.quench_keys
