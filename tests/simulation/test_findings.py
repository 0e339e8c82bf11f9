"""Goal: the shortest schedules that broke a rule once, written out so that they do not depend on any generator."""

from __future__ import annotations

from runtime.plan import Tuning
from runtime.protocol.state_component import StateComponent
from runtime.simulation.decisions import Decision, Schedule, Settings
from runtime.simulation.descriptor import Graph
from runtime.simulation.planting import Mistake, planted
from runtime.simulation.simulator import run_schedule
from runtime.simulation.small_graphs import SMALL_GRAPHS

TUNING = Tuning(
    ask_delay_us=5_000,
    ask_delay_us_max=30_000,
    idle_us=40_000,
    heartbeat_us=25_000,
    ack_us=2_000,
    silence_us=10_000,
)


def graph_called(title: str) -> Graph:
    return next(graph for graph in SMALL_GRAPHS if graph.title == title)


def test_a_floor_is_inherited_by_receivers_that_follow_in_order() -> None:
    """W -> X -> L -> M. A vanishes while M is cut off; X and L start empty; L follows X in order from an empty step."""
    schedule = Schedule(
        seed=0,
        graph=graph_called("four hops"),
        placement={"s": "b0", "S": "b0", "W": "b0", "X": "b1", "L": "b1", "M": "client"},
        decisions=(
            Decision(1_000, "publish", "s", (1, 0, 0, 4, 0)),
            Decision(20_000, "partition", "client", ("b1", 60_000, 2)),
            Decision(25_000, "publish", "s", (2, 0, 0, 6, 0)),
            Decision(50_000, "crash", "b1", (1_000, "lost", "none")),
        ),
        faults_end_us=100_000,
        settings=Settings(tuning=TUNING, soft_components=("S", "W", "X", "L", "M")),
        fates={},
    )
    assert run_schedule(schedule).violation is None

    deaf = Mistake("floor not passed on", "", ((StateComponent, "_inherit", lambda *_: None),))
    with planted(deaf):
        violation = run_schedule(schedule).violation
    assert violation is not None
    assert (violation.rule, violation.component) == ("I1", "M")


def test_a_hidden_tick_is_passed_on_in_order() -> None:
    """Distinct over a value that moves: the incarnation that skipped the first value never held a row for it."""
    schedule = Schedule(
        seed=0,
        graph=graph_called("wandering"),
        placement={"s": "b3", "N": "b3", "D": "b0", "X": "b0", "L": "client"},
        decisions=(
            Decision(42_000, "publish", "s", (1, 1, 0, 9, 0)),
            Decision(51_000, "publish", "s", (2, 2, 0, 3, 0)),
            Decision(54_000, "crash", "b0", (28_000, "lost", "newest")),
        ),
        faults_end_us=90_000,
        settings=Settings(tuning=TUNING, soft_components=("N", "D", "X", "L")),
        fates={},
    )
    assert run_schedule(schedule).violation is None


def test_two_live_incarnations_do_not_make_curiosity_storm() -> None:
    """The old incarnation answers every question, the new one is behind: the question must stay open."""
    schedule = Schedule(
        seed=0,
        graph=graph_called("tombstones"),
        placement={"s": "b0", "S": "b1", "W": "b1", "X": "b2", "L": "b2"},
        decisions=(
            Decision(2_000, "publish", "s", (1, 0, 0, 4, 0)),
            Decision(30_000, "partition", "b0", ("b1", 60_000, 2)),
            Decision(31_000, "move", "W", ("b1", 60_000, "none")),
        ),
        faults_end_us=100_000,
        settings=Settings(tuning=TUNING, soft_components=("S", "W", "X", "L")),
        fates={},
    )
    result = run_schedule(schedule)
    assert result.violation is None
    assert result.messages < 400
