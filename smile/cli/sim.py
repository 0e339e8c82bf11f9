"""`smile sim`: attack the protocol with seeded losses, crashes and partitions."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from smile.cli.connecting import AsJson
from smile.cli.files import fail

GRAPH_HELP = "One of figure1, random and the small graphs, or all."


def sim(
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to run.")] = 200,
    start: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    seed: Annotated[int | None, typer.Option(min=0, help="Run this one seed and tell its story.")] = None,
    graph: Annotated[str, typer.Option(help=GRAPH_HELP)] = "all",
    mistakes: Annotated[
        bool, typer.Option("--mistakes", help="Plant every known mistake and count the seeds until it is found.")
    ] = False,
    explore: Annotated[
        bool, typer.Option("--explore", help="Take the small graphs apart: every order, loss and crash.")
    ] = False,
    seconds: Annotated[float, typer.Option(help="With --explore: the time for each small graph.")] = 30.0,
    as_json: AsJson = False,
) -> None:
    """Simulate the protocol under faults and judge every step against a naive truth.

    One seed decides everything: graph, workload, faults. A seed that fails is shrunk to the shortest schedule that
    still fails and told message by message. Exit code 1 if anything fails. See docs/simulation.md.

    Example: smile sim --seeds 50 --graph figure1
    """
    # Here, so that other commands do not load the simulator.
    from runtime.simulation import command
    from runtime.simulation.schedules import GRAPHS

    if graph not in (*GRAPHS, "all"):
        fail(f"unknown graph `{graph}`: one of {', '.join((*GRAPHS, 'all'))}")
    said: list[str] = []
    report = said.append if as_json else typer.echo
    told: dict[str, object] = {}
    if mistakes:
        passed = command.mistakes(seeds, report)
        told["lines"] = said
    elif explore:
        found = command.explore_all(seconds, report)
        passed = all(one.violation is None for one in found)
        told["graphs"] = [{**vars(one), "violation": _shown(one.violation)} for one in found]
    elif seed is not None:
        one = command.tell(seed, "random" if graph == "all" else graph, report)
        passed = one.violation is None
        told.update(seed=seed, violation=_shown(one.violation), messages=one.messages, trace=one.trace_hash, lines=said)
    else:
        summary = command.run(seeds, start, graph, report)
        passed = summary.passed
        failures = [{"seed": one.schedule.seed, "violation": _shown(one.violation)} for one in summary.failures]
        told.update({**vars(summary), "counts": dict(summary.counts), "failures": failures})
    if as_json:
        typer.echo(json.dumps({"passed": passed, **told}, indent=2))
    if not passed:
        raise typer.Exit(1)


def _shown(violation: Exception | None) -> str | None:
    return None if violation is None else str(violation)
