"""What `smile sim` does: run seeds, tell one seed's story, hunt planted mistakes, explore small graphs completely.

The command line (here as `python -m runtime.simulation`, and the `smile` command) only parses options and prints;
it calls `run`, `tell`, `mistakes` and `explore_all` with a function that prints a line.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from runtime.simulation.decisions import Schedule
from runtime.simulation.explore import SPACES, Exploration, explore
from runtime.simulation.mistakes import as_markdown, power_table
from runtime.simulation.schedules import GRAPHS, draw_schedule
from runtime.simulation.shrink import shrink
from runtime.simulation.simulator import Result, Simulator, run_schedule
from runtime.simulation.story import Story
from runtime.simulation.violation import Violation

Report = Callable[[str], None]
REPORT_EVERY = 200


@dataclass
class Summary:
    """What came out of many seeds."""

    runs: int = 0
    messages: int = 0
    events: int = 0
    components: int = 0
    faults: int = 0
    seconds: float = 0.0
    converged_us_max: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Result] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.failures

    def lines(self) -> list[str]:
        """The summary in words."""
        runs = max(1, self.runs)
        counted = ", ".join(f"{name} {count}" for name, count in self.counts.most_common())
        speed = self.runs / max(self.seconds, 1e-9)
        mean = (
            f"{self.components / runs:.1f} components, {self.events / runs:.1f} events, {self.faults / runs:.1f} faults"
        )
        return [
            f"{self.runs} schedules in {self.seconds:.1f} s ({speed:.1f}/s), {len(self.failures)} failed",
            f"on average {mean}, {self.messages / runs:.0f} messages",
            f"all was known at most {self.converged_us_max / 1000:.0f} ms after the faults stopped",
            f"took effect: {counted}",
        ]


def graph_names(graph: str) -> tuple[str, ...]:
    """The graphs that an option means."""
    if graph == "all":
        return GRAPHS
    if graph not in GRAPHS:
        raise ValueError(f"unknown graph {graph!r}: one of {', '.join((*GRAPHS, 'all'))}")
    return (graph,)


def run(seeds: int, start: int = 0, graph: str = "all", report: Report = print, failures_max: int = 5) -> Summary:
    """Run seeds; stop after some failures. With several graphs the seeds are shared out in turn."""
    names = graph_names(graph)
    summary = Summary()
    began = time.process_time()
    for number in range(seeds):
        seed = start + number
        schedule = draw_schedule(seed, names[seed % len(names)])
        result = run_schedule(schedule)
        _add(summary, schedule, result)
        summary.seconds = time.process_time() - began
        if result.violation is not None:
            report(f"seed {seed} ({names[seed % len(names)]}): {result.violation}")
            if len(summary.failures) >= failures_max:
                break
        if (number + 1) % REPORT_EVERY == 0:
            report(f"{number + 1} of {seeds} seeds, {len(summary.failures)} failed, {summary.seconds:.0f} s")
    for line in summary.lines():
        report(line)
    return summary


def _add(summary: Summary, schedule: Schedule, result: Result) -> None:
    summary.runs += 1
    summary.messages += result.messages
    summary.components += len(schedule.graph.nodes)
    summary.events += sum((len(d.arguments) - 1) // 4 for d in schedule.decisions if d.kind == "publish")
    summary.faults += sum(d.kind not in ("publish", "checkpoint") for d in schedule.decisions)
    summary.counts += result.counts
    summary.converged_us_max = max(summary.converged_us_max, result.converged_us)
    if result.violation is not None:
        summary.failures.append(result)


def tell(seed: int, graph: str = "random", report: Report = print, lines_max: int = 400) -> Result:
    """One seed: its story if it passes, the shrunk schedule and the story of that if it fails."""
    schedule = draw_schedule(seed, graph)
    result = run_schedule(schedule)
    if result.violation is not None:
        report(f"seed {seed} ({graph}) fails: {result.violation}")
        schedule = shrink(result.schedule, lambda tried: _fails_alike(tried, result.violation))
        report(f"shrunk to {len(schedule.decisions)} decisions and {len(schedule.fates or {})} message fates")
    report(schedule.graph.describe())
    report(f"placed on: {', '.join(f'{name} {node}' for name, node in schedule.placement.items())}")
    for decision in schedule.decisions:
        report(decision.describe())
    for (sender, receiver, number), fate in sorted((schedule.fates or {}).items()):
        report(f"message {number} from {sender} to {receiver}: {fate}")
    story = Story()
    simulator = Simulator(schedule, (story,))
    story.attach(simulator.world)
    try:
        simulator.run()
    except Violation as violation:
        story.tell(f"VIOLATION {violation}")
    for line in story.lines[-lines_max:]:
        report(line)
    report(f"trace {result.trace_hash}, {result.messages} messages")
    return result


def _fails_alike(schedule: Schedule, violation: Violation | None) -> bool:
    found = run_schedule(schedule).violation
    return found is not None and violation is not None and found.rule == violation.rule


def mistakes(seeds_max: int = 10_000, report: Report = print) -> bool:
    """Hunt every planted mistake; True if all were found."""
    table = power_table(seeds_max, report)
    report("")
    report(as_markdown(table))
    return all(catch is not None for _, catch in table)


def explore_all(seconds_each: float = 30.0, report: Report = print) -> list[Exploration]:
    """Take the small spaces apart; each stops at its time bound."""
    found = []
    for space in SPACES:
        exploration = explore(space, seconds_each)
        found.append(exploration)
        report(exploration.line())
    return found
