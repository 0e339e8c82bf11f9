"""What a program says with `tune`, applied to the components of its deployment.

`tune all` is for everything that is not named on its own. A relation's tuning is that of all components that compute
it. Checkpoints are taken for all components of a broker together, so the shortest wish among them counts.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from mpl.typed import Tuning
from runtime.plan import Component, Mode
from smile.program import Program


def wish_for(program: Program, component: str) -> Tuning | None:
    """What the program says about the relation that this component computes, or about everything."""
    wishes = {wish.relation: wish for wish in program.checked.program.tunings}
    transform = program.graph.nodes.get(component)
    named = wishes.get(component) or (None if transform is None else wishes.get(transform.view))
    return named or wishes.get(None)


def tuned(program: Program, component: Component) -> Component:
    """The component with the delays and the liveness that were asked for; others stay as they are."""
    wish = wish_for(program, component.name)
    if wish is None:
        return component
    tuning = component.tuning
    if wish.gap_us is not None:
        tuning = replace(tuning, ask_delay_us=wish.gap_us, ask_delay_us_max=max(wish.gap_us, tuning.ask_delay_us_max))
    if wish.idle_us is not None:
        tuning = replace(tuning, idle_us=wish.idle_us)
    if wish.quench is not None:
        tuning = replace(tuning, quench_keys=wish.quench)
    edges = component.in_edges
    if wish.liveness is not None:
        edges = tuple(replace(edge, mode=Mode(wish.liveness)) for edge in edges)
    return replace(component, tuning=tuning, in_edges=edges)


def checkpoint_every_us(program: Program, here: Collection[str], default_us: int) -> int:
    """How often the broker that has these components writes checkpoints."""
    wishes = [wish.checkpoint_us for name in here if (wish := wish_for(program, name)) is not None]
    return min((us for us in wishes if us is not None), default=default_us)
